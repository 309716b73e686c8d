"""A tiny dataset in a temporary folder: its dataset file, its raw files, loaded as users would load them.

dataset = make_dataset(tmp_path, days={"2020-01-01": [{"user": 1, "item": "a", "time": at("2020-01-01"), "event": "view"}]})
store = make_store(dataset)
events, rejected = make_events_of(dataset, store, "2020-01-01")
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.config import Dataset, load_dataset
from pipeline.events import make_events
from pipeline.store import Manifest, Store, manifest_schema, read_files
from pipeline.vocabularies import make_vocabulary

Row = Mapping[str, Any]
COLUMNS = ("user", "item", "time", "event")
DECLARED: dict[str, Any] = {
    "name": "tiny",
    "partitions": {"start": "2020-01-01", "end": "2020-01-05"},
    "source": {"path": "raw/{date}.csv"},
    "columns": {
        "user_id": {"from": "user", "type": "int64"},
        "item_id": {"from": "item", "type": "string"},
        "timestamp": {"from": "time", "unit": "s"},
        "action": {"from": "event"},
    },
    "actions": {"names": ["view", "cart"]},
    "quality": {"max_rejected_share": 1.0},
    "store": {"root": "out"},
}


def at(day: str, clock: str = "00:00:00") -> int:
    """Seconds since 1970 of a UTC day and time."""
    return int(datetime.fromisoformat(f"{day}T{clock}+00:00").timestamp())


def row(user: object, item: object, time: object, event: object = "view", **more: object) -> dict[str, Any]:
    """A raw row with the columns that `DECLARED` names."""
    return {"user": user, "item": item, "time": time, "event": event, **more}


def toml(value: object) -> str:
    """A value of a dataset file; tables inline, without the keys whose value is None."""
    if isinstance(value, Mapping):
        return (
            "{ "
            + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items() if item is not None)
            + " }"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    if isinstance(value, date):
        return f'"{value.isoformat()}"'
    return json.dumps(value, ensure_ascii=False)


def declared(**overrides: Any) -> dict[str, Any]:
    """`DECLARED` with overrides: a table is merged key by key, a None removes its key."""
    merged = {name: dict(table) if isinstance(table, dict) else table for name, table in DECLARED.items()}
    for name, table in overrides.items():
        if isinstance(table, Mapping):
            both = {**merged.get(name, {}), **table}
            merged[name] = {key: value for key, value in both.items() if value is not None}
        else:
            merged[name] = table
    return {name: table for name, table in merged.items() if table is not None}


def write_dataset_file(path: Path, **overrides: Any) -> Path:
    """Writes `declared(**overrides)` as TOML."""
    path.write_text("".join(f"{json.dumps(key)} = {toml(item)}\n" for key, item in declared(**overrides).items()))
    return path


def write_csv(path: Path, rows: Iterable[Row] | str | bytes, *, columns: Sequence[str] = COLUMNS) -> None:
    """A CSV file as a plain exporter writes it: no quotes, empty for None; or the given text as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(rows, str | bytes):
        path.write_bytes(rows.encode() if isinstance(rows, str) else rows)
        return
    rows = list(rows)
    names = list(dict.fromkeys([*columns, *(name for one in rows for name in one)]))
    lines = [names, *(["" if one.get(name) is None else str(one[name]) for name in names] for one in rows)]
    path.write_text("".join(",".join(line) + "\n" for line in lines))


def write_ndjson(path: Path, rows: Iterable[Row] | str | bytes) -> None:
    """An NDJSON file; or the given text as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(rows, str | bytes):
        path.write_bytes(rows.encode() if isinstance(rows, str) else rows)
        return
    path.write_text("".join(json.dumps(dict(one)) + "\n" for one in rows))


def write_parquet(path: Path, rows: Iterable[Row] | pl.DataFrame) -> None:
    """A Parquet file with the types of the Python values, or of the given frame."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame([dict(one) for one in rows])
    frame.write_parquet(path)


WRITERS: dict[str, Callable[[Path, Any], None]] = {
    "csv": write_csv,
    "ndjson": write_ndjson,
    "parquet": write_parquet,
}


def make_dataset(
    folder: Path, *, days: Mapping[str, Any] | None = None, extension: str = "csv", **overrides: Any
) -> Dataset:
    """Writes raw files and a dataset file, and loads it.

    Args:
        folder: Where both go.
        days: File stem (a day such as 2020-01-01, or any name for files without {date}) -> rows, or the text or
            frame of the whole file.
        extension: csv, ndjson or parquet; also the extension in the default path.
        overrides: Tables of the dataset file, merged over `DECLARED`; None removes a key.
    """
    for stem, rows in (days or {}).items():
        WRITERS[extension](folder / "raw" / f"{stem}.{extension}", rows)
    if extension != "csv":
        overrides["source"] = {"path": f"raw/{{date}}.{extension}", **overrides.get("source", {})}
    return load_dataset(write_dataset_file(folder / "dataset.toml", **overrides))


def make_store(dataset: Dataset) -> Store:
    """The store of a dataset, opened."""
    store = Store(dataset.root)
    store.open_for(dataset)
    return store


def silent(_: str) -> None:
    """For `report`."""


def make_events_of(dataset: Dataset, store: Store, day: str, *, run: str = "run") -> tuple[Manifest, Manifest]:
    """Makes a day of events and publishes both of its tables without a proof."""
    events, rejected = make_events(
        day=date.fromisoformat(day), dataset=dataset, store=store, run=run, report=silent
    )  # fmt: skip
    companion = store.commit(rejected, proof={})
    return store.commit(events, proof={}), companion


def make_vocabulary_of(
    dataset: Dataset, store: Store, day: str, *, vocabulary: str = "user_vocabulary", run: str = "run"
) -> Manifest:
    """Makes a day of a vocabulary and publishes it without a proof."""
    while True:
        staged, segment = make_vocabulary(
            vocabulary=vocabulary, day=date.fromisoformat(day), dataset=dataset, store=store, run=run
        )
        if segment is None or segment.link():
            return store.commit(staged, proof={})


def table(store: Store, asset: str, day: str) -> pl.DataFrame:
    """The rows of a published day, in stored order."""
    manifest = store.manifest(asset, date.fromisoformat(day))
    assert manifest is not None
    directory = store.directory(asset, manifest.day)
    return read_files(directory, manifest.files, manifest_schema(manifest)).collect()


def seconds(stamp: datetime) -> int:
    """Seconds since 1970 of an aware time."""
    return int((stamp - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())

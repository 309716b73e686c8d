"""The cells of a sample, cut by the readers of `sources` as a run would cut them."""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.inspection.json_records import first_records
from pipeline.inspection.sample import Sample, raw_file
from pipeline.sources import read_blocks

ROWS = 20_000
LOOKED_AT = 1000
MAX_PATH = 4
EXTENSIONS = {"csv": "csv", "fixed_width": "txt", "regex": "log", "ndjson": "ndjson", "parquet": "parquet"}


@dataclass
class Cells:
    """The rows of a sample.

    Attributes:
        frame: Raw columns of the rows that could be cut, and of the objects within them as paths.
        rows: Rows, also those that could not be cut.
        malformed: Rows that could not be cut.
    """

    frame: pl.DataFrame
    rows: int
    malformed: int


def read_cells(sample: Sample, source: Mapping[str, Any], names: Sequence[str]) -> Cells:
    """Reads a sample with the readers.

    Args:
        sample: The bytes.
        source: `[source]` as it would stand in the dataset file, without path and compression.
        names: The columns, where the format has a header; for the places that have none.

    Raises:
        PipelineError: The readers refuse it.
    """
    frames, rows, malformed = [], 0, 0
    with TemporaryDirectory() as folder:
        for path, settings in _written(sample, source, names, Path(folder)):
            for block in _blocks(path, settings):
                frames.append(block.frame.filter(~block.malformed))
                rows += block.frame.height
                malformed += int(block.malformed.sum())
    frame = pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()
    return Cells(open_nested(frame, _objects_of(sample, source)), rows, malformed)


def _blocks(path: Path, source: Mapping[str, Any]) -> Iterator[Any]:
    declared = Dataset.model_validate(
        {
            "name": "sample",
            "partitions": {"start": "2000-01-01"},
            "source": {**source, "path": path.name},
            "columns": {
                "user_id": {"from": "-", "type": "string"},
                "item_id": {"from": "-", "type": "string"},
                "timestamp": {"from": "-", "unit": "s"},
                "action": {"value": "-"},
            },
            "actions": {"names": ["-"]},
            "store": {"root": "out"},
        }
    ).model_copy(update={"file": path.with_name("dataset.toml")})
    return read_blocks(raw_file(path), declared, block_bytes=1 << 23)


def _written(
    sample: Sample, source: Mapping[str, Any], names: Sequence[str], folder: Path
) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The sample as files that the readers can read, and the settings for each."""
    kind = source["format"]
    if kind in ("parquet", "arrow"):
        path = folder / "sample.parquet"
        _write_first_rows(sample.file.path, kind, path)
        yield path, {**source, "format": "parquet"}
        return
    if kind == "json":
        path = folder / "sample.ndjson"
        text = sample.head.decode("utf-8", "replace").removeprefix("\ufeff")
        path.write_text("".join(f"{record}\n" for record in _records_in(text, source)), encoding="utf-8")
        yield path, {key: value for key, value in {**source, "format": "ndjson"}.items() if key != "json"}
        return
    head = sample.head if sample.whole else sample.head[: _last_line_end(sample.head)]
    for number, lines in enumerate([head, *sample.places]):
        path = folder / f"{number}.{EXTENSIONS[kind]}"
        path.write_bytes(lines)
        settings = dict(source)
        if number and kind == "csv":
            table = {key: value for key, value in source.get("csv", {}).items() if key != "typed_header"}
            settings["csv"] = {**table, "has_header": False, "columns": list(names)}
        elif number and kind == "fixed_width":
            settings["fixed_width"] = {**source["fixed_width"], "has_header": False}
        yield path, settings


def _records_in(text: str, source: Mapping[str, Any]) -> Iterator[str]:
    return first_records(text, source.get("json", {}).get("records", ""))


def _last_line_end(head: bytes) -> int:
    end = head.rfind(b"\n") + 1
    return end + 1 if head[end : end + 1] == b"\0" else end  # a newline in UTF-16 is two bytes, the zero last or first


def _write_first_rows(path: Path, kind: str, sample: Path) -> None:
    """Writes rows from the beginning and the end of a Parquet or Arrow file as a Parquet file.

    Raises:
        PipelineError: The file is not complete.
    """
    try:
        pq.write_table(_first_rows(path, kind), sample)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).strip().split("\n")[0]
        raise PipelineError(f"{path}: not a complete {kind} file ({reason}); bring the complete file") from None


def _first_rows(path: Path, kind: str) -> pa.Table:
    if kind == "parquet":
        with pq.ParquetFile(path) as file:
            groups = sorted({0, file.num_row_groups - 1} & set(range(file.num_row_groups)))
            parts = [next(file.iter_batches(ROWS // 2, row_groups=[group]), None) for group in groups]
            return pa.Table.from_batches([part for part in parts if part is not None], schema=file.schema_arrow)
    with pa.OSFile(str(path)) as stored:
        if stored.read(6) != b"ARROW1":
            stored.seek(0)
            stream = pa.ipc.open_stream(stored)
            batch = next(iter(stream), None)
            return pa.Table.from_batches([] if batch is None else [batch.slice(0, ROWS)], schema=stream.schema)
        file = pa.ipc.open_file(stored)
        numbers = sorted({0, file.num_record_batches - 1} & set(range(file.num_record_batches)))
        batches = [file.get_batch(number).slice(0, ROWS // 2) for number in numbers]
        return pa.Table.from_batches(batches, schema=file.schema)


def _objects_of(sample: Sample, source: Mapping[str, Any]) -> set[str]:
    """The columns that hold objects where the readers give these as JSON, and not as texts that look alike."""
    text = sample.head.decode("utf-8", "replace").removeprefix("\ufeff")
    kind = source["format"]
    if kind == "ndjson":
        records = (line for line in text.split("\n")[: LOOKED_AT + 1][: None if sample.whole else -1])
    else:
        records = islice(_records_in(text, source), LOOKED_AT) if kind == "json" else iter(())
    found = [_object(record) for record in records]
    column = source.get("explode", {}).get("column")
    elements = [element for record in found for element in _elements(record, column.split("."))] if column else []
    return _holding_objects(found, "") | _holding_objects(elements, f"{column}.")


def _elements(value: Any, path: Sequence[str]) -> list[dict[str, Any]]:
    """The objects in the list at a path of an object."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return [element for element in value if isinstance(element, dict)] if isinstance(value, list) else []


def _holding_objects(records: Sequence[Mapping[str, Any]], before: str) -> set[str]:
    return {before + key for record in records for key, value in record.items() if isinstance(value, dict)}


def open_nested(frame: pl.DataFrame, objects: Set[str]) -> pl.DataFrame:
    """Adds the fields of objects within columns as columns of their own, named by their paths.

    Args:
        frame: Raw columns [rows].
        objects: Text columns that hold objects as JSON; in others JSON is a text like any other.
    """
    for name in frame.columns:
        frame = _opened(frame, name, 1, parsed=name in objects)
    return frame


def _opened(frame: pl.DataFrame, name: str, depth: int, *, parsed: bool) -> pl.DataFrame:
    if depth > MAX_PATH:
        return frame
    column, deeper = frame[name], set[str]()
    if isinstance(column.dtype, pl.Struct):
        fields = [field.name for field in column.dtype.fields]
        inner = [column.struct.field(field).alias(f"{name}.{field}") for field in fields]
    elif column.dtype == pl.String and parsed:
        inner, deeper = _parsed(column)
    else:
        return frame
    new = [series for series in inner if series.name not in frame.columns]
    frame = frame.with_columns(new)
    for series in new:
        frame = _opened(frame, series.name, depth + 1, parsed=series.name in deeper)
    return frame


def _parsed(column: pl.Series) -> tuple[list[pl.Series], set[str]]:
    """The fields of JSON objects that stand in a text column, as text, and those of them that are objects again."""
    records = [_object(cell) for cell in column]
    keys = list(dict.fromkeys(key for record in records for key in record))[:200]
    fields = [
        pl.Series(f"{column.name}.{key}", [_text(record.get(key)) for record in records], dtype=pl.String)
        for key in keys
    ]
    return fields, _holding_objects(records, f"{column.name}.")


def _object(cell: str | None) -> dict[str, Any]:
    try:
        found = json.loads(cell or "{}", parse_float=str, parse_int=str)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

"""Makes the two tables of a day of events."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import Column, PipelineError
from pipeline.events.arrange import Arranger
from pipeline.events.convert import ACCEPTED
from pipeline.events.duplicates import FINGERPRINT, find_ties, fingerprints
from pipeline.events.origin import declared_columns
from pipeline.events.reading import DayReader, DayRows
from pipeline.events.reasons import REASONS
from pipeline.sources import VERSION as SOURCE_VERSION
from pipeline.sources import RawFile, file_format, files_of_day, find_files, is_ready, require_folder
from pipeline.store import (
    POLARS_DTYPES,
    RAW_PREFIX,
    ContentHash,
    Manifest,
    Recipe,
    Staged,
    Staging,
    Store,
    file_sha256,
    safe_run,
)

VERSION = 1


def event_columns(dataset: Dataset) -> list[Column]:
    """The columns of `events`."""
    columns = dataset.columns
    return [
        Column("row_id", "int64", meaning="position of the row in the day's input, refused rows included", minimum=0),
        Column("user_id", columns.user_id.type, meaning="raw id of the user"),
        Column("item_id", columns.item_id.type, meaning="raw id of the item", nullable=columns.item_id.optional),
        Column("timestamp", "timestamp", unit="us", meaning="when it happened, UTC"),
        Column("action", "string", meaning="one of " + ", ".join(dataset.action_names)),
        *dataset.extra_columns,
    ]


def rejected_columns() -> list[Column]:
    """The columns of `rejected_events`."""
    return [
        Column("row_id", "int64", meaning="position of the row in the day's input", minimum=0),
        Column("file", "string", meaning="raw file"),
        Column("line", "int64", meaning="line of the file on which the record starts, from 1", nullable=True),
        Column("reason", "string", meaning="the first of the closed list that applies"),
        Column("column", "string", meaning="raw column at fault", nullable=True),
        Column("raw", "string", meaning="raw text of the record"),
    ]


def events_recipe(*, day: date, dataset: Dataset, former: Manifest) -> Recipe:
    """What a day of events would be made of now; raw files that look as they did are not read again.

    Args:
        day: UTC day.
        dataset: The declarations.
        former: The published version, whose checksums are taken over for files of the same size and time.
    """
    files = [] if day in dataset.partitions.skip else files_of_day(dataset, day)
    known = {(file["path"], file["bytes"], file["mtime_ns"]): file["sha256"] for file in former.raw_files}
    inputs = {
        f"{RAW_PREFIX}{file.name}": known.get((file.name, file.bytes, file.mtime_ns)) or file_sha256(file.path)
        for file in files
    }
    if "rejected_events" in former.inputs:
        inputs["rejected_events"] = former.inputs["rejected_events"]
    return Recipe(config=_config(dataset, day), code=_code(files, dataset), inputs=inputs)


def make_events(
    *, day: date, dataset: Dataset, store: Store, run: str, report: Callable[[str], None]
) -> tuple[Staged, Staged]:
    """Reads the raw files of a day and stages `events` and `rejected_events`.

    Args:
        day: UTC day.
        dataset: The declarations.
        store: Where to stage.
        run: Name of the run.
        report: Gets a line of progress now and then.

    Returns:
        The staged `events` and the staged `rejected_events`.

    Raises:
        PipelineError: Raw files are missing, not ready, unreadable or contradict their declaration, or more rows are
            refused than `max_rejected_share` allows.
    """
    skipped = day in dataset.partitions.skip
    if not skipped:
        _require_files(day, dataset)
    reader = DayReader(day, dataset, max_block_bytes=max(2**20, dataset.compute.memory // 8))
    arranger = Arranger(budget_bytes=dataset.compute.memory // 4, directory=store.scratch_directory(run, "events", day))
    try:
        refused = [_empty(rejected_columns())]
        for rows in () if skipped else reader.rows():
            refused.append(_refused_rows(rows, dataset))
            arranger.add(_accepted_rows(rows, dataset))
            report(f"events {day}: {reader.counts['in']:,} rows of {rows.file.name}")
        rejected = pl.concat(refused)
        _refuse_bad_day(day, dataset, store, run, reader, rejected)
        with store.stage("events", day, run=run) as staging:
            written = _write_events(arranger, dataset, staging)
            if written.doubled and dataset.quality.duplicates == "drop":
                second = DayReader(day, dataset, max_block_bytes=reader.max_block_bytes)
                again = _find_rows(written.doubled, second, dataset, reader.raw_files)
                rejected = pl.concat([rejected, again]).sort("row_id")
            with store.stage("rejected_events", day, run=run) as staging_aside:
                return _finish(staging, staging_aside, written, rejected, reader, dataset)
    finally:
        arranger.close()


@dataclass
class _Written:
    """What was written to `events`."""

    rows: int
    ties: int
    doubled: list[int]
    content_version: str
    by_action: dict[str, int]


def _require_files(day: date, dataset: Dataset) -> None:
    if dataset.source.ready is not None and not is_ready(dataset, day):
        raise PipelineError(f"events of {day}: {dataset.source.ready} is not there yet; run the day again when it is")
    require_folder(dataset)
    own = find_files(dataset, day if dataset.source.dated else None)
    if not own and dataset.source.missing_day == "fail":
        raise PipelineError(
            f"events of {day}: no file matches {dataset.source.path} in {dataset.directory}; bring the file, or declare the "
            'day in [partitions] skip, or every missing day with [source] missing_day = "empty"'
        )


def _accepted_rows(rows: DayRows, dataset: Dataset) -> pl.DataFrame:
    """The accepted rows of a block, with a fingerprint of their raw cells where that tells more than their values."""
    accepted = rows.rank == ACCEPTED
    frame, raw, row_id = rows.converted.frame, rows.block.frame, rows.row_id
    if not accepted.all() or len(rows.positions) < frame.height:
        chosen = pl.Series(rows.positions[accepted])
        frame, raw, row_id = frame[chosen], raw[chosen], row_id[accepted]
    return frame.select(pl.Series("row_id", row_id), pl.all(), *fingerprints(raw, dataset))


def _refused_rows(rows: DayRows, dataset: Dataset) -> pl.DataFrame:
    """The refused rows of a block, as they stand in `rejected_events`."""
    chosen = np.flatnonzero(rows.rank != ACCEPTED)
    return _rejected_frame(rows, chosen, [REASONS[rank] for rank in rows.rank[chosen]], dataset)


def _rejected_frame(rows: DayRows, chosen: np.ndarray, reasons: Sequence[str], dataset: Dataset) -> pl.DataFrame:
    if not len(chosen):
        return _empty(rejected_columns())
    positions = rows.positions[chosen]
    names = [column.from_ or name for name, column in declared_columns(dataset).items()]
    culprits = rows.converted.culprit[positions]
    whole_record = {"malformed_line", "duplicate"}
    return pl.DataFrame(
        {
            "row_id": rows.row_id[chosen],
            "file": [rows.file.name] * len(chosen),
            "line": rows.block.line[pl.Series(positions)],
            "reason": reasons,
            "column": [
                None if reason in whole_record else names[2 if reason == "outside_day" else culprit]
                for reason, culprit in zip(reasons, culprits, strict=True)
            ],
            "raw": rows.block.raw_text(positions.tolist()),
        },
        schema=_schema(rejected_columns()),
    )


def _find_rows(
    row_ids: Sequence[int], reader: DayReader, dataset: Dataset, first_reading: Sequence[Mapping[str, object]]
) -> pl.DataFrame:
    """Reads the day once more for the raw text of dropped duplicates, which only the sort could tell."""
    wanted = np.array(sorted(row_ids))
    found = []
    for rows in reader.rows():
        chosen = np.flatnonzero(np.isin(rows.row_id, wanted))
        found.append(_rejected_frame(rows, chosen, ["duplicate"] * len(chosen), dataset))
    if reader.raw_files != first_reading:
        raise PipelineError(
            f"events of {reader.day}: raw files changed while they were read; run the day again when they are complete"
        )
    return pl.concat(found)


def _refuse_bad_day(
    day: date, dataset: Dataset, store: Store, run: str, reader: DayReader, rejected: pl.DataFrame
) -> None:
    share = rejected.height / max(1, reader.counts["in"])
    if share <= dataset.quality.max_rejected_share:
        return
    directory = store.failed_directory(run, "rejected_events", day)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{safe_run(run)}-0.parquet"
    rejected.write_parquet(path)
    leading = (
        rejected.group_by("reason", maintain_order=True)
        .agg(pl.len(), pl.first("column", "raw"))
        .sort("len", descending=True)
    )
    reasons = ", ".join(f"{row['reason']} {row['len']:,}" for row in leading.head(3).iter_rows(named=True))
    first = leading.row(0, named=True)
    example = f"column {first['column']}, " if first["column"] else ""
    raise PipelineError(
        f"events of {day}: {rejected.height:,} of {reader.counts['in']:,} rows ({share:.1%}) are refused, more than "
        f"max_rejected_share = {dataset.quality.max_rejected_share}: {reasons} ({example}for example {first['raw'][:120]!r}); "
        f"they lie in {path}: mend the log or the dataset file, or raise [quality] max_rejected_share"
    )


def _write_events(arranger: Arranger, dataset: Dataset, staging: Staging) -> _Written:
    content = ContentHash()
    written = _Written(rows=0, ties=0, doubled=[], content_version="", by_action=dict.fromkeys(dataset.action_names, 0))
    for frame in arranger.ranges():
        tied, doubled = find_ties(frame)
        written.ties += tied
        written.doubled += doubled
        kept = frame
        if doubled and dataset.quality.duplicates == "drop":
            kept = frame.filter(~pl.col("row_id").is_in(pl.Series(doubled, dtype=pl.Int64).implode()))
        table = kept.drop(FINGERPRINT, strict=False).with_columns(
            pl.col("action").cast(pl.String), pl.col("timestamp").cast(pl.Datetime("us", "UTC"))
        )
        staging.write(table)
        content.update(table)
        written.rows += table.height
        for action, count in kept["action"].cast(pl.String).value_counts().iter_rows():
            written.by_action[action] += count
    written.content_version = content.hexdigest()
    return written


def _finish(
    staging: Staging,
    staging_aside: Staging,
    written: _Written,
    rejected: pl.DataFrame,
    reader: DayReader,
    dataset: Dataset,
) -> tuple[Staged, Staged]:
    inputs = {f"{RAW_PREFIX}{file['path']}": str(file["sha256"]) for file in reader.raw_files}
    recipe = Recipe(config=_config(dataset, reader.day), code=_code(reader.files, dataset), inputs=inputs)
    by_reason = dict(rejected["reason"].value_counts(sort=True).iter_rows())
    counts = {
        **reader.counts,
        "accepted": written.rows,
        "rejected": {reason: by_reason[reason] for reason in REASONS if reason in by_reason},
        "ties": written.ties,
        "duplicates": len(written.doubled),
        "by_action": written.by_action,
    }
    if rejected.height:
        staging_aside.write(rejected)
    rejected_hash = ContentHash()
    rejected_hash.update(rejected)
    aside = staging_aside.finish(
        rows=rejected.height,
        columns=rejected_columns(),
        recipe=recipe,
        content_version=rejected_hash.hexdigest(),
        counts={"in": reader.counts["in"], "by_reason": counts["rejected"]},
        facts={},
        raw_files=reader.raw_files,
    )
    events = staging.finish(
        rows=written.rows,
        columns=event_columns(dataset),
        recipe=replace(recipe, inputs={**inputs, "rejected_events": aside.manifest.version()}),
        content_version=written.content_version,
        counts=counts,
        facts={},
        raw_files=reader.raw_files,
    )
    return events, aside


def _config(dataset: Dataset, day: date) -> dict[str, Any]:
    return {
        **dataset.model_dump(mode="json", by_alias=True, include={"columns", "actions", "extra", "quality"}),
        "source": dataset.source.model_dump(mode="json", include={"format", "csv", "neighbours"}),
        "skipped": day in dataset.partitions.skip,
    }


def _code(files: Iterable[RawFile], dataset: Dataset) -> dict[str, int]:
    formats = sorted({file_format(file, dataset) for file in files})
    return {"events": VERSION, **{f"sources.{name}": SOURCE_VERSION[name] for name in formats}}


def _schema(columns: Sequence[Column]) -> dict[str, pl.DataType]:
    return {column.name: POLARS_DTYPES[column.dtype] for column in columns}


def _empty(columns: Sequence[Column]) -> pl.DataFrame:
    return pl.DataFrame(schema=_schema(columns))

"""Makes the two tables of a day of events."""

from collections.abc import Callable, Iterable
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
from pipeline.events.reading import DayReader, DayRows
from pipeline.events.reasons import REASONS
from pipeline.events.rejected import no_rejected, read_duplicates, refuse_bad_day, refused_rows, rejected_columns
from pipeline.sources import VERSION as SOURCE_VERSION
from pipeline.sources import RawFile, file_format, files_of_day, find_files, is_ready, require_folder
from pipeline.store import (
    RAW_PREFIX,
    ContentHash,
    Manifest,
    Recipe,
    Staged,
    Staging,
    Store,
    file_sha256,
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
        refused = [no_rejected()]
        for rows in () if skipped else reader.rows():
            refused.append(refused_rows(rows, dataset))
            arranger.add(_accepted_rows(rows, dataset, only_file=len(reader.files) == 1))
            report(f"events {day}: {reader.counts['in']:,} rows of {rows.file.name}")
        rejected = pl.concat(refused)
        refuse_bad_day(day, dataset, store, run, reader, rejected)
        with store.stage("events", day, run=run) as staging:
            written = _write_events(arranger, dataset, staging)
            if written.doubled and dataset.quality.duplicates == "drop":
                second = DayReader(day, dataset, max_block_bytes=reader.max_block_bytes)
                again = read_duplicates(written.doubled, second, dataset, reader.raw_files)
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


def _accepted_rows(rows: DayRows, dataset: Dataset, *, only_file: bool) -> pl.DataFrame:
    """The accepted rows of a block, with a fingerprint of their raw cells where that tells more than their values."""
    accepted = rows.rank == ACCEPTED
    frame, raw, row_id = rows.converted.frame, rows.block.frame, rows.row_id
    if not accepted.all() or len(rows.positions) < frame.height:
        chosen = pl.Series(rows.positions[accepted])
        frame, raw, row_id = frame[chosen], raw[chosen], row_id[accepted]
    return frame.select(pl.Series("row_id", row_id), pl.all(), *fingerprints(raw, dataset, only_file=only_file))


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
        codes = kept["action"].to_physical().to_numpy()
        for action, count in zip(
            dataset.action_names, np.bincount(codes, minlength=len(written.by_action)), strict=True
        ):
            written.by_action[action] += int(count)
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
        "source": dataset.source.model_dump(mode="json", include={"format", "csv", "neighbours", "missing_day"}),
        "skipped": day in dataset.partitions.skip,
    }


def _code(files: Iterable[RawFile], dataset: Dataset) -> dict[str, int]:
    formats = sorted({file_format(file, dataset) for file in files})
    return {"events": VERSION, **{f"sources.{name}": SOURCE_VERSION[name] for name in formats}}

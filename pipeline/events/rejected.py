"""Rows that are refused: their table, the raw text of dropped duplicates, and the day that holds too many of them."""

from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np
import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import Column, PipelineError
from pipeline.events.convert import ACCEPTED, RANK
from pipeline.events.origin import declared_columns
from pipeline.events.reading import DayReader, DayRows
from pipeline.events.reasons import REASONS
from pipeline.store import POLARS_DTYPES, Store, safe_run


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


def refused_rows(rows: DayRows, dataset: Dataset) -> pl.DataFrame:
    """The refused rows of a block, as they stand in `rejected_events`."""
    chosen = np.flatnonzero(rows.rank != ACCEPTED)
    return _rejected_frame(rows, chosen, rows.rank[chosen], dataset)


def _rejected_frame(rows: DayRows, chosen: np.ndarray, rank: np.ndarray, dataset: Dataset) -> pl.DataFrame:
    if not len(chosen):
        return no_rejected()
    positions = rows.positions[chosen]
    names = [column.from_ or name for name, column in declared_columns(dataset).items()]
    timestamp = list(declared_columns(dataset)).index("timestamp")
    at_fault = np.where(rank == RANK["outside_day"], timestamp, rows.converted.culprit[positions])
    whole_record = np.isin(rank, [RANK["malformed_line"], RANK["duplicate"]])
    culprit = pl.Series(np.where(whole_record, len(names), at_fault).astype(np.uint32))
    return pl.DataFrame(
        {
            "row_id": rows.row_id[chosen],
            "file": pl.repeat(rows.file.name, len(chosen), eager=True),
            "line": rows.block.line[pl.Series(positions)],
            "reason": pl.Series(REASONS)[pl.Series(rank)],
            "column": pl.Series([*names, None])[culprit],
            "raw": rows.block.raw_text(positions.tolist()),
        },
        schema=_schema(),
    )


def read_duplicates(
    row_ids: Sequence[int], reader: DayReader, dataset: Dataset, first_reading: Sequence[Mapping[str, object]]
) -> pl.DataFrame:
    """Reads the day once more for the raw text of dropped duplicates, which only the sort could tell."""
    wanted = np.array(sorted(row_ids))
    found = []
    for rows in reader.rows():
        chosen = np.flatnonzero(np.isin(rows.row_id, wanted))
        found.append(_rejected_frame(rows, chosen, np.full(len(chosen), RANK["duplicate"]), dataset))
    if reader.raw_files != first_reading:
        raise PipelineError(
            f"events of {reader.day}: raw files changed while they were read; run the day again when they are complete"
        )
    return pl.concat(found)


def refuse_bad_day(
    day: date, dataset: Dataset, store: Store, run: str, reader: DayReader, rejected: pl.DataFrame
) -> None:
    """Stops a day of which too much is refused; its refused rows are left in `_failed/<run>/`.

    Raises:
        PipelineError: More than `max_rejected_share` of the day's rows are refused; with the leading reasons.
    """
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


def no_rejected() -> pl.DataFrame:
    """`rejected_events` without rows."""
    return pl.DataFrame(schema=_schema())


def _schema() -> dict[str, pl.DataType]:
    return {column.name: POLARS_DTYPES[column.dtype] for column in rejected_columns()}

"""Rows that are refused: their table, the raw text of dropped duplicates, and the day that holds too many of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import Column, PipelineError
from pipeline.events.convert import ACCEPTED, RANK
from pipeline.events.parts import DayParts
from pipeline.events.reading import DayRows, DaysReader, day_number
from pipeline.events.reasons import REASONS
from pipeline.store import POLARS_DTYPES, ROW_GROUP_ROWS, Store, safe_run, writing
from pipeline.store.parquet import write_blocks

ROW_ID_BITS = 44  # beside them there is room for any day


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


def add_refused_rows(rows: DayRows, dataset: Dataset, refused: DayParts) -> None:
    """Adds the refused rows of a block, as they stand in `rejected_events`."""
    chosen = np.flatnonzero(rows.rank != ACCEPTED)
    if len(chosen):
        refused.add(_rejected_frame(rows, chosen, rows.rank[chosen], dataset), rows.day[chosen])


def _rejected_frame(rows: DayRows, chosen: np.ndarray, rank: np.ndarray, dataset: Dataset) -> pl.DataFrame:
    positions = rows.positions[chosen]
    names = [column.from_ or name for name, column in dataset.declared_columns.items()]
    timestamp = list(dataset.declared_columns).index("timestamp")
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


def rejected_of(parts: Sequence[DayParts], day: date) -> pl.DataFrame:
    """`rejected_events` of a day, by `row_id`."""
    found = [rows for one in parts for rows in one.of(day_number(day))]
    rejected = pl.concat([pl.DataFrame(schema=_schema()), *found]).rechunk()
    return rejected if rejected["row_id"].is_sorted() else rejected.sort("row_id")


def add_duplicates(row_ids: Mapping[date, np.ndarray], reader: DaysReader, dataset: Dataset, refused: DayParts) -> None:
    """Reads the days once more for the raw text of dropped duplicates, which only the sort could tell.

    Args:
        row_ids: Of the duplicates of each day, int64.
        reader: Of these days.
        dataset: The declarations.
        refused: Gets them as they stand in `rejected_events`.
    """
    wanted = np.concatenate([_keys(day_number(day), numbers) for day, numbers in row_ids.items()])
    for rows in reader.rows():
        chosen = np.flatnonzero(np.isin(_keys(rows.day.astype(np.int64), rows.row_id), wanted))
        if len(chosen):
            rank = np.full(len(chosen), RANK["duplicate"])
            refused.add(_rejected_frame(rows, chosen, rank, dataset), rows.day[chosen])


def _keys(day: np.ndarray | int, row_id: np.ndarray) -> np.ndarray:
    """Day and row_id in one int64."""
    return day * 2**ROW_ID_BITS + row_id


def refuse_bad_day(day: date, dataset: Dataset, store: Store, run: str, rows_in: int, refused: DayParts) -> None:
    """Stops a day of which too much is refused; its refused rows are left in `_failed/<run>/`.

    Raises:
        PipelineError: More than `max_rejected_share` of the day's rows are refused; with the leading reasons.
    """
    rows = int(refused.rows_of(day_number(day)).sum())
    share = rows / max(1, rows_in)
    if share <= dataset.quality.max_rejected_share:
        return
    directory = store.failed_directory(run, "rejected_events", day)
    path = directory / f"{safe_run(run)}-0.parquet"
    of_reason: dict[str, _OfReason] = {}
    with writing(f"rejected_events of {day}", directory, path):
        directory.mkdir(parents=True, exist_ok=True)
        frames = _counted(refused.of(day_number(day)), of_reason)
        write_blocks(frames, path, row_group_rows=ROW_GROUP_ROWS)
    leading = sorted(of_reason.items(), key=lambda found: -found[1].rows)
    reasons = ", ".join(f"{reason} {found.rows:,}" for reason, found in leading[:3])
    first = leading[0][1]
    example = f"column {first.column}, " if first.column else ""
    raise PipelineError(
        f"events of {day}: {rows:,} of {rows_in:,} rows ({share:.1%}) are refused, more than "
        f"max_rejected_share = {dataset.quality.max_rejected_share}: {reasons} ({example}for example {first.raw[:120]!r}); "
        f"they lie in {path}: mend the log or the dataset file, or raise [quality] max_rejected_share"
    )


@dataclass
class _OfReason:
    """The rows of one reason: how many there are, and of the first its column at fault and its text."""

    column: str | None
    raw: str
    rows: int = 0


def _counted(frames: Iterator[pl.DataFrame], of_reason: dict[str, _OfReason]) -> Iterator[pl.DataFrame]:
    """The same rows, counted by reason while they stream by: there may be as many as there are rows in the log."""
    for frame in frames:
        found = frame.group_by("reason", maintain_order=True).agg(pl.len(), pl.first("column", "raw"))
        for reason, rows, column, raw in found.select("reason", "len", "column", "raw").iter_rows():
            of_reason.setdefault(reason, _OfReason(column, raw)).rows += rows
        yield frame


def _schema() -> dict[str, pl.DataType]:
    return {column.name: POLARS_DTYPES[column.dtype] for column in rejected_columns()}

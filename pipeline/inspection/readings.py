"""A way to read a column as times, and what it reads, by the conversion that a run uses."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import polars as pl

from pipeline.config import TimestampColumn
from pipeline.contracts import PipelineError
from pipeline.events.times.timestamps import convert_times
from pipeline.events.times.unit_doctor import EARLIEST_US, UnitDoctor, tomorrow_us

MOST = 0.9  # of the filled cells have to be read
UTC_ASSUMED = (
    'the times name no zone, UTC is assumed: write timezone = "Europe/London", or where the clock hung, if it did not '
    'show UTC; where clocks are changed, also ambiguous = "earliest" and nonexistent = "forward", or the rows of these '
    "hours are refused"
)


@dataclass
class Reading:
    """A way to read a column as times.

    Attributes:
        says: Keys of `[columns] timestamp` besides `from`; with `sql` in its place where numbers need one.
        reason: What says so.
        share: Share of the filled cells that it reads as times from 1990 to tomorrow.
        first_us: The earliest time read.
        last_us: The latest.
        text: Whether it is text with a date, which is hardly anything else.
        date_only: A date without a clock.
        doubts: What else is plausible.
    """

    says: dict[str, Any]
    reason: str
    share: float
    first_us: int
    last_us: int
    text: bool
    date_only: bool = False
    doubts: list[str] = field(default_factory=list)


def times_of(cells: pl.Series, says: dict[str, Any]) -> pl.Series:
    """Microseconds [cells], null where a declaration does not read a cell.

    Args:
        cells: Raw cells; blanks around text are cut off.
        says: Keys of `timestamp` besides `from`.
    """
    if cells.dtype == pl.String:
        cells = cells.str.strip_chars()
    declared = TimestampColumn.model_validate({"from": "t", **says})
    try:
        return convert_times(cells, declared, UnitDoctor(declared, "", "t")).us
    except PipelineError:
        return pl.repeat(None, len(cells), dtype=pl.Int64, eager=True)


def read_span(filled: pl.Series, says: dict[str, Any]) -> tuple[float, int, int] | None:
    """Share of plausible times, the first and the last of them; None when there is none."""
    us = times_of(filled, says)
    plausible = us.filter((us >= EARLIEST_US) & (us < tomorrow_us()))
    if plausible.is_empty():
        return None
    return len(plausible) / len(filled), int(plausible.min()), int(plausible.max())  # type: ignore[arg-type]


def read_times(cells: pl.Series, says: dict[str, Any]) -> tuple[tuple[float, int, int], str] | None:
    """What a declaration reads in nearly all cells: their share, the first and the last time, and these in words."""
    read = read_span(cells, says) if len(cells) else None
    return None if read is None or read[0] < MOST else (read, spoken_span(read))


def spoken_span(read: tuple[float, int, int]) -> str:
    """The first and the last day of what was read, as 2020-01-01..2020-03-04."""
    first, last = (datetime.fromtimestamp(us // 1_000_000, UTC).date().isoformat() for us in read[1:])
    return first if first == last else f"{first}..{last}"


def sql_name(column: str) -> str:
    """A raw column as an expression names it.

    >>> sql_name("Quantity"), sql_name("event time")
    ('Quantity', '"event time"')
    """
    return column if re.fullmatch(r"[A-Z][A-Za-z0-9_]*", column) else '"' + column.replace('"', '""') + '"'

"""How a column says when: a unit for numbers, a format for text; read by the conversion that a run uses."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import polars as pl

from pipeline.config import TimestampColumn
from pipeline.contracts import PipelineError
from pipeline.events.times.timestamps import convert_times
from pipeline.events.times.unit_doctor import EARLIEST_US, SCALES, UnitDoctor, tomorrow_us
from pipeline.inspection.formats import clock_of, formats_of
from pipeline.inspection.words import name_score, words_of

MOST = 0.9  # of the filled cells have to be read
EXAMPLES = 300
CLOCK_DIGITS = r"^(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?$"
CLOCK_NAMES = frozenset(["time", "clock", "tm", "hms", "uhrzeit", "hora", "heure"])
SHORTEST = 8  # digits of a time: 20200101 has no fewer
SCIENTIFIC = r"^[0-9]\.[0-9]+[eE]\+?[0-9]+$"
PLAIN_NUMBER = r"^[+-]?[0-9]+(?:\.[0-9]*)?$"
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


def sniff_time(column: pl.Series) -> Reading | None:
    """How a column can be read as times; None when it cannot."""
    filled = column.drop_nulls()
    if filled.is_empty():
        return None
    if isinstance(column.dtype, pl.Datetime | pl.Date):
        return _of_datetimes(filled)
    if column.dtype == pl.String:
        filled = filled.str.strip_chars()
        filled = filled.filter(filled != "")
        if len(filled) and filled.str.contains(SCIENTIFIC).mean() > MOST:  # type: ignore[operator]
            return _of_scientific(filled, column.name)
        texts = filled.filter(~filled.str.contains(PLAIN_NUMBER))
        if len(texts) < 0.5 * len(filled):
            return _of_numbers(filled, column.name)
        return _of_text(filled, column.name)
    if column.dtype.is_numeric():
        return _of_numbers(filled, column.name)
    return None


def is_clock(column: pl.Series) -> str | None:
    """The format of a column that holds times of day alone; None when it holds something else."""
    if column.dtype != pl.String:
        return None
    if CLOCK_NAMES & set(words_of(column.name)):
        cells = column.drop_nulls().str.strip_chars()
        lengths = cells.str.len_chars().unique().to_list()
        if lengths in ([4], [6]) and cells.str.contains(CLOCK_DIGITS).all():
            return "%H%M%S"[: lengths[0]]
    return clock_of([cell.strip() for cell in column.drop_nulls().head(EXAMPLES) if cell.strip()], share=MOST)


def joined_time(days: pl.Series, clocks: pl.Series, reading: Reading) -> Reading | None:
    """A date and a clock in two columns, read together with a blank between; None when that gives no times.

    Args:
        days: The column with the date.
        clocks: The column with the time of day.
        reading: How the date is read.
    """
    clock = is_clock(clocks)
    if clock is None or "format" not in reading.says or "sql" in reading.says:
        return None
    cells = pl.DataFrame([days.cast(pl.String).alias("day"), clocks.alias("clock")]).drop_nulls()
    says = {**reading.says, "format": f"{reading.says['format']} {clock}"}
    read = _read((cells["day"] + " " + cells["clock"]).alias(days.name), says)
    if read is None or read[0] < MOST:
        return None
    reason = f"{days.name} holds the date and {clocks.name} the time of day, {_span(read)}"
    return Reading(says, reason, *read, text=True, doubts=list(reading.doubts))


def _of_datetimes(filled: pl.Series) -> Reading | None:
    naive = getattr(filled.dtype, "time_zone", None) is None
    says = {"timezone": "UTC"} if naive else {}
    # The file says itself that these are times: they need no test by their values.
    read = _read(filled, {**says}) or (0.0, 0, 0)
    reason = f"the file declares it as {filled.dtype}"
    doubts = [f"timestamp: {UTC_ASSUMED}"] if naive else []
    return Reading(says, reason, read[0], read[1], read[2], text=True, date_only=filled.dtype == pl.Date, doubts=doubts)


def _of_numbers(filled: pl.Series, name: str) -> Reading | None:
    named = name_score(name, "timestamp") > 0
    digits = filled.cast(pl.String) if filled.dtype.is_integer() else filled
    if digits.dtype == pl.String and digits.str.len_chars().max() < SHORTEST:  # type: ignore[operator]
        return None
    for scale in SCALES:
        if scale.factor > 1 and not named:
            continue  # many ids are as long
        says: dict[str, Any] = {"unit": scale.unit}
        cells = filled
        if scale.factor > 1:
            says = {"sql": f"CAST({sql_name(name)} AS BIGINT) * {scale.factor}", "unit": scale.unit}
            cells = filled.cast(pl.Int64, strict=False).drop_nulls() * scale.factor
        read = _read(cells, {"unit": scale.unit}) if len(cells) else None
        if read is None or read[0] < MOST:
            continue
        reason = f"as {scale.looks} since 1970 these are {_span(read)}"
        doubts = [f"timestamp: {name} looks like {scale.looks}, which is unusual; ask where the log comes from"]
        return Reading(says, reason, *read, text=False, doubts=doubts if scale.factor > 1 else [])
    return _of_digits(digits, name) if digits.dtype == pl.String else None


def _of_scientific(filled: pl.Series, name: str) -> Reading | None:
    """Numbers such as 1.641012187e+18, as programs write those with a fraction."""
    numbers = filled.cast(pl.Float64, strict=False).alias(name)
    found = _of_numbers(numbers, name) if name_score(name, "timestamp") else None
    if found is None or "unit" not in found.says or "sql" in found.says:
        return None
    found.says = {"sql": f"CAST({sql_name(name)} AS DOUBLE)", **found.says}
    found.doubts.append(
        f"timestamp: {name} holds rounded numbers such as {filled[0]}, and what was rounded off is lost"
    )
    return found


def sql_name(column: str) -> str:
    """A raw column as an expression names it.

    >>> sql_name("Quantity"), sql_name("event time")
    ('Quantity', '"event time"')
    """
    return column if re.fullmatch(r"[A-Z][A-Za-z0-9_]*", column) else '"' + column.replace('"', '""') + '"'


def _of_digits(digits: pl.Series, name: str) -> Reading | None:
    """Numbers that are the digits of a date."""
    lengths = digits.str.len_chars().unique().to_list()
    written = {
        (8,): [("%Y%m%d", None), ("%y%m%d%H%M", f"CAST({sql_name(name)} AS VARCHAR) || '00'")],
        (10,): [("%y%m%d%H%M", None), ("%Y%m%d%H%M", f"CAST({sql_name(name)} AS VARCHAR) || '00'")],
        (12,): [("%Y%m%d%H%M", None), ("%y%m%d%H%M%S", None)],
        (14,): [("%Y%m%d%H%M%S", None)],
        (17,): [("%Y%m%d%H%M%S%3f", None)],
    }.get(tuple(lengths), [])
    for format_, sql in written:
        says = {"format": format_, "timezone": "UTC"}
        read = _read(digits + "00" if sql else digits, says)
        if read is not None and read[0] >= MOST:
            reason = f"digits of dates, {_span(read)}" + (" (with the minute 00 added)" if sql else "")
            says = {"sql": sql, **says} if sql else says
            return Reading(
                says, reason, *read, text=True, date_only=format_ == "%Y%m%d", doubts=[f"timestamp: {UTC_ASSUMED}"]
            )
    return None


def _of_text(filled: pl.Series, name: str) -> Reading | None:
    distinct = filled.unique(maintain_order=True)
    examples = pl.concat([distinct.head(EXAMPLES), distinct.tail(EXAMPLES)]).to_list()
    readings = []
    for says in formats_of(examples):
        read = _read(filled, says)
        if read is not None and read[0] >= MOST:
            date_only = not re.search(r"%[HIkl]", says["format"])
            reason = f"such as {filled[0]!r}, {_span(read)}"
            readings.append(Reading(says, reason, *read, text=True, date_only=date_only))
    if not readings:
        return _of_dot_net(filled, name) or _of_hours(filled, name)
    best = max(reading.share for reading in readings)
    alike = [reading for reading in readings if reading.share == best]
    chosen = _likelier(alike, filled)
    for other in alike:
        if other is not chosen and not _alike(filled, chosen, other):
            chosen.doubts.append(
                f'timestamp: format = "{other.says["format"]}" reads every value as well ({_span_of(other)}), since no '
                f"value tells day and month apart; {_why(chosen, other, filled)}"
            )
    if "timezone" in chosen.says and not re.search(r"UTC|GMT|\+00", chosen.says["format"]):
        chosen.doubts.append(f"timestamp: {UTC_ASSUMED}")
    return chosen


def _of_dot_net(filled: pl.Series, name: str) -> Reading | None:
    """Milliseconds as .NET writes them into JSON: /Date(1577872800000)/."""
    if not filled.str.contains(r"^/Date\(-?[0-9]+\)/$").all():
        return None
    sql = f"CAST(REPLACE(REPLACE({sql_name(name)}, '/Date(', ''), ')/', '') AS BIGINT)"
    read = _read(filled.str.extract(r"(-?[0-9]+)"), {"unit": "ms"})
    return read and Reading({"sql": sql, "unit": "ms"}, f"such as {filled[0]!r}, {_span(read)}", *read, text=True)


def _of_hours(filled: pl.Series, name: str) -> Reading | None:
    """A date with an hour and no minute, such as 2014-12-11 13, which becomes 2014-12-11 13:00."""
    if (filled.str.contains(r"\d[ T]\d{1,2}$").mean() or 0) < MOST:  # type: ignore[operator]
        return None
    found = _of_text(filled + ":00", name)
    if found is not None:
        found.says = {"sql": f"{sql_name(name)} || ':00'", **found.says}
        found.reason += " (with the minute 00 added)"
    return found


def _likelier(readings: Sequence[Reading], filled: pl.Series) -> Reading:
    """Of several readings the one in file order, else the one with the shorter span, else the first."""
    ordered = [reading for reading in readings if _in_order(reading, filled)]
    if len(ordered) == 1:
        return ordered[0]
    shortest = min(reading.last_us - reading.first_us for reading in readings)
    return next(reading for reading in readings if reading.last_us - reading.first_us == shortest)


def _why(chosen: Reading, other: Reading, filled: pl.Series) -> str:
    if _in_order(chosen, filled) and not _in_order(other, filled):
        return "as it was read, the rows are in order of time"
    if chosen.last_us - chosen.first_us < other.last_us - other.first_us:
        return "as it was read, the log is the shorter one"
    return "day before month was taken"


def _in_order(reading: Reading, filled: pl.Series) -> bool:
    us = _convert(filled, reading.says)
    return us is not None and bool(us.drop_nulls().is_sorted())


def _alike(filled: pl.Series, one: Reading, other: Reading) -> bool:
    """Whether two readings give every cell the same time; the same first and last one do not say so."""
    found, again = _convert(filled, one.says), _convert(filled, other.says)
    return found is not None and again is not None and found.equals(again, null_equal=True)


def _convert(filled: pl.Series, says: dict[str, Any]) -> pl.Series | None:
    """Microseconds [cells], null where the declaration does not read a cell."""
    declared = TimestampColumn.model_validate({"from": "t", **says})
    try:
        return convert_times(filled, declared, UnitDoctor(declared, "", "t")).us
    except PipelineError:
        return None


def _read(filled: pl.Series, says: dict[str, Any]) -> tuple[float, int, int] | None:
    """Share of plausible times, the first and the last of them; None when there is none."""
    us = _convert(filled, says)
    if us is None:
        return None
    plausible = us.filter((us >= EARLIEST_US) & (us < tomorrow_us()))
    if plausible.is_empty():
        return None
    return len(plausible) / len(filled), int(plausible.min()), int(plausible.max())  # type: ignore[arg-type]


def read_times(cells: pl.Series, says: dict[str, Any]) -> tuple[tuple[float, int, int], str] | None:
    """What a declaration reads in nearly all cells: their share, the first and the last time, and these in words."""
    read = _read(cells, says) if len(cells) else None
    return None if read is None or read[0] < MOST else (read, _span(read))


def _span(read: tuple[float, int, int]) -> str:
    first, last = (datetime.fromtimestamp(us // 1_000_000, UTC).date().isoformat() for us in read[1:])
    return first if first == last else f"{first}..{last}"


def _span_of(reading: Reading) -> str:
    return _span((reading.share, reading.first_us, reading.last_us))

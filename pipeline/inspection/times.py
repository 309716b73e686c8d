"""How a column says when: a unit for numbers, a format for text; read by the conversion that a run uses."""

import re
from collections.abc import Sequence

import polars as pl

from pipeline.inspection.formats import clock_of, formats_of
from pipeline.inspection.number_times import time_of_numbers, time_of_scientific
from pipeline.inspection.readings import (
    MOST,
    UTC_ASSUMED,
    Reading,
    read_span,
    spoken_span,
    sql_name,
    times_of,
)
from pipeline.inspection.words import words_of

EXAMPLES = 300
CLOCK_DIGITS = r"^(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?$"
CLOCK_NAMES = frozenset(["time", "clock", "tm", "hms", "uhrzeit", "hora", "heure"])
SCIENTIFIC = r"^[0-9]\.[0-9]+[eE]\+?[0-9]+$"
PLAIN_NUMBER = r"^[+-]?[0-9]+(?:\.[0-9]*)?$"


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
            return time_of_scientific(filled, column.name)
        texts = filled.filter(~filled.str.contains(PLAIN_NUMBER))
        if len(texts) < 0.5 * len(filled):
            return time_of_numbers(filled, column.name)
        return _of_text(filled, column.name)
    if column.dtype.is_numeric():
        return time_of_numbers(filled, column.name)
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
    joined = cells["day"].str.strip_chars() + " " + cells["clock"].str.strip_chars()
    read = read_span(joined.alias(days.name), says)
    if read is None or read[0] < MOST:
        return None
    reason = f"{days.name} holds the date and {clocks.name} the time of day, {spoken_span(read)}"
    return Reading(says, reason, *read, text=True, doubts=list(reading.doubts))


def _of_datetimes(filled: pl.Series) -> Reading | None:
    naive = getattr(filled.dtype, "time_zone", None) is None
    says = {"timezone": "UTC"} if naive else {}
    # The file says itself that these are times: they need no test by their values.
    read = read_span(filled, {**says}) or (0.0, 0, 0)
    reason = f"the file declares it as {filled.dtype}"
    doubts = [f"timestamp: {UTC_ASSUMED}"] if naive else []
    return Reading(says, reason, read[0], read[1], read[2], text=True, date_only=filled.dtype == pl.Date, doubts=doubts)


def _of_text(filled: pl.Series, name: str) -> Reading | None:
    distinct = filled.unique(maintain_order=True)
    examples = pl.concat([distinct.head(EXAMPLES), distinct.tail(EXAMPLES)]).to_list()
    readings = []
    for says in formats_of(examples):
        read = read_span(filled, says)
        if read is not None and read[0] >= MOST:
            date_only = not re.search(r"%[HIkl]", says["format"])
            reason = f"such as {filled[0]!r}, {spoken_span(read)}"
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
    read = read_span(filled.str.extract(r"(-?[0-9]+)"), {"unit": "ms"})
    return read and Reading({"sql": sql, "unit": "ms"}, f"such as {filled[0]!r}, {spoken_span(read)}", *read, text=True)


def _of_hours(filled: pl.Series, name: str) -> Reading | None:
    """A date with an hour and no minute, such as 2014-12-11 13, which becomes 2014-12-11 13:00."""
    if (filled.str.contains(r"\d[ T-]\d{1,2}$").mean() or 0) < MOST:  # type: ignore[operator]
        return None
    found = _of_text(filled + ":00", name)
    if found is not None:
        found.says = {"sql": f"{sql_name(name)} || ':00'", **found.says}
        found.reason += " (with the minute 00 added)"
    return found


def _likelier(readings: Sequence[Reading], filled: pl.Series) -> Reading:
    """Of several readings the one in file order, else that with the shorter span, else that with AM and PM as usual."""
    ordered = [reading for reading in readings if _in_order(reading, filled)]
    if len(ordered) == 1:
        return ordered[0]
    shortest = min(reading.last_us - reading.first_us for reading in readings)
    short = [reading for reading in readings if reading.last_us - reading.first_us == shortest]
    # Who writes AM and PM mostly writes the month first.
    return max(short, key=lambda reading: "%p" in reading.says["format"] and reading.says["format"].startswith("%m"))


def _why(chosen: Reading, other: Reading, filled: pl.Series) -> str:
    if _in_order(chosen, filled) and not _in_order(other, filled):
        return "as it was read, the rows are in order of time"
    if chosen.last_us - chosen.first_us < other.last_us - other.first_us:
        return "as it was read, the log is the shorter one"
    if chosen.says["format"].startswith("%m"):
        return "month before day was taken, as AM and PM go with it"
    return "day before month was taken"


def _in_order(reading: Reading, filled: pl.Series) -> bool:
    return bool(times_of(filled, reading.says).drop_nulls().is_sorted())


def _alike(filled: pl.Series, one: Reading, other: Reading) -> bool:
    """Whether two readings give every cell the same time; the same first and last one do not say so."""
    return times_of(filled, one.says).equals(times_of(filled, other.says), null_equal=True)


def _span_of(reading: Reading) -> str:
    return spoken_span((reading.share, reading.first_us, reading.last_us))

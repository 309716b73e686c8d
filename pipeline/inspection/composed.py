"""Times that a log does not hold as such: parts in several columns, an hour beside a date, a count from an unknown start."""

import re

import polars as pl

from pipeline.inspection.readings import UTC_ASSUMED, Reading, read_times, sql_name
from pipeline.inspection.words import name_score, plain, words_of

# What stands before a part of a time.
PARTS = {"year": "", "month": " || '-' || ", "day": " || '-' || ", "hour": " || ' ' || "}
FINER = {"minute": " || ':' || ", "second": " || ':' || "}
MADE_UP = ("2020-01-01", 1577836800)  # the start of a count that names none
DAY_S = 86_400
WEEK = 7
EXCEL_1970 = 25_569
EXCEL_DAYS = (32_874, 55_000)
LONGEST_COUNT_S = 20 * 365 * DAY_S
WHOLE = r"^-?[0-9]+(?:\.0*)?$"
NUMBER = r"^-?[0-9]+(?:\.[0-9]*)?$"
YEARLESS = re.compile(r"(?:0\d|1[0-2])(?P<mark>[-/.]?)(?:[0-2]\d|3[01])(?P<clock> \d\d:\d\d(?::\d\d)?)?")


def time_of_parts(frame: pl.DataFrame) -> dict[str, Reading]:
    """The time that columns named year, month, day and so on give together, by the name of the one with the year.

    Args:
        frame: Raw columns [rows].
    """
    named: dict[tuple[str, ...], dict[str, str]] = {}
    for name in frame.columns:
        *before, last = words_of(name) or [""]
        named.setdefault(tuple(before), {}).setdefault(last, name)
    columns = next((found for found in named.values() if {"year", "month", "day"} <= found.keys()), {})
    if not columns:
        return {}
    used = [part for part in PARTS if part in columns]
    if "hour" in columns and "minute" in columns:
        used += [part for part in FINER if part in columns and (part == "minute" or "second" in columns)]
    marks, written = {**PARTS, **FINER}, {"day": "%Y-%m-%d", "hour": "%Y-%m-%d %H:%M", "minute": "%Y-%m-%d %H:%M"}
    sql = "".join(marks[part] + _text(frame, columns[part]) for part in used)
    if used[-1] == "hour":
        sql += " || ':00'"
    says = {"sql": sql, "format": written.get(used[-1], "%Y-%m-%d %H:%M:%S"), "timezone": "UTC"}
    return _read(frame, says, f"{', '.join(columns[part] for part in used)} hold its parts", columns["year"])


def time_with_hour(frame: pl.DataFrame, day: str, reading: Reading) -> Reading | None:
    """A date with the hour that another column holds as a number; None when no column does.

    Args:
        frame: Raw columns [rows].
        day: The column with the date.
        reading: How the date is read.
    """
    if "format" not in reading.says or "sql" in reading.says:
        return None
    for name in frame.columns:
        cells = _cells(frame[name])
        words = words_of(name)
        if "hour" not in words or "per" in words or cells.is_empty() or not cells.str.contains(WHOLE).all():
            continue
        hours = cells.cast(pl.Int64, strict=False)
        if hours.is_between(0, 23).all() and hours.null_count() == 0 and hours.n_unique() > 1:
            sql = f"{_text(frame, day)} || ' ' || {_text(frame, name)} || ':00'"
            says = {"sql": sql, **reading.says, "format": f"{reading.says['format']} %H:%M"}
            return _read(frame, says, f"{day} holds the date and {name} the hour", day).get(day)
    return None


def counted_time(frame: pl.DataFrame, name: str) -> Reading | None:
    """Seconds, or days, from a start that the log does not tell, read from a start that is made up; None for others.

    Args:
        frame: Raw columns [rows].
        name: The column, which is named like a time.
    """
    days = plain(name) in ("day", "date")
    cells = _cells(frame[name])
    if (name_score(name, "timestamp") < 80 and not days) or cells.is_empty() or not cells.str.contains(NUMBER).all():
        return None
    if cells.str.contains(r"^0[0-9]").any() or frame[name].n_unique() < 3:
        return None
    if plain(name) == "day" and (cells.cast(pl.Float64).max() <= WEEK or _has_month(frame)):  # type: ignore[operator]
        return None  # of a week, or of a month
    if _is_serial(cells):
        says = {"sql": f"ROUND((CAST({sql_name(name)} AS DOUBLE) - {EXCEL_1970}) * {DAY_S})", "unit": "s"}
        found = _read(frame, says, f"{name} counts days as a spreadsheet does", name, zoned=False).get(name)
        if found is not None:
            found.doubts.append(
                f"timestamp: {name} counts days since 1900, as a spreadsheet does, and names no zone: UTC is assumed; "
                "fractions of a second are rounded"
            )
        return found
    numbers, limit = cells.cast(pl.Float64), LONGEST_COUNT_S // DAY_S if days else LONGEST_COUNT_S
    if numbers.max() >= limit or numbers.min() < -limit:  # type: ignore[operator]
        return None
    start, start_s = MADE_UP
    whole = not cells.str.contains(".", literal=True).any()
    sql = f"CAST({sql_name(name)} AS {'BIGINT' if whole else 'DOUBLE'})"
    clock = _clock_numbers(frame) if days else None
    if days:
        sql += f" * {DAY_S}"
    if clock is not None:
        clocked = f"CAST({sql_name(clock)} AS BIGINT)"
        sql += f" + DIV({clocked}, 100) * 3600 + MOD({clocked}, 100) * 60"
    says = {"sql": f"{sql} + {start_s}", "unit": "s"}
    counted = f"{'days' if days else 'seconds'} from a start that the log does not tell"
    reason = f"{name} counts {counted}" + (f", and {clock} is the time of day" if clock else "")
    found = _read(frame, says, reason, name, zoned=False).get(name)
    if found is not None:
        found.doubts.append(
            f"timestamp: {name} was taken for {counted}; {start} ({start_s} in sql) is made up: write the true start in "
            "its place, or keep it, since the differences between times are right either way"
            + ("" if days else '; if it counts other than seconds, say so: unit = "ms"')
        )
    return found


def _has_month(frame: pl.DataFrame) -> bool:
    return any("month" in words_of(name) for name in frame.columns)


def _is_serial(cells: pl.Series) -> bool:
    """Whether numbers are days since 1900 as a spreadsheet counts them, from 1990 to the time to come."""
    return cells.cast(pl.Float64).is_between(*EXCEL_DAYS).all()


def yearless_time(frame: pl.DataFrame, name: str) -> Reading | None:
    """Month and day, such as 0602, in a year that is made up; None for others.

    Args:
        frame: Raw columns [rows].
        name: The column, which is named like a time.
    """
    cells = [cell.strip() for cell in _cells(frame[name]).unique(maintain_order=True).head(300)]
    matches = [YEARLESS.fullmatch(cell) for cell in cells]
    first = matches[0] if matches else None
    if first is None or not all(matches) or frame.schema[name] != pl.String:
        return None
    mark, clock, year = first["mark"], first["clock"] or "", MADE_UP[0][:4]
    written = f"%Y{mark}%m{mark}%d" + (" %H:%M" + (":%S" if clock.count(":") == 2 else "") if clock else "")
    says = {"sql": f"'{year}{mark}' || {sql_name(name)}", "format": written, "timezone": "UTC"}
    found = _read(frame, says, f"{name} holds month and day, such as {cells[0]!r}", name).get(name)
    if found is not None:
        found.date_only = not clock
        found.doubts.append(
            f"timestamp: {name} holds no year; {year} in sql is made up: write the true one in its place, and its days "
            "into start and end; a log that goes on past New Year needs CASE WHEN ... END"
        )
    return found


def _clock_numbers(frame: pl.DataFrame) -> str | None:
    """The column with times of day as numbers, such as 1631."""
    for name in frame.columns:
        cells = _cells(frame[name])
        if (
            not {"time", "clock"} & set(words_of(name))
            or cells.is_empty()
            or not cells.str.contains(r"^[0-9]{1,4}$").all()
        ):
            continue
        numbers = cells.cast(pl.Int64)
        if 999 < numbers.max() < 2400 and (numbers % 100).max() < 60:  # type: ignore[operator]
            return name
    return None


def _cells(column: pl.Series) -> pl.Series:
    """The filled cells as text; none of lists, objects, bytes, and of what is a time by its type."""
    dtype = column.dtype
    if dtype.is_nested() or dtype.is_temporal() or dtype in (pl.Binary, pl.Null):
        return pl.Series(column.name, [], dtype=pl.String)
    return column.drop_nulls().cast(pl.String, strict=False)


def _text(frame: pl.DataFrame, name: str) -> str:
    return sql_name(name) if frame.schema[name] == pl.String else f"CAST({sql_name(name)} AS VARCHAR)"


def _read(frame: pl.DataFrame, says: dict[str, str], what: str, key: str, *, zoned: bool = True) -> dict[str, Reading]:
    """The reading, by a column of its own, when the expression gives times in nearly all rows."""
    try:
        cells = frame.lazy().select(pl.sql_expr(says["sql"]).alias("t")).collect()["t"].drop_nulls()
    except pl.exceptions.PolarsError:
        return {}
    read = read_times(cells, {name: value for name, value in says.items() if name != "sql"})
    if read is None:
        return {}
    doubts = [f"timestamp: {UTC_ASSUMED}"] if zoned else []
    return {key: Reading(dict(says), f"{what}, {read[1]}", *read[0], text=True, doubts=doubts)}

"""How a column of numbers says when: a unit since 1970, ticks from another start, or the digits of a date."""

from typing import Any

import polars as pl

from pipeline.events.times.unit_doctor import SCALES
from pipeline.inspection.readings import MOST, UTC_ASSUMED, Reading, read_span, spoken_span, sql_name
from pipeline.inspection.starts import SHORTEST as SHORTEST_TICKS
from pipeline.inspection.starts import STARTS, since_1970
from pipeline.inspection.words import name_score

SHORTEST = 8  # digits of a time: 20200101 has no fewer
EARLY_US = 788_918_400_000_000  # 1995-01-01; the logs that are known begin behind it


def time_of_numbers(filled: pl.Series, name: str) -> Reading | None:
    """How numbers, or the texts of numbers, are read as times; None when they cannot be.

    Args:
        filled: Filled cells [rows].
        name: Their column.
    """
    named = name_score(name, "timestamp") > 0
    digits = filled.cast(pl.String) if filled.dtype.is_integer() else filled
    if digits.dtype == pl.String and digits.str.len_chars().max() < SHORTEST:  # type: ignore[operator]
        return None
    ticks = _of_ticks(filled, name) if named and digits.dtype == pl.String else None
    if ticks is not None:
        return ticks
    for scale in SCALES:
        if scale.factor > 1 and not named:
            continue  # many ids are as long
        says: dict[str, Any] = {"unit": scale.unit}
        cells = filled
        if scale.factor > 1:
            says = {"sql": f"CAST({sql_name(name)} AS BIGINT) * {scale.factor}", "unit": scale.unit}
            cells = filled.cast(pl.Int64, strict=False).drop_nulls() * scale.factor
        read = read_span(cells, {"unit": scale.unit}) if len(cells) else None
        if read is None or read[0] < MOST:
            continue
        reason = f"as {scale.looks} since 1970 these are {spoken_span(read)}"
        doubts = []
        if scale.factor > 1:
            doubts.append(f"timestamp: {name} looks like {scale.looks}, which is unusual; ask where the log comes from")
        if read[2] < EARLY_US:
            doubts.append(
                f"timestamp: {name}, as {scale.looks} since 1970, is of {spoken_span(read)}, which is early for a log; does it "
                "count from another start, such as 2001-01-01, which is 978307200 seconds later? Then add these by sql"
            )
        return Reading(says, reason, *read, text=False, doubts=doubts)
    return _of_digits(digits, name) if digits.dtype == pl.String else None


def _of_ticks(filled: pl.Series, name: str) -> Reading | None:
    """Counts from another start than 1970."""
    numbers = filled.cast(pl.Int64, strict=False)
    if (numbers.abs().max() or 0) < 10 ** (SHORTEST_TICKS - 1):  # type: ignore[operator]
        return None
    for start in STARTS:
        cells, says = since_1970(numbers, start, sql_name(name))
        read = read_span(cells, {"unit": "us"})
        if read is not None and read[0] >= MOST:
            return Reading(says, f"as {start.looks}, these are {spoken_span(read)}", *read, text=False)
    return None


def time_of_scientific(filled: pl.Series, name: str) -> Reading | None:
    """Numbers such as 1.641012187e+18, as programs write those with a fraction."""
    numbers = filled.cast(pl.Float64, strict=False).alias(name)
    found = time_of_numbers(numbers, name) if name_score(name, "timestamp") else None
    if found is None or "unit" not in found.says or "sql" in found.says:
        return None
    found.says = {"sql": f"CAST({sql_name(name)} AS DOUBLE)", **found.says}
    found.doubts.append(
        f"timestamp: {name} holds rounded numbers such as {filled[0]}, and what was rounded off is lost"
    )
    return found


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
        read = read_span(digits + "00" if sql else digits, says)
        if read is not None and read[0] >= MOST:
            reason = f"digits of dates, {spoken_span(read)}" + (" (with the minute 00 added)" if sql else "")
            says = {"sql": sql, **says} if sql else says
            return Reading(
                says, reason, *read, text=True, date_only=format_ == "%Y%m%d", doubts=[f"timestamp: {UTC_ASSUMED}"]
            )
    return None

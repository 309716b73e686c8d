"""By how much the times of two columns lie apart, where that is always the same: one clock, shown twice."""

from collections.abc import Mapping

import polars as pl

from pipeline.inspection.readings import Reading, times_of

LOOKED_AT = 2000
FEWEST = 20  # rows; in fewer, times keep step by chance
MOST_SHIFTS = 3  # a zone has two, and a calendar with a year changed a third
QUARTER_S = 900
WIDEST_ZONE_S = 14 * 3600
SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US


def shifts_of(frame: pl.DataFrame, readings: Mapping[str, Reading], one: str, other: str) -> list[int] | None:
    """The few numbers of seconds by which `one` lies behind `other` in all rows; None when there are many.

    Args:
        frame: Raw columns [rows].
        readings: How the two columns are read.
        one: A column.
        other: Another one.
    """
    if any("sql" in readings[name].says or readings[name].date_only for name in (one, other)):
        return None
    times = [times_of(frame[name].head(LOOKED_AT), readings[name].says) for name in (one, other)]
    apart = pl.DataFrame({"one": times[0], "other": times[1]}).drop_nulls()
    if apart.height < FEWEST:
        return None
    # Of a clock that shows minutes alone, the other one has to be right to the minute.
    step_us = MINUTE_US if (apart["one"] % MINUTE_US == 0).all() else SECOND_US
    seconds = (apart["one"] // step_us - apart["other"] // step_us) * (step_us // SECOND_US)
    found = seconds.unique().sort().to_list()
    return found if len(found) <= MOST_SHIFTS else None


def is_zone(shifts: list[int]) -> bool:
    """Whether two clocks of different zones lie so far apart: whole quarters of an hour, at most 14 hours."""
    return all(shift % QUARTER_S == 0 and abs(shift) <= WIDEST_ZONE_S for shift in shifts)


def names_zone_of(frame: pl.DataFrame, readings: Mapping[str, Reading], naive: str, other: str) -> bool:
    """Whether a column tells the times of another one that names no zone, and as finely, but with their zone."""
    if "timezone" not in readings[naive].says or "timezone" in readings[other].says:
        return False
    shifts = shifts_of(frame, readings, naive, other)
    if shifts is None or not is_zone(shifts):
        return False
    finer = [
        bool((times_of(frame[name].head(LOOKED_AT), readings[name].says) % SECOND_US != 0).any())
        for name in (naive, other)
    ]
    return finer[1] or not finer[0]

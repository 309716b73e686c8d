"""Wall clock times of a zone to instants, with a rule for the hour that exists twice and the hour that does not exist."""

from functools import lru_cache

import polars as pl

from pipeline.config import TimestampColumn
from pipeline.events.times.unit_doctor import DAY_US, EARLIEST_US

HOUR_US = 3_600_000_000
FIRST_DAY = EARLIEST_US // DAY_US - 2  # what lies before it is implausible in any zone


def to_utc(naive_us: pl.Series, declared: TimestampColumn, latest_us: int) -> pl.Series:
    """Wall clock times as instants.

    Args:
        naive_us: Int64 [rows], us of the wall clock since 1970-01-01.
        declared: The zone, and the rules for local times that exist twice or not at all.
        latest_us: The first implausible instant.

    Returns:
        Int64 [rows], us since 1970 UTC; null where a rule refuses the time, and where it was null before. Times that
        are implausible in any zone are left as they are.
    """
    if declared.timezone in (None, "UTC"):
        return naive_us
    offsets = _steady_offsets(declared.timezone, latest_us // DAY_US + 2)
    days = (naive_us // DAY_US - (FIRST_DAY - 1)).clip(0, offsets.len() - 1)
    us = naive_us - offsets.gather(days)
    unsteady = (us.is_null() & naive_us.is_not_null()).arg_true()
    return us if unsteady.is_empty() else us.scatter(unsteady, _at_a_change(naive_us.gather(unsteady), declared))


@lru_cache
def _steady_offsets(zone: str, last_day: int) -> pl.Series:
    """What a zone's clocks are ahead of UTC on each local day; a table look-up is cheaper than the zone database.

    Returns:
        Int64 us: for all days before `FIRST_DAY` 0, then for each day to `last_day` its offset, null where it may
        change during the day, and 0 for all later days: beyond the calendar the zone database panics.
    """
    first, after = (FIRST_DAY - 1) * DAY_US, (last_day + 2) * DAY_US
    instants = pl.int_range(first, after, HOUR_US, dtype=pl.Int64, eager=True).alias("instant")
    by_day = (
        pl.DataFrame([instants, _offsets_at(instants, zone).alias("offset")])
        .group_by(pl.col("instant") // DAY_US, maintain_order=True)
        .agg(pl.col("offset").min().alias("low"), pl.col("offset").max().alias("high"))
    )
    # A local day may begin on the day before in UTC, and end on the day after.
    low = by_day["low"].rolling_min(3, center=True)[1:-1]
    high = by_day["high"].rolling_max(3, center=True)[1:-1]
    wild = pl.Series([0], dtype=pl.Int64)
    return pl.concat([wild, low.set(low != high, None), wild])


def _offsets_at(instants_us: pl.Series, zone: str) -> pl.Series:
    """What a zone's clocks are ahead of UTC, in us, at each instant."""
    local = instants_us.cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    return local.dt.replace_time_zone(None).to_physical() - instants_us


def _at_a_change(naive_us: pl.Series, declared: TimestampColumn) -> pl.Series:
    """Instants of wall clock times on days on which the clocks may change, by the declared rules."""
    clock, zone = naive_us.cast(pl.Datetime("us")), declared.timezone
    twice = {"refuse": "null", "earliest": "earliest", "latest": "latest"}[declared.ambiguous]
    us = clock.dt.replace_time_zone(zone, ambiguous=twice, non_existent="null").to_physical()  # type: ignore[arg-type]
    if declared.nonexistent == "refuse":
        return us
    never = clock.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null").is_null()
    # A day earlier, read as UTC, the clocks were not changed yet, whatever the zone.
    forward = naive_us - _offsets_at(naive_us - DAY_US, zone or "UTC")
    return us.zip_with(~never, forward)

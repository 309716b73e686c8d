"""Ticks and microseconds that are counted from another start than 1970, as Windows and Chrome write them."""

from typing import Any, NamedTuple

import polars as pl

SHORTEST = 17  # digits


class Start(NamedTuple):
    """What a number may count: `per_us` of it are a microsecond, and 1970 lies `us` behind the start."""

    looks: str
    per_us: int
    us: int


STARTS = (
    Start(".NET ticks, of 100 nanoseconds since the year 1", 10, 62_135_596_800_000_000),
    Start("Windows ticks, of 100 nanoseconds since 1601", 10, 11_644_473_600_000_000),
    Start("microseconds since 1601, as Chrome counts them", 1, 11_644_473_600_000_000),
)


def since_1970(numbers: pl.Series, start: Start, name: str) -> tuple[pl.Series, dict[str, Any]]:
    """The numbers as microseconds since 1970, and the keys of `timestamp` that make them so.

    Args:
        numbers: int64 [rows], null where a cell is no whole number.
        start: What they are taken for.
        name: The column as an expression names it.
    """
    counted = f"CAST({name} AS BIGINT)"
    sql = f"DIV({counted}, {start.per_us})" if start.per_us > 1 else counted
    return numbers // start.per_us - start.us, {"sql": f"{sql} - {start.us}", "unit": "us"}

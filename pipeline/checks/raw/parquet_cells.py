"""Rows of a Parquet file as plain Python values, without the readers of the pipeline."""

import bisect
import hashlib
import math
from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

EXACT = {"halffloat": 2**11, "float": 2**24}  # from there on a float stands for several integers
TICKS_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# Python's calendar is shorter than that of a file; what lies outside of it is implausible in any zone.
BEFORE_ALL, AFTER_ALL = datetime(2, 1, 1), datetime(9998, 1, 1)  # noqa: DTZ001
DAYS_OF_PYTHON = range(date.max.toordinal())

Cells = dict[str, Any]


def read_parquet(
    path: Path, *, wanted: Collection[int], columns: Collection[str] | None, integers: Collection[str]
) -> tuple[int, str, Iterator[tuple[int, Cells]]]:
    """Counts the rows of a file by its footer and reads the wanted ones.

    Args:
        path: The file.
        wanted: Positions, from 0.
        columns: The columns to read; None for all.
        integers: Columns of which a float that stands for several integers is given as NaN.

    Returns:
        How many rows there are, the sha256 of the bytes, and the wanted rows by position.
    """
    import pyarrow.parquet as pq

    with path.open("rb") as stored:
        sha256 = hashlib.file_digest(stored, "sha256").hexdigest()
    return pq.read_metadata(path).num_rows, sha256, _rows(path, wanted, columns, integers)


def _rows(
    path: Path, wanted: Collection[int], columns: Collection[str] | None, integers: Collection[str]
) -> Iterator[tuple[int, Cells]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    ordered = sorted(wanted)
    with pq.ParquetFile(path) as file:
        names = [name for name in file.schema_arrow.names if columns is None or name in columns]
        start = 0
        for group in range(file.metadata.num_row_groups):
            stop = start + file.metadata.row_group(group).num_rows
            within = ordered[bisect.bisect_left(ordered, start) : bisect.bisect_left(ordered, stop)]
            here = [ordinal - start for ordinal in within]
            if here:
                table = file.read_row_group(group, columns=names)
                if len(here) < table.num_rows:
                    table = pa.concat_tables([table.slice(row, 1) for row in here])
                cells = [_values(table[name], whole=name in integers) for name in names]
                for place, row in enumerate(here):
                    yield start + row, {name: cells[n][place] for n, name in enumerate(names)}
            start = stop


def _values(column: Any, *, whole: bool) -> Sequence[Any]:
    """The cells of an Arrow column; pyarrow itself needs pandas for nanoseconds and fails beyond Python's calendar."""
    import pyarrow as pa

    kind = str(column.type)
    if pa.types.is_timestamp(column.type):
        zone = ZoneInfo("UTC") if column.type.tz is not None else None
        ticks = column.cast(pa.int64()).to_pylist()
        return [None if tick is None else _moment(tick, column.type.unit, zone) for tick in ticks]
    if pa.types.is_date(column.type):
        days = column.cast(pa.date32()).cast(pa.int32()).to_pylist()
        return [None if day is None else _date(day) for day in days]
    if pa.types.is_time64(column.type) or pa.types.is_duration(column.type):
        return column.cast(pa.int64()).to_pylist()
    values = column.to_pylist()
    if kind in EXACT:
        values = [None if value is None else float(value) for value in values]
        if whole:
            return [value if value is None or abs(value) < EXACT[kind] else math.nan for value in values]
    return values


def _moment(tick: int, unit: str, zone: ZoneInfo | None) -> datetime:
    us = tick * 10**6 // TICKS_A_SECOND[unit]
    try:
        naive = datetime(1970, 1, 1) + timedelta(microseconds=us)  # noqa: DTZ001
    except OverflowError:
        naive = BEFORE_ALL if us < 0 else AFTER_ALL
    return naive.replace(tzinfo=zone)


def _date(days: int) -> date:
    ordinal = days + date(1970, 1, 1).toordinal()
    return date.fromordinal(ordinal) if ordinal - 1 in DAYS_OF_PYTHON else AFTER_ALL.date()

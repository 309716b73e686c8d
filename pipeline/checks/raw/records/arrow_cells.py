"""The cells of Arrow columns as plain Python values."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from pipeline.checks.raw.values.numbers import NarrowFloat

EXACT = {"halffloat": 2**11, "float": 2**24}  # from there on a float stands for several integers
TICKS_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# Python's calendar is shorter than that of a file; what lies outside of it is implausible in any zone.
BEFORE_ALL, AFTER_ALL = datetime(2, 1, 1), datetime(9998, 1, 1)  # noqa: DTZ001
DAYS_OF_PYTHON = range(date.max.toordinal())


def values_of(column: Any) -> Sequence[Any]:
    """The values of an Arrow column: objects as dicts, lists as lists.

    pyarrow itself needs pandas for nanoseconds and fails beyond Python's calendar.
    """
    import pyarrow as pa

    parts = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return [value for part in parts for value in _values(part)]


def _values(array: Any) -> Sequence[Any]:
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        return _values(array.dictionary_decode())
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        fields = [_values(part) for part in array.flatten()]
        rows = zip(*fields, strict=True) if fields else iter([()] * len(array))
        return [
            dict(zip(names, row, strict=True)) if valid else None
            for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)
        ]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        lengths, flat = array.value_lengths().to_pylist(), iter(_values(array.flatten()))
        return [None if length is None else [next(flat) for _ in range(length)] for length in lengths]
    if pa.types.is_timestamp(kind):
        zone = ZoneInfo("UTC") if kind.tz is not None else None
        return [None if tick is None else _moment(tick, kind.unit, zone) for tick in array.cast(pa.int64()).to_pylist()]
    if pa.types.is_date32(kind):
        return [None if day is None else _date(day) for day in array.cast(pa.int32()).to_pylist()]
    if pa.types.is_date64(kind):
        return [None if ms is None else _moment(ms, "ms", None) for ms in array.cast(pa.int64()).to_pylist()]
    if pa.types.is_time64(kind) or pa.types.is_duration(kind):
        return array.cast(pa.int64()).to_pylist()
    values = array.to_pylist()
    exact = EXACT.get(str(kind))
    return values if exact is None else [None if value is None else NarrowFloat(value, exact) for value in values]


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

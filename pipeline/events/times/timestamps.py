"""Raw cells to microseconds since 1970-01-01 UTC."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from pipeline.config import TimestampColumn
from pipeline.contracts import PipelineError
from pipeline.events.ids import mask
from pipeline.events.times.grammar import grammar_of
from pipeline.events.times.layout import read_times
from pipeline.events.times.numbers import take_apart
from pipeline.events.times.unit_doctor import DAY_US, UNITS, UnitDoctor
from pipeline.events.times.zones import to_utc

FAR_AWAY = 2**62  # stands for a time that int64 microseconds cannot hold; implausible by itself


@dataclass(frozen=True, slots=True)
class Times:
    """Converted timestamps. The masks are bool [rows], None when no row is meant.

    Attributes:
        us: Int64 [rows], null where missing or malformed.
        missing: The cell is empty.
        malformed: The cell does not follow the declaration.
        implausible: Parsed, but outside 1990-01-01..tomorrow.
        floored: Rows of which digits below a microsecond were cut off, rounding down.
    """

    us: pl.Series
    missing: np.ndarray | None
    malformed: np.ndarray | None
    implausible: np.ndarray | None
    floored: int


def convert_times(raw: pl.Series, declared: TimestampColumn, doctor: UnitDoctor) -> Times:
    """Converts a block of timestamps and lets the doctor see them.

    Args:
        raw: The cells [rows].
        declared: The declaration.
        doctor: Of the file that the block belongs to.

    Raises:
        PipelineError: The declaration does not fit the raw type.
    """
    if declared.unit is not None:
        return _from_numbers(raw, declared.unit, doctor)
    if raw.dtype in (pl.Datetime, pl.Date):
        return _from_datetimes(raw, declared, doctor)
    if declared.format is None:
        raise _unfit(
            raw,
            doctor,
            ': say unit = "s" (or ms, us, ns) for numbers or format = "..." for text in [columns] timestamp',
        )
    if not (raw.dtype in (pl.String, pl.Null) or raw.dtype.is_integer()):
        raise _unfit(raw, doctor, ", not text: say unit = ... instead of format in [columns] timestamp")
    return _from_text(raw.cast(pl.String), declared, doctor)


def joined(dates: pl.Series, clocks: pl.Series, declared: TimestampColumn, doctor: UnitDoctor) -> pl.Series:
    """The cells of `from` and `time_from` as one text, with a blank between; null where either is empty.

    Args:
        dates: Text or integers [rows].
        clocks: Text or integers [rows].
        declared: The declaration.
        doctor: Of the file that the block belongs to.

    Raises:
        PipelineError: A column holds something else.
    """
    texts = []
    for column, cells in ((declared.from_, dates), (declared.time_from, clocks)):
        if not (cells.dtype in (pl.String, pl.Null) or cells.dtype.is_integer()):
            raise PipelineError(
                f"{doctor.file}: column '{column}' holds {cells.dtype}, but time_from in [columns] timestamp joins two columns "
                "of text or integers; leave time_from out, or write sql = ... instead of from and time_from"
            )
        text = cells.cast(pl.String)
        blank = (text.str.strip_chars() == "").fill_null(value=False)
        texts.append(text.set(blank, None) if blank.any() else text)
    return texts[0] + " " + texts[1]


def _from_numbers(raw: pl.Series, unit: str, doctor: UnitDoctor) -> Times:
    if raw.dtype in (pl.Datetime, pl.Date):
        raise PipelineError(
            f"{doctor.file}: column '{doctor.column}' already holds {raw.dtype}; leave unit out in [columns] timestamp"
        )
    if not (raw.dtype in (pl.String, pl.Null) or raw.dtype.is_numeric()):
        raise _unfit(raw, doctor, f', not numbers, as unit = "{unit}" in [columns] timestamp says')
    numbers = take_apart(raw, unit)
    us, lossy = _scale(numbers.whole, UNITS[unit].ns)
    if numbers.part is not None:
        us = us + numbers.part
    if numbers.finer is not None:
        lossy = numbers.finer if lossy is None else lossy | numbers.finer
    floored = 0 if lossy is None else int(lossy.sum())
    return Times(us, numbers.missing, numbers.malformed, doctor.examine(us, numbers.whole, raw), floored)


def _from_datetimes(raw: pl.Series, declared: TimestampColumn, doctor: UnitDoctor) -> Times:
    if declared.format is not None:
        raise PipelineError(
            f"{doctor.file}: column '{doctor.column}' already holds {raw.dtype}; leave format out in [columns] timestamp"
        )
    ns = UNITS[raw.dtype.time_unit].ns if isinstance(raw.dtype, pl.Datetime) else DAY_US * 1000
    us, lossy = _scale(raw.to_physical().cast(pl.Int64), ns)
    if getattr(raw.dtype, "time_zone", None) is None:
        if declared.timezone is None:
            raise PipelineError(
                f"{doctor.file}: column '{doctor.column}' holds times without a zone; say timezone = \"UTC\", or the zone that they are in, in [columns] timestamp"
            )
        us = to_utc(us, declared, doctor.latest_us)
    malformed = mask(us.is_null() & raw.is_not_null())
    floored = 0 if lossy is None else int(lossy.sum())
    return Times(us, mask(raw.is_null()), malformed, doctor.examine(us, None, raw), floored)


def _from_text(text: pl.Series, declared: TimestampColumn, doctor: UnitDoctor) -> Times:
    assert declared.format is not None
    us, floored = read_times(text, grammar_of(declared.format, file=doctor.file))
    unread = us.is_null()
    empty = unread & (text.is_null() | (text.str.strip_chars() == "")) if unread.any() else unread
    us = to_utc(us, declared, doctor.latest_us)
    return Times(us, mask(empty), mask(us.is_null() & ~empty), doctor.examine(us, None, text), floored)


def _scale(numbers: pl.Series, ns: int) -> tuple[pl.Series, np.ndarray | None]:
    """Numbers of so many ns each as Int64 us, and which lost nanoseconds; what int64 cannot hold becomes `FAR_AWAY`."""
    if ns == 1:
        return numbers // 1000, mask((numbers % 1000 != 0).fill_null(value=False))
    factor = ns // 1000
    limit = FAR_AWAY // factor
    low, high = numbers.min(), numbers.max()
    if low is not None and (int(low) < -limit or int(high) > limit):  # type: ignore[arg-type]
        far = (numbers > limit) | (numbers < -limit)
        return (numbers.set(far, 0) * factor).set(far, FAR_AWAY), None
    return numbers * factor if factor > 1 else numbers, None


def _unfit(raw: pl.Series, doctor: UnitDoctor, then: str) -> PipelineError:
    return PipelineError(f"{doctor.file}: column '{doctor.column}' holds {raw.dtype}{then}")

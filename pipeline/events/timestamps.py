"""Raw cells to microseconds since 1970-01-01 UTC, and the test whether the declaration can be right."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import numpy as np
import polars as pl

from pipeline.config import TimestampColumn
from pipeline.contracts import PipelineError
from pipeline.events.ids import mask, to_int64

DAY_US = 86_400_000_000
EARLIEST_US = 631_152_000_000_000  # 1990-01-01
UNITS_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
FAR_AWAY = 2**62  # stands for a time that int64 microseconds cannot hold; implausible by itself


def tomorrow_us() -> int:
    """The end of tomorrow (UTC), in microseconds; the first implausible instant."""
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return int((midnight + timedelta(days=2)).timestamp()) * 1_000_000


@dataclass(frozen=True, slots=True)
class Times:
    """Converted timestamps. The masks are bool [rows], None when no row is meant.

    Attributes:
        us: Int64 [rows], null where missing or malformed.
        missing: The cell is empty.
        malformed: The cell does not follow the declaration.
        implausible: Parsed, but outside 1990-01-01..tomorrow.
        floored: Rows whose nanoseconds were floored to microseconds.
    """

    us: pl.Series
    missing: np.ndarray | None
    malformed: np.ndarray | None
    implausible: np.ndarray | None
    floored: int


@dataclass
class UnitDoctor:
    """Looks at all timestamps of a file and tells a wrong declaration from wild rows."""

    declared: TimestampColumn
    file: str
    column: str
    latest_us: int = field(default_factory=tomorrow_us)
    parsed: int = 0
    outside: int = 0
    inside_by_unit: dict[str, int] = field(default_factory=lambda: dict.fromkeys(UNITS_NS, 0))
    example: object = None

    def examine(self, us: pl.Series, numbers: pl.Series | None) -> np.ndarray | None:
        """Counts a block and returns its implausible rows.

        Args:
            us: Int64 [rows], null where nothing was parsed.
            numbers: The declared numbers [rows] before they got a unit; None for text.
        """
        self.parsed += us.len() - us.null_count()
        low, high = us.min(), us.max()
        if low is None or (int(low) >= EARLIEST_US and int(high) < self.latest_us):  # type: ignore[arg-type]
            return None
        wild = us.is_not_null() & ((us < EARLIEST_US) | (us >= self.latest_us))
        self.outside += int(wild.sum())
        if self.example is None:
            first = int(wild.arg_max() or 0)
            self.example = numbers[first] if numbers is not None else _as_text(us[first])
        if numbers is not None:
            for unit, ns in UNITS_NS.items():
                inside = numbers.is_between(EARLIEST_US * 1000 // ns, (self.latest_us * 1000 - 1) // ns)
                self.inside_by_unit[unit] += int(inside.sum())
        return mask(wild)

    def judge(self) -> None:
        """Stops the run when the declaration cannot be right.

        Raises:
            PipelineError: More than half of the file's timestamps lie outside 1990-01-01..tomorrow, or another unit
                would put 99 % of them inside.
        """
        if self.parsed == 0 or self.outside == 0:
            return
        unit, inside = max(self.inside_by_unit.items(), key=lambda entry: entry[1])
        fits_better = unit != self.declared.unit and inside >= 0.99 * self.parsed
        if self.outside * 2 <= self.parsed and not fits_better:
            return
        said = f'unit = "{self.declared.unit}"' if self.declared.unit else f'format = "{self.declared.format}"'
        found = (
            f"{self.file}: column '{self.column}' is declared with {said}, but {self.outside:,} of {self.parsed:,} values "
            f"(for example {self.example}) lie outside 1990-01-01..tomorrow"
        )
        if fits_better:
            raise PipelineError(
                f'{found}; they look like {UNIT_NAMES[unit]}: write unit = "{unit}" in [columns] timestamp'
            )
        raise PipelineError(f"{found}; no other unit fits either: check [columns] timestamp against the log")


def convert_times(raw: pl.Series, declared: TimestampColumn, doctor: UnitDoctor) -> Times:
    """Converts a block of timestamps and lets the doctor see them.

    Args:
        raw: The raw values [rows].
        declared: The declaration.
        doctor: Of the file that the block belongs to.

    Raises:
        PipelineError: The declaration does not fit the raw type.
    """
    if declared.unit is not None:
        return _from_numbers(raw, declared.unit, doctor)
    if raw.dtype == pl.Datetime:
        return _from_datetimes(raw, declared, doctor)
    if declared.format is None:
        raise PipelineError(
            f'{doctor.file}: column \'{doctor.column}\' holds {raw.dtype}: say unit = "s" (or ms, us, ns) for numbers or format = "..." for text in [columns] timestamp'
        )
    if raw.dtype not in (pl.String, pl.Null):
        raise PipelineError(
            f"{doctor.file}: column '{doctor.column}' holds {raw.dtype}, not text: say unit = ... instead of format in [columns] timestamp"
        )
    return _from_text(raw.cast(pl.String), declared, doctor)


def _from_numbers(raw: pl.Series, unit: str, doctor: UnitDoctor) -> Times:
    if raw.dtype in (pl.Datetime, pl.Date):
        raise PipelineError(
            f"{doctor.file}: column '{doctor.column}' already holds {raw.dtype}; leave unit out in [columns] timestamp"
        )
    typed = to_int64(raw, column=doctor.column)
    us, floored = _scale(typed.values, unit)
    malformed = _either(typed.malformed, typed.out_of_range)
    return Times(us, typed.missing, malformed, doctor.examine(us, typed.values), floored)


def _scale(numbers: pl.Series, unit: str) -> tuple[pl.Series, int]:
    """Numbers of a unit as Int64 us, with how many lost nanoseconds; what int64 cannot hold becomes `FAR_AWAY`."""
    if unit == "ns":
        return numbers // 1000, int((numbers % 1000 != 0).sum())
    factor = UNITS_NS[unit] // 1000
    limit = FAR_AWAY // factor
    low, high = numbers.min(), numbers.max()
    if low is not None and (int(low) < -limit or int(high) > limit):  # type: ignore[arg-type]
        far = (numbers > limit) | (numbers < -limit)
        return (numbers.set(far, 0) * factor).set(far, FAR_AWAY), 0
    return numbers * factor if factor > 1 else numbers, 0


def _from_datetimes(raw: pl.Series, declared: TimestampColumn, doctor: UnitDoctor) -> Times:
    assert isinstance(raw.dtype, pl.Datetime)
    if declared.format is not None:
        raise PipelineError(
            f"{doctor.file}: column '{doctor.column}' already holds {raw.dtype}; leave format out in [columns] timestamp"
        )
    us, floored = _scale(raw.to_physical(), raw.dtype.time_unit)
    if raw.dtype.time_zone is None:
        if declared.timezone is None:
            raise PipelineError(
                f"{doctor.file}: column '{doctor.column}' holds times without a zone; say timezone = \"UTC\", or the zone that they are in, in [columns] timestamp"
            )
        us = _to_utc(us, declared.timezone, doctor.latest_us)
    malformed = mask(us.is_null() & raw.is_not_null())
    return Times(us, mask(raw.is_null()), malformed, doctor.examine(us, None), floored)


def _from_text(text: pl.Series, declared: TimestampColumn, doctor: UnitDoctor) -> Times:
    assert declared.format is not None
    empty = text.is_null() | (text.str.strip_chars() == "").fill_null(value=True)
    has_offset = declared.timezone is None
    if has_offset:
        text = text.str.replace(r"[Zz]$", "+00:00")
    _require_readable(declared.format, has_offset=has_offset, file=doctor.file)
    us = text.str.to_datetime(declared.format, time_unit="us", strict=False).to_physical()
    us = us.set(_beside(text, declared.format), None)
    if declared.timezone is not None:
        us = _to_utc(us, declared.timezone, doctor.latest_us)
    floored = int(text.str.contains(r"\.\d{6}\d*[1-9]").sum()) if "f" in declared.format else 0
    return Times(us, mask(empty), mask(us.is_null() & ~empty), doctor.examine(us, None), floored)


def _beside(text: pl.Series, format_: str) -> pl.Series:
    """Rows whose text chrono reads although it does not follow the format: other blanks, a sign, second 60."""
    blanks = text.str.count_matches(" ", literal=True) != format_.count(" ")
    return (blanks | text.str.contains(r"^[+\s]|:60(\D|$)")).fill_null(value=False)


@lru_cache
def _require_readable(format_: str, *, has_offset: bool, file: str) -> None:
    """Refuses a format in which a time that is written cannot be read back."""
    probe = pl.Series([datetime(2010, 12, 31, 23, 58, 59)]).dt.replace_time_zone("UTC" if has_offset else None)  # noqa: DTZ001
    try:
        back = probe.dt.strftime(format_).str.to_datetime(format_, time_unit="us", strict=False)
        readable = back.null_count() == 0
    except (pl.exceptions.PolarsError, ValueError):
        readable = False
    if not readable:
        raise PipelineError(
            f'{file}: format = "{format_}" in [columns] timestamp cannot be read as a date and time; '
            'write it with chrono\'s directives, such as "%Y-%m-%d %H:%M:%S"'
        )


def _to_utc(naive_us: pl.Series, zone: str, latest_us: int) -> pl.Series:
    """Wall clock times of a zone as us since 1970 UTC; null for an hour that exists twice or not at all."""
    if zone == "UTC":
        return naive_us
    # Far beyond the calendar, the zone database panics: such times are implausible in any zone.
    wild = (naive_us < EARLIEST_US - 2 * DAY_US) | (naive_us > latest_us + 2 * DAY_US)
    clock = naive_us.set(wild, None).cast(pl.Datetime("us"))
    return (
        clock.dt.replace_time_zone(zone, ambiguous="null", non_existent="null")
        .to_physical()
        .zip_with(~wild.fill_null(value=False), naive_us)
    )


def _either(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    if first is None or second is None:
        return second if first is None else first
    return first | second


def _as_text(us: int) -> str:
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)).isoformat()
    except OverflowError:
        return f"{us} us"

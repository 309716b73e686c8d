"""Raw cells to microseconds since 1970-01-01 UTC, and the test whether the declaration can be right.

What text follows a format, which is all that is accepted:

- What is no field stands for itself, blanks too; `%%` is a percent sign. Digits are 0-9.
- `%Y` has four digits, `%y` two (70-99 are 1970-1999), `%j` three; `%e` `%k` `%l` a digit, or a blank, then a digit.
  No digit and no number may stand directly after these three, nor (and no point) after a fraction with a point.
- `%m` `%d` `%H` `%I` `%M` `%S` have two digits, or one where no digit and no number stands directly before or after
  the field; `%-m` is `%m`. There is no second 60.
- `%b` (or `%h`) `%a` are the first three letters of English names, `%B` `%A` all of them, `%p` `%P` AM or PM, in any
  case; the weekday has to be the right one.
- `%.f` is nothing, or a point and one to nine digits; `%.3f` `%.6f` `%.9f` a point and that many digits, `%3f` `%6f`
  `%9f` the digits alone. `%z` (or `%:z`, `%#z`) is `Z`, `+HH:MM` or `+HHMM`, or with a minus.
- `%F` `%T` `%R` `%D` and `%+` are `%Y-%m-%d`, `%H:%M:%S`, `%H:%M`, `%m/%d/%y` and `%FT%T%.f%z`.
"""

import re
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
FIELD = re.compile(r"%(\.?[369]?f|[:#]?z|-?[A-Za-z%+])|(.)", re.DOTALL)
SHORTHANDS = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y", "+": "%Y-%m-%dT%H:%M:%S%.f%z"}
SAYS = {
    **dict.fromkeys("Yy", "year"), **dict.fromkeys("mbhB", "month"), **dict.fromkeys("de", "day"), "j": "month day",
    **dict.fromkeys("Hk", "hour"), **dict.fromkeys("Il", "hour half"), **dict.fromkeys("pP", "am_pm"), "M": "minute",
    "S": "second", **dict.fromkeys((".f", ".3f", ".6f", ".9f", "3f", "6f", "9f"), "fraction"),
    **dict.fromkeys("aA", "weekday"), **dict.fromkeys(("z", ":z", "#z"), "offset"),
}  # fmt: skip
CLOCKS = [{"hour", "minute"}, {"hour", "minute", "second"}, {"hour", "minute", "second", "fraction"}]
NAMES = {
    "B": "january|february|march|april|may|june|july|august|september|october|november|december",
    **dict.fromkeys("bh", "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"),
    "A": "monday|tuesday|wednesday|thursday|friday|saturday|sunday", "a": "mon|tue|wed|thu|fri|sat|sun",
    **dict.fromkeys("pP", "am|pm"),
}  # fmt: skip


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
    if raw.dtype in (pl.Datetime, pl.Date):
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
    factor = DAY_US if unit == "days" else UNITS_NS[unit] // 1000
    limit = FAR_AWAY // factor
    low, high = numbers.min(), numbers.max()
    if low is not None and (int(low) < -limit or int(high) > limit):  # type: ignore[arg-type]
        far = (numbers > limit) | (numbers < -limit)
        return (numbers.set(far, 0) * factor).set(far, FAR_AWAY), 0
    return numbers * factor if factor > 1 else numbers, 0


def _from_datetimes(raw: pl.Series, declared: TimestampColumn, doctor: UnitDoctor) -> Times:
    if declared.format is not None:
        raise PipelineError(
            f"{doctor.file}: column '{doctor.column}' already holds {raw.dtype}; leave format out in [columns] timestamp"
        )
    unit = raw.dtype.time_unit if isinstance(raw.dtype, pl.Datetime) else "days"
    us, floored = _scale(raw.to_physical().cast(pl.Int64), unit)
    if getattr(raw.dtype, "time_zone", None) is None:
        if declared.timezone is None:
            raise PipelineError(
                f"{doctor.file}: column '{doctor.column}' holds times without a zone; say timezone = \"UTC\", or the zone that they are in, in [columns] timestamp"
            )
        us = _to_utc(us, declared.timezone, doctor.latest_us)
    malformed = mask(us.is_null() & raw.is_not_null())
    return Times(us, mask(raw.is_null()), malformed, doctor.examine(us, None), floored)


def _from_text(text: pl.Series, declared: TimestampColumn, doctor: UnitDoctor) -> Times:
    assert declared.format is not None
    written = _written(declared.format, file=doctor.file)
    us = text.str.to_datetime(written.chrono, time_unit="us", strict=False).to_physical()
    # Chrono alone is lenient: about blanks, signs, widths and second 60; polars, with %y, about any garbage.
    beside = ~text.str.contains(written.pattern).fill_null(value=False)
    if beside.any():
        us = us.set(beside, None)
    unread = us.is_null()
    empty = unread & (text.is_null() | (text.str.strip_chars() == "")) if unread.any() else unread
    floored = int((text.str.contains(written.finer) & ~unread).sum()) if written.finer else 0
    if declared.timezone is not None:
        us = _to_utc(us, declared.timezone, doctor.latest_us)
    return Times(us, mask(empty), mask(us.is_null() & ~empty), doctor.examine(us, None), floored)


@dataclass(frozen=True, slots=True)
class Written:
    """A format for chrono, and as regular expressions: of all of the text, and of text with nanoseconds to floor."""

    chrono: str
    pattern: str
    finer: str | None


@lru_cache
def _written(format_: str, *, file: str) -> Written:
    """Takes a format apart; refuses one with an unknown field, and one that gives no time or gives it twice."""
    long = FIELD.sub(lambda part: SHORTHANDS.get(part[1] or "", part[0]), format_)
    parts = [((part[1] or "").removeprefix("-"), part[0]) for part in FIELD.finditer(long)]
    unknown = [text for name, text in parts if name not in (*SAYS, "%") and text[0] == "%"]
    told = " ".join(SAYS.get(name, "") for name, _ in parts).split()
    clock = {"hour", "minute", "second", "fraction"}.intersection(told)
    sound = (
        len(told) == len(set(told)) and {"year", "month", "day"} <= set(told) and ("half" in told) == ("am_pm" in told)
    )
    sound &= clock in CLOCKS or not (clock or "offset" in told)
    starts = [*(name[:1] in set("YyjeklmdHIMS369") if name else text in "0123456789" for name, text in parts), False]
    ends = [starts[n] or name[:1] == "." for n, (name, _) in enumerate(parts)]
    # Of what may be shorter than chrono reads at most, nobody could tell where it ends.
    sound &= not any(name and name[0] in ".ekl" and starts[n + 1] for n, (name, _) in enumerate(parts))
    sound &= re.search(r"%\.[369]?f\.", long) is None
    if unknown or not sound:
        found = f"holds {unknown[0]}, which is no field here" if unknown else "does not give one date and time"
        says = f'{file}: format = "{format_}" in [columns] timestamp {found}'
        raise PipelineError(f'{says}; write it as in "%Y-%m-%d %H:%M:%S"')
    chrono, pattern, finer = "", "", ""
    for n, (name, text) in enumerate(parts):
        piece, fine = _pattern(name, text, alone=not (starts[n + 1] or (n and ends[n - 1])))
        chrono += {"offset": "%#z", "": text}.get(SAYS.get(name, ""), f"%{name}")
        pattern += piece
        finer += fine or piece
    return Written(chrono, f"(?-u)^{pattern}$", f"(?-u)^{finer}$" if finer != pattern else None)


def _pattern(name: str, text: str, *, alone: bool) -> tuple[str, str | None]:
    """What a field matches, and what it matches when nanoseconds are lost."""
    if name in NAMES:
        return f"(?i:{NAMES[name]})", None
    if name in ("", "%"):
        return pl.escape_regex(text[0]), None
    if SAYS[name] == "offset":
        return "(?:Z|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9])", None
    if SAYS[name] == "fraction":
        point, digits = (r"\." if name[0] == "." else ""), name.strip(".f")
        fine = f"{point}[0-9]{{6}}[0-9]*[1-9][0-9]*" if digits in ("", "9") else None
        return (f"{point}[0-9]{{{digits}}}" if digits else r"(?:\.[0-9]{1,9})?"), fine
    if name in "Yyj":
        return f"[0-9]{{{ {'Y': 4, 'y': 2, 'j': 3}[name] }}}", None
    first = {"S": "[0-5]", "e": "[ 0-9]", "k": "[ 0-9]", "l": "[ 0-9]"}.get(name, "[0-9]")
    return f"{first}{'?' if alone and name in 'mdHIMS' else ''}[0-9]", None


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

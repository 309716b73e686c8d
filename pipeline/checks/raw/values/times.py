"""Raw cells to microseconds since 1970-01-01 UTC, one at a time."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from pipeline.checks.raw.records.cells import Refused, cell_of
from pipeline.checks.raw.values.grammar import read_clock
from pipeline.checks.raw.values.numbers import BLANKS, DECIMAL, INT64, text_of, written
from pipeline.config import TimestampColumn

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
US = timedelta(microseconds=1)
DIGITS_OF_US = {"s": 6, "ms": 3, "us": 0}  # behind the point, as far as microseconds go
NO_LONGER_SHORT = 10**17  # floats from here on do not tell which number was meant


def time_of(cells: Mapping[str, Any], declared: TimestampColumn) -> int:
    """The plausible instant that a record holds, in us.

    Raises:
        Refused: With the reason.
    """
    cell = cell_of(cells, declared)
    if declared.time_from is not None:
        day, clock = _present(cell), _present(cell_of(cells, declared, name=declared.time_from))
        return _from_text(f"{day} {clock}", declared)
    if isinstance(cell, date):
        moment = cell if isinstance(cell, datetime) else datetime(cell.year, cell.month, cell.day)  # noqa: DTZ001
        return _since_epoch(moment, moment.utcoffset(), declared)
    text = _present(cell)
    return (
        _from_text(text, declared) if declared.unit is None else plausible_us(_from_number(cell, text, declared.unit))
    )


def _present(cell: Any) -> str:
    text = text_of(cell)
    if text is None or not text.strip(BLANKS):
        raise Refused("missing_timestamp")
    return text


def _from_number(cell: Any, text: str, unit: str) -> int:
    """Microseconds, floored, of a number of some unit."""
    if isinstance(cell, float):
        if not abs(cell) < 2 * NO_LONGER_SHORT or abs(written(cell)) >= NO_LONGER_SHORT:
            raise Refused("malformed_timestamp")
        text = format(written(cell), "f")
    elif isinstance(cell, Decimal):
        text = format(cell, "f")
    match = DECIMAL.fullmatch(text.strip(BLANKS))
    if match is None or len(match[2]) > 19 or int(match[1] + match[2]) not in INT64:
        raise Refused("malformed_timestamp")
    negative, whole, fraction = match[1] == "-", match[2], (match[3] or "").rstrip("0")
    if unit == "ns":
        us, rest = divmod(int(whole), 1000)
        beyond = bool(rest or fraction)
    else:
        digits = DIGITS_OF_US[unit]
        us, beyond = int(whole + fraction[:digits].ljust(digits, "0")), len(fraction) > digits
    return -us - beyond if negative else us


def _from_text(text: str, declared: TimestampColumn) -> int:
    try:
        clock, offset = read_clock(text, declared.format or "")
    except ValueError:
        raise Refused("malformed_timestamp") from None
    return _since_epoch(clock, offset, declared)


def _since_epoch(clock: datetime, offset: timedelta | None, declared: TimestampColumn) -> int:
    as_utc = (clock.replace(tzinfo=UTC) - EPOCH) // US
    if offset is not None:
        return plausible_us(as_utc - offset // US)
    two_days = 2 * 86_400 * 10**6
    if not earliest_us() - two_days <= as_utc <= latest_us() + two_days:  # in any zone
        raise Refused("implausible_timestamp")
    zone = ZoneInfo(declared.timezone or "UTC")
    first, second = clock.replace(tzinfo=zone), clock.replace(tzinfo=zone, fold=1)
    ahead, ahead_then = first.utcoffset() or timedelta(), second.utcoffset() or timedelta()
    if ahead > ahead_then:  # the clocks went back: it showed this twice
        if declared.ambiguous == "refuse":
            raise Refused("malformed_timestamp")
        return plausible_us(((first if declared.ambiguous == "earliest" else second) - EPOCH) // US)
    if ahead < ahead_then and declared.nonexistent == "refuse":  # they went forward: it never showed this
        raise Refused("malformed_timestamp")
    return plausible_us((first - EPOCH) // US)


def earliest_us() -> int:
    """The first plausible instant."""
    return (EARLIEST - EPOCH) // US


def latest_us() -> int:
    """The first instant that is implausible again: the end of tomorrow."""
    tomorrow_ends = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=2)
    return (tomorrow_ends - EPOCH) // US


def plausible_us(us: int) -> int:
    """An instant that is plausible.

    Raises:
        Refused: It is not.
    """
    if not earliest_us() <= us < latest_us():
        raise Refused("implausible_timestamp")
    return us

"""What a raw record means, in plain Python: typed values, or the reason why it is refused.

The grammar of a time format is that of `pipeline.events.timestamps`, read here a second time without its code.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from pipeline.config import Dataset, TimestampColumn

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
INT64 = range(-(2**63), 2**63)
FACTORS = {"s": 10**6, "ms": 10**3, "us": 1}
INTEGER = re.compile(r"([+-]?)0*([0-9]+)(?:\.0*)?")
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# What Unicode calls white space; Python's own strip takes four control characters more.
BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
SPELLED_OUT = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S", "%R": "%H:%M", "%D": "%m/%d/%y", "%+": "%Y-%m-%dT%H:%M:%S%.f%z"}
TOKEN = re.compile(r"%-?(?P<field>[%YymdHIMSjeklbhBaApPz]|[:#]z|\.f|\.?[369]f)|(?P<literal>[^%])", re.DOTALL)
ONE_OR_TWO = {"m": "month", "d": "day", "H": "hour", "I": "hour12", "M": "minute", "S": "second"}
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
OTHERS = {
    "Y": "(?P<year>[0-9]{4})", "y": "(?P<short_year>[0-9]{2})", "j": "(?P<day_of_year>[0-9]{3})",
    "e": "(?P<day>[0-9 ][0-9])", "k": "(?P<hour>[0-9 ][0-9])", "l": "(?P<hour12>[0-9 ][0-9])",
    "b": "(?P<short_month>[A-Za-z]{3})", "h": "(?P<short_month>[A-Za-z]{3})", "B": f"(?P<long_month>(?ai:{'|'.join(MONTHS)}))",
    "a": "(?P<short_weekday>[A-Za-z]{3})", "A": f"(?P<long_weekday>(?ai:{'|'.join(WEEKDAYS)}))",
    "p": "(?P<half>[APap][Mm])", "P": "(?P<half>[APap][Mm])", ".f": "(?:[.](?P<fraction>[0-9]{1,9}))?",
    "z": "(?P<offset>Z|(?P<sign>[+-])(?P<offset_hours>[0-9]{2}):?(?P<offset_minutes>[0-9]{2}))",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a record means.

    Attributes:
        reason: Why it is refused, as far as the columns that are judged tell; None when they give no reason.
        values: Canonical column -> value, for those that are judged; timestamp in us.
    """

    reason: str | None
    values: Mapping[str, Any]


class _Refused(Exception):
    pass


def excluded_columns(dataset: Dataset) -> list[str]:
    """Columns that plain Python does not judge: `sql`, and time formats that are not known here."""
    columns = {"user_id": dataset.columns.user_id, "item_id": dataset.columns.item_id, "action": dataset.columns.action}
    excluded = [name for name, column in {**columns, **dataset.extra}.items() if column.sql is not None]
    timestamp = dataset.columns.timestamp
    if timestamp.sql is not None or (timestamp.format is not None and _expression(timestamp.format) is None):
        excluded.append("timestamp")
    return excluded


def judge(cells: Mapping[str, Any] | None, dataset: Dataset, *, file_day: date | None) -> Verdict:
    """Types a record, column by column, in the order of the closed list of reasons.

    Args:
        cells: Raw column -> value; None for a record that cannot be cut.
        dataset: The declarations.
        file_day: The day in the name of the file; None where there is none.
    """
    if cells is None:
        return Verdict("malformed_line", {})
    excluded = excluded_columns(dataset)
    values: dict[str, Any] = {}
    late: list[str] = []
    try:
        for name, column in (("user_id", dataset.columns.user_id), ("item_id", dataset.columns.item_id)):
            if name in excluded:
                continue
            optional = name == "item_id" and dataset.columns.item_id.optional
            values[name] = _id(cells.get(column.from_ or ""), name, column.type, optional=optional, late=late)
        if "timestamp" not in excluded:
            values["timestamp"] = _timestamp(
                cells.get(dataset.columns.timestamp.from_ or ""), dataset.columns.timestamp
            )
            _require_reach(values["timestamp"], dataset, file_day)
        if "action" not in excluded:
            values["action"] = _action(cells, dataset)
        if late:
            raise _Refused(late[0])
        for name, extra in dataset.extra.items():
            if name not in excluded:
                values[name] = _extra(cells.get(extra.from_ or ""), extra.type, optional=extra.optional)
    except _Refused as refusal:
        return Verdict(str(refusal), values)
    return Verdict(None, values)


def _id(cell: Any, name: str, kind: str, *, optional: bool, late: list[str]) -> Any:
    text = _text(cell)
    if text is not None and kind == "int64":
        text = text.strip(BLANKS)
    if not text:
        if optional:
            return None
        raise _Refused(f"missing_{name}")
    if kind == "string":
        return text
    number = _integer(cell, text)
    if number is None:
        raise _Refused(f"malformed_{name}")
    if number not in INT64:
        late.append("id_out_of_range")
    return number


def _integer(cell: Any, text: str) -> int | None:
    """The integer that a cell holds, by its text; None when it holds none, or a float that stands for several."""
    match = INTEGER.fullmatch(text)
    if match is None or (isinstance(cell, float) and not abs(cell) < 2**53):
        return None
    # Python refuses to read thousands of digits; all that matters is that the number is too large.
    return int(match[1] + match[2]) if len(match[2]) < 20 else 2**63


def _timestamp(cell: Any, declared: TimestampColumn) -> int:
    if isinstance(cell, date):
        moment = cell if isinstance(cell, datetime) else datetime(cell.year, cell.month, cell.day)  # noqa: DTZ001
        return _since_epoch(moment, moment.utcoffset(), declared)
    text = _text(cell)
    if text is None or not text.strip(BLANKS):
        raise _Refused("missing_timestamp")
    if declared.unit is not None:
        number = _integer(cell, text.strip(BLANKS))
        if number is None or number not in INT64:
            raise _Refused("malformed_timestamp")
        return _plausible(number // 1000 if declared.unit == "ns" else number * FACTORS[declared.unit])
    try:
        clock, offset = _read_clock(text, declared.format or "")
    except ValueError:
        raise _Refused("malformed_timestamp") from None
    return _since_epoch(clock, offset, declared)


def _read_clock(text: str, format_: str) -> tuple[datetime, timedelta | None]:
    """What the clock showed, and how far it was ahead of UTC; ValueError when the text does not follow the format."""
    expression = _expression(format_)
    match = None if expression is None else expression.fullmatch(text)
    if match is None:
        raise ValueError
    part = {name: found for name, found in match.groupdict().items() if found is not None}
    year = int(part["year"]) if "year" in part else 1970 + (int(part["short_year"]) + 30) % 100
    month, day = int(part.get("month", 1)), int(part.get("day", 1))
    for kind, letters in (("short_month", 3), ("long_month", None)):
        if kind in part:
            month = [name[:letters].lower() for name in MONTHS].index(part[kind].lower()) + 1
    hour = int(part.get("hour", 0))
    if "hour12" in part:
        hour = range(1, 13).index(int(part["hour12"])) + 1
        hour = hour % 12 + (12 if part["half"].lower() == "pm" else 0)
    second, fraction = int(part.get("second", 0)), int(part.get("fraction", "0")[:6].ljust(6, "0"))
    # Python has no year 0; like the year 400, which has the same calendar, it is implausible.
    clock = datetime(year or 400, month, day, hour, int(part.get("minute", 0)), second, fraction)  # noqa: DTZ001
    if "day_of_year" in part:
        clock += timedelta(days=int(part["day_of_year"]) - 1)
        if clock.year != (year or 400):
            raise ValueError
    for kind, letters in (("short_weekday", 3), ("long_weekday", None)):
        if kind in part and part[kind].lower() != WEEKDAYS[clock.weekday()][:letters].lower():
            raise ValueError
    if "offset" not in part:
        return clock, None
    hours, minutes = int(part.get("offset_hours", 0)), int(part.get("offset_minutes", 0))
    if hours > 23 or minutes > 59:
        raise ValueError
    return clock, timedelta(hours=hours, minutes=minutes) * (-1 if part.get("sign") == "-" else 1)


@lru_cache
def _expression(format_: str) -> re.Pattern[str] | None:
    """What text in a format looks like, with a group for each field; None for a format with another field."""
    long = re.sub("%.", lambda found: SPELLED_OUT.get(found[0], found[0]), format_)
    tokens = list(TOKEN.finditer(long))
    if "".join(token[0] for token in tokens) != long:
        return None
    written = ""
    for n, token in enumerate(tokens):
        field = token["field"]
        if field in ONE_OR_TWO:
            before = n > 0 and (_is_digit(tokens[n - 1]) or (tokens[n - 1]["field"] or "").startswith("."))
            crowded = before or (n + 1 < len(tokens) and _is_digit(tokens[n + 1]))
            written += f"(?P<{ONE_OR_TWO[field]}>[0-9]{{{2 if crowded else 1},2}})"
        elif field is None or field == "%":
            written += re.escape(token["literal"] or "%")
        elif field[-1] == "f" and field != ".f":
            written += f"{re.escape(field[:-2])}(?P<fraction>[0-9]{{{field[-2]}}})"
        else:
            written += OTHERS[field[-1] if field[-1] == "z" else field]
    try:
        return re.compile(written)
    except re.error:  # a field twice
        return None


def _is_digit(token: re.Match[str]) -> bool:
    """Whether a token of a format begins, in the text, with what may be a digit."""
    return (token["literal"] or token["field"])[0] in ("0123456789" if token["literal"] else "YymdHIMSjekl369")


def _since_epoch(clock: datetime, offset: timedelta | None, declared: TimestampColumn) -> int:
    as_utc = (clock.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    if offset is not None:
        return _plausible(as_utc - offset // timedelta(microseconds=1))
    two_days = 2 * 86_400 * 10**6
    if not _earliest_us() - two_days <= as_utc <= _latest_us() + two_days:  # in any zone
        raise _Refused("implausible_timestamp")
    zone = ZoneInfo(declared.timezone or "UTC")
    early, late = clock.replace(tzinfo=zone), clock.replace(tzinfo=zone, fold=1)
    if early.utcoffset() != late.utcoffset():  # an hour that exists twice, or not at all
        raise _Refused("malformed_timestamp")
    return _plausible((early - EPOCH) // timedelta(microseconds=1))


def _earliest_us() -> int:
    return (EARLIEST - EPOCH) // timedelta(microseconds=1)


def _latest_us() -> int:
    tomorrow_ends = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=2)
    return (tomorrow_ends - EPOCH) // timedelta(microseconds=1)


def _plausible(us: int) -> int:
    if not _earliest_us() <= us < _latest_us():
        raise _Refused("implausible_timestamp")
    return us


def _require_reach(us: int, dataset: Dataset, file_day: date | None) -> None:
    if file_day is None:
        return
    before, after = dataset.source.neighbours
    day = (EPOCH + timedelta(microseconds=us)).date()
    if not file_day - timedelta(days=after) <= day <= file_day + timedelta(days=before):
        raise _Refused("outside_day")


def _action(cells: Mapping[str, Any], dataset: Dataset) -> str:
    column = dataset.columns.action
    text = column.value if column.value is not None else _text(cells.get(column.from_ or ""))
    if not text:
        raise _Refused("missing_action")
    if text not in dataset.action_names:
        raise _Refused("unknown_action")
    return text


def _extra(cell: Any, kind: str, *, optional: bool) -> Any:
    text = _text(cell)
    stripped = text if kind == "string" or text is None else text.strip(BLANKS)
    if not stripped:
        if optional:
            return None
        raise _Refused("malformed_extra")
    if kind == "string":
        return stripped
    value: Any = None
    if kind == "bool":
        value = {"true": True, "1": True, "false": False, "0": False}.get(stripped.lower())
    elif kind == "int64":
        number = _integer(cell, stripped)
        value = number if number is not None and number in INT64 else None
    elif isinstance(cell, float) or NUMBER.fullmatch(stripped):
        number = cell if isinstance(cell, float) else float(stripped)
        value = number if math.isfinite(number) else None
    if value is None:
        raise _Refused("malformed_extra")
    return value


def _text(cell: Any) -> str | None:
    """The text of a cell; numbers of typed formats by their digits."""
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return format(Decimal(cell), "f")
    return str(cell)

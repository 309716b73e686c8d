"""What text in a time format looks like, and what the clock showed.

The grammar is that of `pipeline.events.times.timestamps`, read here a second time without its code.
"""

import re
from calendar import isleap
from datetime import datetime, timedelta
from functools import lru_cache

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


def read_clock(text: str, format_: str) -> tuple[datetime, timedelta | None]:
    """What the clock showed, and how far it was ahead of UTC; ValueError when the text does not follow the format."""
    expression = expression_of(format_)
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
        day_of_year = int(part["day_of_year"])
        if not 1 <= day_of_year <= 365 + isleap(clock.year):  # else the calendar could end before it
            raise ValueError
        clock += timedelta(days=day_of_year - 1)
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
def expression_of(format_: str) -> re.Pattern[str] | None:
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

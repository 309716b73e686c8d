"""Formats that could write given texts, by their shape."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

# The shape of a date -> the formats that it may be written in, the likelier first.
DATES = {
    r"\d{4}-\d{1,2}-\d{1,2}": ["%Y-%m-%d"],
    r"\d{4}/\d{1,2}/\d{1,2}": ["%Y/%m/%d"],
    r"\d{4}\.\d{1,2}\.\d{1,2}": ["%Y.%m.%d"],
    r"(?:19|20)\d{6}": ["%Y%m%d"],
    r"\d{1,2}/\d{1,2}/\d{4}": ["%d/%m/%Y", "%m/%d/%Y"],
    r"\d{1,2}-\d{1,2}-\d{4}": ["%d-%m-%Y", "%m-%d-%Y"],
    r"\d{1,2}\.\d{1,2}\.\d{4}": ["%d.%m.%Y"],
    r"\d{1,2}/\d{1,2}/\d{2}": ["%d/%m/%y", "%m/%d/%y", "%y/%m/%d"],
    r"\d{1,2}\.\d{1,2}\.\d{2}": ["%d.%m.%y"],
    r"\d{1,2} [A-Za-z]{3} \d{4}": ["%d %b %Y"],
    r"\d{1,2} [A-Za-z]{4,} \d{4}": ["%d %B %Y"],
    r"\d{1,2}-[A-Za-z]{3}-\d{4}": ["%d-%b-%Y"],
    r"\d{1,2}-[A-Za-z]{3}-\d{2}": ["%d-%b-%y"],
    r"\d{1,2}/[A-Za-z]{3}/\d{4}": ["%d/%b/%Y"],
    r"[A-Za-z]{3} \d{1,2}, \d{4}": ["%b %d, %Y"],
    r"[A-Za-z]{4,} \d{1,2}, \d{4}": ["%B %d, %Y"],
    r"\d{1,2} \d{1,2}, \d{4}": ["%m %d, %Y"],
    r"[A-Za-z]{3}, \d{1,2} [A-Za-z]{3} \d{4}": ["%a, %d %b %Y"],
    r"[A-Za-z]{4,}, [A-Za-z]{3,} \d{1,2}, \d{4}": ["%A, %B %d, %Y"],
    r"[A-Za-z]{3} [A-Za-z]{3} \d{2} \d{4}": ["%a %b %d %Y"],
    r"\d{1,2}[A-Za-z]{3}\d{4}": ["%d%b%Y"],
    r"\d{4}年\d{1,2}月\d{1,2}日": ["%Y年%m月%d日"],
}
CLOCK = (
    r"(?P<clock>\d{1,2}:\d{2}(?::\d{2})?|(?<= )\d{2}\.\d{2}(?:\.\d{2})?(?!\d)|(?:(?<=\d{8})|(?<=\d{8}[T _]))(?:\d{6}|\d{4}))"
    r"(?P<fraction>[.,]\d{1,9}|(?<=:\d{2}:\d{2}):\d{3})?(?P<half> ?[APap][Mm])?"
)
SHAPES = [
    (
        re.compile(
            rf"{shape}(?:(?P<join>[T :-]|, | - |  |){CLOCK}(?P<zone> ?(?:Z|UTC|(?:GMT)?[+-]\d\d:?\d\d|GMT|[+-]\d\d))?)?"
        ),
        formats,
    )
    for shape, formats in DATES.items()
]
WHOLE = {
    re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} \d{2} \d{2}:\d{2}:\d{2} [+-]\d{4} \d{4}"): "%a %b %d %H:%M:%S %z %Y",
    re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} \d{2} \d{2}:\d{2}:\d{2} UTC \d{4}"): "%a %b %d %H:%M:%S UTC %Y",
    re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} \d{2} \d{2}:\d{2}:\d{2} GMT \d{4}"): "%a %b %d %H:%M:%S GMT %Y",
    re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}"): "%a %b %e %H:%M:%S %Y",
}
CLOCK_ALONE = re.compile(r"(?P<clock>\d{1,2}:\d{2}(?::\d{2})?)(?P<fraction>[.,]\d{1,9})?(?P<half> ?[APap][Mm])?")


def formats_of(examples: Iterable[str]) -> list[dict[str, Any]]:
    """The formats, each with its zone, that could write these texts.

    >>> formats_of(["2019-10-01 00:00:00 UTC"])
    [{'format': '%Y-%m-%d %H:%M:%S UTC', 'timezone': 'UTC'}]
    """
    found: dict[str, None] = {}
    for example in examples:
        for pattern, format_ in WHOLE.items():
            if pattern.fullmatch(example):
                found[format_] = None
        for pattern, dates in SHAPES:
            match = pattern.fullmatch(example)
            if match is not None:
                found.update(dict.fromkeys(date + _behind_date(match) for date in dates))
    # A format with a fraction reads what has none as well.
    finer = {format_.replace("%.f", "") for format_ in found if "%.f" in format_}
    kept = [format_ for format_ in found if format_ not in finer]
    return [{"format": text} if "%z" in text else {"format": text, "timezone": "UTC"} for text in kept]


def clock_of(examples: Sequence[str], *, share: float) -> str | None:
    """The format of texts that are times of day alone, such as %H:%M:%S.

    Args:
        examples: Filled cells.
        share: Of them have to be such times.
    """
    matches = [CLOCK_ALONE.fullmatch(example) for example in examples]
    found = [match for match in matches if match is not None]
    if not found or len(found) < share * len(examples):
        return None
    written = next((match["fraction"] for match in found if match["fraction"]), "")
    return _clock(found[0]["clock"], found[0]["half"] or "", _fraction(written))


def _behind_date(match: re.Match[str]) -> str:
    clock, half = match["clock"], match["half"] or ""
    if clock is None:
        return ""
    zone = match["zone"] or ""
    zone = re.sub(r"Z|[+-]\d\d:?\d\d", "%z", zone)
    return match["join"] + _clock(clock, half, _fraction(match["fraction"] or "")) + zone


def _fraction(written: str) -> str:
    if written[:1] == ",":
        return {4: ",%3f", 7: ",%6f"}.get(len(written), ",%9f")
    if written[:1] == ":":
        return ":%3f"
    return "%.f" if written else ""


def _clock(clock: str, half: str, fraction: str) -> str:
    if "." in clock:
        return _clock(clock.replace(".", ":"), half, fraction).replace(":", ".")
    if ":" not in clock:
        return "%H%M%S"[: len(clock)] + fraction
    seconds = ":%S" if clock.count(":") == 2 else ""
    am_pm = (" %p" if half[0] == " " else "%p") if half else ""
    return ("%I" if half else "%H") + ":%M" + seconds + fraction + am_pm

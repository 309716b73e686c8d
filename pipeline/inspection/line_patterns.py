"""Regular expressions for lines that have no separator: a web server's log, and words with their keys."""

import re
from collections.abc import Sequence

WEB_LOG = (
    r'(?P<host>\S+) (?P<ident>\S+) (?P<user>\S+) \[(?P<time>[^\]]+)\] "(?P<method>[A-Z]+) (?P<path>[^ "]+)[^"]*" '
    r"(?P<status>[0-9]{3}) (?P<bytes>\S+).*"
)

REQUEST = r'.*?"(?P<method>[A-Z]+) (?P<path>[^ "]+)[^"]*".*'
CALENDAR = r"\[(?P<time>\d{2}/[A-Z][a-z]{2}/\d{4}:[^\]]+)\]"
ADDRESS = r"\b(?P<host>\d{1,3}(?:\.\d{1,3}){3})\b"
DAY_AND_CLOCK = r"(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)"
# Of proxies, stores of objects and balancers of load, with more before and between.
OTHER_WEB_LOGS = (
    rf".*?{ADDRESS}.*?{CALENDAR}{REQUEST}",
    rf".*?{CALENDAR}.*?{ADDRESS}{REQUEST}",
    rf"\S+ {DAY_AND_CLOCK} .*?{ADDRESS}{REQUEST}",
)
BEFORE_JSON = rf'\[?{DAY_AND_CLOCK}\]? (?:.*? )?(?P<json>\{{".*\}})\s*'

FEW = 0.2  # the log of a program has other lines as well

KEY_VALUE = re.compile(r"([A-Za-z_]\w*)=(.*)")
WORD = re.compile(r'[A-Za-z_]\w*="[^"]*"|\S+')
BETWEEN_KEYS = ";&|,"


def line_pattern(lines: Sequence[str], *, share: float) -> tuple[str, str] | None:
    """A pattern that matches lines as a whole, and what it stands for.

    Args:
        lines: Lines of the file, without line ends.
        share: Of the lines have to match; fewer where JSON stands behind a time, which is hardly anything else.
    """
    for pattern, words, fewest in (
        (WEB_LOG, "a web server's access log, common or combined", share),
        *((pattern, "a log of web requests", share) for pattern in OTHER_WEB_LOGS),
        (BEFORE_JSON, "a time, and JSON behind it", share * FEW),
        *((_keyed_between(lines[0], mark), f"words with keys, {mark} between", share) for mark in BETWEEN_KEYS),
        (_keyed(lines), "words with keys", share),
    ):
        if pattern is not None:
            compiled = re.compile(pattern)
            if sum(compiled.fullmatch(line) is not None for line in lines) >= fewest * len(lines):
                return pattern, words
    return None


def _keyed_between(line: str, mark: str) -> str | None:
    """A pattern for lines such as `user=1;item=2`, by the keys of the first one."""
    words = line.split(mark)
    keys = [match[1] for word in words if (match := KEY_VALUE.fullmatch(word))]
    if len(keys) < 3 or len(set(keys)) < len(words):
        return None
    return mark.replace("|", r"\|").join(rf"{key}=(?P<{key}>[^{mark}]*)" for key in keys)


def _keyed(lines: Sequence[str]) -> str | None:
    """A pattern for lines such as `12:00 INFO user=1 item=2`, by the words of the first one."""
    words = WORD.findall(lines[0])
    keys = [match[1] for word in words if (match := KEY_VALUE.fullmatch(word))]
    if len(keys) < 2 or len(set(keys)) < len(keys) or any(key.startswith("column_") for key in keys):
        return None
    # Quotes stand around a value where it needs them, and in other lines not.
    value = r'"?(?P<{key}>[^"]*?)"?' if '="' in lines[0] else r"(?P<{key}>\S*)"
    parts = []
    for number, word in enumerate(words, 1):
        match = KEY_VALUE.fullmatch(word)
        parts.append(f"{match[1]}={value.replace('{key}', match[1])}" if match else rf"(?P<column_{number}>\S+)")
    return r"\s+".join(parts)

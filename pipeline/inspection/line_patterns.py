"""Regular expressions for lines that have no separator: a web server's log, words with their keys, JSON behind words."""

import re
from collections.abc import Sequence

from pipeline.inspection.json_records import is_object

WEB_LOG = (
    r'(?P<host>\S+) (?P<ident>\S+) (?P<user>\S+) \[(?P<time>[^\]]+)\] "(?P<method>[A-Z]+) (?P<path>[^ "]+)[^"]*" '
    r"(?P<status>[0-9]{3}) (?P<bytes>\S+).*"
)

REQUEST = r'.*?"(?P<method>[A-Z]+) (?P<path>[^ "]+)[^"]*".*'
CALENDAR = r"\[(?P<time>\d{2}/[A-Z][a-z]{2}/\d{4}:[^\]]+)\]"
ISO = r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d))"
ADDRESS = r"\b(?P<host>\d{1,3}(?:\.\d{1,3}){3})\b"
# Of proxies and stores of objects, with more before and between.
OTHER_WEB_LOGS = tuple(
    pattern
    for time in (CALENDAR, ISO)
    for pattern in (rf".*?{ADDRESS}.*?{time}{REQUEST}", rf".*?{time}.*?{ADDRESS}{REQUEST}")
)
JSON_BEHIND = r"(?P<before>[^{]*[^{\s])\s*(?P<record>\{.*\})\s*"

KEY_VALUE = re.compile(r"([A-Za-z_]\w*)=(\S*)")


def line_pattern(lines: Sequence[str], *, share: float) -> tuple[str, str] | None:
    """A pattern that matches lines as a whole, and what it stands for.

    Args:
        lines: Lines of the file, without line ends.
        share: Of the lines have to match.
    """
    for pattern, words in (
        (WEB_LOG, "a web server's access log, common or combined"),
        *((pattern, "a log of web requests") for pattern in OTHER_WEB_LOGS),
        (_keyed(lines), "words with keys"),
    ):
        if pattern is not None:
            compiled = re.compile(pattern)
            if sum(compiled.fullmatch(line) is not None for line in lines) >= share * len(lines):
                return pattern, words
    return None


def json_behind(line: str) -> str | None:
    """The JSON object that stands behind other words in a line, at its end; None when there is none.

    >>> json_behind('12:00:01 INFO sent {"user": 1}'), json_behind('12:00:01 INFO sent {user}')
    ('{"user": 1}', None)
    """
    match = re.fullmatch(JSON_BEHIND, line)
    return match["record"] if match and is_object(match["record"]) else None


def _keyed(lines: Sequence[str]) -> str | None:
    """A pattern for lines such as `12:00 INFO user=1 item=2`, by the words of the first one."""
    words = lines[0].split()
    keys = [match[1] for word in words if (match := KEY_VALUE.fullmatch(word))]
    if len(keys) < 2 or len(set(keys)) < len(keys) or any(key.startswith("column_") for key in keys):
        return None
    parts = []
    for number, word in enumerate(words, 1):
        match = KEY_VALUE.fullmatch(word)
        parts.append(rf"{match[1]}=(?P<{match[1]}>\S*)" if match else rf"(?P<column_{number}>\S+)")
    return r"\s+".join(parts)

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
# Of proxies and stores of objects, with more before and between.
OTHER_WEB_LOGS = (rf".*?{ADDRESS}.*?{CALENDAR}{REQUEST}", rf".*?{CALENDAR}.*?{ADDRESS}{REQUEST}")

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

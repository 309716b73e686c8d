"""Where in a JSON document the records are, found from its beginning alone."""

import json
import re
from collections.abc import Iterator

BLANK = re.compile(r"[ \t\r\n]*")
DECODER = json.JSONDecoder()


def records_path(text: str) -> str | None:
    """The path of the first list of objects: "" when the document is that list; None when there is none.

    >>> records_path('{"page": 1, "data": {"events": [{"user": 1')
    'data.events'
    """
    found = _find(text, _skip(text, 0), ())
    return None if found is None else ".".join(found[0])


def first_records(text: str) -> Iterator[str]:
    """The records that stand complete in the beginning of a document, each as one line of JSON."""
    found = _find(text, _skip(text, 0), ())
    if found is None:
        return
    at = found[1]
    while text[at : at + 1] == "{":
        try:
            _, end = DECODER.raw_decode(text, at)
        except ValueError:
            return
        yield re.sub(r"[\r\n]", " ", text[at:end])
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at : at + 1] == "," else at


def is_object(line: str) -> bool:
    """Whether a line is one JSON object."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _skip(text: str, at: int) -> int:
    match = BLANK.match(text, at)
    return match.end() if match else at


def _find(text: str, at: int, path: tuple[str, ...]) -> tuple[tuple[str, ...], int] | None:
    """Path and first element of the first list of objects at or below a value."""
    if text[at : at + 1] == "[":
        inside = _skip(text, at + 1)
        return (path, inside) if text[inside : inside + 1] == "{" else None
    if text[at : at + 1] != "{" or len(path) > 5:
        return None
    at = _skip(text, at + 1)
    try:
        while text[at : at + 1] == '"':
            key, at = DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
            found = _find(text, at, (*path, key))
            if found is not None:
                return found
            _, at = DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
    except (ValueError, RecursionError):
        return None
    return None

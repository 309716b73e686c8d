"""Where in a JSON document the records are, found from its beginning alone."""

import json
import re
from collections.abc import Iterator
from typing import Any

from pipeline.inspection.words import ROLE_WORDS, name_score

BLANK = re.compile(r"[ \t\r\n]*")
DECODER = json.JSONDecoder()


def find_records(text: str) -> tuple[str, list[str]] | None:
    """The list of objects that looks most like events, and the others whose objects have the same keys.

    Returns:
        Its path, "" when the document is that list, and the paths of the others; None when there is no list of objects.

    >>> find_records('{"page": 1, "data": {"events": [{"user": 1')
    ('data.events', [])
    >>> find_records('{"shops": [{"city": 1}], "buys": [{"user": 1}], "views": [{"user": 2}]}')
    ('buys', ['views'])
    """
    keys = {path: _keys(next(_records(text, at), "{}")) for path, at in _lists(text, _skip(text, 0), ())}
    if not keys:
        return None
    chosen = max(keys, key=lambda path: sum(any(name_score(key, role) for key in keys[path]) for role in ROLE_WORDS))
    return ".".join(chosen), [".".join(path) for path in keys if path != chosen and keys[path] == keys[chosen] != set()]


def first_records(text: str, path: str) -> Iterator[str]:
    """The records at a path that stand complete in the beginning of a document, each as one line of JSON."""
    found = (at for names, at in _lists(text, _skip(text, 0), ()) if ".".join(names) == path)
    for at in found:
        yield from _records(text, at)
        return


def names_user(record: str) -> bool:
    """Whether a key of an object, at any depth, is named like the user."""
    return any(name_score(key, "user_id") for key in _keys(record))


def _records(text: str, at: int) -> Iterator[str]:
    """The complete objects of a list, from its first element on."""
    while text[at : at + 1] == "{":
        try:
            _, end = DECODER.raw_decode(text, at)
        except ValueError:
            return
        yield re.sub(r"[\r\n]", " ", text[at:end])
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at : at + 1] == "," else at


def _keys(record: str) -> set[str]:
    """The keys of an object, and of objects within it as paths."""

    def walk(value: dict[str, Any], before: str) -> Iterator[str]:
        for key, inner in value.items():
            yield before + key
            if isinstance(inner, dict):
                yield from walk(inner, f"{before}{key}.")

    return set(walk(json.loads(record), ""))


def is_object(line: str) -> bool:
    """Whether a line is one JSON object."""
    return isinstance(_value(line), dict)


def is_list(line: str) -> bool:
    """Whether a line is one JSON list."""
    return isinstance(_value(line), list)


def stands_on_several_lines(text: str) -> bool:
    """Whether a text begins with a JSON object that goes over lines, and another one follows it."""
    begin = text.lstrip()
    if begin[:1] != "{":
        return False
    try:
        _, end = DECODER.raw_decode(begin)
    except (ValueError, RecursionError):
        return False
    return "\n" in begin[:end] and begin[end:].lstrip()[:1] == "{"


def _value(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _skip(text: str, at: int) -> int:
    match = BLANK.match(text, at)
    return match.end() if match else at


def _lists(text: str, at: int, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Path and first element of the lists of objects at or below a value, as far as the text goes."""
    if text[at : at + 1] == "[":
        inside = _skip(text, at + 1)
        if text[inside : inside + 1] == "{":
            yield path, inside
        return
    if text[at : at + 1] != "{" or len(path) > 5:
        return
    at = _skip(text, at + 1)
    try:
        while text[at : at + 1] == '"':
            key, at = DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
            yield from _lists(text, at, (*path, key))
            _, at = DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
    except (ValueError, RecursionError):
        return

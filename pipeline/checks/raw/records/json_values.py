"""JSON as plain Python reads it: numbers as they are written, and every cell as text."""

import json
from collections.abc import Iterable
from typing import Any, NoReturn

MAX_NESTING = 100  # of a record: far below where Python gives up, which depends on who calls it


class Number(str):
    """A number as it is written."""

    __slots__ = ()


def refuse_constant(name: str) -> NoReturn:
    """NaN and the infinities are no JSON."""
    raise ValueError(f"{name} is no JSON")


DECODER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=refuse_constant)


def read_json(text: str) -> Any:
    """A value with its numbers as they are written.

    Raises:
        ValueError: It is no JSON, or is nested deeper than `MAX_NESTING`, or holds half a surrogate pair.
    """
    try:
        value = DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if text.count("[") + text.count("{") > MAX_NESTING and _is_too_deep(value):
        raise ValueError("nested too deep")
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def read_object(text: str) -> dict[str, Any] | None:
    """The object that a record is; None for any other text."""
    try:
        value = read_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def as_text(value: Any) -> str | None:
    """A value as a cell: texts as they are, numbers as they are written, all else as compact JSON."""
    return None if value is None else str(value) if isinstance(value, str) else _compact(value)


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_NESTING):
        level = [inner for part in level for inner in _parts(part) if isinstance(inner, dict | list)]
    return bool(level)


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _compact(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_compact(key)}:{_compact(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_compact, value)) + "]"
    return value if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)

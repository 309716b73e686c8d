"""JSON values whose numbers are kept as they are written."""

import json
import re
from typing import Any, NoReturn

import numpy as np
import polars as pl

INT64 = range(-(2**63), 2**63)
EXACT_IN_FLOAT = range(-(2**53), 2**53 + 1)
MAX_NESTING = 100  # where Python gives up depends on who calls it; the fate of a record must not
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class _Integer(str):
    """An integer as it is written."""

    __slots__ = ()


class _Decimal(str):
    """A number with a fraction or an exponent, as it is written."""

    __slots__ = ()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


DECODER = json.JSONDecoder(parse_int=_Integer, parse_float=_Decimal, parse_constant=_no_constant)


def parse_json(text: str | bytes, kind: type) -> Any:
    """The value that a text holds.

    Args:
        text: The text, or its bytes in UTF-8.
        kind: dict or list.

    Returns:
        An object of that type; None when the text holds none, or one that `is_sound` does not take.
    """
    try:
        text = text if isinstance(text, str) else text.decode()
        found = DECODER.decode(text)
    except (ValueError, RecursionError):  # UnicodeError is a ValueError
        return None
    return found if isinstance(found, kind) and is_sound(found, text) else None


def is_sound(value: Any, text: str) -> bool:
    """Whether a parsed list or object is nested no deeper than `MAX_NESTING` and holds no half of a surrogate pair."""
    if text.count("[") + text.count("{") > MAX_NESTING and _too_deep(value):
        return False
    if SURROGATE.search(text):
        try:
            compact(value).encode()
        except UnicodeError:
            return False
    return True


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_NESTING):
        nested = [part.values() if isinstance(part, dict) else part for part in level]
        level = [inner for parts in nested for inner in parts if isinstance(inner, dict | list)]
    return bool(level)


def text_of(value: object) -> str | None:
    """A value as a cell: texts as they are, numbers as they are written, nested values as compact JSON."""
    return value if value is None or isinstance(value, str) else compact(value)


def compact(value: object) -> str:
    """A value as JSON without blanks, its numbers as they are written."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{compact(key)}:{compact(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(compact(item) for item in value) + "]"
    if isinstance(value, _Integer | _Decimal):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def kind_of(value: object) -> str:
    """What a value says about the type of its column in `sql`; '' when nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, _Integer) and len(value) < 25:
        number = int(value)
        if number in INT64:
            return "integer" if number in EXACT_IN_FLOAT else "long integer"
    if isinstance(value, _Decimal) and np.isfinite(float(value)):
        return "decimal"
    return "text"


def type_of(kinds: set[str]) -> pl.DataType:
    """The type in `sql` of a column whose values are of these kinds."""
    seen = kinds - {""}
    if not seen:
        return pl.String()
    if seen <= {"integer", "long integer"}:
        return pl.Int64()
    if seen <= {"integer", "decimal"}:
        return pl.Float64()
    return pl.Boolean() if seen == {"boolean"} else pl.String()

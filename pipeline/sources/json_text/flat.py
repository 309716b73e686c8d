"""Lines of JSON that all look alike, cut by whole columns: what no line needs a parser for.

A log writer writes the same keys in the same order, line by line. A line that has exactly the shape of an earlier one,
with values that need no decoding (no escapes, nothing nested), is one match of a regular expression. All other lines
are parsed one by one, so that the shape decides about speed only.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.sources.json_text.values import EXACT_IN_FLOAT, parse_json

PLAIN_KEY = re.compile(r"[A-Za-z0-9_@$ -]+")
STYLES = ((",", ":"), (", ", ": "))  # compact, and as Python writes it
NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
SCALAR = rf'(?:"[^"\\\x00-\x1f]*"|{NUMBER}|true|false|null)'
# Brackets and braces in the texts of elements would hide where these end.
SCALAR_IN_LIST = rf'(?:"[^"\\\x00-\x1f\[\]{{}}]*"|{NUMBER}|true|false|null)'
TRIES = 20
MOST_KEYS = 40  # from there on as many groups take longer than a parser


@dataclass(frozen=True)
class Shape:
    """What lines look like: their keys in order, and how these are written.

    Attributes:
        before: The keys before the list; all keys where there is none.
        list_key: The key of the list of objects.
        after: The keys behind it.
        inner: The keys of the objects in the list.
        comma: What stands between two values.
        colon: What stands between a key and its value.
    """

    before: tuple[str, ...]
    list_key: str | None
    after: tuple[str, ...]
    inner: tuple[str, ...]
    comma: str
    colon: str

    def whole(self) -> str:
        """The pattern of a whole line."""
        pairs = self._pairs(self.before, SCALAR)
        if self.list_key is not None:
            element = r"\{" + self.comma.join(self._pairs(self.inner, SCALAR_IN_LIST)) + r"\}"
            listed = rf"\[{element}(?:{self.comma}{element})*\]"
            pairs = [*pairs, f'"{self.list_key}"{self.colon}{listed}', *self._pairs(self.after, SCALAR)]
        return rf"\A\{{{self.comma.join(pairs)}\}}\z"

    def cut(self, lines: pl.Series) -> "FlatLines":
        """The values of lines, all of which match `whole`."""
        if self.list_key is None:
            return FlatLines(self._values(lines, self.before, ends=(r"\{", r"\}")), None, None)
        head, rest = _halves(lines, f'"{self.list_key}"{self.colon}[')
        listed, tail = _halves(rest, "]")
        before = self.comma.join([*self._pairs(self.before, f"({SCALAR})"), ""])
        after = self.comma.join(["", *self._pairs(self.after, f"({SCALAR})")])
        # No text holds a newline, so that it tells both parts apart.
        around = _groups(head + "\n" + tail, rf"\A\{{{before}\n{after}\}}\z", (*self.before, *self.after))
        pieces = listed.str.split(f"}}{self.comma}{{")
        counts = pieces.list.len().to_numpy().astype(np.int64)
        elements = pieces.explode().str.strip_chars("{}")
        inner = self._values(elements, self.inner, ends=("", ""))
        return FlatLines(around, counts, inner)

    def _values(self, texts: pl.Series, keys: Sequence[str], *, ends: tuple[str, str]) -> pl.DataFrame:
        pairs = self.comma.join(self._pairs(keys, f"({SCALAR})"))
        return _groups(texts, rf"\A{ends[0]}{pairs}{ends[1]}\z", keys)

    def _pairs(self, keys: Iterable[str], value: str) -> list[str]:
        return [f'"{key.replace("$", "[$]")}"{self.colon}{value}' for key in keys]


@dataclass(frozen=True, eq=False)
class FlatLines:
    """The values of F lines of one shape as they are written, String, quotes included.

    Attributes:
        outer: A column for each key outside of the list [F].
        counts: int64 [F], how many objects are in each list; None where the shape has none.
        inner: A column for each key of these objects, which stand back to back [E].
    """

    outer: pl.DataFrame
    counts: npt.NDArray[np.int64] | None
    inner: pl.DataFrame | None


def find_shape(lines: pl.Series, *, list_key: str | None) -> Shape | None:
    """The shape of the first of some lines that has one.

    Args:
        lines: Lines of a file.
        list_key: The key of the list that is to be exploded, if one is.
    """
    for line in lines.head(TRIES):
        record = None if line is None else parse_json(line, dict)
        if not record:
            continue
        for comma, colon in STYLES:
            shape = _shape_of(record, list_key, comma, colon)
            if shape is not None and pl.Series([line]).str.contains(shape.whole()).all():
                return shape
    return None


def _shape_of(record: dict[str, Any], list_key: str | None, comma: str, colon: str) -> Shape | None:
    keys = tuple(record)
    inner: tuple[str, ...] = ()
    at = len(keys)
    if list_key is not None:
        elements = record.get(list_key)
        if not isinstance(elements, list) or not elements or not isinstance(elements[0], dict):
            return None
        inner, at = tuple(elements[0]), keys.index(list_key)
        if not inner:
            return None
    if max(len(keys), len(inner)) > MOST_KEYS or not all(PLAIN_KEY.fullmatch(key) for key in (*keys, *inner)):
        return None
    return Shape(keys[:at], list_key, keys[at + 1 :], inner, comma, colon)


def _halves(texts: pl.Series, mark: str) -> tuple[pl.Series, pl.Series]:
    """What stands before and behind the first mark."""
    both = texts.str.splitn(mark, 2)
    return both.struct.field("field_0"), both.struct.field("field_1")


def unquoted(written: pl.Series) -> pl.Series:
    """Values as they are written as cells: texts without their quotes, null for `null`."""
    is_text = written.str.starts_with('"')
    cells = written.set(written == "null", None)
    return cells.zip_with(~is_text, written.str.strip_chars('"')) if is_text.any() else cells


def kinds_of_written(written: pl.Series) -> set[str]:
    """What values that are written say about the type of their column; see `kind_of`."""
    is_text, is_boolean = written.str.starts_with('"'), written.is_in(["true", "false"])
    numbers = written.filter(~is_text & ~is_boolean & (written != "null"))
    is_decimal = numbers.str.contains("[.eE]")
    whole = numbers.filter(~is_decimal).cast(pl.Int64, strict=False)
    finite = numbers.filter(is_decimal).cast(pl.Float64).is_finite()
    exact = whole.is_between(EXACT_IN_FLOAT[0], EXACT_IN_FLOAT[-1])
    found = {
        "text": is_text.any() or whole.has_nulls() or not finite.all(),
        "boolean": is_boolean.any(),
        "integer": exact.any(),
        "long integer": (~exact).any(),
        "decimal": finite.any(),
    }
    return {kind for kind, there in found.items() if there}


def _groups(texts: pl.Series, pattern: str, keys: Sequence[str]) -> pl.DataFrame:
    """The groups of a match, by key."""
    if not keys:
        return pl.DataFrame(height=len(texts))
    frame = texts.str.extract_groups(pattern).struct.unnest()
    frame.columns = list(keys)
    return frame

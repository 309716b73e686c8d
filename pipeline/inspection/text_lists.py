"""Whether the cells of a text column hold several ids each, and how `[source.explode]` takes them apart."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

LOOKED_AT = 500
SEPARATORS = ("|", ";", ", ", ",", " ")
BRACKETS = {"[": "]", "(": ")", "{": "}"}
ID = re.compile(r"(?=\S*\d|[0-9a-f]{16,})[\w.:/#-]{1,80}")  # a code has a digit; a word or a clock is none
NO_ID = re.compile(r"\d{1,2}:\d\d.*|\d{4}-\d\d-\d\d.*|[+-]?\d+\.\d+")
CLICKED = re.compile(r"\S+-[01]")
BARE = r"[\[({]*(?P<item>[^\[\](){}]*?),?[\])}]*"  # (434,) is a tuple of one
QUOTED = r"""[\[({]*['"]?(?P<item>[^\[\](){}'"]*)['"]?[\])}]*"""
MARKED = r"(?P<item>.+)-(?P<clicked>[01])"


@dataclass(frozen=True)
class TextList:
    """A column of lists in text.

    Attributes:
        says: `separator` and `pattern` of `[source.explode]`.
        reason: What says so.
        doubt: What a person has to look at.
    """

    says: dict[str, str]
    reason: str
    doubt: str


def text_list(column: pl.Series) -> TextList | None:
    """How a column of texts is taken apart into ids; None when its cells are no lists.

    Args:
        column: Raw cells [rows].
    """
    if column.dtype != pl.String:
        return None
    cells = [cell.strip() for cell in column.drop_nulls().head(LOOKED_AT)]
    cells = [cell for cell in cells if cell]
    if len(cells) < 3:
        return None
    bracketed = all(BRACKETS.get(cell[0]) == cell[-1] for cell in cells)
    inside = [cell[1:-1].strip() for cell in cells] if bracketed else cells
    for separator in SEPARATORS:
        parts = [[part for part in cell.split(separator) if part] for cell in inside]
        if _are_lists(parts, separator, bracketed=bracketed):
            return _declared(column.name, cells, parts, separator, bracketed=bracketed)
    return None


def _are_lists(parts: Sequence[Sequence[str]], separator: str, *, bracketed: bool) -> bool:
    """Whether most cells hold several ids, and not always as many."""
    filled = [cell for cell in parts if cell]
    counts = {len(cell) for cell in filled}
    several = sum(len(cell) > 1 for cell in filled)
    if len(filled) < 3 or len(counts) < 2 or several < 0.3 * len(filled):
        return False
    bare = [part.strip().strip("'\"").removesuffix(",") for cell in filled for part in cell]
    if separator == "," and not bracketed and all(re.fullmatch(r"\d{3}", part) for cell in filled for part in cell[1:]):
        return False  # 1,234,567 is a number
    ids = sum(ID.fullmatch(part) is not None and not NO_ID.fullmatch(part) for part in bare)
    return ids >= 0.95 * len(bare)


def _declared(
    name: str, cells: Sequence[str], parts: Sequence[Sequence[str]], separator: str, *, bracketed: bool
) -> TextList:
    says, quoted = {"separator": separator}, any(part.strip()[:1] in "'\"" for cell in parts for part in cell)
    shown = repr(min(cells, key=len) if len(cells[0]) > 60 else cells[0])[:80]
    if bracketed or quoted:
        says["pattern"] = QUOTED if quoted else BARE
    elif all(CLICKED.fullmatch(part) for cell in parts for part in cell):
        says["pattern"] = MARKED
    doubt = f"source.explode: {name} was taken for a list of items, such as {shown}; if a cell is one item, leave the table out"
    return TextList(says, f"a list of items in text: each becomes a record, such as those of {shown}", doubt)

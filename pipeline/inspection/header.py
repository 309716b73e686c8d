"""Whether the first row of a file names its columns."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.inspection.words import HEADER_TYPES, ROLE_WORDS, name_score

NUMERIC = re.compile(r"[+-]?\d+(\.\d*)?|[+-]?\.\d+")
VALUE = re.compile(r".*\d{4}[-/.]\d{1,2}[-/.]\d{1,2}.*|.*\d:\d\d.*|[0-9a-f]{8,}|[0-9a-f-]{32,}|")


@dataclass
class Header:
    """What the first row is.

    Attributes:
        there: Whether it names the columns.
        names: The names, invented where there are none.
        known: How many of them are names that logs use.
        typed: Names with their types: `user_id:token`.
        renamed: Names that had to be changed, since one stands there twice.
        reason: Why.
        doubts: When it may be otherwise.
    """

    there: bool
    names: list[str]
    known: int = 0
    typed: bool = False
    renamed: bool = False
    reason: str = ""
    doubts: list[str] = field(default_factory=list)


def sniff_header(rows: Sequence[Sequence[str]], cells: int) -> Header:
    """Looks at the first row and at those behind it.

    Args:
        rows: Rows of cells.
        cells: The number of cells that most rows have.
    """
    first = [cell.strip().strip('"') for cell in rows[0]]
    rest = [row for row in rows[1:] if len(row) == cells]
    invented = [f"column_{number}" for number in range(1, cells + 1)]
    if len(first) != cells:
        shown = ",".join(first)[:60]
        return Header(False, invented, reason=f"the first line has {len(first)} cells and the others {cells}: {shown}")
    if all(HEADER_TYPES.fullmatch(name) for name in first):
        names = [name.partition(":")[0] for name in first]
        return Header(True, names, known=_known(names), typed=True, reason="every name is followed by its type")
    value = next((cell for at, cell in enumerate(first) if is_value(cell) and not (at == 0 and cell == "")), None)
    if value is not None:
        return Header(False, invented, reason=f"the first line holds values, such as {value!r}")
    known, numbers = _known(first), _number_columns(rest)
    if known == 0 and not numbers:
        alike = any(cell in {row[at] for row in rest} for at, cell in enumerate(first))
        if alike or not rest:
            return Header(False, invented, reason="the first line reads like the others")
        doubt = f"has_header: the first line, {','.join(first)[:60]!r}, was taken for names; it may be a record"
        return Header(True, _distinct(first), renamed=_twice(first), doubts=[doubt])
    reason = "the header holds a name twice, so that all are given here" if _twice(first) else ""
    return Header(True, _distinct(first), known=known, renamed=_twice(first), reason=reason)


def is_value(cell: str) -> bool:
    """Whether a cell is a number, a time or a code, and no name."""
    return NUMERIC.fullmatch(cell) is not None or VALUE.fullmatch(cell.lower()) is not None


def _known(names: Sequence[str]) -> int:
    return sum(any(name_score(name, role) for role in ROLE_WORDS) for name in names)


def _number_columns(rows: Sequence[Sequence[str]]) -> int:
    """How many columns hold numbers or times only."""
    columns = zip(*rows, strict=True)
    filled = [[cell.strip() for cell in column if cell.strip()] for column in columns]
    return sum(bool(cells) and sum(map(is_value, cells)) >= 0.9 * len(cells) for cells in filled)


def _twice(names: Sequence[str]) -> bool:
    return len(set(names)) < len(names)


def _distinct(names: Sequence[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        number, unique = 2, name
        while unique in found:
            unique, number = f"{name}_{number}", number + 1
        found.append(unique)
    return found

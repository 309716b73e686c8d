"""Whether the first row of a file names its columns."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from pipeline.inspection.words import HEADER_TYPES, mentions_role

LINES = 10  # that may stand above the header
NUMERIC = re.compile(r"[+-]?\d+(\.\d*)?|[+-]?\.\d+")
JSON_TEXT = re.compile(r'[{}\t\x00-\x08]|\["|":')
VALUE = re.compile(r".*\d{4}[-/.]\d{1,2}[-/.]\d{1,2}.*|.*\d:\d\d.*|[0-9a-f]{8,}|[0-9a-f-]{32,}|")


TYPES = frozenset(
    [
        *(
            "string",
            "str",
            "varchar",
            "char",
            "int",
            "integer",
            "bigint",
            "smallint",
            "int32",
            "int64",
            "long",
            "float",
        ),
        *("float64", "double", "decimal", "numeric", "timestamp", "datetime", "bool", "boolean", "object", "token"),
    ]
)


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
    if first.count("") > cells / 2 or len(first) != cells:
        title = _below_titles(rows[:LINES], cells)
        if title is not None:
            return title
    if len(first) < cells and _known(first) >= 2 and not any(name and is_value(name) for name in first):
        return _shorter(first, rest, invented)
    if len(first) != cells:
        shown = ",".join(first)[:60]
        return Header(False, invented, reason=f"the first line has {len(first)} cells and the others {cells}: {shown}")
    if all(HEADER_TYPES.fullmatch(name) for name in first):
        names = [name.partition(":")[0] for name in first]
        return Header(True, names, known=_known(names), typed=True, reason="every name is followed by its type")
    value = next((cell for cell in first if cell and is_value(cell)), None)
    # A record may have empty cells as well: beside one, a name that logs use has to stand.
    if value is not None or ("" in first[1:] and (_known(first) == 0 or first.count("") * 2 >= len(first))):
        return Header(False, invented, reason=f"the first line holds values, such as {value or ''!r}")
    known, numbers = _known(first), _number_columns(rest)
    if known == 0 and not numbers:
        alike = any(cell in {row[at] for row in rest} for at, cell in enumerate(first))
        if alike or not rest:
            return Header(False, invented, reason="the first line reads like the others")
        doubt = f"has_header: the first line, {','.join(first)[:60]!r}, was taken for names; it may be a record"
        return Header(True, _distinct(first), renamed=_twice(first), doubts=[doubt])
    reason = "the header holds a name twice, so that all are given here" if _twice(first) else ""
    # What stands in the header with blanks around it, or empty, is more plainly named here.
    written = [cell.strip('"') for cell in rows[0]]
    mended = written != first or "" in first[1:]
    if mended and not reason:
        reason = "the header holds names that are empty or have blanks around them, so that all are given here"
    names = [name or f"column_{at}" for at, name in enumerate(first, 1)] if reason else first
    return Header(True, _distinct(names), known=known, renamed=bool(reason), reason=reason)


def _shorter(first: Sequence[str], rest: Sequence[Sequence[str]], invented: Sequence[str]) -> Header:
    """A header with fewer names than the records have cells: R leaves out that of the row names, others those of the last."""
    more = len(invented) - len(first)
    numbers = [row[0].strip() for row in rest]
    leading = more == 1 and numbers == [str(number + int(numbers[0] == "1")) for number in range(len(numbers))]
    names = [*invented[:more], *first] if leading else [*first, *invented[len(first) :]]
    which = "the first column, which numbers the rows, has none" if leading else f"the last {more} have none"
    reason = f"the header names {len(first)} of {len(invented)} columns: {which}"
    doubt = f"has_header: {reason}; the header is refused as a row"
    return Header(False, _distinct(names), known=_known(names), reason=reason, doubts=[doubt])


def _below_titles(rows: Sequence[Sequence[str]], cells: int) -> Header | None:
    """The header when it stands below lines with a title; None when none of the rows is one."""
    for at, row in enumerate(rows[1:], 1):
        names = [cell.strip().strip('"') for cell in row]
        if len(names) == cells and _known(names) >= 2 and not any(name and is_value(name) for name in names):
            reason = f"{at} lines stand above the header, which names the columns: {','.join(names)[:60]}"
            doubt = f"has_header: {at} lines stand above the header; they and the header are refused as rows"
            names = [name or f"column_{number}" for number, name in enumerate(names, 1)]
            return Header(False, _distinct(names), known=_known(names), reason=reason, doubts=[doubt])
    return None


def without_headers(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The rows that neither repeat the names of the columns nor name their types, and how many name types.

    Args:
        frame: Raw columns.
    """
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    if len(texts) < 2:
        return frame, 0
    again = pl.all_horizontal(pl.col(name).str.strip_chars() == name for name in texts[:3]).fill_null(value=False)
    cells = [pl.col(name).str.strip_chars().str.to_lowercase().is_in(TYPES).fill_null(value=False) for name in texts]
    types = pl.all_horizontal(cells)
    return frame.filter(~again & ~types), frame.filter(types).height


def is_value(cell: str) -> bool:
    """Whether a cell is a number, a time or a code, and no name."""
    if JSON_TEXT.search(cell):
        return True
    return NUMERIC.fullmatch(cell) is not None or VALUE.fullmatch(cell.lower()) is not None


def _known(names: Sequence[str]) -> int:
    return sum(map(mentions_role, names))


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

"""What the cells of a column look like."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from pipeline.inspection.words import CODES_MISSING, MISSING

INT64 = range(-(2**63), 2**63)
INTEGER = r"^[+-]?[0-9]+(?:\.0*)?$"
LEADING_SIGN = r"^[+-]?0[0-9]|^\+"  # of which a number keeps none
FRACTION = r"^[+-]?[0-9]*\.[0-9]*[1-9][0-9]*(?:[eE][+-]?[0-9]+)?$|^[+-]?[0-9]+\.[0-9]+[eE][+-]?[0-9]+$"
DECIMAL_COMMA = r"^[+-]?[0-9]+,[0-9]{1,2}$|^[+-]?0,[0-9]+$"
# A spreadsheet writes the plus; an id in hexadecimal digits has none.
ROUNDED = r"^[+-]?[0-9](?:[.,][0-9]+)?[eE]\+[0-9]+$"
BLANK_AROUND = r"^\s|\s$"
FLAGS = frozenset(["true", "false"])
SHOWN = 3
MANY_ROWS = 20
MOST_FREQUENT = 255  # as many as there can be actions


@dataclass
class Facts:
    """What the cells of a column look like; shares are of distinct filled cells.

    Attributes:
        name: The raw column.
        type: Its type in the file, as polars names it.
        rows: Rows looked at.
        missing: Rows without a value, also those that spell it out.
        spelt: Spellings of "missing" that occur, with their rows.
        distinct: Distinct filled cells.
        longest: Length of the longest cell.
        integers: Share that are whole numbers.
        fractions: Share that are numbers with a fraction.
        commas: Share that are numbers with a decimal comma.
        rounded: A number as 1.07E+12, as a spreadsheet shows long ones, None when there is none.
        padded: A whole number with leading zeros, or a plus, None when there is none.
        beyond: A whole number that int64 does not hold.
        other: Some cells that are no whole numbers.
        coded: Whether `other` look like ids, having digits in them.
        negative: Whether a number lies below 0.
        pointed: Whether a whole number is written 1.0.
        blanks: Whether cells have blanks around them.
        spaced: Share with blanks within.
        nested: A list, or an object.
        listed: A list.
        temporal: A time or a date by its type, or bytes.
        frequent: The most frequent cells with their rows, at most 255.
        filled: Share of the rows that have a value.
        numbers_rows: Whether every row has a value of its own, as the key of a table has.
        numbers_records: Whether that was so before the lists in the records were exploded.
    """

    name: str
    type: str
    rows: int
    missing: int = 0
    spelt: Mapping[str, int] = field(default_factory=dict)
    distinct: int = 0
    longest: int = 0
    integers: float = 0.0
    fractions: float = 0.0
    commas: float = 0.0
    rounded: str | None = None
    padded: str | None = None
    beyond: str | None = None
    other: tuple[str, ...] = ()
    coded: bool = False
    negative: bool = False
    pointed: bool = False
    blanks: bool = False
    spaced: float = 0.0
    nested: bool = False
    listed: bool = False
    temporal: bool = False
    frequent: Mapping[str, int] = field(default_factory=dict)
    filled: float = 1.0
    numbers_rows: bool = False
    numbers_records: bool = False

    @property
    def id_like(self) -> bool:
        """Whether the cells can be ids: neither nested, nor times, nor numbers with a fraction, nor flags, nor long text."""
        number = self.fractions >= 0.05 or self.commas >= 0.05
        flag = 0 < self.distinct <= len(FLAGS) and {cell.lower() for cell in self.frequent} <= FLAGS
        return not (self.nested or self.temporal or number or flag) and self.distinct > 0 and self.longest < 500

    @property
    def never_changes(self) -> bool:
        """Whether many rows hold one value alone."""
        return self.distinct == 1 and self.rows >= MANY_ROWS


def look_at(column: pl.Series) -> Facts:
    """The facts of a column.

    Args:
        column: Raw cells [rows].
    """
    facts = Facts(column.name, str(column.dtype), len(column), missing=column.null_count())
    if isinstance(column.dtype, pl.Struct | pl.List | pl.Array):
        facts.nested, facts.listed = True, not isinstance(column.dtype, pl.Struct)
        return facts
    if column.dtype.is_temporal() or column.dtype == pl.Binary:
        facts.temporal, facts.distinct = True, column.n_unique()
        return facts
    # As text, a whole float is what it counts: 17850.0 is 17850 for a run as well.
    text = column.cast(pl.String, strict=False).alias("cell")
    counts = pl.DataFrame([text]).drop_nulls().group_by("cell", maintain_order=True).len("rows")
    counts = counts.sort("rows", descending=True, maintain_order=True)  # the first seen first, where equal
    stripped = counts["cell"].str.strip_chars()
    empty = stripped == ""
    facts.missing += int(counts.filter(empty)["rows"].sum())
    spelt = stripped.is_in(MISSING)
    facts.spelt = dict(counts.filter(spelt).rows())
    facts.missing += sum(facts.spelt.values())
    kept = counts.filter(~empty & ~spelt)
    _describe(facts, kept["cell"])
    coded = 0
    facts.numbers_rows = (
        facts.rows >= MANY_ROWS and facts.missing < 0.1 * facts.rows and facts.distinct == facts.rows - facts.missing
    )
    facts.frequent = dict(kept.head(MOST_FREQUENT).rows())
    # A single negative number among ids is a code.
    if facts.integers == 1.0 and facts.negative:
        below = kept.filter(kept["cell"].str.strip_chars().str.starts_with("-"))
        if set(below["cell"]) <= set(CODES_MISSING):
            facts.spelt = {**facts.spelt, **dict(below.rows())}
            coded = int(below["rows"].sum())
    facts.filled = 1 - (facts.missing + coded) / max(1, facts.rows)
    return facts


def _describe(facts: Facts, cells: pl.Series) -> None:
    facts.distinct = len(cells)
    if cells.is_empty():
        return
    facts.longest = int(cells.str.len_chars().max() or 0)  # type: ignore[arg-type]
    facts.blanks = bool(cells.str.contains(BLANK_AROUND).any())
    cells = cells.str.strip_chars()
    first = cells.head(200).str.head(1)
    facts.listed = bool((first == "[").mean() == 1.0)  # type: ignore[operator]
    facts.nested = facts.listed or bool((first == "{").mean() == 1.0)  # type: ignore[operator]
    facts.spaced = float(cells.str.contains(r"\S\s+\S").mean() or 0)  # type: ignore[arg-type]
    whole = cells.str.contains(INTEGER)
    facts.integers = float(whole.mean() or 0)  # type: ignore[arg-type]
    facts.fractions = float(cells.str.contains(FRACTION).mean() or 0)  # type: ignore[arg-type]
    facts.commas = float(cells.str.contains(DECIMAL_COMMA).mean() or 0)  # type: ignore[arg-type]
    facts.rounded = _first(cells.filter(cells.str.contains(ROUNDED)))
    integers = cells.filter(whole)
    facts.negative = bool(cells.str.contains(r"^-[0-9]").any())
    facts.pointed = bool(integers.str.contains(".", literal=True).any())
    facts.padded = _first(integers.filter(integers.str.contains(LEADING_SIGN)))
    long = integers.filter(integers.str.len_chars() >= 19)
    facts.beyond = next((cell for cell in long if int(cell.partition(".")[0]) not in INT64), None)
    other = cells.filter(~whole)
    facts.other = tuple(other.head(SHOWN))
    facts.coded = bool(other.str.contains(r"[0-9]").any())


def _first(cells: pl.Series) -> str | None:
    return None if cells.is_empty() else str(cells[0])

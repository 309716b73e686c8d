"""What becomes of the records that a format finds, one after the other: all are counted, the wanted ones are kept."""

import bisect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Cells = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record as plain Python reads it.

    Attributes:
        ordinal: Which record of the file, from 0.
        line: The line on which it starts, from 1; None in Parquet and Arrow.
        cells: Raw column -> value, None where it is missing; None when the record cannot be cut into cells.
    """

    ordinal: int
    line: int | None
    cells: Cells | None


@dataclass
class Reading:
    """What a pass over a file found.

    Attributes:
        records: How many there are.
        sha256: Of the bytes on disk.
        found: The wanted ones, by ordinal, in file order.
    """

    records: int = 0
    sha256: str = ""
    found: dict[int, RawRecord] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """Which records are to be cut out, and what of them.

    Attributes:
        ordinals: By position, from 0.
        lines: By the line on which they start, from 1; not in Parquet and Arrow.
        columns: The raw columns to give; None for all.
    """

    ordinals: Collection[int]
    lines: Collection[int] = ()
    columns: Collection[str] | None = None

    def holds(self, ordinal: int, line: int | None) -> bool:
        """Whether a record is wanted."""
        return ordinal in self.ordinals or line in self.lines

    def column(self, name: str) -> bool:
        """Whether a column is wanted."""
        return self.columns is None or name in self.columns


@dataclass(frozen=True)
class Naming:
    """Which columns a file has besides those of its records.

    Attributes:
        paths: Name of a column -> the keys that lead to it.
        folders: Column -> value, from the folders of the file's path.
        as_cell: A value as it stands in the file -> a cell.
    """

    paths: Mapping[str, Sequence[str]] = field(default_factory=dict)
    folders: Mapping[str, str | None] = field(default_factory=dict)
    as_cell: Callable[[Any], Any] = lambda value: value

    def cells(self, values: Mapping[str, Any], wanted: Wanted) -> Cells:
        """The wanted cells of a record.

        Args:
            values: Column -> value, as they stand in the file.
            wanted: Says which columns.
        """
        found = {name: self.as_cell(value) for name, value in values.items() if wanted.column(name)}
        found |= {
            name: self.as_cell(value_at(values, keys))
            for name, keys in self.paths.items()
            if name not in values and wanted.column(name)
        }
        return {name: text for name, text in self.folders.items() if wanted.column(name)} | found


class Taker:
    """Takes the records of a file in their order.

    Attributes:
        one_by_one: Whether every record has to be looked into.
    """

    one_by_one = False

    def __init__(self, wanted: Wanted, naming: Naming) -> None:
        self.reading = Reading()
        self.wanted, self.naming = wanted, naming
        self._ordinals, self._lines = sorted(wanted.ordinals), sorted(wanted.lines)

    def needs_none(self, records: int, first_line: int | None, lines: int) -> bool:
        """Whether none of the next records is wanted.

        Args:
            records: How many records these are at most.
            first_line: The line on which the first of them may start; None where there are no lines.
            lines: On how many lines they may start.
        """
        if _any_within(self._ordinals, self.reading.records, records):
            return False
        return first_line is None or not _any_within(self._lines, first_line, lines)

    def skip(self, records: int) -> None:
        """Counts records without looking at them."""
        self.reading.records += records

    def take_lines(
        self,
        count: int,
        first_line: int,
        lines: Callable[[], Sequence[bytes]],
        values: Callable[[bytes], Mapping[str, Any] | None],
    ) -> None:
        """Counts records of one line each, and keeps the wanted ones.

        Args:
            count: How many records.
            first_line: The line of the first.
            lines: Gives the lines; asked only where one is wanted.
            values: Gives the columns of a line, None when it is malformed.
        """
        first = self.reading.records
        wanted = {ordinal - first for ordinal in _within(self._ordinals, first, count)}
        wanted |= {line - first_line for line in _within(self._lines, first_line, count)}
        texts = lines() if wanted else ()
        for place in sorted(wanted):
            self.reading.records = first + place
            self.take(first_line + place, lambda text=texts[place]: values(text))
        self.reading.records = first + count

    def take(self, line: int | None, values: Callable[[], Mapping[str, Any] | None]) -> None:
        """Counts a record, and keeps it when it is wanted.

        Args:
            line: Where it starts.
            values: Gives its columns with their values as they stand in the file, None when it is malformed.
        """
        ordinal = self.reading.records
        if self.wanted.holds(ordinal, line):
            found = values()
            cells = None if found is None else self.naming.cells(found, self.wanted)
            self.reading.found[ordinal] = RawRecord(ordinal, line, cells)
        self.reading.records += 1


def value_at(values: Any, keys: Sequence[str]) -> Any:
    """What stands at a path of keys; None where it leads nowhere."""
    for key in keys:
        if not isinstance(values, Mapping):
            return None
        values = values.get(key)
    return values


def _any_within(ascending: Sequence[int], first: int, count: int) -> bool:
    return bool(_within(ascending, first, count))


def _within(ascending: Sequence[int], first: int, count: int) -> Sequence[int]:
    return ascending[bisect.bisect_left(ascending, first) : bisect.bisect_left(ascending, first + count)]

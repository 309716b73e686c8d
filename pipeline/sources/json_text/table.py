"""From the JSON records of a file to blocks, exploded where the dataset file says so."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.config import Dataset, Explode
from pipeline.contracts import PipelineError
from pipeline.sources.block import RawBlock
from pipeline.sources.elements import Elements, exploded, interleaved, match_pattern
from pipeline.sources.json_text.columns import ABSENT, JsonColumns, Path, follow
from pipeline.sources.json_text.flat import FlatLines, Shape
from pipeline.sources.json_text.values import parse_json, text_of
from pipeline.sources.paths import declared_names, names_in_sql, within

Built = tuple[pl.DataFrame, Sequence[pl.Series]]  # all columns, and the typed ones of `sql`


@dataclass(frozen=True, eq=False)
class JsonRun:
    """Consecutive JSON records of a file. R records, F of which are lines of one shape.

    Attributes:
        records: The objects [R - F]; None where a record is malformed.
        lines: On which line each begins, from 1 [R].
        read_raw: Positions -> the texts of these records.
        newline_missing: Whether the last record is complete, but not its line.
        shape: What the others look like.
        flat: Their texts, String [F].
        is_flat: Which these are [R]; None when none is.
    """

    records: Sequence[dict[str, Any] | None]
    lines: Sequence[int] | npt.NDArray[np.int64]
    read_raw: Callable[[Sequence[int]], list[str]]
    newline_missing: bool = False
    shape: Shape | None = None
    flat: pl.Series | None = None
    is_flat: npt.NDArray[np.bool_] | None = None

    def parsed(self) -> Iterator[dict[str, Any] | Shape | None]:
        """The records that were parsed, and once, at the place of the first of the others, their shape."""
        first = len(self.records) if self.is_flat is None else int(self.is_flat.argmax())
        yield from self.records[:first]
        if self.shape is not None and self.is_flat is not None:
            yield self.shape
        yield from self.records[first:]

    def in_order(self, parsed: Built, flat: Built) -> Built:
        """The rows of both kinds of records in the order of the file."""
        assert self.is_flat is not None
        if not len(self.records):
            return flat
        place = np.where(self.is_flat, len(self.records) + np.cumsum(self.is_flat), np.cumsum(~self.is_flat)) - 1
        rows = pl.Series(place, dtype=pl.UInt32)
        typed = [pl.concat(both).gather(rows) for both in zip(parsed[1], flat[1], strict=True)]
        return pl.concat([parsed[0], flat[0]])[rows], typed


NO_RECORDS = JsonRun([], [], lambda _: [])


class JsonTable(ABC):
    """The columns of a file of JSON records, and its blocks once all records were seen.

    Attributes:
        without_elements: How many records had an empty list, in the blocks so far.
    """

    without_elements = 0

    @abstractmethod
    def see(self, run: JsonRun) -> None:
        """Takes in which columns records have."""

    @abstractmethod
    def block(self, run: JsonRun) -> RawBlock:
        """The block of some records, with the columns of the whole file."""


def json_table(dataset: Dataset, *, file: str) -> JsonTable:
    """A table without rows, for one file.

    Args:
        dataset: The declarations.
        file: Name of the file, for sentences.
    """
    explode = dataset.source.explode
    return PlainTable(dataset) if explode is None else ExplodedTable(dataset, explode, file=file)


class PlainTable(JsonTable):
    """A record is a row."""

    def __init__(self, dataset: Dataset) -> None:
        self._columns = JsonColumns(declared=declared_names(dataset), in_sql=names_in_sql(dataset))

    def see(self, run: JsonRun) -> None:  # noqa: D102
        for record in run.parsed():
            if isinstance(record, Shape):
                self._columns.see([dict.fromkeys(record.before)])
            elif record is not None:
                self._columns.see([record])
        if run.shape is not None and run.flat is not None and self._columns.wants(run.shape.before):
            self._columns.see_written(run.shape.cut(run.flat).outer)

    def block(self, run: JsonRun) -> RawBlock:  # noqa: D102
        built = self._columns.build(run.records)
        if run.shape is not None and run.flat is not None:
            built = run.in_order(built, self._columns.place(run.shape.cut(run.flat).outer))
        return _outer_block(built, run)


class ExplodedTable(JsonTable):
    """An element of the list of a record is a row."""

    def __init__(self, dataset: Dataset, explode: Explode, *, file: str) -> None:
        self._explode, self._file = explode, file
        column = explode.column
        # Which of both it is shows only when all records were seen.
        self._literal = _Lists(dataset, explode, (column,))
        self._path = _Lists(dataset, explode, tuple(column.split("."))) if "." in column else None

    def see(self, run: JsonRun) -> None:  # noqa: D102
        for record in run.parsed():
            if isinstance(record, Shape):
                self._literal.see_shape(record)
            elif record is not None:
                self._literal.see(record)
                if self._path is not None:
                    self._path.see(record)
        if run.shape is not None and run.flat is not None and self._literal.wants(run.shape):
            self._literal.see_flat(run.shape.cut(run.flat))

    def block(self, run: JsonRun) -> RawBlock:  # noqa: D102
        lists = self._literal if self._path is None or self._literal.found else self._path
        if not lists.found and any(record is not None for record in run.records):
            raise PipelineError(
                f"{self._file}: there is no column '{self._explode.column}', which [source.explode] names; correct it"
            )
        parts = [lists.split(record) for record in run.records]
        built = lists.outer.build([rest for rest, _ in parts])
        elements = elements_of([found for _, found in parts], lists.inner, self._explode, file=self._file)
        if run.shape is not None and run.flat is not None and run.is_flat is not None:
            flat = run.shape.cut(run.flat)
            assert flat.counts is not None
            assert flat.inner is not None
            built = run.in_order(built, lists.outer.place(flat.outer))
            none = np.zeros(len(flat.counts), dtype=bool)
            elements = interleaved(elements, Elements(flat.counts, none, *lists.inner.place(flat.inner)), run.is_flat)
        self.without_elements += int((elements.counts == 0).sum())

        def outer_cells(position: int) -> dict[str, object]:
            record, _ = lists.split(parse_json(run.read_raw([position])[0], dict))
            return {key: text_of(cell) for key, cell in (record or {}).items() if not isinstance(cell, dict | list)}

        outer = _outer_block(built, run, listless=elements.listless)
        return exploded(outer, elements, column=self._explode.column, outer_cells=outer_cells, file=self._file)


class _Lists:
    """The lists at one place in the records of a file.

    Attributes:
        outer: The columns of the records without their lists.
        inner: Those of the elements.
        found: Whether there is something at this place in any record.
    """

    def __init__(self, dataset: Dataset, explode: Explode, path: Path) -> None:
        declared, in_sql, column = declared_names(dataset), names_in_sql(dataset), explode.column
        outer = [name for name in declared if name != column and within(name, column) is None]
        self.outer = JsonColumns(declared=outer, in_sql=in_sql.intersection(outer))
        self.found = False
        self.inner = JsonColumns(declared=declared, in_sql=in_sql, column=column)
        self._explode, self._place = explode, path

    def see(self, record: dict[str, Any]) -> None:
        """Takes in a record."""
        rest, found = self.split(record)
        if rest is not None and found is not None:
            self.outer.see([rest])
            self.inner.see(map(as_record, found))

    def see_shape(self, shape: Shape) -> None:
        """Takes in a record of that shape."""
        self.found = True
        self.outer.see([dict.fromkeys((*shape.before, *shape.after))])
        self.inner.see([dict.fromkeys(shape.inner)])

    def wants(self, shape: Shape) -> bool:
        """Whether `sql` uses a column of records of that shape."""
        return self.outer.wants((*shape.before, *shape.after)) or self.inner.wants(shape.inner)

    def see_flat(self, flat: FlatLines) -> None:
        """Takes in the kinds of the values of records of one shape."""
        self.outer.see_written(flat.outer)
        if flat.inner is not None:
            self.inner.see_written(flat.inner)

    def split(self, record: dict[str, Any] | None) -> tuple[dict[str, Any] | None, list[Any] | None]:
        """A record without its list, and the list; None for both when there is no list."""
        place = follow(record, self._place)
        if place is ABSENT:
            return None, None
        self.found = True
        found = list_of(place, self._explode.separator)
        return (None if found is None else _without(record, self._place)), found


def elements_of(lists: Sequence[list[Any] | None], columns: JsonColumns, explode: Explode, *, file: str) -> Elements:
    """All elements of lists of JSON values.

    Args:
        lists: The lists [R]; None gets a stand-in.
        columns: Has seen all elements of the file; not looked at when there is a pattern.
        explode: The declaration.
        file: Name of the file, for sentences.
    """
    listless = np.array([found is None for found in lists], dtype=bool)
    counts = np.array([1 if found is None else len(found) for found in lists], dtype=np.int64)
    if explode.pattern is None:
        inner = [(None,) if found is None else map(as_record, found) for found in lists]
        frame, typed = columns.build([record for records in inner for record in records])
        return Elements(counts, listless, frame, typed, np.repeat(listless, counts) if listless.any() else None)
    values = [value for found in lists for value in ((None,) if found is None else found)]
    texts = pl.Series([text_of(value) for value in values], dtype=pl.String)
    frame, unmatched = match_pattern(texts, explode, file=file)
    return Elements(counts, listless, frame, refused=unmatched, texts=texts)


def list_of(value: Any, separator: str | None) -> list[Any] | None:
    """The list that a JSON value is, or that stands in its text; None when there is none."""
    if value is None or isinstance(value, list):
        return value
    if not isinstance(value, str):  # numbers are texts here
        return None
    if separator is not None:
        return [piece for piece in value.split(separator) if piece]
    return [] if not value else parse_json(value, list)


def as_record(element: Any) -> dict[Any, Any]:
    """An element as `JsonColumns` sees it."""
    return element if isinstance(element, dict) else {None: element}


def _without(record: Any, path: Path) -> dict[str, Any]:
    """A copy of a record that lacks what stands at a path."""
    key, rest = path[0], path[1:]
    if not rest:
        return {name: value for name, value in record.items() if name != key}
    return {**record, key: _without(record[key], rest)}


def _outer_block(built: Built, run: JsonRun, listless: npt.NDArray[np.bool_] | None = None) -> RawBlock:
    frame, typed = built
    malformed = np.zeros(frame.height, dtype=bool) if listless is None else listless
    if listless is None:
        missing = [record is None for record in run.records]
        malformed[slice(None) if run.is_flat is None else ~run.is_flat] = missing
    return RawBlock(
        frame=frame,
        line=pl.Series("line", run.lines, dtype=pl.Int64),
        malformed=pl.Series("malformed", malformed, dtype=pl.Boolean),
        read_raw=run.read_raw,
        typed=typed,
    )

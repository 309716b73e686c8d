"""Lists in the cells of other formats than JSON: a record for each of their elements."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.contracts import PipelineError, quoted_or
from pipeline.sources.block import BlockReader, RawBlock
from pipeline.sources.columnar.frames import CELL_BYTES, at_path, within_calendar, without_path
from pipeline.sources.elements import WITHOUT_ELEMENTS, Elements, exploded, match_pattern
from pipeline.sources.json_text.columns import JsonColumns
from pipeline.sources.json_text.table import as_record, elements_of, list_of
from pipeline.sources.paths import declared_names, names_in_sql, within


class ExplodeReader(BlockReader):
    """The blocks of another reader, with a record for each element of the list in `[source.explode] column`.

    A record that is malformed or has no list stays one record, which is malformed; one whose list is empty gives none
    and is counted as `records_without_elements`.

    Args:
        open_reader: Opens the other reader; twice where JSON lists stand in texts, first for the keys of their objects.
        missing_is_empty: Whether a missing cell is an empty list, as in plain text, where nothing tells them apart.
    """

    def __init__(self, open_reader: Callable[[], BlockReader], *, missing_is_empty: bool) -> None:
        inner = open_reader()
        super().__init__(file=inner.file, dataset=inner.dataset, block_bytes=inner.block_bytes)
        assert inner.dataset.source.explode is not None
        self._explode = inner.dataset.source.explode
        self._inner, self._open_reader, self._missing_is_empty = inner, open_reader, missing_is_empty
        self._declared = declared_names(self.dataset)
        self._columns = JsonColumns(
            declared=self._declared, in_sql=names_in_sql(self.dataset), column=self._explode.column
        )

    def _blocks(self) -> Iterator[RawBlock]:
        first = next(self._inner)
        if self._cells(first).dtype == pl.String and self._explode.separator is None and self._explode.pattern is None:
            for block in self._open_reader():
                for found in self._lists_in_text(block):
                    self._columns.see(map(as_record, found or ()))
        for block in chain([first], self._inner):
            yield from self._exploded(block)
        for oddity, count in self._inner.warnings.items():
            self._warn(oddity, count)
        self._checksum = self._inner.checksum

    def _exploded(self, block: RawBlock) -> Iterator[RawBlock]:
        elements = self._elements(block)
        outer = replace(block, frame=without_path(block.frame, self._explode.column))
        empty = int((elements.counts == 0).sum())
        if empty:
            self._warn(WITHOUT_ELEMENTS, empty)
        for first, behind in _runs(elements, outer.frame, self.block_bytes):
            part, within_part = _records(outer, first, behind), elements.of_records(first, behind)

            def outer_cells(record: int, frame: pl.DataFrame = part.frame) -> dict[str, object]:
                plain = [column.name for column in frame if not column.dtype.is_nested()]
                return within_calendar(frame[record].select(plain)).row(0, named=True) if plain else {}

            column, file = self._explode.column, self.file.name
            yield exploded(part, within_part, column=column, outer_cells=outer_cells, file=file)

    def _cells(self, block: RawBlock) -> pl.Series:
        found = at_path(block.frame, self._explode.column)
        if found is None:
            raise PipelineError(
                f"{self.file.name}: there is no column '{self._explode.column}', which [source.explode] names; "
                f"{quoted_or(self._explode.column, block.frame.columns)}"
            )
        return found.cast(pl.String) if found.dtype == pl.Null else found

    def _elements(self, block: RawBlock) -> Elements:
        cells = self._cells(block)
        if cells.dtype == pl.String and self._explode.separator is None:
            return elements_of(self._lists_in_text(block), self._columns, self._explode, file=self.file.name)
        if cells.dtype == pl.String:
            lists = cells.str.split(self._explode.separator or "")
        elif isinstance(cells.dtype, pl.Array):
            lists = cells.arr.to_list()
        elif isinstance(cells.dtype, pl.List):
            lists = cells
        else:
            lists = pl.Series([None], dtype=pl.List(pl.Null)).new_from_index(0, len(cells))
        return self._of_lists(lists, self._listless(cells, block), pieces=cells.dtype == pl.String)

    def _listless(self, cells: pl.Series, block: RawBlock) -> npt.NDArray[np.bool_]:
        listed = isinstance(cells.dtype, pl.String | pl.List | pl.Array)
        if not listed:
            return np.ones(len(cells), dtype=bool)
        return (block.malformed if self._missing_is_empty else block.malformed | cells.is_null()).to_numpy()

    def _of_lists(self, lists: pl.Series, listless: npt.NDArray[np.bool_], *, pieces: bool) -> Elements:
        """The elements of a column of lists; of pieces of text those that are not empty."""
        counts = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
        flat = lists.filter(pl.Series(counts > 0)).explode()
        if pieces and (flat == "").any():
            kept = (flat != "").to_numpy()
            counts = np.bincount(np.repeat(np.arange(len(counts)), counts)[kept], minlength=len(counts))
            flat = flat.filter(pl.Series(kept))
        refused = None
        if listless.any():
            counts = np.where(listless, 1, counts)
            refused = np.repeat(listless, counts)
            place = pl.Series(np.cumsum(~refused) - 1).set(pl.Series(refused), None)
            flat = (
                flat.gather(place) if len(flat) else pl.Series([None], dtype=flat.dtype).new_from_index(0, len(place))
            )
        if self._explode.pattern is not None:
            frame, unmatched = match_pattern(self._texts(flat), self._explode, file=self.file.name)
            return Elements(counts, listless, frame, refused=unmatched, texts=self._texts(flat))
        return Elements(counts, listless, self._element_columns(flat), refused=refused)

    def _texts(self, flat: pl.Series) -> pl.Series:
        if flat.dtype.is_nested() or flat.dtype.is_float() or flat.dtype.is_temporal():
            raise PipelineError(
                f"{self.file.name}: the lists in '{self._explode.column}' hold {flat.dtype}, where the pattern of "
                "[source.explode] needs texts; leave pattern out"
            )
        return flat.cast(pl.String)

    def _element_columns(self, flat: pl.Series) -> pl.DataFrame:
        column = self._explode.column
        if not isinstance(flat.dtype, pl.Struct):
            return flat.to_frame(column)
        fields = flat.struct.unnest()
        names = [(name, within(name, column)) for name in self._declared]
        deeper = [
            found.alias(f"{column}.{key}")
            for name, key in names
            if key is not None and key not in fields.columns and (found := at_path(fields, key)) is not None
        ]
        return fields.rename({key: f"{column}.{key}" for key in fields.columns}).hstack(deeper)

    def _lists_in_text(self, block: RawBlock) -> list[list[object] | None]:
        """The JSON lists that stand in the cells of a block; None where there is none."""
        of_missing: list[object] | None = [] if self._missing_is_empty else None
        return [
            None if malformed else of_missing if cell is None else list_of(cell, None)
            for cell, malformed in zip(self._cells(block), block.malformed, strict=True)
        ]


def _runs(elements: Elements, outer: pl.DataFrame, block_bytes: int) -> Iterator[tuple[int, int]]:
    """First record and the one behind the last, of runs whose exploded rows take about `block_bytes`."""
    row_bytes = CELL_BYTES * max(1, outer.width + elements.frame.width)
    row_bytes = max(row_bytes, outer.estimated_size() // max(1, outer.height))
    run = (np.cumsum(elements.counts) - elements.counts) * row_bytes // block_bytes
    borders = [0, *(np.flatnonzero(np.diff(run)) + 1).tolist(), len(run)]
    yield from pairwise(borders)


def _records(block: RawBlock, first: int, behind: int) -> RawBlock:
    return RawBlock(
        frame=block.frame[first:behind],
        line=block.line[first:behind],
        malformed=block.malformed[first:behind],
        read_raw=lambda rows: block.raw_text([first + row for row in rows]),
        typed=[series[first:behind] for series in block.typed],
    )

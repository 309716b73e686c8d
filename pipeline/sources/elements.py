"""From records that hold a list to one record for each of its elements, whatever the format."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.config import Explode
from pipeline.contracts import PipelineError
from pipeline.sources.block import RawBlock
from pipeline.sources.columnar.frames import within_calendar
from pipeline.sources.lines import present
from pipeline.sources.regex_reader import WHOLE, whole_line_pattern

WITHOUT_ELEMENTS = "records_without_elements"


@dataclass(frozen=True, eq=False)
class Elements:
    """The elements of the lists of R records, back to back. E elements.

    A record without a list has one stand-in among the elements, all of whose cells are null.

    Attributes:
        counts: int64 [R], how many elements are of each record.
        listless: bool [R], records that have no list, or that are malformed themselves.
        frame: Their columns [E].
        typed: Those that `sql` uses and that are no text, typed [E].
        refused: bool [E], elements that do not match the pattern, and the stand-ins; None when there are none.
        texts: The elements as they are [E], for the raw text of refused ones.
    """

    counts: npt.NDArray[np.int64]
    listless: npt.NDArray[np.bool_]
    frame: pl.DataFrame
    typed: Sequence[pl.Series] = field(default=())
    refused: npt.NDArray[np.bool_] | None = None
    texts: pl.Series | None = None

    def of_records(self, first: int, behind: int) -> "Elements":
        """Those of some consecutive records."""
        ends = np.concatenate([[0], np.cumsum(self.counts)])
        part = slice(int(ends[first]), int(ends[behind]))
        return Elements(
            counts=self.counts[first:behind],
            listless=self.listless[first:behind],
            frame=self.frame[part],
            typed=[series[part] for series in self.typed],
            refused=None if self.refused is None else self.refused[part],
            texts=None if self.texts is None else self.texts[part],
        )


def interleaved(ours: Elements, others: Elements, is_other: npt.NDArray[np.bool_]) -> Elements:
    """The elements of two kinds of records in the order of these.

    Args:
        ours: Of the records of one kind, without texts.
        others: Of those of the other kind, with the same columns.
        is_other: Of which kind each record is [R].
    """
    kinds = (~is_other, ours), (is_other, others)
    counts, listless = np.empty(len(is_other), dtype=np.int64), np.empty(len(is_other), dtype=bool)
    for rows, elements in kinds:
        counts[rows], listless[rows] = elements.counts, elements.listless
    of_record = np.concatenate([np.repeat(np.flatnonzero(rows), elements.counts) for rows, elements in kinds])
    order = pl.Series(np.argsort(of_record, kind="stable"), dtype=pl.UInt32)
    frame = pl.concat([ours.frame, others.frame])[order]
    typed = [pl.concat(both).gather(order) for both in zip(ours.typed, others.typed, strict=True)]
    return Elements(counts, listless, frame, typed, np.repeat(listless, counts) if listless.any() else None)


def match_pattern(texts: pl.Series, explode: Explode, *, file: str) -> tuple[pl.DataFrame, npt.NDArray[np.bool_]]:
    """Cuts elements by the pattern that each of them has to match as a whole.

    Args:
        texts: String [E].
        explode: The declaration; with a pattern.
        file: Name of the file, for the sentence.

    Returns:
        The named groups as columns `<column>.<group>` [E], null where empty; and which elements do not match [E].

    Raises:
        PipelineError: Rust's regular expressions do not know the pattern.
    """
    assert explode.pattern is not None
    whole = whole_line_pattern(explode.pattern, where=f"{file}: [source.explode] pattern")
    groups = texts.str.extract_groups(whole).struct.unnest()
    cells = [
        present(pl.col(name), [""]).alias(f"{explode.column}.{name}") for name in re.compile(explode.pattern).groupindex
    ]
    return groups.select(cells), groups[WHOLE].is_null().to_numpy()


def exploded(
    outer: RawBlock, elements: Elements, *, column: str, outer_cells: Callable[[int], dict[str, object]], file: str
) -> RawBlock:
    """A block with a record for each element.

    Args:
        outer: The records that hold the lists [R], without the column that holds them.
        elements: The elements of all of them.
        column: The column that held them.
        outer_cells: A position in `outer` -> the cells that are shown in the raw text of its elements.
        file: Name of the file, for the sentence.

    Raises:
        PipelineError: A column of the elements has the name of one of the records.
    """
    _refuse_same_name(outer.frame, elements.frame, file=file)
    of_record = np.repeat(np.arange(len(elements.counts)), elements.counts)
    taken = pl.Series(of_record, dtype=pl.UInt32)
    frame = outer.frame[taken].hstack(elements.frame)
    refused = elements.refused
    if refused is None:
        refused = np.zeros(len(of_record), dtype=bool)
    typed = [*(series.gather(taken) for series in outer.typed), *elements.typed]
    if refused.any():
        kept = pl.Series("kept", ~refused)
        typed = [series.set(~kept, None) for series in typed]
        frame = _nulled(frame, kept)

    def read_raw(rows: Sequence[int]) -> list[str]:
        chosen = pl.Series([int(row) for row in rows], dtype=pl.UInt32)
        found = within_calendar(elements.frame[chosen]).rows(named=True)
        last, cells = -1, {}
        texts = []
        for place, row in enumerate(chosen):
            record = int(of_record[row])
            if elements.listless[record]:
                texts += outer.raw_text([record])
                continue
            if record != last:
                last, cells = record, outer_cells(record)
            as_it_is = {column: None if elements.texts is None else elements.texts[row]}
            both = {**cells, **(as_it_is if refused[row] else found[place])}
            shown = {name: cell for name, cell in both.items() if cell is not None}
            texts.append(json.dumps(shown, ensure_ascii=False, separators=(",", ":"), default=str))
        return texts

    return RawBlock(
        frame=frame,
        line=outer.line.gather(taken),
        malformed=pl.Series("malformed", refused, dtype=pl.Boolean),
        read_raw=read_raw,
        typed=typed,
    )


def _nulled(frame: pl.DataFrame, kept: pl.Series) -> pl.DataFrame:
    """The frame with all cells of the other rows null."""
    if not frame.columns:
        return frame
    names = frame.columns
    frame.columns = [f"{position}" for position in range(len(names))]  # a raw column may have any name, or none
    frame = frame.select(pl.when(kept).then(pl.all()))
    frame.columns = names
    return frame


def _refuse_same_name(outer: pl.DataFrame, elements: pl.DataFrame, *, file: str) -> None:
    twice = next((name for name in elements.columns if name in outer.columns), None)
    if twice is not None:
        raise PipelineError(
            f"{file}: both the records and the elements of their lists have a column '{twice}'; rename one of them in the log"
        )

"""Fixed width: every line is a record, and a column stands at the same places in all of them."""

from dataclasses import replace

import polars as pl

from pipeline.config import Dataset
from pipeline.sources.block import RawFile
from pipeline.sources.lines import Cut, find_lines, line_texts, present, spread
from pipeline.sources.text import HeldText
from pipeline.sources.text_reader import TextReader


class FixedWidthReader(TextReader):
    """The blocks of a file with columns of fixed width.

    Positions count characters, not bytes. Cells lose the blanks and tabs around them. A line that ends before a
    column begins is malformed; one that ends within its last column is taken to have lost its trailing blanks.
    """

    def __init__(self, *, file: RawFile, dataset: Dataset, block_bytes: int) -> None:
        declared = dataset.source.fixed_width
        assert declared is not None
        super().__init__(
            file=file,
            dataset=dataset,
            declared=declared,
            table="fixed_width",
            has_header=declared.has_header,
            block_bytes=block_bytes,
        )
        self._names = list(declared.columns)
        self._least = max(first for first, _ in declared.columns.values())
        nulls = sorted({"", *declared.null_values})
        # polars gives a column without a name one of its own.
        self._cells = [
            present(pl.col("line").str.slice(first - 1, last - first + 1).str.strip_chars(" \t"), nulls).alias(
                str(number)
            )
            for number, (first, last) in enumerate(declared.columns.values())
        ]

    def _cut(self, text: HeldText) -> Cut:
        found = find_lines(text.held, comment=self._declared.comment)
        readable = ~found.malformed
        texts = line_texts(text.held, found, readable)
        reaches = texts.str.len_chars() >= self._least
        lines = pl.select(line=pl.when(reaches).then(texts))
        malformed = found.malformed.copy()
        malformed[readable] = ~reaches.to_numpy()
        frame = spread(lines.select(self._cells), readable)
        frame.columns = self._names
        return Cut(frame, replace(found, malformed=malformed))

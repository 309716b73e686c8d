"""CSV: cells are text, every record has the declared number of them, and none is lost."""

from functools import cached_property

import numpy as np
import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.sources.block import RawFile
from pipeline.sources.delimited.exact import Dialect, exact_records
from pipeline.sources.delimited.scan import cut
from pipeline.sources.lines import Borders, Cut, iterate_lines
from pipeline.sources.paths import declared_names
from pipeline.sources.text import HeldText
from pipeline.sources.text_reader import TextReader


class CsvReader(TextReader):
    """The blocks of a CSV file.

    Records and cells are those of Python's `csv.reader(strict=True)`, given the lines up to each newline, one
    record after the other; a record that it refuses is malformed, and so is one with another number of cells than
    the header, or one that is not in the declared encoding. A quoted cell that is never closed makes one malformed
    record up to the end of the file; its lines are counted as `lines_in_unclosed_quote`. With a separator of several
    characters, or of blanks, every line is a record and quotes are letters.
    """

    def __init__(self, *, file: RawFile, dataset: Dataset, block_bytes: int) -> None:
        csv = dataset.source.csv
        super().__init__(
            file=file, dataset=dataset, declared=csv, table="csv", has_header=csv.has_header, block_bytes=block_bytes
        )
        self._csv = csv
        self._names: list[str] = list(csv.columns or ())
        self._dialect = Dialect(
            separator=csv.separator,
            quote=csv.quote_char or None,
            nulls=frozenset(["", *csv.null_values]),
            comment=csv.comment,
        )

    @cached_property
    def _numbers(self) -> frozenset[str]:
        """The columns to read as numbers; none in a file with further columns, whose rows are told apart by their texts."""
        if not self.integers or not set(self._names) <= set(declared_names(self.dataset)):
            return frozenset()
        return self.integers

    def _cut(self, text: HeldText) -> Cut:
        found = cut(text.held, names=self._names, dialect=self._dialect, integers=self._numbers)
        if text.ended and found.borders.consumed < len(text.held):
            return self._with_unclosed(found, text.held)
        return found

    def _skip_header(self, text: HeldText) -> int:
        while (header := next(exact_records(text.held, self._dialect), None)) is None:
            if text.ended:
                is_open = next(iterate_lines(text.held, comment=self._csv.comment), None) is not None
                found = "has an open quote in its header" if is_open else "is empty"
                raise PipelineError(
                    f"{self.file.name}: {found}: expected a header line with the names of the columns, or "
                    "has_header = false and columns = [...] in [source.csv]"
                )
            text.more()
        lines = text.held.count(b"\n", 0, header.end)
        raw = text.held[header.start : header.end].strip().decode("utf-8", "replace")[:80]
        text.drop(header.end)
        if not header.fields:
            raise PipelineError(
                f"{self.file.name}: the header {raw!r} cannot be cut into names; expected text in {self._csv.encoding} "
                "with balanced quotes and LF or CR LF line ends; mend the file or [source.csv]"
            )
        self._names = self._names_of(header.fields)
        return lines

    def _names_of(self, header: list[str]) -> list[str]:
        """The names of the columns: those declared, else those of the header."""
        declared = self._names
        if declared and len(declared) != len(header):
            raise PipelineError(
                f"{self.file.name}: the header has {len(header)} columns and [source.csv] columns names "
                f"{len(declared)}; name every column of the file in file order"
            )
        names = declared or [name.partition(":")[0] if self._csv.typed_header else name for name in header]
        for name in names:
            if names.count(name) > 1:
                raise PipelineError(
                    f"{self.file.name}: the header holds the column '{name}' twice; expected different names, "
                    "rename one, or give all of them with columns = [...] in [source.csv]"
                )
        return names

    def _with_unclosed(self, found: Cut, text: bytes) -> Cut:
        """The last cut of a file with the open quoted record behind it as one malformed record."""
        self._warn("lines_in_unclosed_quote", text.count(b"\n", found.borders.consumed))
        borders = found.borders
        return Cut(
            pl.concat([found.frame, found.frame.clear(1)]),
            Borders(
                malformed=np.append(borders.malformed, True),
                start=np.append(borders.start, borders.consumed),
                end=np.append(borders.end, len(text)),
                line=np.append(borders.line, borders.lines),
                consumed=len(text),
                lines=text.count(b"\n"),
            ),
        )

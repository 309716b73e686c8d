"""CSV: cells are text, every record has the declared number of them, and none is lost."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from pipeline.config import Csv
from pipeline.contracts import PipelineError
from pipeline.sources.block import BlockReader, RawBlock, RawFile, text_block
from pipeline.sources.csv_borders import Borders
from pipeline.sources.csv_exact import Dialect, exact_records
from pipeline.sources.csv_scan import Cut, cut
from pipeline.sources.stream import ByteStream
from pipeline.sources.text import HeldText


class CsvReader(BlockReader):
    """The blocks of a CSV file.

    Records and cells are those of Python's `csv.reader(strict=True)`, given the lines up to each newline, one
    record after the other; a record that it refuses is malformed, and so is one with another number of cells than
    the header, or one that is not in the declared encoding. A quoted cell that is never closed makes one malformed
    record up to the end of the file; its lines are counted as `lines_in_unclosed_quote`. A complete last record
    without a newline is accepted and counted as `last_record_without_newline`.
    """

    def __init__(self, *, file: RawFile, csv: Csv, block_bytes: int) -> None:
        super().__init__(file=file, block_bytes=block_bytes)
        self._csv = csv
        quote = csv.quote_char or None
        if csv.separator in ("\n", "\r", quote) or quote in ("\n", "\r"):
            raise PipelineError(
                f"{file.name}: [source.csv] separator {csv.separator!r} and quote_char {csv.quote_char!r} cannot be "
                "told apart from each other or from line ends; declare two different characters"
            )
        self._dialect = Dialect(separator=csv.separator, quote=quote, nulls=frozenset(["", *csv.null_values]))

    def _blocks(self) -> Iterator[RawBlock]:
        with ByteStream(self.file) as stream:
            text = HeldText(stream, encoding=self._csv.encoding, block_bytes=self.block_bytes)
            names, line = self._columns(text)
            delivered = False
            while True:
                found = cut(text.held, names=names, dialect=self._dialect)
                if text.ended and found.borders.consumed < len(text.held):
                    found = self._with_unclosed(found, text.held)
                if found.frame.height:
                    if text.newline_added and not found.borders.malformed[-1]:
                        self._warn("last_record_without_newline", 1)
                    delivered = True
                    yield _block(found, text.held, first_line=line)
                line += found.borders.lines
                text.drop(found.borders.consumed)
                if text.ended:
                    break
                text.more()
            if not delivered:
                yield _block(cut(b"", names=names, dialect=self._dialect), b"", first_line=line)
            self._checksum = stream.checksum()

    def _columns(self, text: HeldText) -> tuple[list[str], int]:
        """The names of the columns, and the line behind the header, counted from 1."""
        text.more()
        text.drop_mark()
        declared = list(self._csv.columns or ())
        if not self._csv.has_header:
            return declared, 1
        while (header := next(exact_records(text.held, self._dialect), None)) is None:
            if text.ended:
                found = "has an open quote in its header" if text.held.strip() else "is empty"
                raise PipelineError(
                    f"{self.file.name}: {found}: expected a header line with the names of the columns, or "
                    "has_header = false and columns = [...] in [source.csv]"
                )
            text.more()
        line = 1 + text.held.count(b"\n", 0, header.end)
        raw = text.held[: header.end].strip().decode("utf-8", "replace")[:80]
        text.drop(header.end)
        if header.fields is None:
            raise PipelineError(
                f"{self.file.name}: the header {raw!r} cannot be cut into names; expected text in {self._csv.encoding} "
                "with balanced quotes and LF or CR LF line ends; mend the file or [source.csv]"
            )
        if not declared:
            for name in header.fields:
                if header.fields.count(name) > 1:
                    raise PipelineError(
                        f"{self.file.name}: the header holds the column '{name}' twice; expected different names, "
                        "rename one, or give all of them with columns = [...] in [source.csv]"
                    )
        elif len(declared) != len(header.fields):
            raise PipelineError(
                f"{self.file.name}: the header has {len(header.fields)} columns and [source.csv] columns names "
                f"{len(declared)}; name every column of the file in file order"
            )
        return declared or header.fields, line

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


def _block(found: Cut, text: bytes, *, first_line: int) -> RawBlock:
    borders = found.borders
    return text_block(
        frame=found.frame,
        line=pl.Series("line", borders.line + first_line, dtype=pl.Int64),
        malformed=pl.Series("malformed", borders.malformed, dtype=pl.Boolean),
        text=text,
        start=borders.start,
        end=borders.end,
    )

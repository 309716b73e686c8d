"""What the readers of text lines share: the encoding, whole records block by block, and the end of the file."""

from abc import abstractmethod
from collections.abc import Iterator

import polars as pl

from pipeline.config import Dataset, TextFormat
from pipeline.sources.block import BlockReader, RawBlock, RawFile, raw_texts
from pipeline.sources.lines import Borders, Cut, EveryLine, iterate_lines
from pipeline.sources.stream import ByteStream
from pipeline.sources.text import HeldText


class TextReader(BlockReader):
    """The blocks of a file of text lines.

    A complete last record without a newline is accepted and counted as `last_record_without_newline`.
    """

    def __init__(
        self,
        *,
        file: RawFile,
        dataset: Dataset,
        declared: TextFormat,
        table: str,
        has_header: bool,
        block_bytes: int,
    ) -> None:
        super().__init__(file=file, dataset=dataset, block_bytes=block_bytes)
        self._declared = declared
        self._table = table
        self._has_header = has_header

    @abstractmethod
    def _cut(self, text: HeldText) -> Cut:
        """Cuts the text that is held, which begins with a record, into the records that are known to end within it."""

    def _blocks(self) -> Iterator[RawBlock]:
        with ByteStream(self.file, self.dataset.source.compression) as stream:
            text = HeldText(stream, encoding=self._declared.encoding, table=self._table, block_bytes=self.block_bytes)
            text.more()
            text.drop_mark()
            line = 1 + (self._skip_header(text) if self._has_header else 0)
            delivered = False
            while True:
                found = self._cut(text)
                if found.frame.height:
                    if text.newline_added and _ends_well(found.borders, len(text.held)):
                        self._warn("last_record_without_newline", 1)
                    delivered = True
                    yield _block(found, text.held, first_line=line)
                line += found.borders.lines
                text.drop(found.borders.consumed)
                if text.ended:
                    break
                text.more()
            if not delivered:
                yield _block(self._cut(text), text.held, first_line=line)
            self._checksum = stream.checksum()

    def _skip_header(self, text: HeldText) -> int:
        """Drops the header and what stands before it.

        Returns:
            The number of lines dropped.
        """
        while (found := next(iterate_lines(text.held, comment=self._declared.comment), None)) is None:
            if text.ended:
                return 0
            text.more()
        _, end, number = found
        text.drop(end)
        return number + 1


def _ends_well(borders: Borders | EveryLine, size: int) -> bool:
    """Whether the last record is a good one and nothing stands behind it."""
    return bool(borders.end[-1] == size and not borders.malformed[-1])


def _block(found: Cut, text: bytes, *, first_line: int) -> RawBlock:
    borders = found.borders
    return RawBlock(
        frame=found.frame,
        line=pl.Series("line", borders.line + first_line, dtype=pl.Int64),
        malformed=pl.Series("malformed", borders.malformed, dtype=pl.Boolean),
        read_raw=lambda rows: raw_texts(text, borders.start, borders.end, rows),
    )

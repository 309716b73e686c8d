"""A text file in lines: blocks that need no closer look are counted by their newlines, the others line by line."""

import codecs
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Protocol

from pipeline.checks.raw.records import stored
from pipeline.checks.raw.records.stored import Readable
from pipeline.checks.raw.values.taking import Taker


class Lines:
    """The lines of a text in UTF-8, without their newlines.

    Attributes:
        number: Of the line that was given last, from 1.
    """

    def __init__(self, stream: Readable, *, blanks: bytes = b"\r", comment: str | None = None) -> None:
        """Opens a text.

        Args:
            stream: Its bytes; a byte order mark is dropped.
            blanks: A line of nothing but these is no record.
            comment: Nor is one that begins so.
        """
        self.number = 0
        self._stream = stream
        self._blanks = blanks
        self._comment = comment.encode() if comment else b""
        odd = [b"\n", *(self._blanks[n : n + 1] for n in range(len(self._blanks))), self._comment]
        # An expression finds a text of few letters several times as fast as `in`.
        self._odd = {begin: re.compile(re.escape(b"\n" + begin)).search for begin in odd if begin}
        self._tail = b""
        self._queue: Iterator[bytes] = iter(())
        while len(self._tail) < len(codecs.BOM_UTF8) and (more := stream.read(stored.BLOCK_BYTES)):
            self._tail += more
        self._tail = self._tail.removeprefix(codecs.BOM_UTF8)

    def block(self) -> bytes:
        """The next whole lines; at the end of the file the last line may lack its newline, and then b"" follows."""
        parts = [self._tail]
        while piece := self._stream.read(stored.BLOCK_BYTES):
            if cut := piece.rfind(b"\n") + 1:
                self._tail = piece[cut:]
                return b"".join([*parts, memoryview(piece)[:cut]])
            parts.append(piece)
        self._tail = b""
        return b"".join(parts)

    def go_through(self, lines: Iterator[bytes]) -> None:
        """The lines of a block are those to be given next."""
        self._queue = lines

    def next_of_block(self) -> bytes | None:
        """The next line of the block at hand; None behind the last."""
        line = next(self._queue, None)
        if line is not None:
            self.number += 1
        return line

    def next(self) -> bytes | None:
        """The next line, of this block or the next; None at the end of the file."""
        line = self.next_of_block()
        if line is None and (block := self.block()):
            self.go_through(iter(split(block)))
            line = self.next_of_block()
        return line

    def begins_record(self, line: bytes) -> bool:
        """Whether a line on which a record may begin is neither blank nor a comment."""
        return bool(line.strip(self._blanks)) and not (self._comment and line.startswith(self._comment))

    def all_begin_records(self, block: bytes) -> bool:
        """Whether no line of a block can be blank or a comment."""
        # A single letter is looked for much faster than two.
        return not (
            block.startswith(tuple(self._odd))
            or any(begin in block and find(block) for begin, find in self._odd.items())
        )


class Cutter(Protocol):
    """What a format knows of its records.

    Attributes:
        quote: What may hold lines together; a block without it has a record on every line. b"" for nothing.
        has_header: Whether the first record names the columns.
    """

    quote: bytes
    has_header: bool

    def read_header(self, parts: list[bytes]) -> None:
        """Takes the lines of the header."""
        ...

    def whole(self, line: bytes, lines: Lines) -> list[bytes]:
        """The lines of the record that begins with `line`."""
        ...

    def count(self, lines: list[bytes]) -> tuple[int, int]:
        """How many records end within some lines, and with which line the next one begins."""
        ...

    def values(self, parts: list[bytes]) -> Mapping[str, Any] | None:
        """Column -> cell of a record; None when it is malformed."""
        ...


def read_lines(lines: Lines, cutter: Cutter, taker: Taker) -> None:
    """Counts the records of a text and takes the wanted ones."""
    headless = cutter.has_header
    while headless:
        line = lines.next()
        if line is None:
            return
        if lines.begins_record(line):
            cutter.read_header(cutter.whole(line, lines))
            headless = False
    _take_block(lines, cutter, taker)
    while block := lines.block():
        count = block.count(b"\n") + (not block.endswith(b"\n"))
        plain = lines.all_begin_records(block)
        if plain and not taker.one_by_one and not (cutter.quote and cutter.quote in block):
            taker.take_lines(
                count, lines.number + 1, partial(split, block), lambda line: cutter.values(cutter.whole(line, lines))
            )
            lines.number += count
            continue
        plain = plain and taker.needs_none(count, lines.number + 1, count)
        found = split(block)
        if plain:
            records, begun = cutter.count(found)
            taker.skip(records)
            lines.number += begun
            found = found[begun:]
        lines.go_through(iter(found))
        _take_block(lines, cutter, taker)


def _take_block(lines: Lines, cutter: Cutter, taker: Taker) -> None:
    """Goes through the rest of the block at hand, record by record."""
    while (line := lines.next_of_block()) is not None:
        if lines.begins_record(line):
            number, parts = lines.number, cutter.whole(line, lines)
            taker.take(number, lambda parts=parts: cutter.values(parts))


def split(block: bytes) -> list[bytes]:
    """The lines of a block, without their newlines."""
    return block.removesuffix(b"\n").split(b"\n")

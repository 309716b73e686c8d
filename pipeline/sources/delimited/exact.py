"""The slow, exact way to cut CSV bytes into records: Python's csv module, strict, line by line; or plain splitting."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.config import BLANKS
from pipeline.sources.lines import iterate_lines

# A limit of 128 KiB a field would make a record's fate depend on which of the two ways cut it.
csv.field_size_limit(2**31 - 1)


@dataclass(frozen=True)
class Dialect:
    """How records are cut into cells.

    Attributes:
        separator: What stands between two cells; `BLANKS` for runs of blanks and tabs.
        quote: What stands around a cell, None for no quoting.
        nulls: Cells that are missing values, the empty one included.
        comment: What a line that is no record begins with, None for no comments.
    """

    separator: str
    quote: str | None
    nulls: frozenset[str]
    comment: str | None = None

    @property
    def plain(self) -> bool:
        """Whether every line is one record, split at a separator that the csv module does not know."""
        return len(self.separator) > 1


@dataclass(frozen=True, slots=True)
class Record:
    """A record: bytes `start:end`, line end included, lines counted from 0; no fields when it is malformed."""

    start: int
    end: int
    line: int
    fields: list[str] | None


class _Lines(Iterator[str]):
    """The complete lines of some bytes, as text; says when they ran out and which were no UTF-8."""

    def __init__(self, text: bytes, position: int) -> None:
        self.text = text
        self.position = position
        self.number = 0
        self.ran_out = False
        self.undecodable = False

    def __next__(self) -> str:
        end = self.text.find(b"\n", self.position) + 1
        if end == 0:
            self.ran_out = True
            raise StopIteration
        line = self.text[self.position : end]
        self.position = end
        self.number += 1
        try:
            return line.decode()
        except UnicodeDecodeError:
            self.undecodable = True
            return line.decode("utf-8", "surrogateescape")

    def skip_comments(self, prefix: bytes) -> None:
        """Passes over the complete lines that begin with `prefix`."""
        while self.text.startswith(prefix, self.position) and (end := self.text.find(b"\n", self.position) + 1):
            self.position = end
            self.number += 1


def exact_records(text: bytes, dialect: Dialect) -> Iterator[Record]:
    """The records of the complete lines of `text`, in order; blank lines and comments are none.

    A quote inside an unquoted cell is a letter. Text behind a closing quote, or a lone carriage return outside
    quotes, makes the record malformed; it then reaches to the end of that line. A record whose quoted cell is still
    open at the end of `text` is not given. Of a plain dialect every line is a record, and only LF and CR LF end one.
    """
    if dialect.plain:
        yield from _plain_records(text, dialect)
        return
    lines = _Lines(text, 0)
    reader = _reader(lines, dialect)
    while True:
        if dialect.comment is not None:
            lines.skip_comments(dialect.comment.encode())
        start, number = lines.position, lines.number
        complete, fields = _next_fields(lines, reader)
        if not complete:
            return
        if fields != []:
            yield Record(start, lines.position, number, fields)


def record_at(text: bytes, start: int, dialect: Dialect) -> Record | None:
    """The record that starts at a byte; its `line` is the number of its lines, its fields [] when it is blank.

    Returns:
        None when it is not complete within `text`.
    """
    lines = _Lines(text, start)
    complete, fields = _next_fields(lines, _reader(lines, dialect))
    return Record(start, lines.position, lines.number, fields) if complete else None


def split_line(line: bytes, separator: str) -> list[str] | None:
    """The cells of a line of a plain dialect, line end included; None when it is no UTF-8."""
    try:
        text = line.removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError:
        return None
    if separator == BLANKS:
        return [cell for cell in re.split(r"[ \t]+", text) if cell]
    return text.split(separator)


def _plain_records(text: bytes, dialect: Dialect) -> Iterator[Record]:
    for start, end, number in iterate_lines(text, comment=dialect.comment):
        yield Record(start, end, number, split_line(text[start:end], dialect.separator))


def _reader(lines: Iterator[str], dialect: Dialect) -> Iterator[list[str]]:
    quoting = csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE
    return csv.reader(lines, delimiter=dialect.separator, quotechar=dialect.quote, quoting=quoting, strict=True)


def _next_fields(lines: _Lines, reader: Iterator[list[str]]) -> tuple[bool, list[str] | None]:
    """Whether there is one more complete record, and its fields."""
    lines.undecodable = False
    try:
        fields = next(reader)
    except StopIteration:
        return False, None
    except csv.Error:
        return not lines.ran_out, None
    return True, None if lines.undecodable and fields else fields

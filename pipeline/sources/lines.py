"""Where the lines and records of a text are, which of the lines are none, and their texts."""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

LF, CR = 10, 13
Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Octets = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Borders:
    """The complete records at the front of some bytes. R records.

    Attributes:
        malformed: Whether a record is no row: one that cannot be cut into its cells, or no UTF-8 [R].
        start: First byte of each [R].
        end: Byte behind each [R], line end included.
        line: Line on which each starts [R], the first line being 0.
        consumed: Bytes that are dealt with, blank lines and comments included.
        lines: Lines that are dealt with.
        cells: Record -> its cells, for those that only the exact way can cut.
    """

    malformed: Flags
    start: Positions
    end: Positions
    line: Positions
    consumed: int
    lines: int
    cells: dict[int, list[str]] = field(default_factory=dict)


class EveryLine:
    """Borders of bytes of which every line is a good record; where they are is looked for when somebody asks.

    Args:
        text: Whole lines, none of them blank.
        lines: How many.
    """

    def __init__(self, text: bytes, lines: int) -> None:
        self._text = text
        self.consumed, self.lines = len(text), lines
        self.cells: dict[int, list[str]] = {}

    @cached_property
    def end(self) -> Positions:
        """As in `Borders` [R]."""
        return np.flatnonzero(np.frombuffer(self._text, dtype=np.uint8) == LF) + 1

    @property
    def start(self) -> Positions:
        """As in `Borders` [R]."""
        return np.concatenate([[0], self.end[:-1]])

    @property
    def line(self) -> Positions:
        """As in `Borders` [R]."""
        return np.arange(self.lines)

    @property
    def malformed(self) -> Flags:
        """As in `Borders` [R]: none is."""
        return np.zeros(self.lines, dtype=np.bool_)


@dataclass(frozen=True)
class Cut:
    """The complete records at the front of some bytes. R records.

    Attributes:
        frame: Their cells, String [R]; all null where malformed.
        borders: Where they are.
    """

    frame: pl.DataFrame
    borders: Borders | EveryLine


def find_lines(text: bytes, *, comment: str | None) -> Borders:
    """Every complete line that is a record, none of them malformed but those that are no UTF-8."""
    octets = np.frombuffer(text, dtype=np.uint8)
    end = np.flatnonzero(octets == LF) + 1
    found = borders_between(end, np.arange(1, len(end) + 1), malformed=np.zeros(len(end), dtype=np.bool_))
    if not text.isascii():
        mark_undecodable(text, found)
    return drop_blanks(found, octets, comment=comment)


def iterate_lines(text: bytes, *, comment: str | None) -> Iterator[tuple[int, int, int]]:
    """First byte, byte behind and number from 0 of every complete line that is a record, one by one."""
    start, number, prefix = 0, 0, comment.encode() if comment else None
    while end := text.find(b"\n", start) + 1:
        if text[start:end].strip(b"\r\n") and not (prefix and text.startswith(prefix, start)):
            yield start, end, number
        start, number = end, number + 1


def line_texts(text: bytes, borders: Borders, wanted: Flags) -> pl.Series:
    """The texts of those lines that are wanted and are UTF-8, without LF or CR LF at the end, String [wanted]."""
    start, end = borders.start[wanted], borders.end[wanted]
    offsets = np.zeros(len(start) + 1, dtype=np.int64)
    np.cumsum(end - start, out=offsets[1:])
    clean = splice(text, start, end, borders.consumed)
    lines = pa.LargeStringArray.from_buffers(len(start), pa.py_buffer(offsets), pa.py_buffer(clean))
    texts = pl.Series("line", lines, dtype=pl.String).str.strip_suffix("\n")
    return texts.str.strip_suffix("\r") if b"\r" in text else texts


def present(cell: pl.Expr, nulls: list[str]) -> pl.Expr:
    """A cell, null where it is one of the texts that stand for a missing value."""
    return pl.when(~cell.is_in(nulls)).then(cell)


def spread(frame: pl.DataFrame, wanted: Flags) -> pl.DataFrame:
    """The rows of a frame in the places that are wanted, and rows of null in the others [R]."""
    if frame.height == len(wanted):
        return frame
    if not frame.height:
        return frame.clear(len(wanted))
    place = pl.Series(np.maximum(np.cumsum(wanted) - 1, 0), dtype=pl.UInt32).set(pl.Series(~wanted), None)
    return frame.select(pl.all().gather(place))


def splice(text: bytes, start: Positions, end: Positions, size: int) -> bytes:
    """The bytes of some records among the first `size` bytes, one behind the other."""
    if int((end - start).sum()) == size:
        return text[:size]
    steps = np.zeros(size + 1, dtype=np.int8)
    steps[start] += 1
    steps[end] -= 1
    kept = np.cumsum(steps[:-1], dtype=np.int8).astype(np.bool_)
    return np.frombuffer(text, dtype=np.uint8)[:size][kept].tobytes()


def borders_between(end: Positions, lines: Positions, *, malformed: Flags) -> Borders:
    """Records that follow each other without gaps: the byte and the number of lines behind each."""
    return Borders(
        malformed=malformed,
        start=np.concatenate([[0], end[:-1]])[: len(end)],
        end=end,
        line=np.concatenate([[0], lines[:-1]])[: len(end)],
        consumed=int(end[-1]) if len(end) else 0,
        lines=int(lines[-1]) if len(lines) else 0,
    )


def begin_with(octets: Octets, start: Positions, prefix: str | None) -> Flags:
    """Which lines begin with a text that goes over no line end."""
    found = np.full(len(start), prefix is not None)
    for offset, octet in enumerate((prefix or "").encode()):
        found &= octets[np.minimum(start + offset, len(octets) - 1)] == octet
    return found


def lone_returns(octets: Octets) -> Positions:
    """The carriage returns that stand before something other than a newline."""
    returns = np.flatnonzero(octets[:-1] == CR)
    return returns[octets[returns + 1] != LF]


def mark_undecodable(text: bytes, found: Borders) -> None:
    """Marks the records that are not UTF-8."""
    view = memoryview(text)[: found.consumed]
    begin = 0
    while begin < found.consumed:
        try:
            codecs.utf_8_decode(view[begin:], "strict", True)
        except UnicodeDecodeError as error:
            record = int(np.searchsorted(found.end, begin + error.start, side="right"))
            found.malformed[record] = True
            found.cells.pop(record, None)
            begin = int(found.end[record])
        else:
            return


def drop_blanks(found: Borders, octets: Octets, *, comment: str | None) -> Borders:
    """The records without the lines that are none: blank ones, and comments."""
    length = found.end - found.start
    none = (length == 1) | ((length == 2) & (octets[found.start] == CR))
    # A blank line may hold several carriage returns.
    several = np.flatnonzero((octets[found.start] == CR) & ~none)
    for row in several.tolist():
        none[row] = not bytes(octets[found.start[row] : found.end[row]]).strip(b"\r\n")
    if comment is not None:
        none |= begin_with(octets, found.start, comment)
    if not none.any():
        return found
    rows = np.cumsum(~none) - 1
    return replace(
        found,
        malformed=found.malformed[~none],
        start=found.start[~none],
        end=found.end[~none],
        line=found.line[~none],
        cells={int(rows[row]): fields for row, fields in found.cells.items()},
    )

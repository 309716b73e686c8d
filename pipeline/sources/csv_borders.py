"""Where the records of CSV bytes begin and end, found by whole arrays; only irregular lines are looked at one by one."""

import codecs
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from pipeline.sources.csv_exact import Dialect, record_at

LF, CR = 10, 13
Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Octets = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Borders:
    """The complete records at the front of some bytes. R records.

    Attributes:
        malformed: Whether a record is no row: another number of cells, or what csv refuses, or no UTF-8 [R].
        start: First byte of each [R].
        end: Byte behind each [R], line end included.
        line: Line on which each starts [R], the first line being 0.
        consumed: Bytes that are dealt with, blank lines included.
        lines: Lines that are dealt with.
        cells: Record -> its cells, for those whose quotes only the exact way can read.
    """

    malformed: Flags
    start: Positions
    end: Positions
    line: Positions
    consumed: int
    lines: int
    cells: dict[int, list[str]] = field(default_factory=dict)


def find_borders(text: bytes, *, width: int, dialect: Dialect) -> Borders | None:
    """Finds the records of bytes that begin with a record.

    Args:
        text: The bytes.
        width: The number of cells of a good record.
        dialect: How records are cut.

    Returns:
        The records that end within `text`; None when a separator or quote takes more than one byte.
    """
    separator, quote = dialect.separator.encode(), (dialect.quote or "").encode()
    if len(separator) != 1 or len(quote) > 1:
        return None
    octets = np.frombuffer(text, dtype=np.uint8)
    quoted = bool(quote) and quote in text
    marks = octets == LF
    marks |= octets == separator[0]
    if quoted:
        marks |= octets == quote[0]
    at = np.flatnonzero(marks)
    mark = octets[at]
    quotes = at[mark == quote[0]] if quoted else at[:0]
    lone = _lone_returns(octets) if b"\r" in text else at[:0]
    lone_outside = lone[np.searchsorted(quotes, lone) % 2 == 0]
    opening = np.arange(len(quotes)) % 2 == 0
    if len(lone_outside) or not _regular(octets, quotes, opening, separator[0], quote).all():
        found = _line_by_line(text, octets, at, quotes, lone, width=width, dialect=dialect)
    else:
        found = _by_parity(at, mark, separator[0], quote[0] if quoted else None, width=width)
    if not text.isascii():
        _mark_undecodable(text, found)
    return _without_blanks(found, octets)


def _by_parity(at: Positions, mark: Octets, separator: int, quote: int | None, *, width: int) -> Borders:
    """The records of bytes whose quotes are all regular: a newline ends one where an even number came before."""
    is_end = mark == LF
    if quote is None:
        last = np.flatnonzero(is_end)
        lines = np.arange(1, len(last) + 1)
        separators = np.diff(last, prepend=-1) - 1
    else:
        # Counting modulo 256 keeps the parity.
        is_open = (np.cumsum(mark == quote, dtype=np.uint8) & 1).astype(np.bool_)
        last = np.flatnonzero(is_end & ~is_open)
        lines = np.cumsum(is_end)[last]
        separators = np.diff(np.cumsum((mark == separator) & ~is_open)[last], prepend=0)
    end = at[last] + 1
    return Borders(
        malformed=separators != width - 1,
        start=np.concatenate([[0], end[:-1]])[: len(end)],
        end=end,
        line=np.concatenate([[0], lines[:-1]])[: len(end)],
        consumed=int(end[-1]) if len(end) else 0,
        lines=int(lines[-1]) if len(lines) else 0,
    )


def _line_by_line(
    text: bytes,
    octets: Octets,
    at: Positions,
    quotes: Positions,
    lone: Positions,
    *,
    width: int,
    dialect: Dialect,
) -> Borders:
    """The records of bytes with irregular quotes, whose parity says nothing.

    A line that is regular in itself is one record, if it begins outside quotes. One that is not is given to the csv
    module, which says how far its record reaches.
    """
    separator, quote = dialect.separator.encode()[0], (dialect.quote or "").encode()
    end = at[octets[at] == LF] + 1
    start = np.concatenate([[0], end[:-1]])[: len(end)]
    size = int(end[-1]) if len(end) else 0
    quotes, lone, at = quotes[quotes < size], lone[lone < size], at[at < size]
    quotes_before = np.searchsorted(quotes, start)
    quote_line = np.searchsorted(end, quotes, side="right")
    opening = (np.arange(len(quotes)) - quotes_before[quote_line]) % 2 == 0
    regular = _regular(octets, quotes, opening, separator, quote)
    dirty = np.bincount(quote_line, minlength=len(end)) % 2 == 1
    dirty[quote_line[~regular]] = True
    dirty[np.searchsorted(end, lone, side="right")] = True
    separators = at[octets[at] == separator]
    line = np.searchsorted(end, separators, side="right")
    outside = (np.searchsorted(quotes, separators) - quotes_before[line]) % 2 == 0
    malformed = np.bincount(line[outside], minlength=len(end)) != width - 1
    begins = np.ones(len(end), dtype=np.bool_)
    cells: dict[int, list[str]] = {}
    behind = 0
    for number in np.flatnonzero(dirty).tolist():
        if number < behind:
            continue
        record = record_at(text, int(start[number]), dialect)
        if record is None:  # its quoted cell is still open
            begins[number:] = False
            size, behind = int(start[number]), number
            break
        behind = number + record.line
        begins[number + 1 : behind] = False
        end[number] = record.end
        malformed[number] = record.fields is None or len(record.fields) != width
        if not malformed[number] and record.fields:
            cells[number] = record.fields
    else:
        behind = len(end)
    rows = np.cumsum(begins) - 1
    return Borders(
        malformed=malformed[begins],
        start=start[begins],
        end=end[begins],
        line=np.flatnonzero(begins),
        consumed=size,
        lines=behind,
        cells={int(rows[number]): fields for number, fields in cells.items()},
    )


def _regular(octets: Octets, quotes: Positions, opening: Flags, separator: int, quote: bytes) -> Flags:
    """Which quotes begin a cell, end one or are doubled; the byte beyond the end counts as right."""
    if not len(quotes):
        return opening
    before = octets[np.maximum(quotes - 1, 0)]
    after = octets[np.minimum(quotes + 1, len(octets) - 1)]
    opens = (before == separator) | (before == LF) | (before == quote[0]) | (quotes == 0)
    closes = (after == separator) | (after == LF) | (after == CR) | (after == quote[0])
    return np.where(opening, opens, closes)


def _lone_returns(octets: Octets) -> Positions:
    """The carriage returns that stand before something other than a newline."""
    returns = np.flatnonzero(octets[:-1] == CR)
    return returns[octets[returns + 1] != LF]


def _mark_undecodable(text: bytes, found: Borders) -> None:
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


def _without_blanks(found: Borders, octets: Octets) -> Borders:
    """The records without the blank lines, which are none."""
    length = found.end - found.start
    blank = (length == 1) | ((length == 2) & (octets[found.start] == CR))
    # A blank line may hold several carriage returns.
    several = np.flatnonzero((octets[found.start] == CR) & ~blank)
    for row in several.tolist():
        blank[row] = not bytes(octets[found.start[row] : found.end[row]]).strip(b"\r\n")
    if not blank.any():
        return found
    rows = np.cumsum(~blank) - 1
    return replace(
        found,
        malformed=found.malformed[~blank],
        start=found.start[~blank],
        end=found.end[~blank],
        line=found.line[~blank],
        cells={int(rows[row]): fields for row, fields in found.cells.items()},
    )

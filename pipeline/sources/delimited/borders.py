"""Where the records of CSV bytes begin and end, found by whole arrays; only irregular lines are looked at one by one."""

import numpy as np

from pipeline.sources.delimited.exact import Dialect, record_at
from pipeline.sources.lines import (
    CR,
    LF,
    Borders,
    Flags,
    Octets,
    Positions,
    begin_with,
    borders_between,
    drop_blanks,
    lone_returns,
    mark_undecodable,
)


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
    lone = lone_returns(octets) if b"\r" in text else at[:0]
    lone_outside = lone[np.searchsorted(quotes, lone) % 2 == 0]
    opening = np.arange(len(quotes)) % 2 == 0
    if (
        len(lone_outside)
        or not _regular(octets, quotes, opening, separator[0], quote).all()
        or (quoted and dialect.comment is not None and _hold_comment(octets, at[mark == LF] + 1, dialect.comment))
    ):
        found = _line_by_line(text, octets, at, quotes, lone, width=width, dialect=dialect)
    else:
        found = _by_parity(at, mark, separator[0], quote[0] if quoted else None, width=width)
    if not text.isascii():
        mark_undecodable(text, found)
    return drop_blanks(found, octets, comment=dialect.comment)


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
    return borders_between(at[last] + 1, lines, malformed=separators != width - 1)


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
    # Whatever a comment holds, it ends with its line.
    dirty[begin_with(octets, start, dialect.comment)] = False
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


def _hold_comment(octets: Octets, end: Positions, comment: str) -> bool:
    """Whether a line may be a comment, given the bytes behind the lines."""
    return bool(begin_with(octets, np.concatenate([[0], end[end < len(octets)]]), comment).any())

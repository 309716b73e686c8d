"""CSV without quoting whose separator is more than a character: made one byte, so that it is cut as fast as any."""

from dataclasses import dataclass, replace

import numpy as np

from pipeline.config import BLANKS
from pipeline.sources.delimited.exact import Dialect, split_line
from pipeline.sources.lines import CR, LF, Borders, Flags, Octets, Positions, find_lines, lone_returns

TAB, BLANK = b"\t", b" "
STAND_INS = bytes([*range(31, 13, -1), 12, 11, *range(8, 0, -1)])  # control characters but NUL, tab and line ends


@dataclass(frozen=True)
class Plain:
    """The records of some bytes, and the same records with one byte between their cells. R records.

    Attributes:
        borders: Where they are [R].
        text: The same lines, with one byte between two cells.
        text_borders: Where the records are in that text [R].
        dialect: How that text is cut.
    """

    borders: Borders
    text: bytes
    text_borders: Borders
    dialect: Dialect


def find_plain(text: bytes, *, width: int, dialect: Dialect) -> Plain | None:
    """Finds the records of bytes that begin with one.

    Args:
        text: The bytes.
        width: The number of cells of a good record.
        dialect: How records are cut, a plain one.

    Returns:
        The records that end within `text`; None when every byte that could stand for the separator is in use.
    """
    found = find_lines(text, comment=dialect.comment)
    whole = text[: found.consumed]
    if dialect.separator == BLANKS:
        stand_in, marked = BLANK, _with_single_blanks(whole)
    else:
        stand_in = next((one for one in map(_byte, STAND_INS) if one not in whole), None)
        if stand_in is None:
            return None
        marked = whole.replace(dialect.separator.encode(), stand_in)
    cells, start, end = _count_cells(marked, stand_in[0], blanks=dialect.separator == BLANKS)
    malformed = found.malformed | (cells[found.line] != width)
    exact = _cut_lines_with_returns(text, found, malformed, width=width, separator=dialect.separator)
    return Plain(
        borders=replace(found, malformed=malformed),
        text=marked,
        text_borders=replace(
            found,
            malformed=malformed,
            start=start[found.line],
            end=end[found.line],
            consumed=len(marked),
            cells=exact,
        ),
        dialect=replace(dialect, separator=stand_in.decode()),
    )


def _byte(octet: int) -> bytes:
    return bytes([octet])


def _count_cells(text: bytes, separator: int, *, blanks: bool) -> tuple[Positions, Positions, Positions]:
    """The cells of every line, its first byte and the byte behind it."""
    octets = np.frombuffer(text, dtype=np.uint8)
    at = np.flatnonzero((octets == LF) | (octets == separator))
    last = np.flatnonzero(octets[at] == LF)
    end = at[last] + 1
    start = np.concatenate([[0], end[:-1]])[: len(end)]
    cells = np.diff(last, prepend=-1)
    if blanks:  # a line of nothing but blanks has no cell
        cells[(end - start == 1) | ((end - start == 2) & (octets[start] == CR))] = 0
    return cells, start, end


def _with_single_blanks(text: bytes) -> bytes:
    """The same lines with one blank for every run of blanks and tabs, and none at either end of a line."""
    spaced = text.replace(TAB, BLANK)
    octets = np.frombuffer(spaced, dtype=np.uint8)
    blank, ends_line = octets == BLANK[0], octets == LF
    if b"\r" in text:
        ends_line[:-1] |= (octets[:-1] == CR) & ends_line[1:]
    needless = blank.copy()
    needless[:-1] &= blank[1:] | ends_line[1:]
    octets = _without(octets, needless)
    leading = octets == BLANK[0]
    leading[1:] &= octets[:-1] == LF
    octets = _without(octets, leading)
    return octets.tobytes() if len(octets) < len(spaced) else spaced


def _without(octets: Octets, needless: Flags) -> Octets:
    return octets[~needless] if needless.any() else octets


def _cut_lines_with_returns(
    text: bytes, found: Borders, malformed: Flags, *, width: int, separator: str
) -> dict[int, list[str]]:
    """The cells of the good records that hold a carriage return, with which polars does as it likes; marks the others."""
    if b"\r" not in text:
        return {}
    lone = lone_returns(np.frombuffer(text, dtype=np.uint8)[: found.consumed])
    rows = np.unique(np.searchsorted(found.end, lone, side="right"))
    exact: dict[int, list[str]] = {}
    for row in rows[rows < len(found.end)].tolist():
        cells = split_line(text[found.start[row] : found.end[row]], separator)
        malformed[row] = cells is None or len(cells) != width
        if cells is not None and not malformed[row]:
            exact[row] = cells
    return exact

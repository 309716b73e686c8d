"""Where the records of CSV bytes begin and end: by whole arrays where quotes are regular, else record by record."""

import codecs
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.sources.csv_exact import Dialect, exact_records
from pipeline.sources.text import BOM

LF, CR = 10, 13
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cut:
    """The complete records at the front of some bytes. R records.

    Attributes:
        frame: Their cells, String [R]; all null where malformed.
        malformed: Boolean [R].
        start: First byte of each [R].
        end: Byte behind each [R], line end included.
        line: Line on which each starts [R], the first line being 0.
        consumed: Bytes that are dealt with, blank lines included.
        lines: Lines that are dealt with.
    """

    frame: pl.DataFrame
    malformed: npt.NDArray[np.bool_]
    start: Positions
    end: Positions
    line: Positions
    consumed: int
    lines: int


def cut(text: bytes, *, names: list[str], dialect: Dialect) -> Cut:
    """Cuts bytes into records and cells.

    Args:
        text: Bytes that begin with a record.
        names: The columns; a record with another number of cells is malformed.
        dialect: How records are cut.

    Returns:
        All records that end within `text`. The same ones, with the same cells, that `exact_records` gives.
    """
    borders = _borders(text, names=names, dialect=dialect)
    if borders is not None:
        frame = _cells(text, borders, names=names, dialect=dialect)
        if frame is not None:
            return Cut(frame=frame, **borders)
    return _cut_exactly(text, names=names, dialect=dialect)


def _cut_exactly(text: bytes, *, names: list[str], dialect: Dialect) -> Cut:
    width = len(names)
    missing: list[str | None] = [None] * width
    records = list(exact_records(text, dialect))
    good = [record.fields is not None and len(record.fields) == width for record in records]
    rows = [
        [None if cell in dialect.nulls else cell for cell in record.fields] if fits and record.fields else missing
        for record, fits in zip(records, good, strict=True)
    ]
    columns = zip(*rows, strict=True) if rows else [[]] * width
    frame = pl.DataFrame(
        [pl.Series(name, list(cells), dtype=pl.String) for name, cells in zip(names, columns, strict=True)]
    )
    consumed = records[-1].end if records else 0
    # Blank lines behind the last record are dealt with as well, so that they are not looked at again and again.
    while (end := text.find(b"\n", consumed) + 1) and not text[consumed:end].strip(b"\r\n"):
        consumed = end
    return Cut(
        frame=frame,
        malformed=~np.array(good, dtype=np.bool_),
        start=np.array([record.start for record in records], dtype=np.int64),
        end=np.array([record.end for record in records], dtype=np.int64),
        line=np.array([record.line for record in records], dtype=np.int64),
        consumed=consumed,
        lines=text.count(b"\n", 0, consumed),
    )


def _borders(text: bytes, *, names: list[str], dialect: Dialect) -> dict[str, Any] | None:
    """All of a `Cut` but its cells; None when only the exact way can tell."""
    separator, quote = dialect.separator.encode(), (dialect.quote or "").encode()
    if len(separator) != 1 or len(quote) > 1:
        return None
    octets = np.frombuffer(text, dtype=np.uint8)
    quoted = bool(quote) and quote in text
    marks = octets == LF
    marks |= octets == separator[0]
    if quoted:
        marks |= octets == quote[0]
    position = np.flatnonzero(marks)
    mark = octets[position]
    is_end = mark == LF
    quotes = None
    if quoted:
        is_quote = mark == quote[0]
        quotes = position[is_quote]
        # Counting modulo 256 keeps the parity; where it is odd a quoted cell is open.
        is_open = (np.cumsum(is_quote, dtype=np.uint8) & 1).astype(np.bool_)
        if _irregular(octets, quotes, separator=separator[0], quote=quote[0]):
            return None
        last = np.flatnonzero(is_end & ~is_open)
        lines = np.cumsum(is_end)[last]
        separators = np.diff(np.cumsum((mark == separator[0]) & ~is_open)[last], prepend=0)
    else:
        last = np.flatnonzero(is_end)
        lines = np.arange(1, len(last) + 1)
        separators = np.diff(last, prepend=-1) - 1
    if b"\r" in text and _lone_returns(octets, quotes):
        return None
    end = position[last] + 1
    start = np.concatenate([[0], end[:-1]])[: len(end)]
    line = np.concatenate([[0], lines[:-1]])[: len(end)]
    malformed = separators != len(names) - 1
    consumed = int(end[-1]) if len(end) else 0
    if not text.isascii():
        _mark_undecodable(text, consumed, end, malformed)
    length = end - start
    kept = ~((length == 1) | ((length == 2) & (octets[start] == CR)))
    if not kept.all():
        start, end, line, malformed = start[kept], end[kept], line[kept], malformed[kept]
    return {
        "malformed": malformed,
        "start": start,
        "end": end,
        "line": line,
        "consumed": consumed,
        "lines": int(lines[-1]) if len(lines) else 0,
    }


def _irregular(octets: npt.NDArray[np.uint8], at: Positions, *, separator: int, quote: int) -> bool:
    """Whether a quote neither opens nor closes a cell nor is doubled; the parity of the later ones is then wrong."""
    opening, closing = at[::2], at[1::2]
    opening = opening[opening > 0]
    before = octets[opening - 1]
    if not ((before == separator) | (before == LF) | (before == quote)).all():
        return True
    closing = closing[closing < len(octets) - 1]
    behind = octets[closing + 1]
    return not ((behind == separator) | (behind == LF) | (behind == quote) | (behind == CR)).all()


def _lone_returns(octets: npt.NDArray[np.uint8], quotes: Positions | None) -> bool:
    """Whether a carriage return outside quotes stands before something other than a newline."""
    returns = np.flatnonzero(octets[:-1] == CR)
    lone = returns[octets[returns + 1] != LF]
    if quotes is not None and len(lone):
        lone = lone[np.searchsorted(quotes, lone) % 2 == 0]
    return len(lone) > 0


def _mark_undecodable(text: bytes, size: int, end: Positions, malformed: npt.NDArray[np.bool_]) -> None:
    """Marks the records that are not UTF-8."""
    view = memoryview(text)[:size]
    begin = 0
    while begin < size:
        try:
            codecs.utf_8_decode(view[begin:], "strict", True)
        except UnicodeDecodeError as error:
            record = int(np.searchsorted(end, begin + error.start, side="right"))
            malformed[record] = True
            begin = int(end[record])
        else:
            return


def _cells(text: bytes, borders: dict[str, Any], *, names: list[str], dialect: Dialect) -> pl.DataFrame | None:
    """The cells of the records, by polars; None when it does not see the same records."""
    malformed, start, end = borders["malformed"], borders["start"], borders["end"]
    schema = dict.fromkeys(names, pl.String)
    good = len(end) - int(malformed.sum())
    if good == 0:
        return pl.DataFrame(schema=schema).clear(len(end))
    length = (end - start)[~malformed]
    if int(length.sum()) == borders["consumed"]:
        clean = text[: borders["consumed"]]
    else:
        clean = _spliced(text, start[~malformed], end[~malformed], borders["consumed"])
    if clean.startswith(BOM):  # polars would take it for the mark of a file
        return None
    try:
        frame = pl.read_csv(
            clean,
            has_header=False,
            schema=schema,
            separator=dialect.separator,
            quote_char=dialect.quote,
            null_values=sorted(dialect.nulls),
            glob=False,
        )
    except pl.exceptions.PolarsError:
        return None
    if frame.height != good:
        return None
    if dialect.quote is not None and dialect.quote.encode() in clean:
        # polars keeps "" as an empty text and compares some quoted cells before it unquotes them
        frame = frame.with_columns(pl.when(~pl.all().is_in(sorted(dialect.nulls))).then(pl.all()))
    if good == len(end):
        return frame
    place = np.maximum(np.cumsum(~malformed) - 1, 0)
    row = pl.Series(place, dtype=pl.UInt32).set(pl.Series(malformed), None)
    return frame.select(pl.all().gather(row))


def _spliced(text: bytes, start: Positions, end: Positions, size: int) -> bytes:
    """The bytes of these records, one behind the other."""
    steps = np.zeros(size + 1, dtype=np.int8)
    steps[start] += 1
    steps[end] -= 1
    kept = np.cumsum(steps[:-1], dtype=np.int8).astype(np.bool_)
    return np.frombuffer(text, dtype=np.uint8)[:size][kept].tobytes()

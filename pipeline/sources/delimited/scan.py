"""CSV bytes -> records and their cells: by arrays and polars, and record by record where these cannot tell."""

from collections.abc import Collection

import numpy as np
import polars as pl

from pipeline.sources.delimited.borders import find_borders
from pipeline.sources.delimited.exact import Dialect, exact_records
from pipeline.sources.delimited.numbers import cut_numbers
from pipeline.sources.delimited.plain import find_plain
from pipeline.sources.lines import Borders, Cut, Flags, present, splice
from pipeline.sources.text import BOM


def cut(text: bytes, *, names: list[str], dialect: Dialect, integers: Collection[str] = ()) -> Cut:
    """Cuts bytes into records and cells.

    Args:
        text: Bytes that begin with a record.
        names: The columns; a record with another number of cells is malformed.
        dialect: How records are cut.
        integers: Columns that may come as Int64: see `cut_numbers`.

    Returns:
        All records that end within `text`: the same ones, with the same cells, that `exact_records` gives.
    """
    if (found := cut_numbers(text, names=names, dialect=dialect, integers=integers)) is not None:
        return found
    cut_fast = _cut_plain if dialect.plain else _cut_quoted
    return cut_fast(text, names=names, dialect=dialect) or _cut_exactly(text, names=names, dialect=dialect)


def _cut_quoted(text: bytes, *, names: list[str], dialect: Dialect) -> Cut | None:
    borders = find_borders(text, width=len(names), dialect=dialect)
    frame = _cells(text, borders, names=names, dialect=dialect) if borders is not None else None
    return Cut(frame, borders) if frame is not None and borders is not None else None


def _cut_plain(text: bytes, *, names: list[str], dialect: Dialect) -> Cut | None:
    plain = find_plain(text, width=len(names), dialect=dialect)
    frame = _cells(plain.text, plain.text_borders, names=names, dialect=plain.dialect) if plain is not None else None
    return Cut(frame, plain.borders) if frame is not None and plain is not None else None


def _cells(text: bytes, borders: Borders, *, names: list[str], dialect: Dialect) -> pl.DataFrame | None:
    """The cells of the records; None when polars does not see the same records."""
    regular = ~borders.malformed
    exact = np.fromiter(borders.cells, dtype=np.int64, count=len(borders.cells))
    regular[exact] = False
    frame = _regular_cells(text, borders, regular, names=names, dialect=dialect)
    if frame is None or frame.height == len(regular):
        return frame
    place = np.maximum(np.cumsum(regular) - 1, 0)
    place[exact] = np.arange(frame.height, frame.height + len(exact))
    row = pl.Series(place, dtype=pl.UInt32).set(pl.Series(borders.malformed), None)
    frame = pl.concat([frame, _rows(list(borders.cells.values()), names=names, dialect=dialect)])
    return frame.select(pl.all().gather(row)) if frame.height else frame.clear(len(regular))


def _regular_cells(
    text: bytes, borders: Borders, regular: Flags, *, names: list[str], dialect: Dialect
) -> pl.DataFrame | None:
    """The cells of the regular records, by polars; None when it does not see the same records."""
    start, end = borders.start[regular], borders.end[regular]
    if not len(start):
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    clean = splice(text, start, end, borders.consumed)
    if clean.startswith(BOM):  # polars would take it for the mark of a file
        return None
    nulls = sorted(dialect.nulls)
    # polars compares cells with doubled quotes before it undoubles them: what holds a quote is compared below.
    plain = [null for null in nulls if dialect.quote is None or dialect.quote not in null]
    # polars gives a column without a name one of its own.
    numbered = dict.fromkeys(map(str, range(len(names))), pl.String)
    try:
        frame = pl.read_csv(
            clean,
            has_header=False,
            schema=numbered,
            separator=dialect.separator,
            quote_char=dialect.quote,
            null_values=plain,
            glob=False,
        )
    except pl.exceptions.PolarsError:
        return None
    if frame.height != len(start):
        return None
    frame.columns = names
    if dialect.quote is not None and dialect.quote.encode() in clean:
        # polars keeps "" as an empty text
        frame = frame.with_columns(present(pl.all(), nulls))
    return frame


def _cut_exactly(text: bytes, *, names: list[str], dialect: Dialect) -> Cut:
    records = list(exact_records(text, dialect))
    good = [record.fields is not None and len(record.fields) == len(names) for record in records]
    missing = [""] * len(names)
    rows = [record.fields if fits and record.fields else missing for record, fits in zip(records, good, strict=True)]
    consumed = records[-1].end if records else 0
    # Blank lines and comments behind the last record are dealt with as well, not looked at again and again.
    comment = (dialect.comment or "\n").encode()
    while (end := text.find(b"\n", consumed) + 1) and (
        not text[consumed:end].strip(b"\r\n") or text.startswith(comment, consumed)
    ):
        consumed = end
    return Cut(
        _rows(rows, names=names, dialect=dialect),
        Borders(
            malformed=~np.array(good, dtype=np.bool_),
            start=np.array([record.start for record in records], dtype=np.int64),
            end=np.array([record.end for record in records], dtype=np.int64),
            line=np.array([record.line for record in records], dtype=np.int64),
            consumed=consumed,
            lines=text.count(b"\n", 0, consumed),
        ),
    )


def _rows(rows: list[list[str]], *, names: list[str], dialect: Dialect) -> pl.DataFrame:
    columns = []
    for number, name in enumerate(names):
        cells = [None if row[number] in dialect.nulls else row[number] for row in rows]
        columns.append(pl.Series(name, cells, dtype=pl.String))
    frame = pl.DataFrame(columns)
    frame.columns = names  # also the one without a name
    return frame

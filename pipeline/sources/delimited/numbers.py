"""Blocks of CSV whose numbers are spelled as programs spell them, cut and read in one go.

Most logs are like this, and it saves making a text of every number only to read it again.
"""

from collections.abc import Collection

import numpy as np
import polars as pl

from pipeline.sources.delimited.exact import Dialect
from pipeline.sources.lines import Cut, EveryLine


def cut_numbers(text: bytes, *, names: list[str], dialect: Dialect, integers: Collection[str]) -> Cut | None:
    """Cuts bytes in which nothing is out of the ordinary.

    Ordinary are ASCII records without quotes and carriage returns, each with as many cells as there are columns, none
    blank, whose cells in `integers` are missing or what Python prints of an int64. That there is nothing else follows from
    sizes alone: separators, line ends and the shortest spelling of every cell add up to all the bytes. As polars takes no
    line with too many cells, there is none with too few where the separators are as many as they should be.

    Args:
        text: Bytes that begin with a record.
        names: The columns.
        dialect: How records are cut.
        integers: Columns to deliver as numbers.

    Returns:
        The same records that `cut` gives, with Int64 in the columns of `integers`; None when something is not ordinary.
    """
    end_of_records = text.rfind(b"\n") + 1
    if not end_of_records or not any(name in integers for name in names) or not _could_be_ordinary(text, dialect):
        return None
    records = text[:end_of_records]
    separators = np.count_nonzero(np.frombuffer(records, dtype=np.uint8) == ord(dialect.separator))
    # polars gives a column without a name one of its own.
    schema = {str(number): pl.Int64 if name in integers else pl.String for number, name in enumerate(names)}
    try:
        frame = pl.read_csv(
            records, has_header=False, schema=schema, separator=dialect.separator, quote_char=None, glob=False
        )
    except pl.exceptions.PolarsError:
        return None
    lines = frame.height
    if separators != lines * (len(names) - 1) or sum(map(_shortest, frame)) + separators + lines != end_of_records:
        return None
    if len(names) == 1 and frame.to_series().has_nulls():  # a blank line, which is no record
        return None
    frame.columns = names
    return Cut(frame, EveryLine(records, lines))


def _could_be_ordinary(text: bytes, dialect: Dialect) -> bool:
    return (
        len(dialect.separator) == 1
        and dialect.nulls == {""}
        and dialect.comment is None
        and text.isascii()
        and b"\r" not in text
        and (dialect.quote is None or dialect.quote.encode() not in text)
    )


def _shortest(cells: pl.Series) -> int:
    """How many bytes the cells take at least: of a number its digits and sign, nothing where there is none."""
    if cells.dtype == pl.String:
        return int(cells.str.len_bytes().sum())
    low, high = cells.min(), cells.max()
    if low is None:
        return 0
    low, high = int(low), int(high)  # type: ignore[arg-type]
    numbers = cells.len() - cells.null_count()
    size = numbers  # a digit each
    for digits in range(1, len(str(max(-low, high)))):
        border = 10**digits
        size += numbers if low >= border else int((cells >= border).sum())
        if low <= -border:
            size += int((cells <= -border).sum())
    return size + (int((cells < 0).sum()) if low < 0 else 0)

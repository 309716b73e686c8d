"""What is done to the raw cells of a declared column before anything is read from them."""

import re
from fractions import Fraction

import polars as pl

from pipeline.config import RawColumn

NUMBER = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{0,40})?")
INT128 = range(-(2**127), 2**127)


def clean(raw: pl.Series, column: RawColumn) -> pl.Series:
    """Cells without the blanks around them, where `strip` says so, and null where they are one of `null_values`.

    Args:
        raw: Raw cells [rows]; those of a dictionary become text.
        column: The declaration.
    """
    cells = raw.cast(pl.String) if raw.dtype in (pl.Categorical, pl.Enum) else raw
    if column.strip and cells.dtype == pl.String:
        cells = cells.str.strip_chars()
    missing = _missing(cells, column.null_values) if column.null_values else None
    return cells if missing is None or not missing.any() else cells.set(missing.fill_null(value=False), None)


def _missing(cells: pl.Series, null_values: tuple[str, ...]) -> pl.Series | None:
    """Which cells are one of the texts or, in a column of numbers, one of the numbers that these write."""
    if cells.dtype == pl.String:
        return cells.is_in(list(null_values))
    numbers = [Fraction(text) for text in null_values if NUMBER.fullmatch(text)]
    if cells.dtype.is_float():
        floats = pl.Series([float(number) for number in numbers], dtype=pl.Float64)
        return cells.is_in(floats.cast(cells.dtype).implode())
    if not (cells.dtype.is_integer() or cells.dtype.is_decimal()):
        return None
    scale = cells.dtype.scale if isinstance(cells.dtype, pl.Decimal) else 0
    scaled = [number * 10**scale for number in numbers]
    whole = [int(number) for number in scaled if number.denominator == 1 and int(number) in INT128]
    return cells.to_physical().cast(pl.Int128).is_in(pl.Series(whole, dtype=pl.Int128).implode())

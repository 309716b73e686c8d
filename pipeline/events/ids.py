"""Raw cells to ids and other typed values; nothing goes through a float on the way."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from pipeline.contracts import PipelineError

INT64_MAX = 2**63 - 1
EXACT_FLOAT = {pl.Float32: 2**24, pl.Float64: 2**53}  # from there on a float stands for several integers


@dataclass(frozen=True, slots=True)
class Typed:
    """A converted column. The masks are bool [rows], None when no row is meant.

    Attributes:
        values: Series [rows] of the declared type, null where any mask is set.
        missing: The cell is empty.
        malformed: The cell is something else than what was declared.
        out_of_range: An integer that int64 cannot hold.
    """

    values: pl.Series
    missing: np.ndarray | None = None
    malformed: np.ndarray | None = None
    out_of_range: np.ndarray | None = None


def mask(series: pl.Series) -> np.ndarray | None:
    """A boolean series as a mask; None when nothing is set."""
    return series.to_numpy() if series.any() else None


def to_strings(raw: pl.Series, *, column: str) -> Typed:
    """Text as it stands; integers, whole decimals and booleans by their digits or name. The empty text is missing.

    Raises:
        PipelineError: The raw type has no unambiguous text (floats, dates, nested values).
    """
    malformed = None
    if raw.dtype.is_decimal():
        whole = _whole_of_decimals(raw)
        malformed = mask(whole.is_null() & raw.is_not_null())
        values = whole.cast(pl.String)
    elif raw.dtype.is_integer() or raw.dtype in (pl.Categorical, pl.Enum):
        values = raw.cast(pl.String)
    elif raw.dtype == pl.Boolean:
        values = raw.cast(pl.Int8).replace_strict({0: "false", 1: "true"}, return_dtype=pl.String)
    elif raw.dtype in (pl.String, pl.Null):
        values = raw.cast(pl.String)
    else:
        raise PipelineError(
            f"column '{column}' holds {raw.dtype}, which has no unambiguous text; declare another type or use sql"
        )
    length = values.str.len_bytes()
    if not values.has_nulls() and length.min() != 0:
        return Typed(values)
    empty = raw.is_null() | (length == 0).fill_null(value=False)
    missing = mask(empty)
    return Typed(values if missing is None else values.set(empty, None), missing, malformed)


def to_int64(raw: pl.Series, *, column: str) -> Typed:
    """Exact integers: digits, or digits with a fraction of zeros; floats and decimals that are whole.

    Raises:
        PipelineError: The raw type cannot hold an integer.
    """
    dtype = raw.dtype
    if dtype in (pl.String, pl.Null):
        return _text_to_int64(raw.cast(pl.String))
    missing = mask(raw.is_null())
    if dtype.is_decimal():
        whole = _whole_of_decimals(raw)
        values = whole.cast(pl.Int64, strict=False)
        malformed, beyond = raw.is_not_null() & whole.is_null(), whole.is_not_null() & values.is_null()
        return Typed(values, missing, mask(malformed), mask(beyond))
    if dtype in (pl.UInt64, pl.Int128):
        beyond = raw.is_not_null() & ((raw > INT64_MAX) | (raw < -(2**63)) if dtype != pl.UInt64 else raw > INT64_MAX)
        return Typed(raw.cast(pl.Int64, strict=False), missing, None, mask(beyond))
    if dtype.is_integer():
        return Typed(raw.cast(pl.Int64), missing)
    if dtype.is_float():
        whole = (raw == raw.floor()) & (raw.abs() < EXACT_FLOAT.get(type(dtype), 2**11))
        malformed = raw.is_not_null() & ~whole.fill_null(value=False)
        return Typed(raw.set(malformed, None).cast(pl.Int64, strict=False), missing, mask(malformed))
    raise PipelineError(f"column '{column}' holds {dtype}, expected integers; declare type = \"string\" or use sql")


def _text_to_int64(text: pl.Series) -> Typed:
    values = text.cast(pl.Int64, strict=False)
    unread = values.is_null()
    if not unread.any():
        return Typed(values)
    rows = unread.arg_true()
    rest = text.gather(rows).str.strip_chars()
    empty = rest.is_null() | (rest == "").fill_null(value=True)
    digits = rest.str.extract(r"^([+-]?[0-9]+)(?:\.0*)?$")
    exact = digits.cast(pl.Int64, strict=False)
    values = values.scatter(rows, exact)
    malformed = digits.is_null() & ~empty
    beyond = digits.is_not_null() & exact.is_null()
    return Typed(values, *(spread(mask(part), rows, text.len()) for part in (empty, malformed, beyond)))


def _whole_of_decimals(raw: pl.Series) -> pl.Series:
    """Int128 [rows], null for decimals with a fraction other than zeros."""
    assert isinstance(raw.dtype, pl.Decimal)
    digits = raw.to_physical().cast(pl.Int128)
    power = pl.Series([10**raw.dtype.scale], dtype=pl.Int128)
    whole = digits // power
    return whole.set((whole * power != digits).fill_null(value=False), None)


def to_float64(raw: pl.Series, *, column: str) -> Typed:
    """Finite numbers; NaN and infinities are malformed.

    Raises:
        PipelineError: The raw type is no number.
    """
    text = raw.dtype == pl.String
    if not (text or raw.dtype.is_numeric() or raw.dtype == pl.Null):
        raise PipelineError(f"column '{column}' holds {raw.dtype}, expected numbers")
    stripped = raw.str.strip_chars() if text else raw
    empty = stripped.is_null() | (stripped == "").fill_null(value=True) if text else raw.is_null()
    values = stripped.cast(pl.Float64, strict=False)
    malformed = ~empty & ~values.is_finite().fill_null(value=False)
    return Typed(values.set(malformed, None), mask(empty), mask(malformed))


def to_bool(raw: pl.Series, *, column: str) -> Typed:
    """Booleans, and the texts true, false, 1 and 0 in any case.

    Raises:
        PipelineError: The raw type is neither.
    """
    if raw.dtype == pl.Boolean:
        return Typed(raw, mask(raw.is_null()))
    if not (raw.dtype == pl.String or raw.dtype.is_integer() or raw.dtype == pl.Null):
        raise PipelineError(f"column '{column}' holds {raw.dtype}, expected true and false")
    text = raw.cast(pl.String).str.strip_chars().str.to_lowercase()
    empty = text.is_null() | (text == "").fill_null(value=True)
    true, false = text.is_in(["true", "1"]), text.is_in(["false", "0"])
    malformed = ~empty & ~(true | false).fill_null(value=False)
    return Typed(true.set(malformed | empty, None), mask(empty), mask(malformed))


CONVERSIONS = {"int64": to_int64, "string": to_strings, "float64": to_float64, "bool": to_bool}


def spread(part: np.ndarray | None, rows: pl.Series, length: int) -> np.ndarray | None:
    """The mask of some rows as a mask of all.

    Args:
        part: bool [P].
        rows: Their positions [P].
        length: How many rows there are.
    """
    if part is None:
        return None
    whole = np.zeros(length, dtype=bool)
    whole[rows.to_numpy()] = part
    return whole

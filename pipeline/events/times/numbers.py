"""Numbers that count a unit since 1970, whole or with a fraction, taken apart exactly: nothing goes through a float.

Text is digits, after a sign or none, then a point and further digits or none. Of a float that number is meant which its
shortest decimal writes: 1396437466.94, though no float equals it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import polars as pl

from pipeline.contracts import PipelineError
from pipeline.events.ids import mask, spread, to_int64

PLACES = {"s": 6, "ms": 3, "us": 0, "ns": 0}  # decimal places of a unit that whole microseconds (for ns: ns) can hold
# Below, at most one decimal of so many places reads back as a float, and a product finds it: both errors are below a half.
ONE_DECIMAL = {6: 2.0**32, 3: 2.0**42, 0: 2.0**53}
CLEAR = 2.0**10  # from there on, floats are far enough apart for a product to be rounded down exactly
TOO_LARGE = 1e17  # floats from there on are too far apart to mean one number
POWERS = pl.Series([10**exponent for exponent in range(19)], dtype=pl.Int64)
NUMBER = r"^([+-]?[0-9]+)(?:\.([0-9]*))?$"


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers taken apart: each is `whole` + `part` / 10^places + a rest below. A mask is None when no row is meant.

    Attributes:
        whole: Int64 [rows], rounded down; null where missing or malformed.
        part: Int64 [rows], 0 to 10^places - 1; None where all are whole.
        finer: bool [rows], there is a rest.
        missing: bool [rows], the cell is empty.
        malformed: bool [rows], it is no number, or one that int64 cannot hold.
    """

    whole: pl.Series
    part: pl.Series | None = None
    finer: np.ndarray | None = None
    missing: np.ndarray | None = None
    malformed: np.ndarray | None = None


def take_apart(raw: pl.Series, unit: str) -> Numbers:
    """Takes the numbers of a column apart.

    Args:
        raw: Text, integers, floats or decimals [rows].
        unit: s, ms, us or ns.

    Raises:
        PipelineError: The raw type holds no numbers.
    """
    places = PLACES[unit]
    if raw.dtype in (pl.String, pl.Null):
        return _of_text(raw.cast(pl.String), places)
    if raw.dtype.is_float():
        return _of_floats(raw, places)
    if raw.dtype.is_decimal():
        return _of_decimals(raw, places)
    if raw.dtype.is_integer():
        typed = to_int64(raw, column=raw.name)
        return Numbers(typed.values, missing=typed.missing, malformed=typed.out_of_range)
    raise PipelineError(f"holds {raw.dtype}, not numbers")


def _of_text(text: pl.Series, places: int) -> Numbers:
    return _completed(Numbers(text.cast(pl.Int64, strict=False)), text, places, by=_with_points)


def _with_points(text: pl.Series, places: int) -> Numbers:
    """Text that is no plain integer: almost always digits, a point, and more digits; without the point, an integer."""
    point = text.str.find(".", literal=True)
    after = (text.str.len_bytes() - point - 1).cast(pl.Int64)
    digits = text.str.replace(".", "", literal=True).cast(pl.Int64, strict=False)
    # Of two characters before the point one is a digit; about fewer, the regular expression knows.
    digits = digits.set(((point < 2) | (after > 18)).fill_null(value=True), None)
    widths = after.fill_null(0).clip(0, 18)
    low, high = widths.min(), widths.max()
    width = int(low or 0) if low == high else widths  # type: ignore[arg-type]  # by one number, division is faster
    return _completed(_split(digits, width, places), text, places, by=_by_pattern)


def _by_pattern(text: pl.Series, places: int) -> Numbers:
    """Any text."""
    cells = text.str.strip_chars()
    groups = cells.str.extract_groups(NUMBER)
    digits, fraction = groups.struct.field("1"), groups.struct.field("2").fill_null("")
    missing = (cells.is_null() | (cells == "")).fill_null(value=True)
    whole = digits.cast(pl.Int64, strict=False)
    below = ("0" + fraction.str.slice(0, places).str.pad_end(places, "0")).cast(pl.Int64)
    finer = fraction.str.contains(f"^[0-9]{{{places}}}[0-9]*[1-9]")
    below = (-below - finer.cast(pl.Int64)).zip_with(digits.str.starts_with("-").fill_null(value=False), below)
    return Numbers(
        whole + below // 10**places,
        below % 10**places,
        mask(finer & whole.is_not_null()),
        mask(missing),
        mask(whole.is_null() & ~missing),
    )


def _of_floats(raw: pl.Series, places: int) -> Numbers:
    if raw.dtype != pl.Float64:
        return _by_shortest_decimal(raw, places)
    floats, factor = raw.to_numpy(), 10.0**places  # null is NaN; polars would divide by multiplying
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = np.rint(floats * factor)
        # A quotient is correctly rounded: where it is the float, that decimal is meant, since no other is so short.
        written = nearest / factor == floats
        # Where it is not, no decimal so short lies between the float and the one that is meant: round down either.
        whole = np.floor(floats)
        digits = np.where(written, nearest, whole * factor + np.floor((floats - whole) * factor))
        known = (np.abs(floats) < ONE_DECIMAL[places]) & (written | (np.abs(floats) >= CLEAR))
        digits = pl.Series(np.where(known, digits, 0).astype(np.int64)).set(pl.Series(~known), None)
    numbers = replace(_split(digits, places, places), finer=known & ~written)
    return _completed(numbers, raw, places, by=_by_shortest_decimal)


def _by_shortest_decimal(raw: pl.Series, places: int) -> Numbers:
    """Any floats."""
    text = raw.set(((raw.abs() >= TOO_LARGE) | ~raw.is_finite()).fill_null(value=False), None).cast(pl.String)
    powers = text.str.contains("e", literal=True).fill_null(value=False)
    if powers.any():
        text = text.scatter(powers.arg_true(), [f"{Decimal(cell):f}" for cell in text.filter(powers)])
    return replace(
        _with_points(text, places), missing=mask(raw.is_null()), malformed=mask(text.is_null() & raw.is_not_null())
    )


def _of_decimals(raw: pl.Series, places: int) -> Numbers:
    assert isinstance(raw.dtype, pl.Decimal)
    digits = raw.to_physical().cast(pl.Int128)
    narrow = digits.cast(pl.Int64, strict=False)
    fits = narrow.null_count() == digits.null_count() and raw.dtype.scale <= 18
    numbers = _split(narrow if fits else digits, raw.dtype.scale, places)
    beyond = numbers.whole.is_null() & raw.is_not_null()
    return replace(numbers, missing=mask(raw.is_null()), malformed=mask(beyond))


def _split(digits: pl.Series, width: int | pl.Series, places: int) -> Numbers:
    """Integers whose last `width` digits stand behind the point."""

    def power(exponent: int | pl.Series) -> pl.Series:
        if isinstance(exponent, int):
            return pl.Series([10 ** max(exponent, 0)], dtype=digits.dtype)
        return POWERS.gather(exponent.clip(0))

    wide = digits // power(width)
    whole, below, finer = wide.cast(pl.Int64, strict=False), digits - wide * power(width), None
    if (width if isinstance(width, int) else width.max()) > places:  # type: ignore[operator]
        down = power(width - places)
        finer = mask((below % down != 0).fill_null(value=False) & whole.is_not_null())
        below = below // down
    part = below * power(places - width) if not isinstance(width, int) or width < places else below
    return Numbers(whole, part.cast(pl.Int64), finer)


def _completed(numbers: Numbers, cells: pl.Series, places: int, *, by: Callable[[pl.Series, int], Numbers]) -> Numbers:
    """Has the rows that are null yet read in another way."""
    if not numbers.whole.has_nulls():
        return numbers
    rows = numbers.whole.is_null().arg_true()
    if rows.len() == cells.len():
        return by(cells, places)
    rest = by(cells.gather(rows), places)
    nothing = pl.repeat(0, cells.len(), dtype=pl.Int64, eager=True)
    part = nothing if numbers.part is None else numbers.part
    finer = np.zeros(cells.len(), dtype=bool) if numbers.finer is None else numbers.finer.copy()
    finer[rows.to_numpy()] = False if rest.finer is None else rest.finer
    return Numbers(
        numbers.whole.scatter(rows, rest.whole),
        part.scatter(rows, 0 if rest.part is None else rest.part),
        finer,
        spread(rest.missing, rows, cells.len()),
        spread(rest.malformed, rows, cells.len()),
    )

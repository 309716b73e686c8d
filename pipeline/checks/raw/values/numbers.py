"""Numbers as they stand in raw cells: integers, decimals, and floats for the decimals that they are written as."""

import re
import struct
from collections.abc import Collection
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any

INT64 = range(-(2**63), 2**63)
DECIMAL = re.compile(r"([+-]?)0*([0-9]+)(?:\.([0-9]*))?")
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# What Unicode calls white space; Python's own strip takes four control characters more.
BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


class NarrowFloat(float):
    """A float of 32 or 16 bits.

    Attributes:
        exact: From there on it stands for several integers.
    """

    exact: int

    def __new__(cls, value: float, exact: int = 2**24) -> "NarrowFloat":
        """A float, and from where on it stands for several integers."""
        made = super().__new__(cls, value)
        made.exact = exact
        return made


def text_of(cell: Any) -> str | None:
    """The text of a cell; numbers of typed formats by their digits."""
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return format(Decimal(cell), "f")
    if isinstance(cell, Decimal):
        return format(cell if is_fraction(cell) else cell.to_integral_value(), "f")
    return str(cell)


def is_fraction(cell: Any) -> bool:
    """Whether a cell is a decimal that is not whole: the same number may be written in several ways."""
    return isinstance(cell, Decimal) and cell != cell.to_integral_value()


def integer_of(cell: Any, text: str) -> int | None:
    """The integer that a cell holds, by its text; None when it holds none, or a float that stands for several."""
    match = DECIMAL.fullmatch(text)
    if match is None or (match[3] or "").strip("0"):
        return None
    if isinstance(cell, float) and not abs(cell) < getattr(cell, "exact", 2**53):
        return None
    # Python refuses to read thousands of digits; all that matters is that the number is too large.
    return int(match[1] + match[2]) if len(match[2]) < 20 else 2**63


def is_null(cell: Any, nulls: Collection[str]) -> bool:
    """Whether a cell is one of the texts, or has the number of one, that mean "missing"."""
    if isinstance(cell, str):
        return cell in nulls
    if isinstance(cell, bool) or not isinstance(cell, int | float | Decimal):
        return False
    numbers = (text for text in nulls if DECIMAL.fullmatch(text))
    if isinstance(cell, float):
        return any(_as_wide_as(cell, float(text)) == cell for text in numbers)
    return any(Decimal(text) == cell for text in numbers)


def _as_wide_as(cell: float, number: float) -> float:
    """A number as a float of as many bits as a cell has."""
    if not isinstance(cell, NarrowFloat):
        return number
    bits = "<f" if cell.exact == 2**24 else "<e"
    try:
        return struct.unpack(bits, struct.pack(bits, number))[0]
    except OverflowError:
        return number


def written(cell: float) -> Decimal:
    """The shortest decimal that reads back as a float: the number that was meant."""
    if not isinstance(cell, NarrowFloat):
        return Decimal(repr(cell))
    low, high, closed = _reach(cell)
    exact = Decimal(float(cell))
    for digits in range(1, 10):
        step = Decimal((0, (1,), exact.adjusted() - digits + 1))
        near = [exact.quantize(step, rounding) for rounding in (ROUND_FLOOR, ROUND_CEILING)]
        fitting = [n for n in near if low < Fraction(n) < high or (closed and Fraction(n) in (low, high))]
        if fitting:
            return min(fitting, key=lambda number: abs(number - exact))
    return exact


def _reach(cell: float) -> tuple[Fraction, Fraction, bool]:
    """Between which numbers all are read as this float of 32 bits, and whether the two are so as well."""
    (bits,) = struct.unpack("<i", struct.pack("<f", abs(cell)))
    own, below, above = (
        Fraction(struct.unpack("<f", struct.pack("<i", max(b, 0)))[0]) for b in (bits, bits - 1, bits + 1)
    )
    low, high = (own + below) / 2, (own + above) / 2
    return (low, high, bits % 2 == 0) if cell >= 0 else (-high, -low, bits % 2 == 0)

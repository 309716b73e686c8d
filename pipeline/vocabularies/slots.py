"""Finds millions of values in a small set."""

from functools import cached_property

import numpy as np

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio (Knuth, The Art of Computer Programming, 6.4)
DIRECT_SPAN = 1 << 24  # a table with one place a value may be so long
MOST_BITS = 23
PART_ROWS = 1 << 17  # what is computed on the way stays in the cache


class Slots:
    """A set of distinct values, each with a number.

    Few values are looked up by a binary search. For many, values that lie close together have one place each in a table, and
    others are hashed to places; those few that have to share one go through the binary search, so that every answer is
    exact.

    Args:
        values: int64 [N], distinct, in whatever order.
        numbers: int32 [N], the number of each.
        absent: The number of what is not in the set.
    """

    def __init__(self, values: np.ndarray, numbers: np.ndarray, *, absent: int) -> None:
        order = np.argsort(values, kind="stable")
        self._values, self._numbers, self._absent = values[order], numbers[order], np.int32(absent)
        span = int(self._values[-1]) - int(self._values[0]) + 1 if len(values) else 0
        self._direct = span <= min(16 * len(values), DIRECT_SPAN)
        bits = min(max((32 * len(values)).bit_length(), 4), MOST_BITS)
        self._shift = np.uint64(64 - bits)

    def find(self, wanted: np.ndarray) -> np.ndarray:
        """The number of each value, int32 [E].

        Args:
            wanted: int64 [E].
        """
        if len(wanted) <= len(self._values) or not len(self._values):
            return self._search(wanted)
        look_up = self._find_direct if self._direct else self._find_hashed
        found = np.empty(len(wanted), dtype=np.int32)
        for start in range(0, len(wanted), PART_ROWS):
            found[start : start + PART_ROWS] = look_up(wanted[start : start + PART_ROWS])
        return found

    def _search(self, wanted: np.ndarray) -> np.ndarray:
        if not len(self._values):
            return np.full(len(wanted), self._absent, dtype=np.int32)
        positions = np.minimum(self._values.searchsorted(wanted), len(self._values) - 1)
        return np.where(self._values[positions] == wanted, self._numbers[positions], self._absent)

    def _find_direct(self, wanted: np.ndarray) -> np.ndarray:
        places = (wanted - self._values[0]).view(np.uint64)  # wraps around, so that lower ones lie far above
        np.minimum(places, np.uint64(len(self._places_of_all) - 1), out=places)
        return self._places_of_all.take(places.view(np.int64), mode="clip")

    def _find_hashed(self, wanted: np.ndarray) -> np.ndarray:
        owners = self._owners.take(self._hashed(wanted), mode="clip")  # all lie within: clipping is only the faster way
        found = self._numbers.take(owners, mode="clip")
        rest = np.flatnonzero(self._values.take(owners, mode="clip") != wanted)
        if len(rest):
            found[rest] = self._search(wanted[rest])
        return found

    def _hashed(self, values: np.ndarray) -> np.ndarray:
        places = values.view(np.uint64) * MULTIPLIER
        places >>= self._shift
        return places.view(np.int64)

    @cached_property
    def _places_of_all(self) -> np.ndarray:
        """int32 [span + 1]: the number of each value from the lowest on; the last place is for all that lies outside."""
        table = np.full(int(self._values[-1]) - int(self._values[0]) + 2, self._absent, dtype=np.int32)
        table[self._values - self._values[0]] = self._numbers
        return table

    @cached_property
    def _owners(self) -> np.ndarray:
        """int32: which value each place belongs to; nobody's belong to the lowest value, which then just differs.

        One small table is looked up at random; the values and numbers that it leads to are few enough to stay near the processor.
        """
        owners = np.zeros(1 << (64 - int(self._shift)), dtype=np.int32)
        owners[self._hashed(self._values)] = np.arange(len(self._values), dtype=np.int32)
        return owners

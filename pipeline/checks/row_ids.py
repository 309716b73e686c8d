"""Which row_ids of a day occurred."""

import numpy as np
import polars as pl

BYTES = 1 << 26  # as many row_ids get a byte each, more of them a bit each, which takes four times as long
BIT = np.left_shift(1, np.arange(8)).astype(np.uint8)
ALL_BITS = 255


class RowIds:
    """Notes which of 0, 1, ..., rows_in - 1 occur; sorting them would take eight bytes a row and more.

    Args:
        rows_in: How many there have to be.
    """

    def __init__(self, rows_in: int) -> None:
        self._rows = rows_in
        self._strange = False
        self._in_bits = rows_in > BYTES
        self._seen = np.zeros(-(-rows_in // 8) if self._in_bits else rows_in, dtype=np.uint8)
        if self._in_bits and rows_in % 8:
            self._seen[-1] = ALL_BITS << rows_in % 8 & ALL_BITS  # those behind the last one

    def mark(self, row_ids: pl.Series) -> None:
        """Notes row_ids that are there."""
        row_id_E = row_ids.to_numpy()
        if len(row_id_E) and not 0 <= row_id_E.min() <= row_id_E.max() < self._rows:
            self._strange = True
        elif self._in_bits:
            self._mark_bits(row_id_E)
        else:
            self._seen[row_id_E] = 1

    def complete(self) -> bool:
        """Whether all occurred, and nothing else; then as many marks as rows mean that none did twice."""
        return not self._strange and bool((self._seen == (ALL_BITS if self._in_bits else 1)).all())

    def _mark_bits(self, row_id_E: np.ndarray) -> None:
        place_E, bit_E = row_id_E >> 3, BIT.take(row_id_E & 7)
        while len(place_E):
            self._seen[place_E] = self._seen.take(place_E) | bit_E
            left = np.flatnonzero(self._seen.take(place_E) & bit_E == 0)  # another row of the same byte came after
            place_E, bit_E = place_E[left], bit_E[left]

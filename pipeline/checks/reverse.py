"""Indices looked up in reverse: the id that the log holds at an index is the row's id."""

import numpy as np
import polars as pl

from pipeline.checks.blocks import Scratch, places_in
from pipeline.vocabularies import FIRST_KNOWN, PADDING, UNKNOWN, DayIds

TABLE_SPAN = 16  # a table may be this many times as long as the ids of the day


class ReverseLookUp:
    """Judges the indices of one vocabulary, row by row.

    The log holds every id once, so the right id means the right index. Index 1 is right for those ids of the day that the
    log lacked, index 0 for a missing id.

    Args:
        day_ids: What the log holds at the indices of the day.
    """

    def __init__(self, day_ids: DayIds) -> None:
        self._day_ids = day_ids
        self._id_N = _table(day_ids)
        self._scratch = Scratch()

    def wrong(self, ids: pl.Series, indices: pl.Series) -> np.ndarray:
        """The rows whose index is not that of their id, int64 [W].

        Args:
            ids: Ids of the day [E]; null where one is missing.
            indices: Int32 [E] without nulls.
        """
        index_E = indices.to_numpy()
        position_E = np.subtract(index_E, FIRST_KNOWN, out=self._scratch.array(0, index_E, np.int64))
        if self._id_N is not None and not ids.null_count() and _within(position_E, len(self._id_N)):
            found_E = self._scratch.array(1, position_E)
            self._id_N.take(position_E, out=found_E, mode="clip")  # all lie within: clipping is only the faster way
            return np.flatnonzero(found_E != ids.to_numpy())
        known_E = index_E >= FIRST_KNOWN
        right_E = known_E & self._day_ids.ids_of(indices).eq_missing(ids).to_numpy()
        missing_E = ids.is_null().to_numpy()
        right_E |= missing_E & (index_E == PADDING)
        unknown = np.flatnonzero((index_E == UNKNOWN) & ~missing_E)
        right_E[unknown] = places_in(self._day_ids.unknown, ids.gather(unknown))[0]
        return np.flatnonzero(~right_E)


def _within(position_E: np.ndarray, length: int) -> bool:
    return position_E.min(initial=0) >= 0 and position_E.max(initial=0) < length


def _table(day_ids: DayIds) -> np.ndarray | None:
    """The id at index 2, 3, ...; where the day has none, a number that is no id of the day. None where it would be sparse."""
    if day_ids.ids.dtype != pl.Int64 or day_ids.ids.is_empty():
        return None
    position_N, id_N = day_ids.indices.to_numpy() - FIRST_KNOWN, day_ids.ids.to_numpy()
    span = int(position_N[-1]) + 1
    if span > TABLE_SPAN * len(id_N):
        return None
    ids = set(day_ids.unknown.to_list())
    lowest, highest = int(id_N.min()), int(id_N.max())
    no_id = next((value for value in (highest + 1, lowest - 1) if -(2**63) <= value < 2**63 and value not in ids), None)
    if no_id is None:
        return None
    table = np.full(span, no_id, dtype=np.int64)
    table[position_N] = id_N
    return table

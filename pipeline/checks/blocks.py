"""Rows as they stream past the proofs: where users begin, and two tables side by side."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl


@dataclass(frozen=True)
class Runs:
    """The users of a block, each of them a run of rows.

    Attributes:
        starts: The rows at which users begin, row 0 among them, int64 [R].
        users: user_id [R].
        rows: Rows of the block.
        goes_on: Whether the first user is the last one of the block before.
    """

    starts: np.ndarray
    users: pl.Series
    rows: int
    goes_on: bool

    @classmethod
    def of(cls, users: pl.Series, *, before: object) -> "Runs":
        """Finds them.

        Args:
            users: user_id of at least one row.
            before: The last user of the block before; None for the first block.
        """
        starts = run_starts(users)
        of_runs = users[pl.Series(starts)]
        return cls(starts, of_runs, users.len(), of_runs[0] == before)

    @cached_property
    def lengths(self) -> np.ndarray:
        """The rows of each user in the block, int64 [R]."""
        return np.diff(self.starts, append=self.rows)

    @cached_property
    def new(self) -> np.ndarray:
        """The rows at which users begin who were in no block before, int64."""
        return self.starts[1:] if self.goes_on else self.starts

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        """The number of the run of each row."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def rows_of(self, frame: pl.DataFrame, number: int) -> pl.DataFrame:
        """The rows of one user."""
        return frame.slice(int(self.starts[number]), int(self.lengths[number]))


def run_starts(users: pl.Series) -> np.ndarray:
    """The rows at which another user begins, row 0 among them, int64 [R].

    Args:
        users: user_id of at least one row.
    """
    if users.dtype == pl.Int64 and not users.null_count():
        user_E = users.to_numpy()
        changes = np.flatnonzero(user_E[1:] != user_E[:-1]) + 1
    else:
        changes = users.ne_missing(users.shift(1)).arg_true().to_numpy().astype(np.int64)
        changes = changes[changes > 0]
    return np.concatenate([np.zeros(1, dtype=np.int64), changes])


def places_in(ascending: pl.Series, wanted: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Which values are in a series of distinct ones, bool [W], and where these stand, int64 [W]."""
    if ascending.is_empty():
        return np.zeros(wanted.len(), dtype=bool), np.zeros(wanted.len(), dtype=np.int64)
    if wanted.dtype == pl.Int64:
        places = np.searchsorted(ascending.to_numpy(), wanted.to_numpy())
    else:
        places = ascending.search_sorted(wanted).to_numpy().astype(np.int64)
    places = np.minimum(places, ascending.len() - 1)
    return (ascending.gather(places) == wanted).to_numpy(), places


def times_us(frame: pl.DataFrame) -> np.ndarray:
    """The times of some rows, int64 us [rows], without a copy; none of them missing."""
    return frame["timestamp"].to_numpy().view(np.int64)


class Scratch:
    """Arrays that are used again for every block: fresh memory costs more than what is computed in it."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[int, Any], np.ndarray] = {}

    def array(self, number: int, like: np.ndarray, dtype: Any = None) -> np.ndarray:
        """An array with arbitrary values, as long as `like`; the next call with this number and type gives it out again."""
        key = (number, np.dtype(dtype or like.dtype))
        if key not in self._arrays or len(self._arrays[key]) < len(like):
            self._arrays[key] = np.empty(len(like), dtype=key[1])
        return self._arrays[key][: len(like)]


def side_by_side(
    left: Iterator[pl.DataFrame], right: Iterator[pl.DataFrame]
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """The rows of two tables at the same positions, in frames of the same height, as far as both go.

    Args:
        left: Frames of one table, none of them empty.
        right: Frames of the other, cut at other rows.
    """
    one, other = pl.DataFrame(), pl.DataFrame()
    while True:
        try:
            one = one if one.height else next(left)
            other = other if other.height else next(right)
        except StopIteration:
            return
        rows = min(one.height, other.height)
        yield one[:rows], other[:rows]
        one, other = one[rows:], other[rows:]

"""Accepted rows to the stored order of their day, within a memory budget: by ranges of users where they are many."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from pipeline.events.ahead import ahead
from pipeline.events.order import sort_rows
from pipeline.events.parts import DayParts, joined

QUANTILES = 64  # of the users of the first rows that do not fit: borders of ranges
SAMPLED = 65_536
PIECE_SAMPLED = 4_096  # of each part, where a range is cut again
INT64_MAX = 2**63 - 1


class Arranger:
    """Takes blocks of accepted rows in `row_id` order and gives them back in stored order, day by day.

    A day within the budget is sorted at once. Others are written in parts, each cut by ranges of users with borders from a
    sample of the first rows; then they are sorted range by range, and a range that is too large is cut again.

    Args:
        budget_bytes: How much may be held before it is spilled, for all days together.
        directory: For the parts; whoever made it removes it.
        borders: Users at which ranges begin; those of the first rows that do not fit when there are none.
    """

    def __init__(self, *, budget_bytes: int, directory: Path, borders: pl.Series | None = None) -> None:
        self._directory = directory
        self._borders = borders
        self._parts = DayParts(budget_bytes=budget_bytes, directory=directory, cut=self._range_of)

    @property
    def spilled_bytes(self) -> int:
        """How much did not fit into the budget."""
        return self._parts.spilled_bytes

    def expect(self, size: int) -> None:
        """Says how many bytes will come, about."""
        self._parts.expect(size)

    def add(self, frame: pl.DataFrame, day_R: np.ndarray) -> None:
        """Adds the next R rows; `day_R` is int32."""
        self._parts.add(frame, day_R)

    def ranges(self, day: int) -> Iterator[pl.DataFrame]:
        """The rows of a day in stored order, whole users together, each frame about as large as a part at most."""
        return ahead(self._sorted(day))

    def forget(self, day: int) -> None:
        """Gives back the room that this day and earlier ones take; these are not asked for again."""
        self._parts.forget(day)

    def _sorted(self, day: int) -> Iterator[pl.DataFrame]:
        """Neighbouring ranges together where they are small."""
        rows = self._parts.rows_of(day)
        limit = self._parts.rows_of_a_part
        first = 0
        while first < len(rows):
            behind = first + 1
            while behind < len(rows) and rows[first : behind + 1].sum() <= limit:
                behind += 1
            if rows[first] > 2 * limit:
                yield from self._cut_again(day, first)
            elif rows[first:behind].any():
                yield sort_rows(joined(list(self._parts.of(day, first, behind))))
            first = behind

    def _cut_again(self, day: int, number: int) -> Iterator[pl.DataFrame]:
        """A range that holds too much, by borders of its own; a user is never cut in two."""
        users = [_sample(piece["user_id"], PIECE_SAMPLED) for piece in self._parts.of(day, number, number + 1)]
        sample = pl.concat(users)
        if sample.min() == sample.max():
            yield sort_rows(joined(list(self._parts.of(day, number, number + 1))))
            return
        inner = Arranger(
            budget_bytes=self._parts.part_bytes, directory=self._directory / str(number), borders=_borders(sample)
        )
        for piece in self._parts.of(day, number, number + 1):
            inner.add(piece, np.full(piece.height, day, dtype=np.int32))
        yield from inner.ranges(day)
        inner.forget(day)

    def _range_of(self, frame: pl.DataFrame) -> np.ndarray:
        """The range of every row, uint8 [rows]."""
        if self._borders is None:
            self._borders = _borders(frame["user_id"])
        return self._borders.search_sorted(frame["user_id"], side="right").to_numpy().astype(np.uint8)


def _sample(users: pl.Series, size: int) -> pl.Series:
    """Some users, with the lowest and the highest among them."""
    some = users.gather_every(max(1, users.len() // size))
    return pl.concat([some, pl.Series([users.min(), users.max()], dtype=users.dtype)])


def _borders(users: pl.Series) -> pl.Series:
    """Users at which ranges begin; one that would fill a range gets one for itself."""
    sample = _sample(users, SAMPLED).sort()
    picked = [sample[sample.len() * number // QUANTILES] for number in range(1, QUANTILES)]
    heavy = {user for user in picked if picked.count(user) > 1 and user != INT64_MAX}
    behind = [user + "\0" if isinstance(user, str) else user + 1 for user in heavy]
    return pl.Series([*picked, *behind], dtype=users.dtype).unique().sort()

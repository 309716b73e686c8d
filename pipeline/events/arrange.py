"""Accepted rows to the stored order of their day, within a memory budget: by ranges of users where they are many."""

from collections.abc import Generator, Iterator
from pathlib import Path

import numpy as np
import polars as pl

from pipeline.events.order import sort_rows
from pipeline.events.parts import DayParts, joined, widened
from pipeline.threads import ahead

KEYS = ("user_id", "timestamp")  # by which rows are cut into ranges: by time only those of one user
QUANTILES = 64  # of the keys of the first rows that do not fit: borders of ranges
SAMPLED = 65_536
PIECE_SAMPLED = 4_096  # of each part, where a range is cut again
INT64_MAX = 2**63 - 1
TABLE_BITS = 16
TOLD_APART = 0.75  # of the ranges, at least


class Arranger:
    """Takes blocks of accepted rows in `row_id` order and gives them back in stored order, day by day.

    A day of few rows is sorted at once. Others are kept in parts, each cut by ranges of users with borders from a sample of
    the first rows, in memory or, beyond the budget, in files; then they are sorted range by range, so that what is sorted
    stays near the processor, and a range that is too large is cut again.

    Args:
        budget_bytes: How much may be held before it is spilled, for all days together.
        directory: For the parts; whoever made it removes it.
        borders: Users, or times, at which ranges begin; users of the first rows that do not fit when there are none.
        key: Which of the two.
    """

    def __init__(
        self, *, budget_bytes: int, directory: Path, borders: pl.Series | None = None, key: str = KEYS[0]
    ) -> None:
        self._directory, self._key, self._budget_bytes = directory, key, budget_bytes
        self._ranges = None if borders is None else _Ranges(borders)
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

    def ranges(self, day: int) -> Generator[pl.DataFrame, None, None]:
        """The rows of a day in stored order, each frame about as large as a part at most.

        A frame holds whole users, or of a single one with very many events some instants with all their rows.

        Who stops early has to close it.
        """
        return ahead(self._sorted(day), waits=True)

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
                yield from self._cut_again(day, first, int(rows[first]))
            elif rows[first:behind].any():
                yield self._together(day, first, behind)
            first = behind

    def _together(self, day: int, first: int, behind: int) -> pl.DataFrame:
        """The rows of some ranges, sorted while they are narrow."""
        pieces = list(self._parts.as_kept(day, first, behind))
        if any(piece.schema != pieces[0].schema for piece in pieces):
            pieces = list(map(widened, pieces))
        return widened(sort_rows(joined(pieces)))

    def _cut_again(self, day: int, number: int, rows: int) -> Iterator[pl.DataFrame]:
        """A range that holds too much, by borders of its own: of users, or of the times of one user."""
        for key in KEYS[KEYS.index(self._key) :]:
            sample = pl.concat(_sample(piece[key], PIECE_SAMPLED) for piece in self._parts.of(day, number, number + 1))
            if sample.min() != sample.max():
                break
        else:
            yield self._together(day, number, number + 1)
            return
        directory, borders = self._directory / f"{day}-{number}", _borders(sample)
        inner = Arranger(budget_bytes=self._budget_bytes, directory=directory, borders=borders, key=key)
        inner.expect(rows * self._parts.part_bytes // self._parts.rows_of_a_part)
        for piece in self._parts.of(day, number, number + 1):
            inner.add(piece, np.full(piece.height, day, dtype=np.int32))
        yield from inner._sorted(day)
        inner.forget(day)

    def _range_of(self, frame: pl.DataFrame) -> np.ndarray:
        """The range of every row, uint8 [rows]."""
        if self._ranges is None:
            self._ranges = _Ranges(_borders(frame[self._key]))
        return self._ranges.of(frame[self._key])


class _Ranges:
    """Which range a key belongs to.

    Args:
        borders: Keys at which ranges begin, ascending.
    """

    def __init__(self, borders: pl.Series) -> None:
        self._borders = borders
        self._table: np.ndarray | None = None
        if borders.dtype == pl.Int64 and borders.len() > 1:
            self._tabulate(borders.to_numpy())

    def _tabulate(self, borders: np.ndarray) -> None:
        """Ranges by the leading bits of a key, where these tell nearly as many ranges apart: a look-up, not a search."""
        low, high = int(borders[0]), int(borders[-1])
        shift = max(0, (high - low).bit_length() - TABLE_BITS)
        if low - (1 << shift) < -INT64_MAX or high - low + (1 << shift) > INT64_MAX:
            return
        begins = borders - low >> shift
        if len(np.unique(begins)) >= len(borders) * TOLD_APART:
            self._low, self._high, self._shift = low - (1 << shift), high, shift  # all below come into the first place
            places = np.arange(-1, (high - low >> shift) + 1)
            self._table = np.searchsorted(begins, places, side="right").astype(np.uint8)

    def of(self, keys: pl.Series) -> np.ndarray:
        """uint8 [rows]; it never falls while keys rise."""
        if self._table is None:
            return self._borders.search_sorted(keys, side="right").to_numpy().astype(np.uint8)
        place = np.clip(keys.to_numpy(), self._low, self._high)
        place -= self._low
        place >>= self._shift
        return self._table[place]


def _sample(keys: pl.Series, size: int) -> pl.Series:
    """Some keys, with the lowest and the highest among them."""
    some = keys.gather_every(max(1, keys.len() // size))
    return pl.concat([some, pl.Series([keys.min(), keys.max()], dtype=keys.dtype)])


def _borders(keys: pl.Series) -> pl.Series:
    """Keys at which ranges begin; one that would fill a range gets one for itself."""
    sample = _sample(keys, SAMPLED).sort()
    picked = [sample[sample.len() * number // QUANTILES] for number in range(1, QUANTILES)]
    heavy = {key for key in picked if picked.count(key) > 1 and key != INT64_MAX}
    behind = [key + "\0" if isinstance(key, str) else key + 1 for key in heavy]
    return pl.Series([*picked, *behind], dtype=keys.dtype).unique().sort()

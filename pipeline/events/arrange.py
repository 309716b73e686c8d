"""Accepted rows to the stored order of their day: by user, time and row, within a memory budget."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl


from pipeline.events.parts import DayParts, size_of

PACKED_BITS = 62
TICKS_US = (1_000_000, 1_000)
SAMPLES = 65_536  # of the rows of a day that is cut
SCATTER = 2_654_435_761  # so that the sample does not follow a pattern of the row_ids


def sort_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Sorts rows that come in `row_id` order by (user_id, timestamp, row_id).

    One stable radix sort: of the users alone where the log is in time order already, else of user and time packed into one
    int64. The passes of the sort grow with the bits of the key, so both are rebased, and times are counted in the coarsest
    unit that tells them apart. What does not fit into one key is sorted twice, by time and then by user.

    Args:
        frame: Has user_id (Int64 or String) and timestamp (Int64 us), both without nulls.
    """
    if frame.height < 2:
        return frame
    users, times = _users(frame["user_id"]), _Ticks(frame["timestamp"])
    if times.ascending:
        order_E = _order(users.rebased, users.bits)
    elif users.bits + times.bits <= PACKED_BITS:
        order_E = _order(users.rebased << times.bits | times.rebased, users.bits + times.bits)
    else:
        by_time_E = _order(times.rebased, times.bits)
        order_E = by_time_E[_order(users.rebased[by_time_E], users.bits)]
    return frame[pl.Series(order_E).cast(pl.UInt32)]


def _order(key_E: np.ndarray, bits: int) -> np.ndarray:
    """The stable order of non-negative keys."""
    import torch

    narrow_E = key_E.astype(np.int32) if bits < 32 else key_E
    return torch.sort(torch.from_numpy(narrow_E), stable=True).indices.numpy()


@dataclass(frozen=True, slots=True)
class _Users:
    """Users as numbers from 0, int64 [rows], and how many bits they take."""

    rebased: np.ndarray
    bits: int


def _users(user_id: pl.Series) -> _Users:
    if user_id.dtype == pl.Int64:
        low, high = int(user_id.min()), int(user_id.max())  # type: ignore[arg-type]
        if (bits := (high - low).bit_length()) <= PACKED_BITS:
            return _Users(user_id.to_numpy() - low, bits)
    distinct = user_id.unique().sort()  # numerically, or bytewise
    ranks = pl.DataFrame({"user_id": distinct}).with_row_index("rank")
    joined = user_id.to_frame().join(ranks, on="user_id", how="left", maintain_order="left")
    return _Users(joined["rank"].cast(pl.Int64).to_numpy(), (distinct.len() - 1).bit_length())


class _Ticks:
    """Times as numbers from 0, in the coarsest unit that tells them apart."""

    def __init__(self, time_us: pl.Series) -> None:
        self._us = time_us.to_numpy()
        self._low = int(time_us.min())  # type: ignore[arg-type]
        self.ascending = bool(time_us.is_sorted())
        self._tick = 1
        if not self.ascending:
            self._tick = next((tick for tick in TICKS_US if not ((self._us - self._low) % tick).any()), 1)
        self.bits = ((int(time_us.max()) - self._low) // self._tick).bit_length()  # type: ignore[arg-type]

    @property
    def rebased(self) -> np.ndarray:
        """int64 [rows]."""
        rebased = self._us - self._low
        return rebased // self._tick if self._tick > 1 else rebased


class Arranger:
    """Takes blocks of accepted rows in `row_id` order and gives them back in stored order, day by day.

    A day within the budget is sorted at once. A larger one is merged range of users by range of users; borders come from a
    sample, and a range that is too large is cut again. Where it is cut depends on the rows of the day alone: not on the
    blocks in which they came, nor on the days that came with it.

    Args:
        budget_bytes: How much may be held before it is spilled in sorted parts, for all days together.
        directory: For the parts; whoever made it removes it.
    """

    def __init__(self, *, budget_bytes: int, directory: Path) -> None:
        self._budget_bytes = budget_bytes
        self._parts = DayParts(budget_bytes=budget_bytes, directory=directory, arrange=sort_rows)

    @property
    def spilled_bytes(self) -> int:
        """How much did not fit into the budget."""
        return self._parts.spilled_bytes

    def add(self, frame: pl.DataFrame, day_R: np.ndarray) -> None:
        """Adds the next R rows; `day_R` is int32."""
        self._parts.add(frame, day_R)

    def ranges(self, day: int) -> Iterator[pl.DataFrame]:
        """The rows of a day in stored order, whole users together, each frame about as large as the budget at most."""
        parts = self._parts.of(day)
        count = 1 + sum(size_of(part) for part in parts) // self._budget_bytes
        for low, high in pairwise([None, *_cuts(parts, count), None]):
            yield from self._merge([_between(part, low, high) for part in parts])

    def forget(self, day: int) -> None:
        """Gives back the room that this day and earlier ones take; these are not asked for again."""
        self._parts.forget(day)

    def _merge(self, slices: list[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        filled = [part for part in slices if part.height]
        if not filled:
            return
        if sum(size_of(part) for part in filled) > 2 * self._budget_bytes:
            users = pl.concat([part["user_id"] for part in filled]).sort()
            middle = users[users.len() // 2]
            below = [_between(part, None, middle) for part in filled]
            from_middle = [_between(part, middle, None) for part in filled]
            if any(part.height for part in below):
                yield from self._merge(below)
                yield from self._merge(from_middle)
                return
            first = [part.slice(0, part["user_id"].search_sorted(middle, side="right")) for part in filled]
            after = [part.slice(head.height) for part, head in zip(filled, first, strict=True)]
            if any(part.height for part in after):  # one huge user in front of others
                yield from self._merge(first)
                yield from self._merge(after)
                return
        yield sort_rows(pl.concat(filled, how="diagonal").rechunk()) if len(filled) > 1 else filled[0]


def _cuts(parts: list[pl.DataFrame], count: int) -> list[Any]:
    """Users that cut the rows of a day into `count` ranges of about the same size."""
    if count == 1:
        return []
    step = 1 + sum(part.height for part in parts) // SAMPLES
    drawn = (pl.col("row_id") * SCATTER // 2**16) % step == 0
    sample = pl.concat([part.lazy().filter(drawn).select("user_id").collect() for part in parts])["user_id"].sort()
    return sorted({sample[sample.len() * cut // count] for cut in range(1, count)}) if sample.len() else []


def _between(part: pl.DataFrame, low: object, high: object) -> pl.DataFrame:
    """The rows with low <= user_id < high of a part that is sorted by user."""
    users = part["user_id"]
    start = 0 if low is None else int(users.search_sorted(low, side="left"))  # type: ignore[arg-type]
    stop = part.height if high is None else int(users.search_sorted(high, side="left"))  # type: ignore[arg-type]
    return part.slice(start, max(0, stop - start))

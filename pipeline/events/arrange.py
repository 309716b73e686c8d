"""Accepted rows of a day to the stored order: by user, time and row, within a memory budget."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import torch

PACKED_BITS = 62
TICKS_US = (1_000_000, 1_000)
SAMPLES_PER_PART = 4096


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
    """Takes blocks of accepted rows in `row_id` order and gives them back in stored order.

    A day within the budget is sorted at once. A larger one is spilled in sorted parts, and then merged range of users
    by range of users; borders come from a sample of all parts, and a range that is too large is cut again.

    Args:
        budget_bytes: How much may be held before it is spilled.
        directory: For the parts; removed by `close`.
    """

    def __init__(self, *, budget_bytes: int, directory: Path) -> None:
        self._budget_bytes, self._directory = budget_bytes, directory
        self._held: list[pl.DataFrame] = []
        self._held_bytes = 0
        self._parts: list[Path] = []
        self._samples: list[pl.Series] = []
        self.spilled_bytes = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Adds the next rows."""
        if frame.is_empty():
            return
        self._held.append(frame)
        self._held_bytes += int(frame.estimated_size())
        if self._held_bytes > self._budget_bytes:
            self._spill()

    def ranges(self) -> Iterator[pl.DataFrame]:
        """The rows in stored order, whole users together, each frame about as large as the budget at most."""
        if not self._parts:
            if self._held:
                yield sort_rows(self._take_held())
            return
        if self._held:
            self._spill()
        parts = [_mapped(path) for path in self._parts]
        count = 1 + self.spilled_bytes // self._budget_bytes
        sample = pl.concat(self._samples).sort()
        cuts = sorted({sample[sample.len() * cut // count] for cut in range(1, count)})
        borders = [None, *cuts, None]
        for low, high in pairwise(borders):
            yield from self._merge([_between(part, low, high) for part in parts])

    def close(self) -> None:
        """Removes the parts."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def _take_held(self) -> pl.DataFrame:
        frame = pl.concat(self._held) if len(self._held) > 1 else self._held[0]
        self._held, self._held_bytes = [], 0
        return frame.rechunk()

    def _spill(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        frame = sort_rows(self._take_held())
        path = self._directory / f"part-{len(self._parts):05d}.arrow"
        frame.write_ipc(path, compression="uncompressed", compat_level=pl.CompatLevel.oldest())
        self._samples.append(frame["user_id"].gather_every(max(1, frame.height // SAMPLES_PER_PART)))
        self._parts.append(path)
        self.spilled_bytes += int(frame.estimated_size())

    def _merge(self, slices: list[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        filled = [part for part in slices if part.height]
        if not filled:
            return
        size = sum(int(part.estimated_size()) for part in filled)
        if size > 2 * self._budget_bytes:
            largest = max(filled, key=lambda part: part.height)
            middle = largest["user_id"][largest.height // 2]
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
        yield sort_rows(pl.concat(filled).rechunk())


def _mapped(path: Path) -> pl.DataFrame:
    """A part as a frame whose pages are read from the file when they are touched."""
    with pa.memory_map(str(path)) as source:
        frame = pl.from_arrow(pa.ipc.open_file(source).read_all(), rechunk=False)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _between(part: pl.DataFrame, low: object, high: object) -> pl.DataFrame:
    """The rows with low <= user_id < high of a part that is sorted by user."""
    users = part["user_id"]
    start = 0 if low is None else int(users.search_sorted(low, side="left"))  # type: ignore[arg-type]
    stop = part.height if high is None else int(users.search_sorted(high, side="left"))  # type: ignore[arg-type]
    return part.slice(start, max(0, stop - start))

"""Accepted rows of a day to the stored order: by user, time and row, within a memory budget."""

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import torch

from pipeline.contracts import PipelineError

PACKED_BITS = 62
SAMPLES_PER_PART = 4096


def sort_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Sorts rows that come in `row_id` order by (user_id, timestamp, row_id).

    One stable radix sort of user and time packed into an int64; where both do not fit, users are ranked first.

    Args:
        frame: Has user_id (Int64 or String) and timestamp (Int64 us), both without nulls.
    """
    if frame.height < 2:
        return frame
    key_E = _packed_key(frame["user_id"], frame["timestamp"])
    order_E = torch.sort(torch.from_numpy(key_E), stable=True).indices
    return frame[pl.Series(order_E.numpy()).cast(pl.UInt32)]


def _packed_key(user_id: pl.Series, time_us: pl.Series) -> np.ndarray:
    low_us = int(time_us.min())  # type: ignore[arg-type]
    time_bits = (int(time_us.max()) - low_us).bit_length()  # type: ignore[arg-type]
    if user_id.dtype == pl.Int64:
        low_user = int(user_id.min())  # type: ignore[arg-type]
        user_bits = (int(user_id.max()) - low_user).bit_length()  # type: ignore[arg-type]
        if user_bits + time_bits <= PACKED_BITS:
            key = user_id.to_numpy() - low_user
            key <<= time_bits
            key |= time_us.to_numpy() - low_us
            return key
    users = user_id.unique().sort()
    if (users.len() - 1).bit_length() + time_bits > PACKED_BITS:
        raise PipelineError(
            f"a day holds {users.len():,} users over {time_bits} bits of microseconds, more than a sort key of {PACKED_BITS} bits holds"
        )
    ranks = pl.DataFrame({"user_id": users}).with_row_index("rank")
    key = user_id.to_frame().join(ranks, on="user_id", how="left", maintain_order="left")["rank"].cast(pl.Int64)
    packed = np.array(key.to_numpy())
    packed <<= time_bits
    packed |= time_us.to_numpy() - low_us
    return packed


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

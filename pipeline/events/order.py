"""Rows to the stored order: by user, time and row."""

from dataclasses import dataclass

import numpy as np
import polars as pl

PACKED_BITS = 62
TICKS_US = (1_000_000, 1_000)


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

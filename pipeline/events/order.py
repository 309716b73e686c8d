"""Rows to the stored order: by user, time and row."""

from dataclasses import dataclass

import numpy as np
import polars as pl

KEY_BITS = 63
TICKS_US = (1_000_000, 1_000)


def sort_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Sorts rows that come in `row_id` order by (user_id, timestamp, row_id).

    A key holds the user and, in its last bits, the position of the row: so no two keys are equal, any sort of integers keeps
    the order of rows, and the sorted keys say where each row comes from. That is enough where each user's rows are in time
    order already, as in most logs. Else the time stands in the key as well, in the coarsest unit that tells times apart;
    where 63 bits do not hold all three, rows are sorted by time first and then by user.

    Args:
        frame: Has user_id (Int64, UInt32 or String) and timestamp (Int64 us, or UInt32), both without nulls.
    """
    rows = frame.height
    if rows <= 1:
        return frame
    position_bits = (rows - 1).bit_length()
    users = _users(frame["user_id"], KEY_BITS - position_bits)
    by_user = _gathered(frame, _order(users.rebased))
    if _ascending(by_user):
        return by_user
    times = _ticks(frame["timestamp"].to_numpy().astype(np.int64, copy=False), KEY_BITS - position_bits)
    if users.bits + times.bits + position_bits <= KEY_BITS:
        return _gathered(frame, _order(users.rebased << times.bits | times.rebased))
    by_time_E = _order(times.rebased)
    return _gathered(frame, by_time_E[_order(users.rebased[by_time_E])])


def _gathered(frame: pl.DataFrame, order_E: np.ndarray) -> pl.DataFrame:
    return frame[pl.Series(order_E.astype(np.uint32))]


@dataclass(frozen=True, slots=True)
class _Keys:
    """Users or times as numbers from 0, int64 [E], and how many bits they take."""

    rebased: np.ndarray
    bits: int


def _order(key_E: np.ndarray) -> np.ndarray:
    """The stable order of keys that leave room for a position, int64 [E]."""
    bits = (len(key_E) - 1).bit_length()
    packed_E = key_E << bits
    packed_E |= np.arange(len(key_E))
    packed_E.sort()
    packed_E &= (1 << bits) - 1
    return packed_E


def _ascending(by_user: pl.DataFrame) -> bool:
    """Whether times never fall within a user."""
    users, time_us_E = by_user["user_id"], by_user["timestamp"].to_numpy()
    earlier = np.flatnonzero(time_us_E[1:] < time_us_E[:-1])
    return bool((users.gather(earlier) != users.gather(earlier + 1)).all())


def _users(user_id: pl.Series, room: int) -> _Keys:
    """Users as they are, counted from the lowest, where that takes at most `room` bits; else by rank."""
    if user_id.dtype != pl.String:
        low, high = int(user_id.min()), int(user_id.max())  # type: ignore[arg-type]
        if (bits := (high - low).bit_length()) <= room:
            return _Keys(np.subtract(user_id.to_numpy(), low, dtype=np.int64), bits)
    distinct = user_id.unique().sort()  # numerically, or bytewise
    ranks = pl.DataFrame({"user_id": distinct}).with_row_index("rank")
    joined = user_id.to_frame().join(ranks, on="user_id", how="left", maintain_order="left")
    return _Keys(joined["rank"].cast(pl.Int64).to_numpy(), (distinct.len() - 1).bit_length())


def _ticks(time_us_E: np.ndarray, room: int) -> _Keys:
    """Times counted from the earliest, in the coarsest unit that tells them apart; by rank beyond `room` bits."""
    low, high = int(time_us_E.min()), int(time_us_E.max())
    if (high - low).bit_length() > room:
        ranks = np.unique(time_us_E, return_inverse=True)[1]
        return _Keys(ranks, int(ranks.max()).bit_length())
    rebased = time_us_E - low
    tick = next((tick for tick in TICKS_US if not (rebased % tick).any()), 1)
    if tick > 1:
        rebased //= tick
    return _Keys(rebased, ((high - low) // tick).bit_length())

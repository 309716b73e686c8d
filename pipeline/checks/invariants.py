"""What must hold for every row of `features`, computed from `events` by other means than the feature code.

Each function compares one file of features with the events at the same positions and returns the first differences. Both
frames hold whole users, in stored order.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from pipeline.vocabularies import FIRST_KNOWN, PADDING

FIRST = 5
ROUNDING = 2.0**-23  # of a sum of float32 gaps, relative to the sum; half of it would do
Difference = dict[str, Any]


def moved_rows(events: pl.DataFrame, features: pl.DataFrame, names: Sequence[str]) -> list[Difference]:
    """Identity and kept columns are those of the event at the same position: no row lost, doubled, moved or swapped."""
    return [
        _at(events, name, row, events[name][row], features[name][row])
        for name in names
        for row in events[name].ne_missing(features[name]).arg_true()[:1]
    ]


def wrong_one_hots(events: pl.DataFrame, features: pl.DataFrame, action_names: Sequence[str]) -> list[Difference]:
    """Every action column is 1 exactly where the event has that action."""
    return [
        _at(events, f"action_{name}", row, int(events["action"][row] == name), features[f"action_{name}"][row])
        for name in action_names
        for row in ((events["action"] == name) != (features[f"action_{name}"] == 1)).arg_true()[:1]
    ]


def times_before(events: pl.DataFrame, opening: pl.DataFrame) -> pl.Series:
    """The time of the same user's previous event, Int64 us [rows]; null where there is none.

    Args:
        events: user_id and timestamp.
        opening: user_id and `core.last_timestamp_us`.
    """
    users, time_us = events["user_id"], events["timestamp"].to_physical()
    starts = (users != users.shift(1)).fill_null(value=True).arg_true()
    first_rows = users.gather(starts).to_frame().join(opening, on="user_id", how="left", maintain_order="left")
    return time_us.shift(1).scatter(starts, first_rows["core.last_timestamp_us"])


def wrong_gaps(events: pl.DataFrame, features: pl.DataFrame, before_us: pl.Series) -> list[Difference]:
    """time_diff and is_first of every row, from shifted timestamps."""
    gap_us = (events["timestamp"].to_physical() - before_us).fill_null(0)
    gap_s = (gap_us.cast(pl.Float64) / 1e6).cast(pl.Float32)
    found = [
        _at(events, "time_diff", row, gap_s[row], features["time_diff"][row])
        for row in (gap_s != features["time_diff"]).arg_true()[:FIRST]
    ]
    first = before_us.is_null()
    return found + [
        _at(events, "is_first", row, first[row], features["is_first"][row])
        for row in (first != features["is_first"]).arg_true()[:FIRST]
    ]


def wrong_totals(events: pl.DataFrame, features: pl.DataFrame, before_us: pl.Series) -> list[Difference]:
    """Per user, the gaps add up to the time from the previous (or first) event to the last."""
    sums = pl.DataFrame(
        [events["user_id"], events["timestamp"].to_physical(), before_us.alias("before"), features["time_diff"]]
    )
    totals = sums.group_by("user_id", maintain_order=True).agg(
        (pl.last("timestamp") - pl.coalesce(pl.first("before"), pl.first("timestamp"))).alias("total_us"),
        pl.col("time_diff").cast(pl.Float64).sum().alias("sum_s"),
    )
    total_s = pl.col("total_us").cast(pl.Float64) / 1e6
    wrong = totals.filter((pl.col("sum_s") - total_s).abs() > total_s * ROUNDING)
    return [
        {
            "user_id": row["user_id"],
            "row_id": None,
            "column": "time_diff",
            "expected": row["total_us"] / 1e6,
            "found": row["sum_s"],
        }
        for row in wrong.head(FIRST).iter_rows(named=True)
    ]


def wrong_indices(features: pl.DataFrame, name: str, log: pl.Series) -> list[Difference]:
    """Every index looked up in reverse: the id that the log holds there is the row's id.

    The log holds every id once, so the right id means the right index. An unknown id must not be in the log, and only a
    missing one has the padding index.

    Args:
        features: The rows.
        name: `user` or `item`.
        log: The ids that the day knew, position p holding the id with index p + 2.
    """
    ids, indices = features[f"{name}_id"], features[f"{name}_index"]
    known = indices >= FIRST_KNOWN
    beyond = indices >= FIRST_KNOWN + log.len()
    position = (
        (indices - FIRST_KNOWN).set(~known | beyond, None) if not known.all() or beyond.any() else indices - FIRST_KNOWN
    )
    wrong = (log.gather(position).ne_missing(ids) & known) | (indices < PADDING) | beyond
    if not known.all():
        rest = features.filter(~known).select(f"{name}_id").to_series()
        wrong_rest = rest.is_in(log.implode()).fill_null(value=False) | (
            rest.is_null() != (indices.filter(~known) == PADDING)
        )
        wrong = wrong.scatter((~known).arg_true(), wrong_rest)
    return [
        {
            "user_id": features["user_id"][row],
            "row_id": features["row_id"][row],
            "column": f"{name}_index",
            "expected": f"the index of {ids[row]!r}",
            "found": indices[row],
        }
        for row in wrong.arg_true()[:FIRST]
    ]


def count_actions(events: pl.DataFrame, action_names: Sequence[str]) -> np.ndarray:
    """Events of each declared action, int64 [actions]."""
    return np.array([int((events["action"] == name).sum()) for name in action_names], dtype=np.int64)


def count_hot(features: pl.DataFrame, action_names: Sequence[str]) -> np.ndarray:
    """The sum of each action column, int64 [actions]."""
    return np.array([int(features[f"action_{name}"].cast(pl.Int64).sum()) for name in action_names], dtype=np.int64)


def count_events(events: pl.DataFrame) -> pl.DataFrame:
    """user_id and events, one row a user, in stored order."""
    users = events["user_id"]
    starts = (users != users.shift(1)).fill_null(value=True).arg_true()
    lengths = np.diff(starts.to_numpy().astype(np.int64), append=events.height)
    return pl.DataFrame([users.gather(starts), pl.Series("events", lengths, dtype=pl.Int64)])


def tied_users(events: pl.DataFrame) -> pl.Series:
    """Users with events at the same instant."""
    users, times = events["user_id"], events["timestamp"]
    tied = ((users == users.shift(1)) & (times == times.shift(1))).fill_null(value=False)
    return users.filter(tied).unique()


def _at(events: pl.DataFrame, column: str, row: int, expected: object, found: object) -> Difference:
    return {
        "user_id": events["user_id"][row],
        "row_id": events["row_id"][row],
        "column": column,
        "expected": expected,
        "found": found,
    }

"""What must hold for every row of `features`, computed by other means than the feature code.

Each function looks at a block of rows and returns the first that differ.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from pipeline.checks.blocks import Runs, Scratch

FIRST = 5
ROUNDING = 2.0**-23  # of a sum of float32 gaps, relative to the sum; half of it would do
Difference = dict[str, Any]


def moved_rows(events: pl.DataFrame, features: pl.DataFrame, names: Sequence[str]) -> list[Difference]:
    """Identity and kept columns are those of the event at the same position: no row lost, doubled, moved or swapped."""
    return [
        difference(events, name, row, events[name][row], features[name][row])
        for name in names
        for row in events[name].ne_missing(features[name]).arg_true()[:1]
    ]


def wrong_one_hots(events: pl.DataFrame, features: pl.DataFrame, action_names: Sequence[str]) -> list[Difference]:
    """Every action column is 1 exactly where the event has that action, and 0 elsewhere."""
    return [
        difference(events, f"action_{name}", row, int(events["action"][row] == name), features[f"action_{name}"][row])
        for name in action_names
        for row in (
            features[f"action_{name}"].ne_missing((events["action"] == name).fill_null(value=False).cast(pl.UInt8))
        ).arg_true()[:1]
    ]


def codes_of_one_hots(features: pl.DataFrame, action_names: Sequence[str]) -> np.ndarray | None:
    """Which action each row has, uint8 or uint16 [rows]; None unless exactly one column of every row is 1, the others 0."""
    dtype = np.uint8 if len(action_names) <= np.iinfo(np.uint8).max else np.uint16
    codes = np.zeros(features.height, dtype=dtype)
    hot = np.zeros(features.height, dtype=dtype)
    for code, name in enumerate(action_names):
        column = features[f"action_{name}"]
        if column.null_count() or column.to_numpy().max(initial=0) > 1:
            return None
        values = column.to_numpy()
        hot += values
        codes += values * dtype(code)
    return codes if bool((hot == 1).all()) else None


def wrong_gaps(
    features: pl.DataFrame, time_us: np.ndarray, before_us: np.ndarray, scratch: Scratch
) -> list[Difference]:
    """time_diff of every row, from shifted timestamps: the same bits, so that 0 is not -0.

    Args:
        features: The rows.
        time_us: Their times, int64 us.
        before_us: Time of the same user's previous event, or the row's own time where there is none.
        scratch: For what is computed on the way.
    """
    gap_us = np.subtract(time_us, before_us, out=scratch.array(1, time_us))
    exact_s = np.divide(gap_us, 1e6, out=scratch.array(0, time_us, np.float64))
    gap_s = scratch.array(0, time_us, np.float32)
    gap_s[:] = exact_s
    found = features["time_diff"].to_numpy()
    wrong = np.flatnonzero(gap_s.view(np.uint32) != found.view(np.uint32))
    return [difference(features, "time_diff", row, float(gap_s[row]), float(found[row])) for row in wrong[:FIRST]]


def wrong_firsts(features: pl.DataFrame, found: np.ndarray, expected: np.ndarray) -> list[Difference]:
    """is_first is true in exactly the rows in which it should be.

    Args:
        features: The rows.
        found: Where it is true, ascending.
        expected: The first rows of users without a past, ascending.
    """
    if np.array_equal(found, expected):
        return []
    wrong = np.setxor1d(found, expected)[:FIRST]
    return [difference(features, "is_first", row, row in expected, row in found) for row in wrong]


class Totals:
    """Per user, the gaps add up to the time from the previous (or first) event to the last, over all blocks."""

    def __init__(self) -> None:
        self.wrong: list[Difference] = []
        self._scratch = Scratch()
        self._open: tuple[Any, int, int, float] | None = None  # user, from us, to us, sum of gaps

    def add(self, runs: Runs, time_us: np.ndarray, before_us: np.ndarray, gap_s: np.ndarray) -> None:
        """Adds the next rows; see `wrong_gaps`."""
        exact_s = self._scratch.array(0, gap_s, np.float64)
        exact_s[:] = gap_s
        sum_R = np.add.reduceat(exact_s, runs.starts)
        from_R, to_R = before_us[runs.starts], time_us[runs.starts + runs.lengths - 1]
        if runs.goes_on:
            assert self._open is not None
            from_R[0] = self._open[1]
            sum_R[0] += self._open[3]
        else:
            self.finish()
        self._judge(runs.users[:-1], from_R[:-1], to_R[:-1], sum_R[:-1])
        self._open = (runs.users[-1], int(from_R[-1]), int(to_R[-1]), float(sum_R[-1]))

    def finish(self) -> None:
        """Judges the last user."""
        if self._open is not None:
            user, begin, end, total = self._open
            self._judge(pl.Series([user]), np.array([begin]), np.array([end]), np.array([total]))
            self._open = None

    def _judge(self, users: pl.Series, from_R: np.ndarray, to_R: np.ndarray, sum_R: np.ndarray) -> None:
        total_R = (to_R - from_R) / 1e6
        within = np.abs(sum_R - total_R) <= total_R * ROUNDING
        self.wrong += [
            {
                "user_id": users[int(run)],
                "row_id": None,
                "column": "time_diff",
                "expected": float(total_R[run]),
                "found": float(sum_R[run]),
            }
            for run in np.flatnonzero(~within)[:FIRST]
        ]


def difference(rows: pl.DataFrame, column: str, row: int, expected: object, found: object) -> Difference:
    """What a report says of one row."""
    row = int(row)
    return {
        "user_id": rows["user_id"][row],
        "row_id": rows["row_id"][row],
        "column": column,
        "expected": expected,
        "found": found,
    }

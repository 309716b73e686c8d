"""The pass over all rows of a day of `features`, as they lie on disk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from pipeline.checks.blocks import Runs, Scratch, places_in, times_us
from pipeline.checks.distributions import GAPS, count_gaps
from pipeline.checks.invariants import (
    FIRST,
    Difference,
    Totals,
    codes_of_one_hots,
    difference,
    wrong_firsts,
    wrong_gaps,
)
from pipeline.checks.reading import range_problems, type_problems
from pipeline.checks.reverse import ReverseLookUp
from pipeline.checks.sampled_rows import SampledRows
from pipeline.contracts import Column
from pipeline.store import ContentHash

ACTION_CODE = "|action"  # beside the columns of features, none of which has such a name
NEEDED = ("row_id", "user_id", "timestamp", "user_index", "item_index", "time_diff", "is_first")


@dataclass(frozen=True, slots=True)
class Past:
    """The opening of the day's users.

    Attributes:
        users: user_id, ascending.
        last_us: Time of the last event of each, int64.
    """

    users: pl.Series
    last_us: np.ndarray

    def of(self, users: pl.Series) -> tuple[np.ndarray, np.ndarray]:
        """Who has one, bool [U], and the time of the last event of each of those, int64."""
        seen, places = places_in(self.users, users)
        return seen, self.last_us[places[seen]]


class FeatureRows:
    """What a day's rows show, block by block, each looked at once.

    Attributes:
        content: The content hash.
        actions: The hash of the actions that the one-hots stand for.
        beside: The hash of what was read of `events` beside.
        one_hots: Whether every row has exactly one.
        problems: Nulls and values outside their range.
        wrong_times: Where time_diff or is_first differ from shifted timestamps.
        wrong_indices: Where an index is not that of its id.
        totals: Where a user's gaps do not add up.
        hot: The sum of each one-hot, int64 [actions].
        users: How many users there are.
        firsts: How many rows have is_first.
        gaps: Events by time_diff.

    Args:
        columns: The declared columns.
        action_names: The declared actions.
        past: The opening of the day's users.
        look_up: `user` and `item`: their indices in reverse.
        borders: First and last rows of the files, counted over all of them, ascending.
        sampled: Keeps the rows of sampled users.
    """

    def __init__(
        self,
        *,
        columns: Sequence[Column],
        action_names: Sequence[str],
        past: Past,
        look_up: Mapping[str, ReverseLookUp],
        borders: np.ndarray,
        sampled: SampledRows,
    ) -> None:
        self.content, self.actions, self.beside = ContentHash(), ContentHash(), ContentHash()
        self.one_hots = True
        self.problems: list[Any] = []
        self.wrong_times: list[Difference] = []
        self.wrong_indices: list[Difference] = []
        self.totals = Totals()
        self.hot = np.zeros(len(action_names), dtype=np.int64)
        self.users = self.firsts = self._rows = 0
        self.gaps = np.zeros(len(GAPS), dtype=np.int64)
        self._columns, self._action_names, self._scratch = columns, action_names, Scratch()
        self._past, self._look_up, self._borders, self._sampled = past, look_up, borders, sampled
        self._last: tuple[Any, int, int] | None = None  # user_id, time in us and user_index of the row before

    def add(self, frame: pl.DataFrame, beside: pl.DataFrame) -> None:
        """Looks at the next rows.

        Args:
            frame: The rows.
            beside: Columns of `events` in the same rows that only the loop needs.
        """
        if problems := type_problems(frame, self._columns):
            self.problems += problems
            return
        self._look_at_values(frame, beside)
        self._look_at_users(frame, beside)
        self._rows += frame.height

    def finish(self) -> None:
        """Says that there are no more rows."""
        self.totals.finish()
        self._sampled.finish()

    def _look_at_values(self, frame: pl.DataFrame, beside: pl.DataFrame) -> None:
        """What each column shows by itself."""
        self.content.update(frame)
        self.beside.update(beside)
        self.problems += range_problems(frame, self._columns)
        self.hot += [int(frame[f"action_{name}"].sum()) for name in self._action_names]

    def _look_at_users(self, frame: pl.DataFrame, beside: pl.DataFrame) -> None:
        """What the rows of a user show together."""
        codes = codes_of_one_hots(frame, self._action_names)
        if codes is None:  # it will be looked at beside the events
            self.one_hots = False
            codes = np.zeros(frame.height, dtype=np.uint8)
        if any(frame[name].null_count() for name in NEEDED):
            return  # which is among the problems
        self.actions.update_names("action", codes, self._action_names)
        time_us = times_us(frame)
        runs = Runs.of(frame["user_id"], before=None if self._last is None else self._last[0])
        new_users = runs.users[int(runs.goes_on) :]
        seen, last_us = self._past.of(new_users)
        before_us = self._times_before(time_us, runs, seen, last_us)
        self._look_at_times(frame, time_us, before_us, runs, runs.new[~seen])
        self._look_at_indices(frame, runs)
        self._sampled.add(
            frame.hstack([pl.Series(ACTION_CODE, codes), *beside.iter_columns()]),
            runs,
            self._marks(time_us, runs, new_seen=seen),
        )
        self.users += new_users.len()
        self._last = (runs.users[-1], int(time_us[-1]), int(frame["user_index"][-1]))

    def _times_before(self, time_us: np.ndarray, runs: Runs, seen: np.ndarray, last_us: np.ndarray) -> np.ndarray:
        """Time of the same user's previous event, int64 us; the row's own time where there is none."""
        before_us = self._scratch.array(0, time_us)
        before_us[1:] = time_us[:-1]
        if runs.goes_on:
            assert self._last is not None
            before_us[0] = self._last[1]
        before_us[runs.new] = time_us[runs.new]
        before_us[runs.new[seen]] = last_us
        return before_us

    def _look_at_times(
        self, frame: pl.DataFrame, time_us: np.ndarray, before_us: np.ndarray, runs: Runs, first_rows: np.ndarray
    ) -> None:
        found_first_rows = np.flatnonzero(frame["is_first"].to_numpy())
        self.wrong_times += wrong_gaps(frame, time_us, before_us, self._scratch) + wrong_firsts(
            frame, found_first_rows, first_rows
        )
        gap_s = frame["time_diff"].to_numpy()
        self.totals.add(runs, time_us, before_us, gap_s)
        self.firsts += len(found_first_rows)
        self.gaps += count_gaps(gap_s, len(found_first_rows))

    def _look_at_indices(self, frame: pl.DataFrame, runs: Runs) -> None:
        """Of users once a run, where user_index is the same in all of its rows; of items in every row."""
        index_E = frame["user_index"].to_numpy()
        changed = index_E[1:] != index_E[:-1]
        changed[runs.starts[1:] - 1] = False
        same = not changed.any() and not (runs.goes_on and self._last is not None and index_E[0] != self._last[2])
        first_rows = pl.Series(runs.new)
        names = ("row_id", "user_id", "user_index")
        judged = pl.DataFrame([frame[name][first_rows] for name in names]) if same else frame
        self._note_indices(judged, "user", self._look_up["user"].wrong(judged["user_id"], judged["user_index"]))
        self._note_indices(frame, "item", self._look_up["item"].wrong(frame["item_id"], frame["item_index"]))

    def _note_indices(self, rows: pl.DataFrame, name: str, wrong: np.ndarray) -> None:
        ids, found = rows[f"{name}_id"], rows[f"{name}_index"]
        self.wrong_indices += [
            difference(rows, f"{name}_index", row, f"the index of {ids[int(row)]!r}", found[int(row)])
            for row in wrong[:FIRST]
        ]

    def _marks(self, time_us: np.ndarray, runs: Runs, *, new_seen: np.ndarray) -> dict[str, np.ndarray]:
        """Kind -> whether a user is of it, bool [R]; what a user is was told in the block in which they begin."""
        marks = {kind: np.zeros(len(runs.starts), dtype=bool) for kind in ("at_chunk_borders", "tied")}
        same = time_us[1:] == time_us[:-1]
        same[runs.starts[1:] - 1] = False
        marks["tied"][runs.of_rows(np.flatnonzero(same) + 1)] = True
        if runs.goes_on and self._last is not None and time_us[0] == self._last[1]:
            marks["tied"][0] = True
        first, behind = np.searchsorted(self._borders, [self._rows, self._rows + runs.rows])
        marks["at_chunk_borders"][runs.of_rows(self._borders[first:behind] - self._rows)] = True
        begun = np.zeros(int(runs.goes_on), dtype=bool)
        return {**marks, "seen_before": np.append(begun, new_seen), "seen_first": np.append(begun, ~new_seen)}

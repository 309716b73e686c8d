"""The pass over all rows of a day of `events`, as they lie on disk."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import polars as pl

from pipeline.checks.blocks import run_starts, times_us
from pipeline.checks.distributions import HOURS, count_hours
from pipeline.checks.picked import PickedRows
from pipeline.checks.reading import range_problems, type_problems
from pipeline.checks.row_ids import RowIds
from pipeline.contracts import Column
from pipeline.store import ContentHash

DAY_US = 86_400_000_000
KEYS = ("row_id", "user_id", "timestamp", "action")


class EventRows:
    """What a day's rows show, block by block, each looked at once.

    Attributes:
        content: The content hash.
        problems: Nulls and values outside their range, the first of each block and column.
        unordered: Rows that do not come after the row before them.
        outside: Rows whose time lies outside the day.
        by_action: Events of each declared action, int64 [actions].
        hours: Events in each hour of the day, int64 [24].
        rows: How many rows there are.
        row_ids: Those that occurred.
        picked: The rows that are to be looked at one by one.

    Args:
        day: The day.
        columns: Its declared columns.
        action_names: The declared actions.
        rows_in: How many rows the day's input has: row_ids lie below.
        picked: Picks rows.
    """

    def __init__(
        self,
        day: date,
        *,
        columns: Sequence[Column],
        action_names: Sequence[str],
        rows_in: int,
        picked: PickedRows | None,
    ) -> None:
        self.content = ContentHash()
        self.problems: list[Any] = []
        self.unordered = self.outside = self.rows = 0
        self.by_action = np.zeros(len(action_names), dtype=np.int64)
        self.hours = np.zeros(HOURS, dtype=np.int64)
        self.picked, self._columns = picked, columns
        self._start_us = int(datetime.combine(day, datetime.min.time(), tzinfo=UTC).timestamp()) * 1_000_000
        self.row_ids = RowIds(rows_in)
        self._last: tuple[Any, int, int] | None = None

    def add(self, frame: pl.DataFrame) -> None:
        """Looks at the next rows."""
        self.rows += frame.height
        if problems := type_problems(frame, self._columns):
            self.problems += problems
            return
        self.content.update(frame)
        self.problems += range_problems(frame, self._columns)
        if any(frame[name].null_count() for name in KEYS):
            return  # which is among the problems
        time_us = times_us(frame)
        starts = run_starts(frame["user_id"])
        self._look_at_order(frame["user_id"], time_us, frame["row_id"].to_numpy(), starts)
        self._look_at_times(time_us)
        self.row_ids.mark(frame["row_id"])
        codes = frame["action"].to_physical().to_numpy()
        self.by_action += [np.count_nonzero(codes == code) for code in range(len(self.by_action))]
        if self.picked is not None:
            self.picked.add(frame, starts)

    def _look_at_order(self, users: pl.Series, time_us: np.ndarray, row_id: np.ndarray, starts: np.ndarray) -> None:
        first, last = ((users[n], int(time_us[n]), int(row_id[n])) for n in (0, -1))
        if self._last is not None:
            self.unordered += self._last >= first
        self._last = last
        of_runs = users[pl.Series(starts)]
        self.unordered += int((of_runs[1:] < of_runs[:-1]).sum())
        not_later = time_us[1:] <= time_us[:-1]
        not_later[starts[1:] - 1] = False  # the first row of a user
        doubtful = np.flatnonzero(not_later)
        tied = (time_us[doubtful] == time_us[doubtful + 1]) & (row_id[doubtful] < row_id[doubtful + 1])
        self.unordered += len(doubtful) - int(tied.sum())

    def _look_at_times(self, time_us: np.ndarray) -> None:
        since_us = time_us - self._start_us
        if since_us.min() < 0 or since_us.max() >= DAY_US:
            within = (since_us >= 0) & (since_us < DAY_US)
            self.outside += len(since_us) - int(within.sum())
            since_us = since_us[within]
        self.hours += count_hours(since_us)

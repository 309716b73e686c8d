"""The rows of sampled users, kept while the day streams past."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from pipeline.checks.blocks import Runs
from pipeline.checks.sampling import Draw

HELD_ROWS = 1 << 20  # of all users together
ALONE_ROWS = 1 << 12  # of a user; those of others are copied together


@dataclass
class _Unfinished:
    """The last user of a block, who may go on in the next one."""

    user: Any
    events: int = 0
    marks: dict[str, bool] = field(default_factory=dict)
    rows: list[pl.DataFrame] = field(default_factory=list)


class SampledRows:
    """Offers whole users to a draw, and keeps the rows of those that are in the sample, unless these are very many.

    Args:
        draw: Says who is.
    """

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._rows: dict[Any, list[pl.DataFrame] | None] = {}
        self._unfinished: _Unfinished | None = None

    def add(self, frame: pl.DataFrame, runs: Runs, marks: Mapping[str, np.ndarray]) -> None:
        """Looks at the next rows.

        Args:
            frame: The rows.
            runs: Where its users begin.
            marks: Kind -> whether a user is of it, as far as these rows tell, bool [R].
        """
        last = len(runs.starts) - 1
        if runs.goes_on:
            self._go_on(frame, runs, marks, 0)
            if last == 0:
                return
        self._finish()
        first = int(runs.goes_on)
        whole = slice(first, last)
        taken = self._draw.offer(
            runs.users[first:last], runs.lengths[whole], {kind: mark[whole] for kind, mark in marks.items()}
        )
        if taken:
            numbers = np.array(taken) + first
            alone = runs.lengths[numbers] > ALONE_ROWS  # else those taken with a giant would keep its rows in memory
            for together in (*numbers[alone][:, None], numbers[~alone]):
                self._keep(frame, runs, together)
            self._forget()
        self._unfinished = _Unfinished(runs.users[last])
        self._go_on(frame, runs, marks, last)

    def finish(self) -> None:
        """Says that there are no more rows."""
        self._finish()

    def of_users(self, users: pl.Series) -> Iterator[tuple[Any, list[pl.DataFrame] | None]]:
        """Each of the users of the sample with their rows, in pieces; None for those that are not held."""
        for user in users:
            yield user, self._rows[user]

    def _keep(self, frame: pl.DataFrame, runs: Runs, numbers: np.ndarray) -> None:
        """Keeps the rows of some users: one copy, since each takes about as long for few rows as for many."""
        lengths = runs.lengths[numbers]
        stops = np.cumsum(lengths)
        rows = np.arange(lengths.sum()) + np.repeat(runs.starts[numbers] - stops + lengths, lengths)
        kept = frame[rows]
        for number, stop, length in zip(numbers.tolist(), stops.tolist(), lengths.tolist(), strict=True):
            self._rows[runs.users[number]] = [kept.slice(stop - length, length)]

    def _go_on(self, frame: pl.DataFrame, runs: Runs, marks: Mapping[str, np.ndarray], number: int) -> None:
        assert self._unfinished is not None
        self._unfinished.events += int(runs.lengths[number])
        for kind, mark in marks.items():
            self._unfinished.marks[kind] = self._unfinished.marks.get(kind, False) or bool(mark[number])
        self._unfinished.rows.append(runs.rows_of(frame, number))
        if self._unfinished.events > HELD_ROWS:
            self._unfinished.rows.clear()

    def _finish(self) -> None:
        if self._unfinished is None:
            return
        one, self._unfinished = self._unfinished, None
        marks = {kind: np.array([mark]) for kind, mark in one.marks.items()}
        users = pl.Series([one.user])
        if self._draw.offer(users, np.array([one.events], dtype=np.int64), marks):
            self._rows[one.user] = None if one.events > HELD_ROWS else [_copy(rows) for rows in one.rows]
            self._forget()

    def _forget(self) -> None:
        """Lets go of users whose place another one took, and of the rows of the largest where all are too many."""
        chosen = self._draw.chosen()
        self._rows = {user: rows for user, rows in self._rows.items() if user in chosen}
        held = {user: sum(piece.height for piece in rows) for user, rows in self._rows.items() if rows is not None}
        while sum(held.values()) > HELD_ROWS:
            largest = max(held, key=held.__getitem__)
            self._rows[largest] = None
            del held[largest]


def _copy(rows: pl.DataFrame) -> pl.DataFrame:
    """The same rows, which do not keep the whole block in memory."""
    return rows[np.arange(rows.height)]

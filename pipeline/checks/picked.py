"""Rows of `events` that a proof wants to see one by one, taken out of the blocks while they stream past."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from pipeline.checks.blocks import times_us

LOW_BITS = 16


class PickedRows:
    """The rows whose value in one column is among some.

    Args:
        column: `row_id`, `user_id` or `timestamp`.
        values: The values; times as int64 us.
    """

    def __init__(self, column: str, values: pl.Series) -> None:
        self._column, self._values = column, values.unique()
        self._kept: list[pl.DataFrame] = []
        self._low_bits = np.zeros(1 << LOW_BITS, dtype=bool)
        if column != "user_id":
            self._low_bits[values.to_numpy().astype(np.uint16)] = True

    def add(self, frame: pl.DataFrame, starts: np.ndarray) -> None:
        """Looks at the next rows, of which `starts` are those where another user begins."""
        if self._column == "user_id":
            users = frame["user_id"][pl.Series(starts)]
            ends = np.append(starts[1:], frame.height)
            for run in self._wanted_runs(users):
                self._keep(frame[int(starts[run]) : int(ends[run])])
            return
        # A value is rarely wanted: most are told apart by their last 16 bits, which takes a look-up in 64 KiB.
        values = times_us(frame) if self._column == "timestamp" else frame[self._column].to_numpy()
        perhaps = np.flatnonzero(self._low_bits[values.astype(np.uint16)])
        if len(perhaps):
            rows = frame[perhaps]
            self._keep(rows.filter(rows[self._column].to_physical().is_in(self._values.implode())))

    def _wanted_runs(self, users: pl.Series) -> np.ndarray:
        if users.dtype == pl.Int64:
            return np.flatnonzero(np.isin(users.to_numpy(), self._values.to_numpy()))
        return users.is_in(self._values.implode()).arg_true().to_numpy()

    def rows(self, schema: Mapping[str, pl.DataType]) -> pl.LazyFrame:
        """What was found, in these columns."""
        empty = pl.DataFrame(schema=schema)
        return pl.concat([empty, *(rows.cast(empty.schema) for rows in self._kept)]).lazy()  # type: ignore[arg-type]

    def _keep(self, rows: pl.DataFrame) -> None:
        if rows.height:
            self._kept.append(rows[np.arange(rows.height)])  # a copy lets go of the block

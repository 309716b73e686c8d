"""Rows of many days, taken in the order of the log and given back day by day, within a memory budget."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from pipeline.events.duplicates import FINGERPRINT
from pipeline.store import writing

DAY = "_day"
TEXT_BYTES = 16  # of a text in memory, beside its letters
VALUE_BYTES = 8  # of all else, at most


def size_of(frame: pl.DataFrame) -> int:
    """About how many bytes rows take in memory.

    Depends on nothing but their values, whatever they were cut out of, and whichever of them have a fingerprint.
    """
    columns = {name: dtype for name, dtype in frame.schema.items() if name not in FINGERPRINT}
    texts = [frame[name].str.len_bytes().sum() for name, dtype in columns.items() if dtype == pl.String]
    fixed = TEXT_BYTES * len(texts) + VALUE_BYTES * (len(columns) - len(texts) + len(FINGERPRINT))
    return frame.height * fixed + sum(map(int, texts))


class DayParts:
    """Takes blocks of rows and gives them back by day.

    What fits into the budget stays in memory. Else it is written to parts of about that size, each with the rows of all
    of its days, one day after the other: how many files there are does not depend on the number of days.

    Args:
        budget_bytes: How much may be held before it is written.
        directory: For the parts; whoever made it removes it.
        arrange: Brings the rows of one day that stand in one part into another order.
    """

    def __init__(
        self,
        *,
        budget_bytes: int,
        directory: Path,
        arrange: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame,
    ) -> None:
        self._budget_bytes, self._directory, self._arrange = budget_bytes, directory, arrange
        self._held: list[pl.DataFrame] = []
        self._held_bytes = 0
        self._parts: list[_Part] = []
        self._in_memory: _Part | None = None
        self.spilled_bytes = 0

    def add(self, frame: pl.DataFrame, day_R: np.ndarray) -> None:
        """Adds the next rows.

        Args:
            frame: R rows.
            day_R: int32, the day of each row.
        """
        if frame.is_empty():
            return
        self._held.append(frame.with_columns(pl.Series(DAY, day_R, dtype=pl.Int32)))
        self._held_bytes += size_of(frame)
        if self._held_bytes > self._budget_bytes:
            self._spill()

    def of(self, day: int) -> list[pl.DataFrame]:
        """The rows of a day, part by part in the order in which they came. After the first call nothing can be added."""
        if self._held and not self._parts:
            self._in_memory = self._by_day()
        elif self._held:
            self._spill()
        if self._in_memory is not None:
            found = self._in_memory.of(day)
            return [] if found is None else [self._arrange(found)]
        return [rows for part in self._parts if (rows := part.of(day)) is not None]

    def forget(self, day: int) -> None:
        """Removes the parts that hold rows of this day and of earlier ones only: these are not asked for again."""
        for part in self._parts:
            if isinstance(part.rows, Path) and part.days[-1] <= day:
                part.rows.unlink(missing_ok=True)
        self._parts = [part for part in self._parts if part.days[-1] > day]

    def _by_day(self) -> "_Part":
        frame = pl.concat(self._held, how="diagonal").rechunk()
        self._held, self._held_bytes = [], 0
        if not frame[DAY].is_sorted():
            frame = frame[pl.Series(np.argsort(frame[DAY].to_numpy(), kind="stable"))]
        days, starts = np.unique(frame[DAY].to_numpy(), return_index=True)
        return _Part(frame.drop(DAY), days, np.append(starts, frame.height))

    def _spill(self) -> None:
        part = self._by_day()
        assert isinstance(part.rows, pl.DataFrame)
        if len(part.days) > 1:
            rows = pl.concat([self._arrange(slice_) for day in part.days if (slice_ := part.of(day)) is not None])
        else:
            rows = self._arrange(part.rows)
        path = self._directory / f"part-{len(self._parts):05d}.arrow"
        with writing("rows that do not fit into [compute] memory", self._directory):
            self._directory.mkdir(parents=True, exist_ok=True)
            rows.write_ipc(path, compression="uncompressed", compat_level=pl.CompatLevel.oldest())
        self._parts.append(_Part(path, part.days, part.starts))
        self.spilled_bytes += size_of(rows)


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of D days, one day after the other: `days` [D] ascending, `starts` [D + 1], where each day's rows begin."""

    rows: pl.DataFrame | Path
    days: np.ndarray
    starts: np.ndarray

    def of(self, day: int) -> pl.DataFrame | None:
        place = int(np.searchsorted(self.days, day))
        if place == len(self.days) or self.days[place] != day:
            return None
        start, stop = int(self.starts[place]), int(self.starts[place + 1])
        if isinstance(self.rows, pl.DataFrame):
            return self.rows.slice(start, stop - start)
        # Pages are read when they are touched, and given back with the day that touched them.
        with pa.memory_map(str(self.rows)) as source:
            table = pa.ipc.open_file(source).read_all()
        # Cut before it becomes a frame: polars makes views of all texts of what it is given.
        frame = pl.from_arrow(table.slice(start, stop - start), rechunk=False)
        assert isinstance(frame, pl.DataFrame)
        return frame

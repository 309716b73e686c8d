"""Rows of many days, taken in the order of the log and given back day by day, within a memory budget."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from pipeline.store import writing

DAY = "_day"
RANGES = 256  # at most, into which the rows of a day are cut when they do not fit into memory
PART_BYTES = 32 * 2**20  # as much is brought into order at once: few enough to stay near the processor
BATCH_ROWS = 8_192  # at least, of what is read of a part at once
TEXT_BYTES = 16  # of a text in memory, beside its letters
VALUE_BYTES = 8  # of all else, at most
Cut = Callable[[pl.DataFrame], np.ndarray]


def size_of(frame: pl.DataFrame) -> int:
    """About how many bytes rows take in memory; depends on nothing but their values, whatever they were cut out of."""
    texts = [frame[name].str.len_bytes().sum() for name, dtype in frame.schema.items() if dtype == pl.String]
    return frame.height * (TEXT_BYTES * len(texts) + VALUE_BYTES * (frame.width - len(texts))) + sum(map(int, texts))


def joined(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """The frames, one behind the other in one piece; only rows that need a fingerprint have one."""
    alike = all(frame.width == frames[0].width for frame in frames)
    return pl.concat(frames, how="vertical" if alike else "diagonal").rechunk()


class DayParts:
    """Takes blocks of rows and gives them back by day.

    What fits into the budget stays in memory. Else it is written in parts, each with the rows of all of its days, one day
    after the other: how many files there are does not depend on the number of days.

    Args:
        budget_bytes: How much may be held before it is written.
        directory: For the parts; whoever made it removes it.
        cut: Cuts rows into ranges when they have to be written, uint8 [rows], so that a range can be read by itself.
    """

    def __init__(self, *, budget_bytes: int, directory: Path, cut: Cut | None = None) -> None:
        self._budget_bytes, self._directory, self._cut = budget_bytes, directory, cut
        self.part_bytes = min(budget_bytes, PART_BYTES)
        self._held: list[pl.DataFrame] = []
        self._held_bytes = 0
        self._parts: list[_Part] = []
        self._in_memory: _Part | None = None
        self.spilled_bytes = 0
        self._spilled_rows = 0

    @property
    def rows_of_a_part(self) -> int:
        """About how many rows a part holds; where all are in memory, all of them."""
        return max(1, self.part_bytes * self._spilled_rows // self.spilled_bytes) if self._parts else sys.maxsize

    def expect(self, size: int) -> None:
        """Says how many bytes will come, about: what cannot fit is written from the first rows on."""
        if size > self._budget_bytes:
            self._budget_bytes = self.part_bytes

    def add(self, frame: pl.DataFrame, day_R: np.ndarray) -> None:
        """Adds the next rows.

        Args:
            frame: R rows.
            day_R: int32, the day of each row.
        """
        if frame.is_empty():
            return
        self._held.append(frame.hstack([pl.Series(DAY, day_R, dtype=pl.Int32)]))
        self._held_bytes += size_of(frame)
        if self._held_bytes > self._budget_bytes:
            self._spill()

    def of(self, day: int, first: int = 0, behind: int = RANGES) -> Iterator[pl.DataFrame]:
        """The rows of some ranges of a day, part by part in the order in which they came.

        After the first call nothing can be added.
        """
        self._end()
        for part in self._parts if self._in_memory is None else [self._in_memory]:
            rows = part.between(day * RANGES + first, day * RANGES + behind)
            if rows is not None:
                yield rows

    def rows_of(self, day: int) -> np.ndarray:
        """How many rows each range of a day has, int64 [RANGES]; nothing is cut that stayed in memory."""
        self._end()
        rows = np.zeros(RANGES, dtype=np.int64)
        for part in self._parts if self._in_memory is None else [self._in_memory]:
            of_day = part.keys // RANGES == day
            rows[part.keys[of_day] % RANGES] += np.diff(part.starts)[of_day]
        return rows

    def forget(self, day: int) -> None:
        """Removes the parts that hold rows of this day and of earlier ones only: these are not asked for again."""
        for part in self._parts:
            if isinstance(part.rows, Path) and part.keys[-1] // RANGES <= day:
                part.rows.unlink(missing_ok=True)
        self._parts = [part for part in self._parts if part.keys[-1] // RANGES > day]

    def _end(self) -> None:
        if self._held and self._parts:
            self._spill()
        elif self._held:
            held, self._held = self._held, []
            self._in_memory = _Part.of_rows(joined(held), None)

    def _spill(self) -> None:
        held, self._held, self._held_bytes = self._held[::-1], [], 0
        self._budget_bytes = self.part_bytes
        while held:
            some, size = [held.pop()], 0
            while held and (size := size + size_of(some[-1])) < self.part_bytes:
                some.append(held.pop())
            self._write(joined(some))

    def _write(self, frame: pl.DataFrame) -> None:
        part = _Part.of_rows(frame, self._cut)
        assert isinstance(part.rows, pl.DataFrame)
        path = self._directory / f"part-{len(self._parts):05d}.arrow"
        with writing("rows that do not fit into [compute] memory", self._directory):
            self._directory.mkdir(parents=True, exist_ok=True)
            batches = _write_batches(path, part.rows, part.starts)
        self._parts.append(_Part(path, part.keys, part.starts, batches))
        self.spilled_bytes += size_of(part.rows)
        self._spilled_rows += part.rows.height


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of K ranges of days, one after the other, each in the order in which its rows came.

    Attributes:
        rows: The rows, or the Arrow file that holds them.
        keys: int64 [K], ascending: day * `RANGES` + range.
        starts: int64 [K + 1], where the rows of each begin.
        batches: int64 [B + 1], where the record batches of the file begin.
    """

    rows: pl.DataFrame | Path
    keys: np.ndarray
    starts: np.ndarray
    batches: np.ndarray | None = None

    @staticmethod
    def of_rows(frame: pl.DataFrame, cut: Cut | None) -> "_Part":
        key_R = frame[DAY].cast(pl.Int64).to_numpy() * RANGES
        if cut is not None:
            key_R = key_R + cut(frame)
        rows = pl.DataFrame([column for column in frame.get_columns() if column.name != DAY])
        lowest, highest = int(key_R.min()), int(key_R.max())
        if lowest == highest:
            return _Part(rows, np.array([lowest]), np.array([0, frame.height]))
        if highest - lowest < 2**16:
            found, place_R = np.arange(lowest, highest + 1), (key_R - lowest).astype(np.uint16)
        else:  # some days far apart
            found, place_R = np.unique(key_R, return_inverse=True)
        size = np.bincount(place_R, minlength=len(found))
        if cut is not None or not frame[DAY].is_sorted():
            rows = rows[pl.Series(np.argsort(place_R, kind="stable"))]  # sixteen bits are sorted in one pass
        return _Part(rows, found[size > 0], np.append(0, np.cumsum(size[size > 0])))

    def between(self, low: int, high: int) -> pl.DataFrame | None:
        """The rows with low <= key < high; None when there are none."""
        start, stop = (int(self.starts[np.searchsorted(self.keys, key)]) for key in (low, high))
        if start == stop:
            return None
        if isinstance(self.rows, pl.DataFrame):
            return self.rows.slice(start, stop - start)
        assert self.batches is not None
        first = int(np.searchsorted(self.batches, start, side="right")) - 1
        behind = int(np.searchsorted(self.batches, stop, side="left"))
        with pa.OSFile(str(self.rows)) as source:  # a mapped file would count as memory in use
            file = pa.ipc.open_file(source)
            table = pa.Table.from_batches([file.get_batch(number) for number in range(first, behind)])
        # Cut before it becomes a frame: polars makes views of all texts of what it is given.
        frame = pl.from_arrow(table.slice(start - int(self.batches[first]), stop - start), rechunk=False)
        assert isinstance(frame, pl.DataFrame)
        return frame


def _write_batches(path: Path, rows: pl.DataFrame, starts: np.ndarray) -> np.ndarray:
    """Writes rows in record batches that begin where ranges do; returns where they begin, int64 [B + 1]."""
    begins = [0]
    for start in starts[1:-1]:
        if start - begins[-1] >= BATCH_ROWS:
            begins.append(int(start))
    begins.append(rows.height)
    table = rows.to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as file:
        for start, stop in pairwise(begins):
            file.write_table(table.slice(start, stop - start))
    return np.array(begins)

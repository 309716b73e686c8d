"""Rows of many days, taken in the order of the log and given back day by day, within a memory budget."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from pipeline.contracts import PipelineError
from pipeline.store import writing

DAY = "_day"
RANGES = 256  # at most, into which the rows of a day are cut when they do not fit into memory
PART_BYTES = 16 * 2**20  # as much is brought into order at once: few enough to stay near the processor
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

    Rows are kept in parts, each with the rows of all of its days, one day after the other: how many files there are does not
    depend on the number of days. What does not fit into the budget is written.

    Args:
        budget_bytes: How much may be held before parts are written.
        directory: For the parts; whoever made it removes it.
        cut: Cuts the rows of a part into ranges, uint8 [rows], so that a range can be read by itself.
    """

    def __init__(self, *, budget_bytes: int, directory: Path, cut: Cut | None = None) -> None:
        self._budget_bytes, self._directory, self._cut = budget_bytes, directory, cut
        self.part_bytes = min(budget_bytes, PART_BYTES)
        self._waiting: list[pl.DataFrame] = []  # too few for a part
        self._waiting_bytes = 0
        self._parts: list[_Part] = []
        self._bytes, self._rows = 0, 0  # of all parts
        self.spilled_bytes = 0

    @property
    def rows_of_a_part(self) -> int:
        """About how many rows a part holds; where all of them are one, all of them."""
        return max(1, self.part_bytes * self._rows // self._bytes) if self._bytes > self.part_bytes else sys.maxsize

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
        self._waiting.append(frame.hstack([pl.Series(DAY, day_R, dtype=pl.Int32)]))
        self._waiting_bytes += size_of(frame)
        if self._waiting_bytes > self.part_bytes:
            self._close_part(self._cut)

    def of(self, day: int, first: int = 0, behind: int = RANGES) -> Iterator[pl.DataFrame]:
        """The rows of some ranges of a day in the order in which they came, in pieces.

        After the first call nothing can be added.
        """
        return map(widened, self.as_kept(day, first, behind))

    def as_kept(self, day: int, first: int, behind: int) -> Iterator[pl.DataFrame]:
        """The same, with integers as narrow as they wait; pieces may differ in that."""
        self._end()
        batches: list[pa.RecordBatch] = []
        height = 0
        for part in self._parts:
            rows = part.between(day * RANGES + first, day * RANGES + behind)
            other = isinstance(rows, pl.DataFrame) or (rows and batches and rows[0].schema != batches[0].schema)
            if batches and (other or height > self.rows_of_a_part):
                yield _frame(batches)
                batches, height = [], 0
            if isinstance(rows, pl.DataFrame):
                yield rows
            else:
                batches += rows
                height += sum(batch.num_rows for batch in rows)
        if batches:
            yield _frame(batches)

    def rows_of(self, day: int) -> np.ndarray:
        """How many rows each range of a day has, int64 [RANGES]; what is a single part is not cut."""
        self._end()
        rows = np.zeros(RANGES, dtype=np.int64)
        for part in self._parts:
            of_day = part.keys // RANGES == day
            rows[part.keys[of_day] % RANGES] += np.diff(part.starts)[of_day]
        return rows

    def forget(self, day: int) -> None:
        """Removes the parts that hold rows of this day and of earlier ones only: these are not asked for again."""
        for part in self._parts:
            if isinstance(part.rows, _Batches) and part.keys[-1] // RANGES <= day:
                part.rows.path.unlink(missing_ok=True)
        self._parts = [part for part in self._parts if part.keys[-1] // RANGES > day]

    def _end(self) -> None:
        if self._waiting:
            self._close_part(self._cut if self._parts else None)

    def _close_part(self, cut: Cut | None) -> None:
        part = _Part.of_rows(joined(self._waiting), cut)
        size, self._waiting, self._waiting_bytes = self._waiting_bytes, [], 0
        if self._bytes + size > self._budget_bytes:
            part = self._written(part)
            self.spilled_bytes += size
        self._parts.append(part)
        self._bytes += size
        self._rows += int(part.starts[-1])

    def _written(self, part: "_Part") -> "_Part":
        """The same part in a file."""
        assert isinstance(part.rows, pl.DataFrame)
        path = self._directory / f"part-{len(self._parts):05d}.batches"
        with writing("rows that do not fit into [compute] memory", self._directory):
            self._directory.mkdir(parents=True, exist_ok=True)
            return replace(part, rows=_Batches.write(part.rows, part.starts, path))


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of K ranges of days, one after the other, each in the order in which its rows came.

    Attributes:
        rows: The rows, or the file that holds them.
        keys: int64 [K], ascending: day * `RANGES` + range.
        starts: int64 [K + 1], where the rows of each begin.
    """

    rows: "pl.DataFrame | _Batches"
    keys: np.ndarray
    starts: np.ndarray

    @staticmethod
    def of_rows(frame: pl.DataFrame, cut: Cut | None) -> "_Part":
        rows, day = _narrowed(frame.drop(DAY)), frame[DAY]
        first, last = int(day.min()), int(day.max())  # type: ignore[arg-type]
        if first == last and cut is None:
            return _Part(rows, np.array([first * RANGES]), np.array([0, frame.height]))
        if first == last:
            assert cut is not None
            place_R, found = cut(frame), np.arange(first * RANGES, (first + 1) * RANGES)
        else:
            key_R = day.cast(pl.Int64).to_numpy() * RANGES + (0 if cut is None else cut(frame))
            found, place_R = _places(key_R)
        size = np.bincount(place_R, minlength=len(found))
        if cut is not None or not day.is_sorted():
            order = np.argsort(place_R, kind="stable")  # at most sixteen bits are sorted in one pass
            rows = rows[pl.Series(order.astype(np.uint32))]
        return _Part(rows, found[size > 0], np.append(0, np.cumsum(size[size > 0])))

    def between(self, low: int, high: int) -> "pl.DataFrame | list[pa.RecordBatch]":
        """The rows with low <= key < high."""
        start, stop = (int(self.starts[np.searchsorted(self.keys, key)]) for key in (low, high))
        if isinstance(self.rows, pl.DataFrame):
            return self.rows.slice(start, stop - start) if start < stop else []
        return self.rows.between(start, stop) if start < stop else []


@dataclass(frozen=True, slots=True)
class _Batches:
    """A file of record batches, one behind the other.

    Attributes:
        path: The file.
        schema: Of all batches.
        starts: int64 [B + 1], the first row of each.
        offsets: int64 [B + 1], where each begins in the file.
    """

    path: Path
    schema: pa.Schema
    starts: np.ndarray
    offsets: np.ndarray

    @staticmethod
    def write(rows: pl.DataFrame, range_starts: np.ndarray, path: Path) -> "_Batches":
        """Writes rows; batches begin where ranges do.

        Raises:
            OSError: The disk is full, or the file cannot be written.
        """
        starts, offsets = [0], [0]
        for start in range_starts[1:-1]:
            if start - starts[-1] >= BATCH_ROWS:
                starts.append(int(start))
        starts.append(rows.height)
        (batch,) = rows.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks().to_batches()
        with path.open("wb", buffering=0) as file:
            for start, stop in pairwise(starts):
                file.write(message := batch.slice(start, stop - start).serialize())
                offsets.append(offsets[-1] + message.size)
        return _Batches(path, batch.schema, np.array(starts), np.array(offsets))

    def between(self, start: int, stop: int) -> list[pa.RecordBatch]:
        """The rows start <= row < stop, read at once; a mapped file would count as memory in use."""
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        behind = int(np.searchsorted(self.starts, stop, side="left"))
        found: list[pa.RecordBatch] = []
        size = int(self.offsets[behind] - self.offsets[first])
        try:
            with self.path.open("rb", buffering=0) as file:
                file.seek(int(self.offsets[first]))
                messages = pa.py_buffer(file.read(size))
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from None
        if messages.size != size:
            raise self._unreadable(f"found {messages.size:,} bytes of {size:,}")
        for number in range(first, behind):
            offset, size = self.offsets[number] - self.offsets[first], self.offsets[number + 1] - self.offsets[number]
            batch = pa.ipc.read_record_batch(messages.slice(int(offset), int(size)), self.schema)
            begin = max(start - int(self.starts[number]), 0)
            end = min(stop, int(self.starts[number + 1])) - int(self.starts[number])
            found.append(batch.slice(begin, end - begin))
        return found

    def _unreadable(self, why: str) -> PipelineError:
        return PipelineError(
            f"{self.path}: rows that did not fit into [compute] memory cannot be read back ({why}); check that disk and run "
            "the day again"
        )


def _narrowed(frame: pl.DataFrame) -> pl.DataFrame:
    """The same rows with Int64 columns as UInt32 where their values fit: half as much to move, to write and to read back."""
    return pl.DataFrame([column.cast(pl.UInt32) if _fits_half(column) else column for column in frame.get_columns()])


def _fits_half(column: pl.Series) -> bool:
    if column.dtype != pl.Int64 or column.null_count():
        return False
    return int(column.to_numpy().view(np.uint64).max(initial=0)) < 2**32  # as unsigned, negative ones are large


def widened(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows as they came, with Int64 for what was narrowed."""
    return pl.DataFrame(
        [column.cast(pl.Int64) if column.dtype == pl.UInt32 else column for column in frame.get_columns()]
    )


def _frame(batches: list[pa.RecordBatch]) -> pl.DataFrame:
    frame = pl.from_arrow(pa.Table.from_batches(batches), rechunk=False)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _places(key_R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The keys that may occur, ascending, and which of them each row has."""
    lowest, highest = int(key_R.min()), int(key_R.max())
    if highest - lowest < 2**16:
        return np.arange(lowest, highest + 1), (key_R - lowest).astype(np.uint16)
    return np.unique(key_R, return_inverse=True)  # some days far apart

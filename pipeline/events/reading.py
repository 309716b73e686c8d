"""The rows of some days out of the raw files: which day a row belongs to, and its number in that day."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.events.convert import RANK, ConvertedBlock, convert_block
from pipeline.events.duplicates import number_columns
from pipeline.events.origin import check_origins, source_of
from pipeline.events.times.unit_doctor import UnitDoctor, tomorrow_us
from pipeline.sources import RawBlock, RawFile, files_of_day, read_blocks, usual_block_bytes
from pipeline.threads import ahead

EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class DayRows:
    """The rows of one block that belong to the days that are read. R rows, in file order.

    Attributes:
        file: The raw file.
        block: The block that holds them.
        converted: The same block, typed.
        positions: int64 [R], where they stand in the block.
        day: int32 [R], the number of the day that each belongs to.
        row_id: int64 [R], its number in that day.
        rank: uint8 [R], the reason of refusal, or `ACCEPTED`.
    """

    file: RawFile
    block: RawBlock
    converted: ConvertedBlock
    positions: np.ndarray
    day: np.ndarray
    row_id: np.ndarray
    rank: np.ndarray


class DaysReader:
    """Reads the raw files of some days once, in path order.

    Args:
        days: Ascending. Several only where every file holds rows of any day; with `{date}` in the path exactly one.
        dataset: The declarations.
        max_block_bytes: How large a block may be.

    Attributes:
        files: The raw files, in path order.
        bytes_found: Their size, as they are stored.
        rows_read: Rows read so far, of whatever day.
    """

    def __init__(self, days: Sequence[date], dataset: Dataset, *, max_block_bytes: int) -> None:
        self.days, self.dataset, self.max_block_bytes = days, dataset, max_block_bytes
        self.files: list[RawFile] = []
        self.bytes_found = 0
        self.rows_read = 0
        self._numbers = np.array([day_number(day) for day in days], dtype=np.int64)
        self._rows_in = np.zeros(len(days), dtype=np.int64)
        self._outside = 0
        self._oddities: dict[str, int] = {}
        self._facts: list[dict[str, object]] = []  # of every file, the same for all days
        self._places: list[_Places] = []  # of every file
        self._first, self._last = day_number(dataset.partitions.start), day_number(dataset.last_day())
        self._latest_us = tomorrow_us()  # one limit for all files, also at midnight

    def rows(self) -> Iterator[DayRows]:
        """The rows of the days, block by block.

        Raises:
            PipelineError: A file cannot be read, or contradicts its declaration.
        """
        self.files = files_of_day(self.dataset, self.days[0])
        self.bytes_found = sum(file.bytes for file in self.files)
        for file in self.files:
            yield from self._rows_of(file)

    def again(self, days: Sequence[date]) -> "DaysReader":
        """A reader of some of the days that takes the same rows for theirs."""
        reader = DaysReader(days, self.dataset, max_block_bytes=self.max_block_bytes)
        reader._last, reader._latest_us = self._last, self._latest_us
        return reader

    def counts_of(self, day: date) -> dict[str, int]:
        """Rows read (`read`), rows of the day (`in`), of other days, outside the partitions, and oddities.

        With implausible rows also `latest_us`, the first instant that was implausible.
        """
        rows_in = int(self._rows_in[self.days.index(day)])
        return {
            "read": self.rows_read,
            "in": rows_in,
            "other_day": self.rows_read - rows_in - self._outside,
            "outside_partitions": self._outside,
            **self._oddities,
        }

    def raw_files_of(self, day: date) -> list[dict[str, object]]:
        """Path, bytes, mtime, checksum and rows of every file, after it was read.

        Where files hold rows of several days also how many of them are the day's, and the positions of the first and the
        last of these.
        """
        if self.dataset.source.dated and self.dataset.source.neighbours == (0, 0):
            return [dict(facts) for facts in self._facts]
        place = self.days.index(day)
        return [facts | places.of(place) for facts, places in zip(self._facts, self._places, strict=True)]

    def _rows_of(self, file: RawFile) -> Iterator[DayRows]:
        timestamp = self.dataset.columns.timestamp
        doctor = UnitDoctor(timestamp, file.name, source_of(timestamp), latest_us=self._latest_us)
        block_bytes = min(self.max_block_bytes, usual_block_bytes(file, self.dataset))
        reader = read_blocks(file, self.dataset, block_bytes=block_bytes, integers=number_columns(self.dataset))
        rows_before = self.rows_read
        places = _Places(len(self.days))
        days = _DaysOfFile(self.dataset.partitions.start)
        checked: pl.Schema | None = None
        for block in ahead(iter(reader)):
            schema = block.sql_frame.schema
            if schema != checked:
                check_origins(schema, self.dataset, file=file.name)
                checked = schema
            converted = convert_block(block, self.dataset, doctor)
            self._count("ns_floored", converted.floored)
            if file.day is not None:
                owner, rank = self._within_reach(file.day, converted)
                yield self._taken(file, block, converted, owner, rank, places, rows_before)
            else:
                for ready, typed, owner in days.add(block, converted):
                    yield self._taken(file, ready, typed, owner, typed.rank, places, rows_before)
        for ready, typed, owner in days.rest():
            yield self._taken(file, ready, typed, owner, typed.rank, places, rows_before)
        doctor.judge()
        if reader.warnings.get("lines_in_unclosed_quote", 0) > 1:
            raise PipelineError(
                f"{file.name}: a quoted field near the end is never closed and swallows "
                f'{reader.warnings["lines_in_unclosed_quote"]:,} lines; bring the whole file, or write quote_char = "" in '
                "[source.csv] if its quotes are plain text"
            )
        for warning, count in reader.warnings.items():
            self._count(warning, count)
        if doctor.outside:
            self._oddities["latest_us"] = self._latest_us
        self._facts.append(
            {
                "path": file.name,
                "bytes": file.bytes,
                "mtime_ns": file.mtime_ns,
                "sha256": reader.checksum,
                "rows": self.rows_read - rows_before,
            }
        )
        self._places.append(places)

    def _within_reach(self, file_day: date, converted: ConvertedBlock) -> tuple[np.ndarray, np.ndarray]:
        """The day of every row of a dated file, and its reason: a row beyond reach stays with its file."""
        before, after = self.dataset.source.neighbours
        own = day_number(file_day)
        day = converted.day.fill_null(own).to_numpy()
        within_reach = (day >= own - after) & (day <= own + before)
        rank = converted.rank
        if not within_reach.all():
            rank = np.where(within_reach, rank, np.minimum(rank, RANK["outside_day"])).astype(np.uint8)
        return np.where(within_reach, day, own), rank

    def _taken(
        self,
        file: RawFile,
        block: RawBlock,
        converted: ConvertedBlock,
        owner: np.ndarray,
        rank: np.ndarray,
        places: "_Places",
        rows_before: int,
    ) -> DayRows:
        """The rows of a block that belong to one of the days, numbered and counted."""
        alone = len(owner) > 0 and owner.min() == owner.max() and owner[0] in self._numbers
        taken = self._all_of_a_day(owner) if alone else self._those_of_the_days(owner)
        before = self.rows_read - rows_before
        places.add(taken.days, taken.rows, taken.first + before, taken.last + before)
        self._rows_in[taken.days] += taken.rows
        self.rows_read += len(owner)
        if len(taken.positions) < len(owner):
            self._outside += int(((owner < self._first) | (owner > self._last)).sum())
            rank = rank[taken.positions]
        return DayRows(file, block, converted, taken.positions, taken.day, taken.row_id, rank)

    def _all_of_a_day(self, owner: np.ndarray) -> "_Taken":
        """The same as `_those_of_the_days`, for rows of one day: most blocks are such, and need not be sorted by day."""
        days, rows = np.flatnonzero(self._numbers == owner[0]), len(owner)
        positions = np.arange(rows)
        day = np.full(rows, owner[0], dtype=np.int32)
        return _Taken(
            positions, day, positions + self._rows_in[days], days, np.array([rows]), positions[:1], positions[-1:]
        )

    def _those_of_the_days(self, owner: np.ndarray) -> "_Taken":
        """The rows whose day is one of those that are read."""
        place = np.minimum(np.searchsorted(self._numbers, owner), len(self.days) - 1)
        positions = np.flatnonzero(self._numbers[place] == owner)
        place = place[positions]
        in_order = len(place) == 0 or bool((np.diff(place) >= 0).all())
        order = np.arange(len(place)) if in_order else np.argsort(place, kind="stable")
        counts = np.bincount(place, minlength=len(self.days))
        days = np.flatnonzero(counts)
        counts = counts[days]
        starts = np.cumsum(counts) - counts
        row_id = np.empty(len(positions), dtype=np.int64)
        row_id[order] = np.arange(len(positions)) + np.repeat(self._rows_in[days] - starts, counts)
        by_day = positions[order]
        day = self._numbers[place].astype(np.int32)
        return _Taken(positions, day, row_id, days, counts, by_day[starts], by_day[starts + counts - 1])

    def _count(self, name: str, count: int) -> None:
        if count:
            self._oddities[name] = self._oddities.get(name, 0) + count


@dataclass(frozen=True, slots=True)
class _Taken:
    """R rows of a block that belong to D of the days that are read.

    Attributes:
        positions: int64 [R], where they stand in the block.
        day: int32 [R], the number of the day of each.
        row_id: int64 [R], its number in that day.
        days: int64 [D], places among the days that are read.
        rows: int64 [D], how many rows each has.
        first: int64 [D], where its first row stands in the block.
        last: int64 [D], and its last.
    """

    positions: np.ndarray
    day: np.ndarray
    row_id: np.ndarray
    days: np.ndarray
    rows: np.ndarray
    first: np.ndarray
    last: np.ndarray


class _Places:
    """Where the rows of D days stand in a file: how many there are, the first and the last; each int64 [D]."""

    def __init__(self, days: int) -> None:
        self._rows = np.zeros(days, dtype=np.int64)
        self._first, self._last = self._rows.copy(), self._rows.copy()

    def add(self, days: np.ndarray, rows: np.ndarray, first: np.ndarray, last: np.ndarray) -> None:
        new = self._rows[days] == 0
        self._first[days[new]] = first[new]
        self._last[days] = last
        self._rows[days] += rows

    def of(self, day: int) -> dict[str, object]:
        rows = int(self._rows[day])
        return {"day_rows": rows, "day_ends": [int(self._first[day]), int(self._last[day])] if rows else []}


class _DaysOfFile:
    """Gives every row of a file for all days its day: its own, or that of the nearest usable row before it, or after."""

    def __init__(self, start: date) -> None:
        self._last: int | None = None
        self._start = day_number(start)
        self._waiting: list[tuple[RawBlock, ConvertedBlock]] = []

    def add(self, block: RawBlock, converted: ConvertedBlock) -> list[tuple[RawBlock, ConvertedBlock, np.ndarray]]:
        self._waiting.append((block, converted))
        if self._last is None:
            first = converted.day.drop_nulls().head(1)
            if first.is_empty():
                return []
            self._last = int(first[0])
        return self._release()

    def rest(self) -> list[tuple[RawBlock, ConvertedBlock, np.ndarray]]:
        if self._last is None:
            self._last = self._start
        return self._release()

    def _release(self) -> list[tuple[RawBlock, ConvertedBlock, np.ndarray]]:
        assert self._last is not None
        released = []
        for block, converted in self._waiting:
            known = converted.day
            if known.has_nulls():
                known = known.fill_null(strategy="forward").fill_null(self._last)
            day = known.to_numpy()
            if len(day):
                self._last = int(day[-1])
            released.append((block, converted, day))
        self._waiting = []
        return released


def day_number(day: date) -> int:
    """Days since 1970-01-01."""
    return (day - EPOCH) // timedelta(days=1)

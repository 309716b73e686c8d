"""The rows of one day out of the raw files: which day a row belongs to, and its number in that day."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np
import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.events.convert import RANK, ConvertedBlock, convert_block
from pipeline.events.origin import check_origins, source_of
from pipeline.events.timestamps import UnitDoctor, tomorrow_us
from pipeline.sources import RawBlock, RawFile, files_of_day, read_blocks, usual_block_bytes

EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class DayRows:
    """The rows of one block that belong to the day.

    Attributes:
        file: The raw file.
        block: The block that holds them.
        converted: The same block, typed.
        positions: int64 [rows], where they stand in the block.
        row_id: int64 [rows].
        rank: uint8 [rows], the reason of refusal, or `ACCEPTED`.
    """

    file: RawFile
    block: RawBlock
    converted: ConvertedBlock
    positions: np.ndarray
    row_id: np.ndarray
    rank: np.ndarray


@dataclass
class DayReader:
    """Reads the raw files of a day in path order.

    Attributes:
        counts: rows read (`read`), rows of the day (`in`), of other days (`other_day`), outside the partitions, and
            oddities; with implausible rows also `latest_us`, the first instant that was implausible.
        files: The raw files, in path order.
        raw_files: Path, bytes, mtime and checksum of every file, after it was read; where files hold rows of several
            days also how many of them are the day's, and the positions of the first and the last of these.
    """

    day: date
    dataset: Dataset
    max_block_bytes: int
    counts: dict[str, int] = field(
        default_factory=lambda: {"read": 0, "in": 0, "other_day": 0, "outside_partitions": 0}
    )
    raw_files: list[dict[str, object]] = field(default_factory=list)
    files: list[RawFile] = field(default_factory=list)
    _latest_us: int = 0  # one limit for all files, also at midnight
    _rows_before: int = 0  # rows of the files before this one
    _mine_in_file: list[tuple[int, int, int]] = field(default_factory=list)  # a block: rows, first and last position

    def rows(self) -> Iterator[DayRows]:
        """The day's rows, block by block.

        Raises:
            PipelineError: A file cannot be read, or contradicts its declaration.
        """
        self.files, self._latest_us = files_of_day(self.dataset, self.day), tomorrow_us()
        for file in self.files:
            yield from self._rows_of(file)

    def _rows_of(self, file: RawFile) -> Iterator[DayRows]:
        timestamp = self.dataset.columns.timestamp
        doctor = UnitDoctor(timestamp, file.name, source_of(timestamp), latest_us=self._latest_us)
        block_bytes = min(self.max_block_bytes, usual_block_bytes(file, self.dataset))
        reader = read_blocks(file, self.dataset, block_bytes=block_bytes)
        self._rows_before, self._mine_in_file = self.counts["read"], []
        days = _DaysOfFile(self.dataset.partitions.start)
        checked: pl.Schema | None = None
        for block in reader:
            schema = block.sql_frame.schema
            if schema != checked:
                check_origins(schema, self.dataset, file=file.name)
                checked = schema
            converted = convert_block(block, self.dataset, doctor)
            self._count("ns_floored", converted.floored)
            if file.day is not None:
                yield self._of_dated_file(file, block, converted)
            else:
                for ready_block, ready_converted, day in days.add(block, converted):
                    yield self._of_shared_file(file, ready_block, ready_converted, day)
        for ready_block, ready_converted, day in days.rest():
            yield self._of_shared_file(file, ready_block, ready_converted, day)
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
            self.counts["latest_us"] = self._latest_us
        self.raw_files.append(
            {
                "path": file.name,
                "bytes": file.bytes,
                "mtime_ns": file.mtime_ns,
                "sha256": reader.checksum,
                "rows": self.counts["read"] - self._rows_before,
                **({} if self._whole_days else self._place_of_day()),
            }
        )

    def _of_dated_file(self, file: RawFile, block: RawBlock, converted: ConvertedBlock) -> DayRows:
        assert file.day is not None
        before, after = self.dataset.source.neighbours
        own = _number(file.day)
        day = converted.day.fill_null(own).to_numpy()
        within_reach = (day >= own - after) & (day <= own + before)
        rank = converted.rank
        if not within_reach.all():
            rank = np.where(within_reach, rank, np.minimum(rank, RANK["outside_day"])).astype(np.uint8)
        owner = np.where(within_reach, day, own)
        return self._mine(file, block, converted, owner, rank)

    def _of_shared_file(self, file: RawFile, block: RawBlock, converted: ConvertedBlock, day: np.ndarray) -> DayRows:
        return self._mine(file, block, converted, day, converted.rank)

    def _mine(
        self, file: RawFile, block: RawBlock, converted: ConvertedBlock, owner: np.ndarray, rank: np.ndarray
    ) -> DayRows:
        mine = owner == _number(self.day)
        positions = np.flatnonzero(mine)
        first, last = _number(self.dataset.partitions.start), _number(self.dataset.last_day())
        outside = int(((owner < first) | (owner > last)).sum()) if len(positions) < len(owner) else 0
        row_id = np.arange(self.counts["in"], self.counts["in"] + len(positions), dtype=np.int64)
        if len(positions):
            before = self.counts["read"] - self._rows_before
            self._mine_in_file.append((len(positions), before + int(positions[0]), before + int(positions[-1])))
        self._count("read", len(owner))
        self._count("in", len(positions))
        self._count("outside_partitions", outside)
        self._count("other_day", len(owner) - len(positions) - outside)
        return DayRows(file, block, converted, positions, row_id, rank[positions])

    @property
    def _whole_days(self) -> bool:
        """Whether every file holds rows of its own day only."""
        return self.dataset.source.dated and self.dataset.source.neighbours == (0, 0)

    def _place_of_day(self) -> dict[str, object]:
        blocks = self._mine_in_file
        ends = [blocks[0][1], blocks[-1][2]] if blocks else []
        return {"day_rows": sum(rows for rows, _, _ in blocks), "day_ends": ends}

    def _count(self, name: str, count: int) -> None:
        if count or name in self.counts:
            self.counts[name] = self.counts.get(name, 0) + count


class _DaysOfFile:
    """Gives every row of a file for all days its day: its own, or that of the nearest usable row before it, or after."""

    def __init__(self, start: date) -> None:
        self._last: int | None = None
        self._start = _number(start)
        self._waiting: list[tuple[RawBlock, ConvertedBlock]] = []

    def add(self, block: RawBlock, converted: ConvertedBlock) -> list[tuple[RawBlock, ConvertedBlock, np.ndarray]]:
        self._waiting.append((block, converted))
        first = converted.day.drop_nulls().head(1)
        if self._last is None and first.is_empty():
            return []
        if self._last is None:
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
            day = converted.day.fill_null(strategy="forward").fill_null(self._last).to_numpy()
            if len(day):
                self._last = int(day[-1])
            released.append((block, converted, day))
        self._waiting = []
        return released


def _number(day: date) -> int:
    return (day - EPOCH) // timedelta(days=1)

"""The append-only log of a vocabulary: numbered segments, each linked exclusively, none ever changed."""

import os
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from pipeline.config import Dataset
from pipeline.contracts import Column, PipelineError
from pipeline.store import POLARS_DTYPES, Store, safe_run, sync_folder, writing
from pipeline.store.parquet import write_file
from pipeline.vocabularies.length import note_length

PADDING, UNKNOWN, FIRST_KNOWN = 0, 1, 2
ID_COLUMNS = {"user_vocabulary": "user_id", "item_vocabulary": "item_id"}
MAX_INDEX = 2**31 - 1
NAME = re.compile(r"\d{8}\.parquet")


def id_column(vocabulary: str, dataset: Dataset) -> Column:
    """The column of `events` whose ids a vocabulary numbers."""
    name = ID_COLUMNS[vocabulary]
    declared = dataset.columns.user_id if name == "user_id" else dataset.columns.item_id
    return Column(name, declared.type, meaning=f"raw {name}")


def log_columns(vocabulary: str, dataset: Dataset) -> list[Column]:
    """The columns of a segment of the log."""
    return [
        Column("index", "int32", meaning="dense index, for ever; 0 is padding, 1 is unknown", minimum=FIRST_KNOWN),
        Column("id", id_column(vocabulary, dataset).dtype, meaning=f"raw {ID_COLUMNS[vocabulary]}"),
        Column("first_day", "string", meaning="day whose making added the id"),
        Column("run", "string", meaning="run that added the id"),
    ]


def log_directory(store: Store, vocabulary: str) -> Path:
    """Where the segments lie, outside manifests and sweeps."""
    return store.root / vocabulary / "_log"


def segment_paths(store: Store, vocabulary: str) -> list[Path]:
    """The linked segments, in order.

    Raises:
        PipelineError: A segment is missing in between.
    """
    directory = log_directory(store, vocabulary)
    return [directory / entry.name for entry in _entries(directory)]


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            segments = {one.name: one for one in entries if NAME.fullmatch(one.name)}
    except FileNotFoundError:
        return []
    names = sorted(segments)
    for number, name in enumerate(names):
        if int(name[:8]) != number:
            raise PipelineError(
                f"{directory}: found {name}, expected {number:08d}.parquet: restore that segment of the log"
            )
    return [segments[name] for name in names]


@dataclass(frozen=True)
class Segments:
    """The linked segments, as they were when the log was looked at.

    Attributes:
        directory: Where they lie.
        entries: The files, in order.
        dtype: Of the ids.
    """

    directory: Path
    entries: Sequence[os.DirEntry[str]]
    dtype: pl.DataType

    @classmethod
    def of(cls, store: Store, vocabulary: str, dataset: Dataset) -> "Segments":
        """Lists the segments.

        Raises:
            PipelineError: A segment is missing in between.
        """
        directory = log_directory(store, vocabulary)
        return cls(directory, _entries(directory), POLARS_DTYPES[id_column(vocabulary, dataset).dtype])

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.entries)

    def digest(self, first: int, last: int) -> str:
        """Tells segments from others of the same numbers, by their sizes, times and places on the disk; `last` is not one of them."""
        return xxhash.xxh3_128_hexdigest(self._stats[3 * first : 3 * last].tobytes())

    def newest(self) -> tuple[int, int, int] | None:
        """Tells the log from what it was: number, file and time of the last segment."""
        if not self.entries:
            return None
        found = self.entries[-1].stat()
        return self.count, found.st_ino, found.st_mtime_ns

    def rows_from(self, first: int) -> int:
        """Entries of all segments from one on.

        Raises:
            PipelineError: One is damaged.
        """
        try:
            return sum(pq.read_metadata(entry.path).num_rows for entry in self.entries[first:])
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(str(error).strip().splitlines()[0]) from None

    def blocks(self, first: int, first_index: int, block_rows: int) -> Iterator[pl.Series]:
        """Reads the ids of segments in the order of their indices, so many at once.

        Args:
            first: The first segment.
            first_index: The index of its first id.
            block_rows: Every block has so many, but for the last.

        Raises:
            PipelineError: A segment is damaged, or the indices do not go on.
        """
        held = pl.Series("id", [], dtype=self.dtype)
        at = first_index
        for entry in self.entries[first:]:
            for part in self._parts(entry.path, block_rows):
                expected = np.arange(at, at + part.height, dtype=np.int32)
                if part["id"].dtype != self.dtype or not np.array_equal(part["index"].to_numpy(), expected):
                    raise self._damaged("its indices are not 2, 3, ... in order")
                at += part.height
                held = pl.concat([held, part["id"]])
                while held.len() >= block_rows:
                    yield held[:block_rows].rechunk()
                    held = held[block_rows:]
        if held.len():
            yield held.rechunk()

    def _parts(self, path: str, rows: int) -> Iterator[pl.DataFrame]:
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                if not {"index", "id"} <= set(file.schema_arrow.names):
                    raise self._damaged(f"{path} lacks the columns index and id")
                for batch in file.iter_batches(rows, columns=["index", "id"], use_threads=False):
                    yield pl.DataFrame(batch)
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(str(error).strip().splitlines()[0]) from None

    def _damaged(self, why: str) -> PipelineError:
        return PipelineError(f"{self.directory}: the log is damaged ({why}); restore it from a backup")

    @cached_property
    def _stats(self) -> np.ndarray:
        """int64 [3 * segments], bytes, time and place on the disk of each: a copy of a log gets an index of its own."""
        found = [entry.stat() for entry in self.entries]
        facts = [[one.st_size, one.st_mtime_ns, one.st_ino % 2**63] for one in found]
        return np.array(facts, dtype=np.int64).reshape(-1)


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment that is written aside, and not yet part of the log.

    Attributes:
        path: Where it lies.
        number: The number that it is meant for.
        first_index: The index of its first id.
        rows: How many ids it adds.
    """

    path: Path
    number: int
    first_index: int
    rows: int

    def late(self) -> bool:
        """Whether another run has linked a segment since this one was written."""
        return (self.path.parent / f"{self.number:08d}.parquet").exists()

    def link(self) -> bool:
        """Makes it part of the log; False when another run was first, and it has to be made again."""
        target = self.path.parent / f"{self.number:08d}.parquet"
        try:
            os.link(self.path, target)
        except FileExistsError:
            return False
        finally:
            self.path.unlink(missing_ok=True)
        sync_folder(self.path.parent)
        note_length(self.path.parent.parent, self.first_index + self.rows - FIRST_KNOWN)
        return True


def write_segment(
    new: pl.Series, *, segments: int, length: int, vocabulary: str, day: date, store: Store, run: str
) -> Segment | None:
    """Writes new ids aside, as the segment that comes after the log as it was read; None when there are none.

    Args:
        new: The ids, ascending.
        segments: How many segments there are.
        length: How many entries they hold.
        vocabulary: Whose log it is.
        day: Whose ids they are.
        store: Where the log lies.
        run: Name of the run.

    Raises:
        PipelineError: int32 cannot hold the indices.
    """
    if new.is_empty():
        return None
    first = FIRST_KNOWN + length
    if first + new.len() - 1 > MAX_INDEX:
        raise PipelineError(f"{vocabulary} would grow beyond {MAX_INDEX:,} indices on {day}; int32 holds no more")
    directory = log_directory(store, vocabulary)
    path = directory / f"_staged-{safe_run(run)}-{secrets.token_hex(4)}.parquet"
    frame = pl.DataFrame(
        {
            "index": pl.int_range(first, first + new.len(), dtype=pl.Int32, eager=True),
            "id": new,
            "first_day": pl.repeat(day.isoformat(), new.len(), eager=True),
            "run": pl.repeat(run, new.len(), eager=True),
        }
    )
    with writing(f"{vocabulary} of {day}", directory, path):
        directory.mkdir(parents=True, exist_ok=True)
        write_file(frame, path)  # with checksums of its pages: an id that a disk changes must not get a second index
        with path.open("rb") as file:
            os.fsync(file.fileno())
    return Segment(path, segments, first, new.len())

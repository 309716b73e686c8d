"""The append-only log of a vocabulary: numbered segments, each linked exclusively, none ever changed."""

import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import Column, PipelineError
from pipeline.store import POLARS_DTYPES, Store, safe_run, sync_folder, writing
from pipeline.vocabularies.lookup import FIRST_KNOWN, Vocabulary

ID_COLUMNS = {"user_vocabulary": "user_id", "item_vocabulary": "item_id"}
MAX_INDEX = 2**31 - 1


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
    paths = sorted(path for path in directory.glob("*.parquet") if re.fullmatch(r"\d{8}\.parquet", path.name))
    for number, path in enumerate(paths):
        if path.name != f"{number:08d}.parquet":
            raise PipelineError(
                f"{directory}: found {path.name}, expected {number:08d}.parquet: restore that segment of the log"
            )
    return paths


def read_vocabulary(store: Store, vocabulary: str, dataset: Dataset) -> Vocabulary:
    """Reads the whole log.

    Raises:
        PipelineError: The log is damaged.
    """
    paths = segment_paths(store, vocabulary)
    last = paths[-1].stat() if paths else None
    state = (len(paths), last and (last.st_ino, last.st_mtime_ns))  # segments never change, but a root may be wiped
    known_state, known = store.remembered.get(vocabulary, (None, None))
    if known is not None and known_state == state:
        return known
    dtype = POLARS_DTYPES[id_column(vocabulary, dataset).dtype]
    if not paths:
        return Vocabulary(pl.Series("id", [], dtype=dtype), 0)
    try:
        log = pl.concat([pl.read_parquet(path, columns=["index", "id"], glob=False) for path in paths])
    except (pl.exceptions.PolarsError, OSError) as error:
        raise PipelineError(
            f"{log_directory(store, vocabulary)}: the log is damaged ({str(error).strip().splitlines()[0]}); restore it from a backup"
        ) from None
    expected = np.arange(FIRST_KNOWN, FIRST_KNOWN + log.height, dtype=np.int32)
    if log["id"].dtype != dtype or not np.array_equal(log["index"].to_numpy(), expected):
        raise PipelineError(
            f"{log_directory(store, vocabulary)}: the log is damaged: its indices are not 2, 3, ... in order; restore it from a backup"
        )
    known = Vocabulary(log["id"].rechunk(), len(paths))
    store.remembered[vocabulary] = (state, known)
    return known


def published_size(store: Store, vocabulary: str) -> int:
    """The longest log that a published day saw."""
    manifests = (store.manifest(vocabulary, day) for day in store.days(vocabulary))
    return max((manifest.size or 0 for manifest in manifests if manifest is not None), default=0)


def require_whole_log(store: Store, vocabulary: str, known: Vocabulary, *, size: int) -> None:
    """Refuses a log that lost its end: its indices would be given a second time.

    Args:
        store: For the sentence.
        vocabulary: For the sentence.
        known: The log, read after `size` was: what a day saw was linked before the day was published.
        size: How long it has to be at least.

    Raises:
        PipelineError: It is shorter.
    """
    if known.ids.len() < size:
        raise PipelineError(
            f"{log_directory(store, vocabulary)}: found {known.ids.len():,} entries, but a published day was made with {size:,}: "
            "the end of the log is lost, and its indices must not be given again; restore the last segments from a backup"
        )


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
        return True


def write_segment(
    new: pl.Series, known: Vocabulary, vocabulary: str, day: date, store: Store, run: str
) -> Segment | None:
    """Writes new ids aside, as the segment that comes after the log as it was read; None when there are none.

    Raises:
        PipelineError: int32 cannot hold the indices.
    """
    if new.is_empty():
        return None
    first = FIRST_KNOWN + known.ids.len()
    if first + new.len() - 1 > MAX_INDEX:
        raise PipelineError(f"{vocabulary} would grow beyond {MAX_INDEX:,} indices on {day}; int32 holds no more")
    directory = log_directory(store, vocabulary)
    directory.mkdir(parents=True, exist_ok=True)
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
        frame.write_parquet(path, compression="zstd", compression_level=1)
        with path.open("rb") as file:
            os.fsync(file.fileno())
    return Segment(path, known.segments, first, new.len())


def ids_of(root: str | Path, vocabulary: str, indices: Sequence[int] | pl.Series, dataset: Dataset) -> pl.Series:
    """For users: which ids stand behind indices; null for padding (0) and unknown (1).

    Args:
        root: Root of the store.
        vocabulary: `user_vocabulary` or `item_vocabulary`.
        indices: As in `user_index` and `item_index`.
        dataset: The dataset of the store.
    """
    wanted = indices if isinstance(indices, pl.Series) else pl.Series("index", indices, dtype=pl.Int64)
    return read_vocabulary(Store(Path(root)), vocabulary, dataset).ids_of(wanted)

"""Ids to dense indices: one append-only log a vocabulary.

Index 0 is padding, 1 is unknown, known ids start at 2. An index once given to an id is that id's for ever: segments are
only ever added, each linked exclusively under the next number.
"""

import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import Column, PipelineError
from pipeline.store import (
    POLARS_DTYPES,
    ContentHash,
    Recipe,
    Staged,
    Store,
    manifest_schema,
    read_files,
    require_current,
    safe_run,
    sync_folder,
)

VERSION = 1
PADDING, UNKNOWN, FIRST_KNOWN = 0, 1, 2
ID_COLUMNS = {"user_vocabulary": "user_id", "item_vocabulary": "item_id"}
TABLE_SPAN = 4  # a look-up table may be this many times as long as the vocabulary
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


@dataclass(frozen=True)
class Vocabulary:
    """The log of a vocabulary as it stood when it was read.

    Attributes:
        ids: Series [N], position p holds the id with index p + 2.
        segments: How many segments were read.
    """

    ids: pl.Series
    segments: int

    def index_of(self, ids: pl.Series, *, size: int) -> pl.Series:
        """Looks ids up.

        Args:
            ids: Series [E]; null means a missing item.
            size: Only the first `size` entries of the log are known; what came later counts as unknown.

        Returns:
            Int32 [E]: the index, 1 for an unknown id, 0 for a null.
        """
        found = self._gather(ids) if self._table is not None and not ids.null_count() else self._join(ids)
        if size < self.ids.len():
            found = found.set(found >= FIRST_KNOWN + size, UNKNOWN)
        return found

    def _gather(self, ids: pl.Series) -> pl.Series:
        assert self._table is not None
        low, table = self._table
        values = ids.to_numpy()
        inside = (values >= low) & (values < low + len(table))
        if inside.all():
            return pl.Series("index", table[values - low if low else values])
        found = np.full(len(values), UNKNOWN, dtype=np.int32)
        found[inside] = table[values[inside] - low]
        return pl.Series("index", found)

    def _join(self, ids: pl.Series) -> pl.Series:
        joined = ids.alias("id").to_frame().join(self._frame, on="id", how="left", maintain_order="left")
        missing = pl.when(pl.col("id").is_null()).then(PADDING).otherwise(UNKNOWN).cast(pl.Int32)
        return joined.select(pl.coalesce("index", missing).alias("index")).to_series()

    def ids_of(self, indices: pl.Series) -> pl.Series:
        """The reverse look-up: id of each index; null for padding and unknown.

        Raises:
            PipelineError: An index that was never given.
        """
        last = FIRST_KNOWN + self.ids.len() - 1
        never_given = indices.filter((indices < PADDING) | (indices > last))
        if never_given.len():
            raise PipelineError(
                f"found index {never_given[0]}, expected {PADDING}..{last}: it was never given to an id"
            )
        known = indices.cast(pl.Int64) - FIRST_KNOWN
        return self.ids.gather(known.set(known < 0, None)).alias("id")

    @cached_property
    def _frame(self) -> pl.DataFrame:
        index = np.arange(FIRST_KNOWN, FIRST_KNOWN + self.ids.len(), dtype=np.int32)
        return pl.DataFrame({"id": self.ids, "index": index})

    @cached_property
    def _table(self) -> tuple[int, np.ndarray] | None:
        """(lowest id, index by id - lowest) where ids lie close together: a gather instead of a hash join."""
        if self.ids.dtype != pl.Int64 or self.ids.is_empty():
            return None
        low, high = int(self.ids.min()), int(self.ids.max())  # type: ignore[arg-type]
        if low >= 0 and high < TABLE_SPAN * self.ids.len() + 1024:
            low = 0
        if high - low >= TABLE_SPAN * self.ids.len() + 1024:
            return None
        table = np.full(high - low + 1, UNKNOWN, dtype=np.int32)
        table[self.ids.to_numpy() - low] = np.arange(FIRST_KNOWN, FIRST_KNOWN + self.ids.len(), dtype=np.int32)
        return low, table


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


def vocabulary_recipe(*, vocabulary: str, day: date, dataset: Dataset, store: Store) -> Recipe:
    """What a vocabulary day would be made of now."""
    return Recipe(
        config={"mode": dataset.vocabulary.mode, "id": id_column(vocabulary, dataset).dtype},
        code={"vocabularies": VERSION},
        inputs={"events": require_current(store, "events", day, dataset).version()},
    )


def make_vocabulary(
    *, vocabulary: str, day: date, dataset: Dataset, store: Store, run: str
) -> tuple[Staged, Segment | None]:
    """Numbers those ids of a day that the log lacks.

    Args:
        vocabulary: `user_vocabulary` or `item_vocabulary`.
        day: UTC day, whose `events` are published.
        dataset: The declarations.
        store: Where to read and stage.
        run: Name of the run.

    Returns:
        The staged day, and the segment that has to be linked before it is committed; None when no id is new.

    Raises:
        PipelineError: `events` are missing, or the vocabulary is frozen and empty.
    """
    events = require_current(store, "events", day, dataset)
    column = ID_COLUMNS[vocabulary]
    rows = read_files(store.directory("events", day), events.files, manifest_schema(events))
    ids = rows.select(pl.col(column).drop_nulls().unique()).collect().to_series().sort()
    known = read_vocabulary(store, vocabulary, dataset)
    frozen = dataset.vocabulary.mode == "frozen"
    if frozen and known.ids.is_empty():
        raise PipelineError(
            f"{vocabulary} is frozen but its log in {log_directory(store, vocabulary)} is empty: build it first with "
            '[vocabulary] mode = "append", or copy the segments of a store that has it'
        )
    new = ids.head(0) if frozen else ids.filter(known.index_of(ids, size=known.ids.len()) == UNKNOWN)
    segment = _write_segment(new, known, vocabulary, day, store, run)
    grown = Vocabulary(pl.concat([known.ids, new.alias("id")]), known.segments)
    content = ContentHash()
    content.update(pl.DataFrame({"id": ids, "index": grown.index_of(ids, size=grown.ids.len())}))
    with store.stage(vocabulary, day, run=run) as staging:
        staged = staging.finish(
            rows=ids.len(),
            columns=log_columns(vocabulary, dataset),
            recipe=vocabulary_recipe(vocabulary=vocabulary, day=day, dataset=dataset, store=store),
            content_version=content.hexdigest(),
            counts={"ids": ids.len(), "new_ids": new.len()},
            facts={},
            size=grown.ids.len(),
        )
    return staged, segment


def _write_segment(
    new: pl.Series, known: Vocabulary, vocabulary: str, day: date, store: Store, run: str
) -> Segment | None:
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

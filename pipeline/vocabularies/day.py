"""A vocabulary as one day looks its ids up: forwards for the features, backwards for their proof."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.store import ContentHash, Manifest, Store, manifest_schema, read_blocks, require_current
from pipeline.threads import ahead
from pipeline.vocabularies.index import drop_index
from pipeline.vocabularies.length import index_directory
from pipeline.vocabularies.log import FIRST_KNOWN, ID_COLUMNS, PADDING, UNKNOWN, log_directory
from pipeline.vocabularies.lookup import Vocabulary, read_vocabulary, require_whole_log
from pipeline.vocabularies.pieces import DamagedPieceError, keys_of
from pipeline.vocabularies.slots import Slots

BLOCK_ROWS = 1 << 20
UNIQUE_ROWS = 1 << 19  # at least, among which distinct ids are looked for at once

T = TypeVar("T")


@dataclass(frozen=True)
class DayVocabulary:
    """The indices of one day's ids, as the log held them when the day was made.

    Attributes:
        ids: Series [N], the day's distinct ids, ascending (text by its bytes).
        indices: Int32 [N], the index of each; 1 where the log lacked it.
    """

    ids: pl.Series
    indices: pl.Series

    @classmethod
    def read(cls, store: Store, vocabulary: str, day: date, dataset: Dataset) -> "DayVocabulary":
        """Looks up the distinct ids of a day's events.

        They are compared with the content version of the day, which was proven when it was published.

        Raises:
            PipelineError: The day of the vocabulary is missing or not current, or the log is damaged or lost its end.
        """
        manifest = require_current(store, vocabulary, day, dataset)
        known = cls.remembered(store, manifest)
        if known is None:
            ids = distinct_ids(store, vocabulary, require_current(store, "events", day, dataset))
            known = with_index(store, vocabulary, dataset, lambda log: _of_log(log, ids, manifest, store))
            known.remember(store, vocabulary, day, manifest.version())
        return known

    @classmethod
    def remembered(cls, store: Store, manifest: Manifest) -> "DayVocabulary | None":
        """What this process has looked up, or given, for a version of a day of a vocabulary."""
        version, known = store.remembered.get(f"day of {manifest.asset}", (None, None))
        return known if version == (manifest.day, manifest.version()) else None

    def remember(self, store: Store, vocabulary: str, day: date, version: str) -> None:
        """Keeps it for those who need the same version of the day; one day of a vocabulary is kept."""
        store.remembered[f"day of {vocabulary}"] = ((day, version), self)

    def index_of(self, ids: pl.Series) -> pl.Series:
        """Looks ids of the day up.

        Args:
            ids: Series [E]; null means a missing item.

        Returns:
            Int32 [E]: the index, 1 for an unknown id and for one that is not of this day, 0 for a null.
        """
        if ids.null_count():
            found = self.index_of(ids.drop_nulls())
            every = np.full(ids.len(), PADDING, dtype=np.int32)
            every[ids.is_not_null().to_numpy()] = found.to_numpy()
            return pl.Series("index", every)
        if self._slots is not None:
            return pl.Series("index", self._slots.find(keys_of(ids)))
        known = pl.DataFrame({"id": self.ids, "index": self.indices})
        joined = ids.alias("id").to_frame().join(known, on="id", how="left", maintain_order="left")
        return joined["index"].fill_null(UNKNOWN)

    @cached_property
    def _slots(self) -> Slots | None:
        """None where two texts of the day have the same hash."""
        keys = keys_of(self.ids)
        if self.ids.dtype == pl.String and len(np.unique(keys)) < len(keys):
            return None
        return Slots(keys, self.indices.to_numpy(), absent=UNKNOWN)


@dataclass(frozen=True)
class DayIds:
    """The ids behind one day's indices, read from the log in reverse.

    Attributes:
        indices: Int32 [N], the indices that ids of the day have, ascending, from 2.
        ids: Series [N], the id that the log holds at each.
        unknown: Series [K], those of the day's distinct ids that the log lacked when the day was made, ascending.
    """

    indices: pl.Series
    ids: pl.Series
    unknown: pl.Series

    @classmethod
    def read(cls, store: Store, vocabulary: str, day: date, dataset: Dataset) -> "DayIds":
        """Reads the ids at a day's indices from the log.

        Raises:
            PipelineError: As `DayVocabulary.read`.
        """
        day_map = DayVocabulary.read(store, vocabulary, day, dataset)
        known = day_map.indices >= FIRST_KNOWN
        indices = day_map.indices.filter(known)

        def read_back(log: Vocabulary) -> pl.Series:
            ids = log.ids_of(indices)
            if not ids.equals(day_map.ids.filter(known), check_names=False):
                raise DamagedPieceError(f"{vocabulary} of {day}: the log holds other ids at the indices of the day")
            return ids

        ids = with_index(store, vocabulary, dataset, read_back)
        order = indices.arg_sort()
        return cls(indices.gather(order), ids.gather(order), day_map.ids.filter(~known))

    def ids_of(self, indices: pl.Series) -> pl.Series:
        """The id that the log holds at each index, Series [E]; null for 0, 1 and an index that no id of the day has."""
        positions = self._slots.find(indices.to_numpy().astype(np.int64))
        found = pl.Series(positions)
        return self.ids.gather(found.set(found < 0, None) if (positions < 0).any() else found).alias("id")

    @cached_property
    def _slots(self) -> Slots:
        values = self.indices.to_numpy().astype(np.int64)
        return Slots(values, np.arange(len(values), dtype=np.int32), absent=-1)


def with_index(
    store: Store,
    vocabulary: str,
    dataset: Dataset,
    look_up: Callable[[Vocabulary], T],
    *,
    scratch: Path | None = None,
) -> T:
    """Looks something up in the log by its index, and in the segments themselves when the index turns out to be damaged.

    Args:
        store: Where the log lies.
        vocabulary: Whose log it is.
        dataset: The declarations.
        look_up: Called with the log.
        scratch: As for `read_vocabulary`.

    Raises:
        PipelineError: The log itself is damaged.
    """
    try:
        return look_up(read_vocabulary(store, vocabulary, dataset, scratch=scratch))
    except DamagedPieceError:
        drop_index(index_directory(store, vocabulary))
    try:
        return look_up(read_vocabulary(store, vocabulary, dataset, whole=True))
    except DamagedPieceError as error:
        raise PipelineError(
            f"{log_directory(store, vocabulary)}: the log is damaged ({error}); restore it from a backup"
        ) from None


def distinct_ids(store: Store, vocabulary: str, events: Manifest) -> pl.Series:
    """The distinct ids of a day's events, ascending, without a null."""
    column = ID_COLUMNS[vocabulary]
    found = pl.Series("id", [], dtype=manifest_schema(events)[column])
    waiting, rows = [found], 0
    directory = store.directory("events", events.day)
    for frame in ahead(read_blocks(directory, events.files, [column], block_rows=BLOCK_ROWS)):
        ids = frame[column].alias("id")
        if column == "user_id":  # sorted by it
            waiting.append(pl.Series("id", [ids[0]], dtype=ids.dtype))  # a slice would keep the block in memory
            ids = ids[1:].filter(ids[1:] != ids[:-1])
        waiting.append(ids)
        rows += ids.len()
        if rows >= max(UNIQUE_ROWS, 2 * found.len()):  # what was found goes through the table again
            found = _unique([found, *waiting])
            waiting, rows = [], 0
    return _unique([found, *waiting]).drop_nulls().sort()


def _unique(parts: Sequence[pl.Series]) -> pl.Series:
    """One table of hashes for all parts; a table for each and one for what they find takes twice as long."""
    arrays = [part.to_arrow(compat_level=pl.CompatLevel.oldest()) for part in parts]
    return pl.Series("id", pc.unique(pa.chunked_array(arrays)))  # pyright: ignore[reportAttributeAccessIssue]


def _of_log(log: Vocabulary, ids: pl.Series, manifest: Manifest, store: Store) -> DayVocabulary:
    assert manifest.size is not None
    require_whole_log(store, manifest.asset, log, size=manifest.size)
    indices = log.index_of(ids, size=manifest.size)
    if pairs_version(ids, indices) != manifest.version():
        raise DamagedPieceError(f"{manifest.asset} of {manifest.day} was published with other indices than it holds")
    return DayVocabulary(ids, indices)


def pairs_version(ids: pl.Series, indices: pl.Series) -> str:
    """The content version of a day: its distinct ids, ascending, and the index of each."""
    content = ContentHash()
    content.update(pl.DataFrame({"id": ids, "index": indices}))
    return content.hexdigest()


def ids_of(root: str | Path, vocabulary: str, indices: Sequence[int] | pl.Series, dataset: Dataset) -> pl.Series:
    """For users: which ids stand behind indices; null for padding (0) and unknown (1).

    Args:
        root: Root of the store.
        vocabulary: `user_vocabulary` or `item_vocabulary`.
        indices: As in `user_index` and `item_index`.
        dataset: The dataset of the store.
    """
    wanted = indices if isinstance(indices, pl.Series) else pl.Series("index", indices, dtype=pl.Int64)
    return with_index(Store(Path(root)), vocabulary, dataset, lambda log: log.ids_of(wanted))

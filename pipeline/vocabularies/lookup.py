"""Look-ups: ids to dense indices and back."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from pipeline.contracts import PipelineError

PADDING, UNKNOWN, FIRST_KNOWN = 0, 1, 2
TABLE_SPAN = 4  # a look-up table may be this many times as long as the vocabulary


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

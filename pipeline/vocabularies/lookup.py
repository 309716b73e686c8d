"""Look-ups in a whole log: ids to dense indices and back, through its index and the few segments after it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.store import Store
from pipeline.vocabularies.index import grow_index, open_pieces
from pipeline.vocabularies.length import index_directory
from pipeline.vocabularies.log import FIRST_KNOWN, MAX_INDEX, PADDING, UNKNOWN, Segments, log_directory
from pipeline.vocabularies.pieces import Piece, inverse, keys_of


@dataclass(frozen=True)
class Vocabulary:
    """The log of a vocabulary as it stood when it was read.

    Attributes:
        pieces: What holds its entries, in the order of their indices.
        segments: How many segments there were.
        dtype: Of the ids.
    """

    pieces: tuple[Piece, ...]
    segments: int
    dtype: pl.DataType

    @property
    def length(self) -> int:
        """How many entries the log has."""
        return sum(piece.rows for piece in self.pieces)

    def index_of(self, ids: pl.Series, *, size: int) -> pl.Series:
        """Looks ids up; meant for few of them, such as the distinct ids of a day.

        Args:
            ids: Series [E] without nulls; ascending integers are fastest.
            size: Only the first `size` entries of the log are known; what came later counts as unknown.

        Returns:
            Int32 [E]: the index, 1 for an unknown id.

        Raises:
            DamagedPieceError: The index of the log is damaged.
        """
        keys = keys_of(ids)
        order = None if (keys[1:] >= keys[:-1]).all() else np.argsort(keys)
        left = np.arange(len(keys)) if order is None else order
        found = np.full(len(keys), UNKNOWN, dtype=np.int32)
        for piece in sorted(self.pieces, key=lambda piece: -piece.rows):
            if not len(left):
                break
            indices = piece.find(ids if len(left) == len(keys) and order is None else ids.gather(left), keys[left])
            found[left] = np.maximum(indices, UNKNOWN)
            left = left[indices == 0]
        found[found >= FIRST_KNOWN + size] = UNKNOWN
        return pl.Series("index", found)

    def ids_of(self, indices: pl.Series) -> pl.Series:
        """The reverse look-up: id of each index; null for padding and unknown.

        Raises:
            PipelineError: An index that was never given.
            DamagedPieceError: The index of the log is damaged.
        """
        last = FIRST_KNOWN + self.length - 1
        never_given = indices.filter((indices < PADDING) | (indices > last))
        if never_given.len():
            raise PipelineError(
                f"found index {never_given[0]}, expected {PADDING}..{last}: it was never given to an id"
            )
        wanted = indices.to_numpy()
        order = np.argsort(wanted)
        ascending = wanted[order]
        at = int(np.searchsorted(ascending, FIRST_KNOWN))
        parts = [pl.repeat(None, at, dtype=self.dtype, eager=True)]
        for piece in self.pieces:
            stop = int(np.searchsorted(ascending, piece.first_index + piece.rows))
            parts.append(piece.ids_at(ascending[at:stop]))
            at = stop
        return pl.concat(parts).gather(inverse(order)).alias("id")


def read_vocabulary(
    store: Store, vocabulary: str, dataset: Dataset, *, whole: bool = False, scratch: Path | None = None
) -> Vocabulary:
    """Opens the log: its index, and the segments after it.

    Args:
        store: Where it lies.
        vocabulary: `user_vocabulary` or `item_vocabulary`.
        dataset: The declarations.
        whole: Leaves the index alone and reads all segments into memory.
        scratch: Where the index may be brought after the log first; None leaves it as it is.

    Raises:
        PipelineError: The log is damaged.
    """
    segments = Segments.of(store, vocabulary, dataset)
    newest = segments.newest()
    remembered, known = store.remembered.get(vocabulary, (None, None))
    if known is not None and remembered == newest and not whole:  # segments never change, but a root may be wiped
        return known
    directory = index_directory(store, vocabulary)
    if scratch is not None:
        grow_index(directory, segments, scratch)
    pieces = [] if whole else open_pieces(directory, segments)
    covered = pieces[-1].header.last if pieces else 0
    first_index = pieces[-1].first_index + pieces[-1].rows if pieces else FIRST_KNOWN
    tail = [Piece.of(ids, first_index) for ids in segments.blocks(covered, first_index, MAX_INDEX)]
    known = Vocabulary((*pieces, *tail), segments.count, segments.dtype)
    store.remembered[vocabulary] = (newest, known)
    return known


def require_whole_log(store: Store, vocabulary: str, known: Vocabulary, *, size: int) -> None:
    """Refuses a log that lost its end: its indices would be given a second time.

    Args:
        store: For the sentence.
        vocabulary: For the sentence.
        known: The log, read after `size` was.
        size: How long it has been.

    Raises:
        PipelineError: It is shorter.
    """
    if known.length < size:
        raise PipelineError(
            f"{log_directory(store, vocabulary)}: found {known.length:,} entries, but it has had {size:,}: "
            "the end of the log is lost, and its indices must not be given again; restore the last segments from a backup"
        )

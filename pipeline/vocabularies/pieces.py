"""A piece of a vocabulary: the entries of some segments, sorted by key, which is the id itself or the hash of a text."""

from dataclasses import dataclass

import numpy as np
import polars as pl

PROBE = pl.Series(["", "a", "i17850", "a text that is longer than twelve bytes"])


class DamagedPieceError(Exception):
    """A file of the index does not hold what was written; the log itself has to be read."""


def keys_of(ids: pl.Series) -> np.ndarray:
    """What ids are sorted and looked up by, int64 [N]: integers themselves, of texts a hash.

    Args:
        ids: Series [N] without nulls.
    """
    return ids.to_numpy() if ids.dtype == pl.Int64 else ids.hash().to_numpy().view(np.int64)


def probe(dtype: pl.DataType) -> str:
    """Tells hashes of texts from those of another version of polars; empty for integers."""
    return "" if dtype == pl.Int64 else keys_of(PROBE).tobytes().hex()


@dataclass(frozen=True)
class Piece:
    """Entries in memory; `MappedPiece` has the same in a file.

    Attributes:
        keys: int64 [N], ascending.
        indices: int32 [N], the index of the entry of each key.
        first_index: The lowest index.
        ids: Series [N] in the order of indices; None where they are mapped.
    """

    keys: np.ndarray
    indices: np.ndarray
    first_index: int
    ids: pl.Series | None

    @classmethod
    def of(cls, ids: pl.Series, first_index: int) -> "Piece":
        """Sorts entries in memory; position p holds the id with index `first_index` + p."""
        keys = keys_of(ids)
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], order.astype(np.int32) + np.int32(first_index), first_index, ids)

    @property
    def rows(self) -> int:
        """How many entries there are."""
        return len(self.keys)

    def find(self, ids: pl.Series, keys: np.ndarray) -> np.ndarray:
        """Looks ids up, int32 [E]: the index, or 0.

        Args:
            ids: Series [E].
            keys: int64 [E], their keys, ascending.

        Raises:
            DamagedPieceError: The file is damaged.
        """
        if ids.dtype != pl.String:
            return self._find_integers(keys)
        positions = self.positions(keys)
        found = self._indices_with(positions, keys)
        while True:  # two texts may have the same hash
            held = np.flatnonzero(found)
            texts = self.ids_at(found[held])
            other = np.flatnonzero((texts != ids.gather(held)).to_numpy())
            if not len(other):
                return found
            wrong = held[other]
            if (keys_of(texts.gather(other)) != keys[wrong]).any():
                raise DamagedPieceError("a text has not the hash that it is found by")
            positions[wrong] += 1
            found[wrong] = self._indices_with(positions[wrong], keys[wrong])

    def positions(self, keys: np.ndarray) -> np.ndarray:
        """Where ascending keys belong, int64 [E]: the number of lower keys.

        Raises:
            DamagedPieceError: The file is damaged.
        """
        return np.searchsorted(self.keys, keys)

    def keys_at(self, positions: np.ndarray) -> np.ndarray:
        """The keys at ascending positions."""
        return self.keys[positions]

    def ids_at(self, indices: np.ndarray) -> pl.Series:
        """The ids with some indices of this piece, in whatever order."""
        assert self.ids is not None
        return self.ids.gather(indices - self.first_index)

    def _find_integers(self, keys: np.ndarray) -> np.ndarray:
        return self._indices_with(self.positions(keys), keys)

    def _indices_at(self, positions: np.ndarray) -> np.ndarray:
        return self.indices[positions]

    def _indices_with(self, positions: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The indices at ascending positions where the keys are these, elsewhere 0."""
        found = np.zeros(len(keys), dtype=np.int32)
        inside = np.flatnonzero(positions < self.rows)
        hit = inside[self.keys_at(positions[inside]) == keys[inside]]
        found[hit] = self._indices_at(positions[hit])
        return found


def inverse(order: np.ndarray) -> np.ndarray:
    """Where each place of an order has gone, int64 [N]."""
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return back

"""A file of a vocabulary's index: the entries of some segments, sorted by key, mapped and not read.

A look-up touches the pages that it needs and lets go of them, so that memory does not grow with the log.
"""

import json
import mmap
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pyarrow as pa
import xxhash

from pipeline.vocabularies.pieces import DamagedPieceError, Piece, inverse

FORMAT = 1
BLOCK = 65_536  # entries under one checksum
WINDOW = 1 << 22  # entries that are touched before their pages are let go
HEADER_BYTES = 4096


def check_of(keys: np.ndarray, indices: np.ndarray) -> int:
    """The checksum of a block."""
    check = xxhash.xxh3_64(keys.data)
    check.update(indices.data)
    return check.intdigest()


@dataclass(frozen=True, slots=True)
class Header:
    """What a file of the index says about itself.

    Attributes:
        first: The first segment that it covers.
        last: The first segment after those.
        segments: Tells these segments from others of the same numbers.
        first_index: Of the first segment.
        rows: Entries of all of them.
        text_bytes: Bytes of all texts, 0 for integers.
        text: Whether ids are texts.
        probe: See `probe`.
        entries: `row_hash_sum` of the entries as read in the segments, hexadecimal.
        checks: Checksum of the fences and checksums of blocks.
        version: Of the format.
    """

    first: int
    last: int
    segments: str
    first_index: int
    rows: int
    text_bytes: int
    text: bool
    probe: str
    entries: str
    checks: str
    version: int = FORMAT

    def to_bytes(self) -> bytes:
        """The header with its own checksum, as it stands at the start of the file."""
        entry = json.dumps(asdict(self), sort_keys=True)
        return json.dumps([entry, xxhash.xxh3_64_hexdigest(entry.encode())]).encode().ljust(HEADER_BYTES)

    @classmethod
    def from_bytes(cls, content: bytes) -> "Header":
        """Reads a header.

        Raises:
            DamagedPieceError: It is damaged, or of another format.
        """
        try:
            entry, check = json.loads(content)
            if xxhash.xxh3_64_hexdigest(entry.encode()) != check:
                raise DamagedPieceError("the header is damaged")
            return cls(**json.loads(entry))
        except (ValueError, TypeError) as error:
            raise DamagedPieceError(f"the header cannot be read ({error})") from None


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of a file begin, in bytes.

    `keys` int64 [N], `indices` int32 [N], `fences` int64 [B] the first key of each block, `checks` uint64 [B], then `ids`
    int64 [N], or `ends` int64 [N + 1] and the bytes of all texts.
    """

    keys: int
    indices: int
    fences: int
    checks: int
    ids: int
    texts: int
    end: int
    blocks: int

    @classmethod
    def of(cls, rows: int, text_bytes: int, *, text: bool) -> "Layout":
        """Of a file with so many entries and bytes of text."""
        blocks = -(-rows // BLOCK)
        keys = HEADER_BYTES
        indices = keys + 8 * rows
        fences = indices + -(-4 * rows // 8) * 8
        checks = fences + 8 * blocks
        ids = checks + 8 * blocks
        texts = ids + 8 * (rows + text)
        return cls(keys, indices, fences, checks, ids, texts, texts + text_bytes, blocks)


@dataclass(frozen=True)
class MappedPiece(Piece):
    """Entries in a file of the index.

    Attributes:
        header: What the file says about itself.
        layout: Where its parts begin.
        map: The file.
        path: Where it lay when it was opened; another run may have removed it since.
    """

    header: Header
    layout: Layout
    map: mmap.mmap
    path: Path

    @classmethod
    def open(cls, path: Path) -> "MappedPiece":
        """Maps a file.

        Raises:
            DamagedPieceError: It is not what was written.
            FileNotFoundError: Another run has replaced it.
        """
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < HEADER_BYTES:
                raise DamagedPieceError("the file is cut")
            whole = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        header = Header.from_bytes(whole[:HEADER_BYTES])
        layout = Layout.of(header.rows, header.text_bytes, text=header.text)
        if header.version != FORMAT or len(whole) != layout.end:
            raise DamagedPieceError("the file is cut, or of another format")
        if xxhash.xxh3_64_hexdigest(memoryview(whole)[layout.fences : layout.ids]) != header.checks:
            raise DamagedPieceError("the checksums of the blocks are damaged")
        keys = np.frombuffer(whole, np.int64, header.rows, layout.keys)
        indices = np.frombuffer(whole, np.int32, header.rows, layout.indices)
        return cls(keys, indices, header.first_index, None, header, layout, whole, path)

    def positions(self, keys: np.ndarray) -> np.ndarray:
        """As `Piece.positions`; every block that is looked into is compared with its checksum."""
        found = np.empty(len(keys), dtype=np.int64)
        for block, held, part in self.blocks_of(keys, side="right"):  # equal keys may go over a border
            found[part] = held.searchsorted(keys[part]) + block * BLOCK
        return found

    def _find_integers(self, keys: np.ndarray) -> np.ndarray:
        found = np.zeros(len(keys), dtype=np.int32)
        for block, held, part in self.blocks_of(keys, side="left"):
            places = np.minimum(held.searchsorted(keys[part]), len(held) - 1)
            found[part] = np.where(held[places] == keys[part], self.indices[places + block * BLOCK], 0)
        return found

    def blocks_of(self, keys: np.ndarray, *, side: Literal["left", "right"]) -> Iterator[tuple[int, np.ndarray, slice]]:
        """The blocks that ascending keys belong to: number, keys of the block, and which of the keys belong there.

        Raises:
            DamagedPieceError: A block is not what was written.
        """
        cuts = [0, *np.searchsorted(keys, self.fences[1:], side=side).tolist(), len(keys)]
        for block, (start, stop) in enumerate(pairwise(cuts)):
            if start == stop:
                continue
            entries = slice(block * BLOCK, (block + 1) * BLOCK)
            held = self.keys[entries]
            if check_of(held, self.indices[entries]) != self._checks[block]:
                raise DamagedPieceError(f"block {block} of the entries is damaged")
            yield block, held, slice(start, stop)
            if (block + 1) % (WINDOW // BLOCK) == 0:
                self.let_go()
        self.let_go()

    def keys_at(self, positions: np.ndarray) -> np.ndarray:
        """As `Piece.keys_at`."""
        return self._gather(self.keys, positions)

    def ids_at(self, indices: np.ndarray) -> pl.Series:
        """As `Piece.ids_at`."""
        positions = indices.astype(np.int64) - self.first_index
        if (positions[1:] < positions[:-1]).any():
            order = np.argsort(positions)
            return self.ids_at(indices[order]).gather(inverse(order))
        if not self.header.text:
            values = np.frombuffer(self.map, np.int64, self.rows, self.layout.ids)
            return pl.Series("id", self._gather(values, positions))
        parts = [pl.Series("id", [], dtype=pl.String)]
        for start, stop in _windows(positions):
            parts.append(self._texts_at(positions[start:stop]))
            self.let_go()
        return pl.concat(parts)

    def slice_ids(self, start: int, stop: int) -> pl.Series:
        """Consecutive ids, in the order of their indices."""
        if not self.header.text:
            return pl.Series("id", np.frombuffer(self.map, np.int64, stop - start, self.layout.ids + 8 * start).copy())
        return self._texts_at(np.arange(start, stop))

    def _indices_at(self, positions: np.ndarray) -> np.ndarray:
        return self._gather(self.indices, positions)

    def _gather(self, values: np.ndarray, positions: np.ndarray) -> np.ndarray:
        found = np.empty(len(positions), dtype=values.dtype)
        for start, stop in _windows(positions):
            found[start:stop] = values[positions[start:stop]]
            self.let_go()
        return found

    def let_go(self) -> None:
        """Takes the mapped pages off this process; the operating system keeps them as long as there is room."""
        self.map.madvise(mmap.MADV_DONTNEED)

    @cached_property
    def fences(self) -> np.ndarray:
        """The first key of each block, int64 [B]."""
        return np.frombuffer(self.map, np.int64, self.layout.blocks, self.layout.fences).copy()

    @cached_property
    def _checks(self) -> list[int]:
        return np.frombuffer(self.map, np.uint64, self.layout.blocks, self.layout.checks).tolist()

    def _texts_at(self, positions: np.ndarray) -> pl.Series:
        ends = np.frombuffer(self.map, np.int64, self.rows + 1, self.layout.ids)
        starts, stops = ends[positions], ends[positions + 1]
        if not ((starts >= 0) & (starts <= stops) & (stops <= self.header.text_bytes)).all():
            raise DamagedPieceError("the places of texts are damaged")
        whole = pa.py_buffer(self.map)
        parts = [None, whole.slice(self.layout.ids, 8 * (self.rows + 1)), whole.slice(self.layout.texts)]
        try:
            texts = pa.LargeBinaryArray.from_buffers(pa.large_binary(), self.rows, parts).take(pa.array(positions))
            return pl.Series("id", texts).cast(pl.String)
        except (pa.ArrowException, pl.exceptions.PolarsError):
            raise DamagedPieceError("texts are damaged") from None


def _windows(positions: np.ndarray) -> list[tuple[int, int]]:
    """Cuts ascending positions where they have gone over so many entries, as (start, stop)."""
    if not len(positions):
        return []
    borders = np.arange(positions[0] // WINDOW, positions[-1] // WINDOW + 2) * WINDOW
    cuts = np.unique(np.searchsorted(positions, borders))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))

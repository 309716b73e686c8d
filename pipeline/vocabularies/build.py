"""Writes a piece of the index from older pieces and from segments, in bounded memory, and proves what lies on disk."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl
import xxhash

from pipeline.contracts import PipelineError
from pipeline.store import row_hash_sum
from pipeline.vocabularies.log import Segments
from pipeline.vocabularies.mapped import BLOCK, Header, Layout, MappedPiece, check_of
from pipeline.vocabularies.pieces import DamagedPieceError, keys_of, probe

RUN_ROWS = 1 << 21  # entries that are sorted at once
SAMPLE = 1 << 14  # one key of so many decides where runs are cut
MERGE_ROWS = 1 << 20  # about so many entries are merged at once
MASK_128 = (1 << 128) - 1

Entries = tuple[np.ndarray, np.ndarray]  # keys int64 [N] ascending, indices int32 [N]
Run = Callable[[], Entries]  # maps a file anew each time, so that its pages are let go in between


def write_piece(
    path: Path, segments: Segments, absorbed: Sequence[MappedPiece], *, first: int, first_index: int, rows: int
) -> Header:
    """Writes one piece.

    Args:
        path: The file; its folder takes parts for a while.
        segments: Of the log.
        absorbed: Older pieces that it takes the place of, the last of them up to `first`.
        first: The first segment that none of them covers; the piece goes on to the last segment.
        first_index: Of that segment.
        rows: Entries from that segment on.

    Returns:
        The header, once the file has been read back and proven to hold the entries of its segments, each once, in order.

    Raises:
        DamagedPieceError: It did not come out right; an older piece was damaged.
        PipelineError: The log is damaged.
        OSError: The disk is full.
    """
    text = segments.dtype == pl.String
    all_rows = rows + sum(piece.rows for piece in absorbed)
    start = absorbed[0].header.first if absorbed else first
    layout = Layout.of(all_rows, 0, text=text)  # texts come last
    entries = sum(int(piece.header.entries, 16) for piece in absorbed)
    runs: list[Run] = [partial(_entries_of, piece) for piece in absorbed]
    with path.open("w+b") as file:
        ids = _Ids(file, layout, text=text)
        for piece in absorbed:
            for low in range(0, piece.rows, MERGE_ROWS):
                ids.write(piece.slice_ids(low, min(low + MERGE_ROWS, piece.rows)))
                piece.let_go()
        at = first_index
        for number, part in enumerate(segments.blocks(first, first_index, RUN_ROWS)):
            ids.write(part)
            keys = keys_of(part)
            indices = np.arange(at, at + len(keys), dtype=np.int32)
            entries += _sum(keys, indices)
            order = np.argsort(keys, kind="stable")
            runs.append(_held(path, number, keys[order], indices[order], alone=rows <= RUN_ROWS))
            at += len(keys)
        _write_merged(file, layout, runs)
    header = Header(
        first=start,
        last=segments.count,
        segments=segments.digest(start, segments.count),
        first_index=absorbed[0].first_index if absorbed else first_index,
        rows=all_rows,
        text_bytes=ids.text_bytes,
        text=text,
        probe=probe(segments.dtype),
        entries=f"{entries & MASK_128:x}",
        checks="",
    )
    _finish(path, layout, header)
    prove_piece(MappedPiece.open(path), segments.directory)
    return header


class _Ids:
    """The part of the file that holds the ids in the order of their indices."""

    def __init__(self, file: BinaryIO, layout: Layout, *, text: bool) -> None:
        self._file, self._at, self._texts_at, self._text = file, layout.ids, layout.texts, text
        self.text_bytes = 0
        if text:
            self._put(np.zeros(1, dtype=np.int64))

    def write(self, ids: pl.Series) -> None:
        if not self._text:
            self._put(ids.to_numpy())
            return
        lengths = ids.str.len_bytes().to_numpy().astype(np.int64)
        self._put(self.text_bytes + np.cumsum(lengths))
        self._file.seek(self._texts_at + self.text_bytes)
        self._file.write(ids.str.join("").item().encode())
        self.text_bytes += int(lengths.sum())

    def _put(self, values: np.ndarray) -> None:
        self._file.seek(self._at)
        self._file.write(np.ascontiguousarray(values, dtype=np.int64).data)
        self._at += 8 * len(values)


def _held(path: Path, number: int, keys: np.ndarray, indices: np.ndarray, *, alone: bool) -> Run:
    """A sorted run: in memory when it is the only one, else in two files beside the piece."""
    if alone:
        return lambda: (keys, indices)
    parts = [path.with_name(f"{path.stem}-{number}.{name}") for name in ("keys", "indices")]
    keys.tofile(parts[0])
    indices.tofile(parts[1])
    return lambda: (np.memmap(parts[0], np.int64, "r"), np.memmap(parts[1], np.int32, "r"))


def _entries_of(piece: MappedPiece) -> Entries:
    piece.let_go()
    return piece.keys, piece.indices


def _write_merged(file: BinaryIO, layout: Layout, runs: Sequence[Run]) -> None:
    keys_at, indices_at = layout.keys, layout.indices
    for keys, indices in _merged(runs):
        file.seek(keys_at)
        file.write(keys.data)
        keys_at += keys.nbytes
        file.seek(indices_at)
        file.write(indices.data)
        indices_at += indices.nbytes


def _merged(runs: Sequence[Run]) -> Iterator[Entries]:
    """All entries in ascending order of their keys, cut into parts; equal keys come in one part."""
    sample = np.sort(np.concatenate([np.array(run()[0][::SAMPLE]) for run in runs]))
    borders = np.unique(sample[MERGE_ROWS // SAMPLE :: MERGE_ROWS // SAMPLE])
    cuts = [[0, *np.searchsorted(run()[0], borders).tolist(), len(run()[0])] for run in runs]
    for number in range(len(borders) + 1):
        parts = [_slice(run(), cut[number], cut[number + 1]) for run, cut in zip(runs, cuts, strict=True)]
        keys, indices = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(keys, kind="stable")
        yield keys[order], indices[order]


def _slice(entries: Entries, low: int, high: int) -> Entries:
    """A copy, since what is mapped is let go."""
    return np.array(entries[0][low:high]), np.array(entries[1][low:high])


def entries_of(segments: Segments, first: int, first_index: int, rows: int) -> str:
    """The sum of hashes of so many entries from a segment on, read from the segments; see `Header.entries`."""
    total, left = 0, rows
    for ids in segments.blocks(first, first_index, RUN_ROWS):
        part = ids.head(left)
        at = first_index + rows - left
        total += _sum(keys_of(part), np.arange(at, at + part.len(), dtype=np.int32))
        left -= part.len()
        if not left:
            break
    return f"{total & MASK_128:x}"


def _sum(keys: np.ndarray, indices: np.ndarray) -> int:
    return row_hash_sum(pl.DataFrame({"key": keys, "index": indices}))


def _finish(path: Path, layout: Layout, header: Header) -> None:
    """Adds the checksums of the blocks as they lie on disk, and the header."""
    fences = np.empty(layout.blocks, dtype=np.int64)
    checks = np.empty(layout.blocks, dtype=np.uint64)
    for block in range(layout.blocks):
        low = block * BLOCK
        rows = min(BLOCK, header.rows - low)
        keys = np.fromfile(path, np.int64, rows, offset=layout.keys + 8 * low)
        indices = np.fromfile(path, np.int32, rows, offset=layout.indices + 4 * low)
        fences[block], checks[block] = keys[0], check_of(keys, indices)
    content = fences.tobytes() + checks.tobytes()
    with path.open("r+b") as file:
        file.write(replace(header, checks=xxhash.xxh3_64_hexdigest(content)).to_bytes())
        file.seek(layout.fences)
        file.write(content)


def prove_piece(piece: MappedPiece, log: Path) -> None:
    """Reads a piece back.

    The same sum of hashes in the segments, in the sorted entries and in the ids by index says that all three hold the same
    entries; keys that ascend say that no integer is there twice, and equal keys have to be of different texts.

    Raises:
        DamagedPieceError: The piece is not what its header says.
        PipelineError: The log is damaged: an id is there twice.
    """
    sorted_sum = ids_sum = 0
    twins: list[np.ndarray] = []
    for low in range(0, piece.rows, MERGE_ROWS):
        high = min(low + MERGE_ROWS, piece.rows)
        keys, indices = piece.keys[max(low - 1, 0) : high], piece.indices[max(low - 1, 0) : high]
        if (keys[1:] < keys[:-1]).any():
            raise DamagedPieceError("the keys do not ascend")
        same = np.flatnonzero(keys[1:] == keys[:-1])
        twins += [indices[same], indices[same + 1]]
        sorted_sum += _sum(piece.keys[low:high], piece.indices[low:high])
        numbers = np.arange(piece.first_index + low, piece.first_index + high, dtype=np.int32)
        ids_sum += _sum(keys_of(piece.slice_ids(low, high)), numbers)
        piece.let_go()
    expected = int(piece.header.entries, 16)
    if not sorted_sum & MASK_128 == ids_sum & MASK_128 == expected:
        raise DamagedPieceError("it holds other entries than its segments")
    suspects = piece.ids_at(np.unique(np.concatenate(twins)))
    if suspects.n_unique() < suspects.len():
        twice = suspects.filter(suspects.is_duplicated())[0]
        raise PipelineError(f"{log}: the log is damaged: {twice!r} has two indices; restore it from a backup")

"""The index beside a log: made from the segments whenever it is missing, damaged or of other segments, and never needed.

Pieces cover consecutive segments from the first one on, each at least `RATIO` times as large as the one after it. They are
merged with their neighbours as the log grows, so that an entry is written again a few times in all.
"""

import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.store import Store
from pipeline.vocabularies.build import entries_of, prove_piece, write_piece
from pipeline.vocabularies.length import index_directory
from pipeline.vocabularies.log import FIRST_KNOWN, Segments
from pipeline.vocabularies.mapped import BLOCK, MappedPiece
from pipeline.vocabularies.pieces import DamagedPieceError, probe

TAIL_SEGMENTS = 8  # so many segments are not read as they are but indexed
TAIL_ROWS = 1 << 18  # or so many entries
RATIO = 4
NAME = re.compile(r"(\d{8})-(\d{8})\.piece")  # first segment, and the first after the last


def open_pieces(directory: Path, segments: Segments) -> list[MappedPiece]:
    """Those pieces of an index that cover the log from its first segment on; none is better than a wrong one.

    Args:
        directory: The folder of the index.
        segments: Of the log.
    """
    for _ in range(3):  # another run may merge pieces while they are opened
        try:
            return _chain(directory, segments)
        except FileNotFoundError:
            continue
    return []


def grow_index(directory: Path, segments: Segments, scratch: Path) -> None:
    """Brings the index after the log, unless few entries are missing in it.

    Args:
        directory: The folder of the index.
        segments: Of the log.
        scratch: A folder on the same disk that no other run uses; made and removed.

    Raises:
        PipelineError: The log is damaged.
    """
    pieces = open_pieces(directory, segments)
    covered = pieces[-1].header.last if pieces else 0
    first_index = pieces[-1].first_index + pieces[-1].rows if pieces else FIRST_KNOWN
    tail = segments.rows_from(covered)
    if not tail or (segments.count - covered < TAIL_SEGMENTS and tail < TAIL_ROWS):
        return
    absorbed: list[MappedPiece] = []
    rows = tail
    while pieces and pieces[-1].rows < RATIO * rows:
        absorbed.insert(0, pieces.pop())
        rows += absorbed[0].rows
    try:
        with suppress(OSError):  # a full disk costs the index and not the day
            for folder in (directory, scratch):
                folder.mkdir(parents=True, exist_ok=True)
            path = scratch / f"{secrets.token_hex(4)}.piece"
            header = write_piece(path, segments, absorbed, first=covered, first_index=first_index, rows=tail)
            path.replace(_path(directory, header.first, header.last))
            _remove(directory, header.first, header.last)
    except DamagedPieceError as error:
        if not absorbed:
            raise PipelineError(f"{directory}: the index came out wrong ({error}); report this") from None
        drop_index(directory)
        grow_index(directory, segments, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def prove_index(store: Store, vocabulary: str, dataset: Dataset) -> list[str]:
    """Reads the whole index and the segments that it covers; removes it, and says why, when it is not what they hold."""
    segments = Segments.of(store, vocabulary, dataset)
    directory = index_directory(store, vocabulary)
    wrong: list[str] = []
    for piece in open_pieces(directory, segments):
        header = piece.header
        last_keys = np.append(piece.keys[BLOCK - 1 :: BLOCK], piece.keys[-1:])
        try:
            piece.positions(last_keys)  # every block with its checksum
            prove_piece(piece, segments.directory)
            if header.entries != entries_of(segments, header.first, header.first_index, header.rows):
                wrong.append(f"{piece.path.name} holds other entries than its segments")
        except (PipelineError, DamagedPieceError) as error:
            wrong.append(f"{piece.path.name}: {error}")
    if wrong:
        drop_index(directory)
    return wrong


def drop_index(directory: Path) -> None:
    """Removes all pieces; the next day that is made writes them again."""
    for first, last in _ranges(directory):
        with suppress(OSError):
            _path(directory, first, last).unlink(missing_ok=True)


def _remove(directory: Path, first: int, last: int) -> None:
    """Removes the pieces that another one takes the place of."""
    for other_first, other_last in _ranges(directory):
        if first <= other_first and other_last <= last and (first, last) != (other_first, other_last):
            _path(directory, other_first, other_last).unlink(missing_ok=True)


def _chain(directory: Path, segments: Segments) -> list[MappedPiece]:
    ranges = _ranges(directory)
    chain: list[MappedPiece] = []
    covered, first_index = 0, FIRST_KNOWN
    while True:
        for last in sorted((last for first, last in ranges if first == covered), reverse=True):
            piece = _open(_path(directory, covered, last), segments)
            if piece is not None and (piece.header.first, piece.header.last) == (covered, last):
                if piece.first_index != first_index:
                    continue
                chain.append(piece)
                covered, first_index = last, first_index + piece.rows
                break
        else:
            return chain


def _open(path: Path, segments: Segments) -> MappedPiece | None:
    """A piece, unless it is damaged or of other segments."""
    try:
        piece = MappedPiece.open(path)
    except DamagedPieceError:
        return None
    header = piece.header
    if header.last > segments.count or header.probe != probe(segments.dtype):
        return None
    return piece if header.segments == segments.digest(header.first, header.last) else None


def _ranges(directory: Path) -> list[tuple[int, int]]:
    """First segment, and first one after the last, of the pieces that lie there."""
    try:
        names = [path.name for path in directory.iterdir()]
    except FileNotFoundError:
        return []
    return [(int(found[1]), int(found[2])) for name in names if (found := NAME.fullmatch(name))]


def _path(directory: Path, first: int, last: int) -> Path:
    return directory / f"{first:08d}-{last:08d}.piece"

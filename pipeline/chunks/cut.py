"""A day of events, cut into contiguous ranges of users while it streams by."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl

from pipeline.store import Manifest, manifest_schema, read_blocks, read_files

CHUNK_ROWS = 524_288  # at most, unless the dataset file says otherwise: as many as in a file of `events`


@dataclass(frozen=True, slots=True)
class EventChunk:
    """A contiguous range of rows of `events` that holds whole users, or a piece of one user with very many events.

    Attributes:
        frame: The rows [E], in stored order and in one piece of memory, with the columns that were asked for.
        offsets_U1: int64 [U+1], where the users begin and the last one ends.
        continues: The first user is the last one of the chunk before.
        goes_on: The last user is the first one of the chunk after.
        elsewhere: Reads a column of the same rows that is not in the frame.
    """

    frame: pl.DataFrame
    offsets_U1: np.ndarray
    continues: bool = False
    goes_on: bool = False
    elsewhere: Callable[[str], pl.Series] | None = None

    @property
    def users(self) -> pl.Series:
        """The user_id of every user [U], ascending."""
        return self.frame["user_id"].gather(self.offsets_U1[:-1])

    @property
    def heaviest(self) -> int:
        """Events of the user who has most of them."""
        return int(np.diff(self.offsets_U1).max(initial=0))

    def column(self, name: str) -> pl.Series:
        """A column of the chunk; one that was not asked for is read now."""
        if name not in self.frame.columns and self.elsewhere is not None:
            return self.elsewhere(name).rechunk()
        return self.frame[name]


def iter_chunks(
    directory: Path,
    manifest: Manifest,
    *,
    chunk_rows: int | None = None,
    columns: Sequence[str] | None = None,
    actions: Sequence[str] = (),
) -> Iterator[EventChunk]:
    """Cuts a day of events into contiguous ranges of users.

    Args:
        directory: Where the day's files lie.
        manifest: The day of `events`.
        chunk_rows: The most events that a chunk holds, `CHUNK_ROWS` if None. A user with more comes in pieces: chunks of
            that user alone (`goes_on`), and a rest that begins the chunk after them (`continues`).
        columns: Columns to read beside `user_id`; all if None.
        actions: All names of actions; `action` is then read as Enum of these.

    Yields:
        The chunks, in stored order, without gap or overlap; none for a day without rows.

    Raises:
        PipelineError: A file is missing or damaged.
    """
    most = chunk_rows or CHUNK_ROWS
    schema = manifest_schema(manifest)
    wanted = list(schema) if columns is None else list(dict.fromkeys(["user_id", *columns]))
    names = {"action": actions} if actions and "action" in wanted else None
    blocks = read_blocks(directory, manifest.files, wanted, block_rows=1, names=names)
    rows = read_files(directory, manifest.files, schema)

    def chunk_at(start: int, frame: pl.DataFrame, offsets_U1: np.ndarray, continues: bool, goes_on: bool) -> EventChunk:
        def elsewhere(name: str) -> pl.Series:
            return rows.select(name).slice(start, frame.height).collect()[name]

        return EventChunk(frame, offsets_U1, continues, goes_on, elsewhere)

    held: list[pl.DataFrame] = []
    held_rows, start, continues = 0, 0, False
    for block in chain(blocks, [None]):
        if block is not None:
            held.append(block)
            held_rows += block.height
        while held_rows > most or (block is None and held_rows):
            whole, held = _first(held, most + 1)  # the row after the last says whether its user ends there
            borders = _user_starts(whole["user_id"])
            if whole.height <= most:
                cut, goes_on = whole.height, False
                borders = np.append(borders, cut)
            elif len(borders) > 1:
                cut, goes_on = int(borders[-1]), False
            else:
                cut, goes_on = most, True
                borders = np.append(borders, cut)
            yield chunk_at(start, whole[:cut], borders, continues, goes_on)
            if cut < whole.height:
                held.insert(0, whole[cut:])
            held_rows, start, continues = held_rows - cut, start + cut, goes_on


def halves(chunk: EventChunk) -> tuple[EventChunk, EventChunk]:
    """Cuts a chunk of two events or more in two, between the users nearest to its middle or, in one user, in the middle."""
    rows, users = chunk.frame.height, len(chunk.offsets_U1) - 1
    if users == 1:
        cut = rows // 2
        before, after = np.array([0, cut]), np.array([0, rows - cut])
    else:
        inner = chunk.offsets_U1[1:-1]
        u = 1 + int(np.argmin(np.abs(inner - rows // 2)))
        cut = int(chunk.offsets_U1[u])
        before, after = chunk.offsets_U1[: u + 1], chunk.offsets_U1[u:] - cut

    def part(offsets_U1: np.ndarray, start: int, continues: bool, goes_on: bool) -> EventChunk:
        height = int(offsets_U1[-1])

        def elsewhere(name: str) -> pl.Series:
            return chunk.column(name)[start : start + height]

        return EventChunk(chunk.frame[start : start + height], offsets_U1, continues, goes_on, elsewhere)

    return part(before, 0, chunk.continues, users == 1), part(after, cut, users == 1, chunk.goes_on)


def _first(held: list[pl.DataFrame], rows: int) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """The first rows of some frames, in one piece of memory, and the frames that are left."""
    taken: list[pl.DataFrame] = []
    for position, frame in enumerate(held):
        if frame.height > rows:
            taken.append(frame[:rows])
            return pl.concat(taken).rechunk(), [frame[rows:], *held[position + 1 :]]
        taken.append(frame)
        rows -= frame.height
        if not rows:
            return pl.concat(taken).rechunk(), held[position + 1 :]
    return pl.concat(taken).rechunk(), []


def _user_starts(user_id: pl.Series) -> np.ndarray:
    if user_id.dtype == pl.Int64:
        values = user_id.to_numpy()
        changes = np.flatnonzero(values[1:] != values[:-1])
    else:
        changes = (user_id != user_id.shift(1)).arg_true().to_numpy().astype(np.int64) - 1
    starts = np.zeros(len(changes) + 1, dtype=np.int64)
    np.add(changes, 1, out=starts[1:])
    return starts

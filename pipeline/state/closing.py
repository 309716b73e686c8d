"""`closing` in several files, oldest first: how a day's users are found in it, and how its files are merged.

A day adds one file, with its own users, and takes the files of the day before over as hard links. When several files of
like size lie at the end, they are merged into one; so there are few files, and a row is written again only when it
gets into a file about twice as large.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.store import DataFile, read_blocks, unreadable

GROUP_ROWS = 16_384  # in a row group: a few users in a long history are found in few of its rows
GROUPS_AT_ONCE = 16  # that are in memory together: few enough for the next ones to take the same memory
LIKE_FILES = 4  # so many files of like size are merged
REPAIR = (
    "restore it from a backup, or make user_state again with force = true from the first day on whose manifest holds its "
    "checksum: later days share the file"
)


def merge_from(rows: Sequence[int]) -> int:
    """Which files of `closing` are to become one: all from this position on; `len(rows)` when none.

    Files at the end are of like size while none has more than twice the rows of the largest after it.

    Args:
        rows: Rows of each file, oldest first.

    >>> merge_from([9000, 1000, 1000, 1000])
    4
    >>> merge_from([9000, 1000, 1000, 1000, 1000])
    1
    >>> merge_from([4000, 4000, 4000, 1000, 1000, 1000, 1000])  # the four become one of 4000, which makes four again
    0
    """
    sizes = list(rows)
    while sizes:
        first, largest = len(sizes) - 1, sizes[-1]
        while first and sizes[first - 1] <= 2 * largest:
            first -= 1
            largest = max(largest, sizes[first])
        if len(sizes) - first < LIKE_FILES:
            break
        sizes[first:] = [sum(sizes[first:])]
    return len(rows) if len(sizes) == len(rows) else len(sizes) - 1


def latest_blocks(
    directory: Path, files: Sequence[DataFile], columns: Sequence[str], *, block_rows: int = GROUP_ROWS * 8
) -> Iterator[pl.DataFrame]:
    """Streams the latest row of every user, ascending by user_id, with one block of each file in memory.

    Args:
        directory: Where the files lie.
        files: The files, oldest first, each ascending by user_id.
        columns: Names of the columns, user_id first.
        block_rows: About how many rows of a file are read at once.

    Raises:
        PipelineError: A file is missing or damaged.
    """
    streams = [read_blocks(directory, [file], columns, block_rows=block_rows) for file in files]
    held: list[pl.DataFrame | None] = [next(stream, None) for stream in streams]
    while any(block is not None for block in held):
        upto = min(block["user_id"][-1] for block in held if block is not None)
        parts: list[pl.DataFrame] = []
        for number, block in enumerate(held):
            if block is None:
                continue
            cut = block["user_id"].search_sorted(upto, side="right")
            parts.append(block[:cut])
            held[number] = block[cut:] if cut < block.height else next(streams[number], None)
        rows = pl.concat(parts).sort("user_id", maintain_order=True) if len(parts) > 1 else parts[0]
        latest = (rows["user_id"] != rows["user_id"].shift(-1)).fill_null(value=True)
        yield rows.filter(latest)


class ClosingReader:
    """Finds the latest rows of some users, reading only row groups that may hold one; a context."""

    def __init__(self, directory: Path, files: Sequence[DataFile], schema: Mapping[str, pl.DataType]) -> None:
        """Opens nothing yet.

        Args:
            directory: Where the files lie.
            files: The files, oldest first, each ascending by user_id.
            schema: The columns wanted, user_id first.
        """
        self._schema = dict(schema)
        self._files = [_SortedFile(directory / file.path, self._schema) for file in files]

    def __enter__(self) -> "ClosingReader":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def rows_of(self, users: pl.Series) -> pl.DataFrame:
        """The latest row of each of these users who has one, ascending by user_id.

        Args:
            users: user_id, ascending, each once.

        Raises:
            PipelineError: A file is missing or damaged.
        """
        found = [pl.DataFrame(schema=self._schema)]
        for file in reversed(self._files):
            if users.is_empty():
                break
            rows = file.rows_of(users)
            if rows.height:
                found.append(rows)
                users = users.filter(~_in_ascending(rows["user_id"], users)[0])
        return pl.concat(found).sort("user_id") if len(found) > 2 else found[-1]


class _SortedFile:
    """One file, ascending by user_id, each user once."""

    def __init__(self, path: Path, schema: dict[str, pl.DataType]) -> None:
        self._path, self._schema = path, schema
        self._parquet: pq.ParquetFile | None = None
        self._lowest = self._highest = pl.Series(dtype=schema["user_id"])
        self._unknown = np.empty(0, dtype=bool)  # row groups whose ids are too long for statistics
        self._last: tuple[list[int], pl.DataFrame] = ([], pl.DataFrame())

    def rows_of(self, users: pl.Series) -> pl.DataFrame:
        try:
            parquet = self._parquet or self._open()
            first, stop = _places(users, self._lowest, side="left"), _places(users, self._highest, side="right")
            first[self._unknown], stop[self._unknown] = 0, users.len()
            groups = np.flatnonzero(stop > first).tolist()
            parts = [pl.DataFrame(schema=self._schema)]
            for start in range(0, len(groups), GROUPS_AT_ONCE):
                some = groups[start : start + GROUPS_AT_ONCE]
                parts.append(_matching(self._read(parquet, some), users[first[some[0]] : stop[some[-1]]]))
        except (OSError, pa.ArrowException) as error:
            raise unreadable(self._path, error, remedy=REPAIR) from None
        return pl.concat(parts)

    def _read(self, parquet: pq.ParquetFile, groups: list[int]) -> pl.DataFrame:
        """Some row groups; the next users are often looked for in the same."""
        if groups == self._last[0]:
            return self._last[1]
        table = parquet.read_row_groups(groups, columns=list(self._schema))
        frame = pl.DataFrame([pl.Series(name, table[name]).rechunk() for name in self._schema])
        self._last = (groups, frame) if len(groups) == 1 else ([], pl.DataFrame())
        return frame

    def close(self) -> None:
        if self._parquet is not None:
            self._parquet.close()

    def _open(self) -> pq.ParquetFile:
        self._parquet = pq.ParquetFile(self._path, page_checksum_verification=True)
        metadata = self._parquet.metadata
        found = [metadata.row_group(group).column(0).statistics for group in range(metadata.num_row_groups)]
        bounds = [(one.min, one.max) if one is not None and one.has_min_max else None for one in found]
        anything = 0 if self._schema["user_id"] == pl.Int64 else ""
        lowest, highest = zip(*(bound or (anything, anything) for bound in bounds), strict=True)
        self._unknown = np.array([bound is None for bound in bounds], dtype=bool)
        self._lowest = pl.Series(lowest, dtype=self._schema["user_id"])
        self._highest = pl.Series(highest, dtype=self._schema["user_id"])
        return self._parquet


def _matching(frame: pl.DataFrame, users: pl.Series) -> pl.DataFrame:
    """The rows of some users; both ascend. The longer one is searched for the shorter one."""
    ids = frame["user_id"]
    if ids.len() < users.len():
        return frame.filter(_in_ascending(users, ids)[0])
    found, place = _in_ascending(ids, users)
    return frame[place.filter(found)]


def _in_ascending(ascending: pl.Series, wanted: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Which values are in an ascending series that is not empty, and the place at which each is or would be."""
    place = pl.Series(np.minimum(_places(ascending, wanted, side="left"), ascending.len() - 1))
    return ascending.gather(place) == wanted, place


def _places(ascending: pl.Series, wanted: pl.Series, *, side: Literal["left", "right"]) -> np.ndarray:
    """Where values would be put into an ascending series, int64."""
    if ascending.dtype == pl.Int64:  # polars would plan a query each time
        return np.searchsorted(ascending.to_numpy(), wanted.to_numpy(), side=side)
    return ascending.search_sorted(wanted, side=side).to_numpy().astype(np.int64)

"""What `closing` holds, found a second time by other means than those that made it."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.state import REPAIR
from pipeline.store import DataFile, Manifest, Store, unreadable

GROUPS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Parts:
    """What the files of `closing` are, oldest first, when a day was made from the day before.

    Attributes:
        kept: Taken over from the day before.
        merged: In the place of `sources`.
        sources: Files of the day before that the new day no longer has.
        new: Rows of the day's own users.
    """

    kept: Sequence[DataFile]
    merged: DataFile | None
    sources: Sequence[DataFile]
    new: Sequence[DataFile]

    @classmethod
    def of(cls, manifest: Manifest, before: Manifest | None, *, users: int) -> "Parts | None":
        """Tells the files apart; None when they cannot have come about that way.

        Args:
            manifest: The day.
            before: The day before it; None on the first day.
            users: How many users the day has.
        """
        files = manifest.of_role("closing")
        former = before.of_role("closing") if before else []
        pairs = zip(files, former, strict=False)
        same = [(one.sha256, one.rows, one.bytes) == (other.sha256, other.rows, other.bytes) for one, other in pairs]
        kept = same.index(False) if False in same else len(same)
        sources, rest = former[kept:], files[kept:]
        merged, new = (rest[0], rest[1:]) if sources and rest else (None, rest)
        if (sources and merged is None) or sum(file.rows for file in new) != users:
            return None
        if before is not None and [c["name"] for c in before.columns] != [c["name"] for c in manifest.columns]:
            return None
        return cls(files[:kept], merged, sources, new)


def not_linked(files: Sequence[DataFile], manifest: Manifest, before: Manifest | None, store: Store) -> list[DataFile]:
    """Those of some files of a day that are not also files of the day before."""
    if before is None:
        return list(files)
    there = store.directory(before.asset, before.day)
    shared = {_inode(there / file.path) for file in before.of_role("closing")} - {None}
    here = store.directory(manifest.asset, manifest.day)
    return [file for file in files if _inode(here / file.path) not in shared]


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def blocks_of(path: Path, columns: Sequence[str]) -> Iterator[tuple[pl.DataFrame, list[Any]]]:
    """Streams a file, each block with the users that its row groups state wrongly as their lowest or highest.

    Raises:
        PipelineError: The file is damaged.
    """
    with _opened(path) as parquet:
        bounds = _bounds(parquet)
        for first in range(0, len(bounds), GROUPS_AT_ONCE):
            groups = list(range(len(bounds)))[first : first + GROUPS_AT_ONCE]
            rows, misstated, at = _read(parquet, groups, columns, path), [], 0
            for group in groups:
                stop = at + parquet.metadata.row_group(group).num_rows
                true, stated = (rows["user_id"][at], rows["user_id"][stop - 1]), bounds[group]
                misstated += [] if stated is None else [s for s, t in zip(stated, true, strict=True) if s != t]
                at = stop
            yield rows, misstated


def rows_of(
    directory: Path, files: Sequence[DataFile], users: pl.Series, schema: dict[str, pl.DataType]
) -> pl.DataFrame:
    """The latest rows of some users, ascending by user_id.

    Args:
        directory: Where the files lie.
        files: The files, oldest first.
        users: user_id, ascending.
        schema: The columns wanted.

    Raises:
        PipelineError: A file is damaged.
    """
    wanted, found = users.to_list(), [pl.DataFrame(schema=schema)]
    for file in files:
        with _opened(directory / file.path) as parquet:
            groups = [
                group
                for group, bound in enumerate(_bounds(parquet))
                if bound is None or bisect_left(wanted, bound[0]) < bisect_right(wanted, bound[1])
            ]
            for first in range(0, len(groups), GROUPS_AT_ONCE):
                rows = _read(parquet, groups[first : first + GROUPS_AT_ONCE], list(schema), directory / file.path)
                low = bisect_left(wanted, rows["user_id"][0])
                near = users[low : bisect_right(wanted, rows["user_id"][-1])]
                found.append(rows.join(near.to_frame("user_id"), on="user_id", how="semi", maintain_order="left"))
    return pl.concat(found).unique("user_id", keep="last", maintain_order=True).sort("user_id")


def all_rows(directory: Path, files: Sequence[DataFile], schema: dict[str, pl.DataType]) -> Iterator[pl.DataFrame]:
    """The latest rows of all users, in frames of one range of user_id after the other: newest first, then who is not there yet.

    Args:
        directory: Where the files lie.
        files: The files, oldest first.
        schema: The columns wanted.

    Raises:
        PipelineError: A file is damaged.
    """
    with ExitStack() as opened:
        paths = [directory / file.path for file in reversed(files)]
        parquets = [opened.enter_context(_opened(path)) for path in paths]
        bounds = [_bounds(parquet) for parquet in parquets]
        largest = max(bounds, key=len, default=[])
        highest = [bound[1] for bound in largest[GROUPS_AT_ONCE - 1 :: GROUPS_AT_ONCE] if bound is not None]
        for above, upto in pairwise([None, *highest, None]):
            seen = pl.DataFrame(schema={"user_id": schema["user_id"]})
            for path, parquet, of_groups in zip(paths, parquets, bounds, strict=True):
                groups = [group for group, bound in enumerate(of_groups) if _overlaps(bound, above, upto)]
                if not groups:
                    continue
                rows = _within(_read(parquet, groups, list(schema), path), above, upto)
                rows = rows.join(seen, on="user_id", how="anti")
                seen = pl.concat([seen, rows.select("user_id")])
                yield rows


def _overlaps(bound: tuple[Any, Any] | None, above: Any, upto: Any) -> bool:
    return bound is None or ((above is None or bound[1] > above) and (upto is None or bound[0] <= upto))


def _within(rows: pl.DataFrame, above: Any, upto: Any) -> pl.DataFrame:
    if above is not None:
        rows = rows.filter(pl.col("user_id") > above)
    return rows if upto is None else rows.filter(pl.col("user_id") <= upto)


def some_users(directory: Path, files: Sequence[DataFile], chosen: Sequence[float], dtype: pl.DataType) -> pl.Series:
    """The users of some row groups, ascending.

    Args:
        directory: Where the files lie.
        files: The files.
        chosen: Which row groups: how far behind the first row of the first file they lie, as a share of all rows.
        dtype: The type of user_id.

    Raises:
        PipelineError: A file is damaged.
    """
    total, before, parts = sum(file.rows for file in files), 0, [pl.Series("user_id", [], dtype=dtype)]
    for file in files:
        places = [int(share * total) - before for share in chosen]
        before += file.rows
        if not any(0 <= place < file.rows for place in places):
            continue
        with _opened(directory / file.path) as parquet:
            ends, rows = [], 0
            for group in range(parquet.metadata.num_row_groups):
                rows += parquet.metadata.row_group(group).num_rows
                ends.append(rows)
            groups = sorted({bisect_right(ends, place) for place in places if 0 <= place < rows})
            parts.append(_read(parquet, groups, ["user_id"], directory / file.path)["user_id"])
    return pl.concat(parts).unique().sort()


def _opened(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error, remedy=REPAIR) from None


def _read(parquet: pq.ParquetFile, groups: list[int], columns: Sequence[str], path: Path) -> pl.DataFrame:
    try:
        table = parquet.read_row_groups(groups, columns=list(columns))
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error, remedy=REPAIR) from None
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.select(columns)


def _bounds(parquet: pq.ParquetFile) -> list[tuple[Any, Any] | None]:
    """The lowest and highest user_id that each row group states."""
    metadata = parquet.metadata
    found = [metadata.row_group(group).column(0).statistics for group in range(metadata.num_row_groups)]
    return [(one.min, one.max) if one is not None and one.has_min_max else None for one in found]

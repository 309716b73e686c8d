"""`closing` in several files: however the rows are cut into files and row groups, the latest row of a user wins."""

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.checks import closing as proof
from pipeline.contracts import PipelineError
from pipeline.state import closing
from pipeline.state.closing import ClosingReader, latest_blocks, merge_from
from pipeline.store import DataFile, latest_rows
from pipeline.store.parquet import write_blocks

TYPES: dict[str, tuple[pl.DataType, Callable[[int], Any]]] = {
    "int64": (pl.Int64(), lambda number: (number - 3) * 2**59),
    "string": (pl.String(), lambda number: "é" * (number % 3) + str(number) + "\0" * (number % 2)),
    "long string": (pl.String(), lambda number: "x" * 5000 + str(number)),  # too long for statistics
}
Table = list[dict[int, int]]  # each file: user -> value
tables = st.lists(st.dictionaries(st.integers(0, 12), st.integers(0, 99), min_size=1), max_size=5)


class Written:
    """Files of some tables, and what they say."""

    def __init__(self, folder: Path, tables: Table, kind: str, *, group_rows: int) -> None:
        dtype, as_id = TYPES[kind]
        self.folder, self.schema = folder, {"user_id": dtype, "a.value": pl.Int64()}
        self.files: list[DataFile] = []
        for number, table in enumerate(tables):
            frame = self.frame({as_id(user): value for user, value in table.items()})
            path = folder / f"{number}.parquet"
            rows = write_blocks([frame], path, row_group_rows=group_rows)
            self.files.append(DataFile(path.name, rows, path.stat().st_size, "", "closing"))
        self.latest = {as_id(user): value for table in tables for user, value in table.items()}
        self.ids = pl.Series("user_id", [as_id(number) for number in range(14)], dtype=dtype).sort()

    def frame(self, rows: dict[Any, int]) -> pl.DataFrame:
        ids = pl.Series("user_id", list(rows), dtype=self.schema["user_id"])
        return pl.DataFrame([ids, pl.Series("a.value", list(rows.values()), dtype=pl.Int64)]).sort("user_id")


@given(tables=tables, kind=st.sampled_from(list(TYPES)), group_rows=st.sampled_from([1, 2, 5]), wanted=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_way_of_reading_finds_the_latest_rows(
    tmp_path: Path, tables: Table, kind: str, group_rows: int, wanted: st.DataObject
) -> None:
    written = Written(tmp_path, tables, kind, group_rows=group_rows)
    everything = written.frame(written.latest)
    places = sorted(wanted.draw(st.sets(st.integers(0, 13))))
    users = written.ids.gather(places)
    some = written.frame({user: value for user, value in written.latest.items() if user in users.to_list()})
    folder, files, schema = written.folder, written.files, written.schema
    with mock.patch.object(closing, "GROUPS_AT_ONCE", 2), mock.patch.object(proof, "GROUPS_AT_ONCE", 2):
        with ClosingReader(folder, files, schema) as reader:
            assert reader.rows_of(users).equals(some)
            assert reader.rows_of(written.ids).equals(everything)  # it can be asked again
        assert proof.rows_of(folder, files, users, schema).equals(some)
        blocks = list(latest_blocks(folder, files, list(schema), block_rows=group_rows))
        ranges = list(proof.all_rows(folder, files, schema))
    assert all(block.height for block in blocks)
    assert pl.concat([everything.clear(), *blocks]).equals(everything)
    assert pl.concat([everything.clear(), *ranges]).sort("user_id").equals(everything)
    assert latest_rows(folder, files, schema).collect().equals(everything)


@given(rows=st.lists(st.integers(1, 10**6), min_size=1, max_size=60))
def test_files_stay_few_and_are_merged_seldom(rows: list[int]) -> None:
    """After a history of days of any size: few files, and each row was written a few times."""
    sizes: list[int] = []
    written = 0
    for new in rows:
        first = merge_from(sizes)
        merged = sum(sizes[first:])
        assert len(sizes) - first not in range(1, closing.LIKE_FILES)
        written += merged + new
        sizes = [*sizes[:first], *([merged] if merged else []), new]
        assert len(sizes) <= 1 + 3 * 26  # at most three in each power of two
    assert written <= sum(rows) * (3 + 2 * math.log2(sum(rows) / min(rows)))


def test_a_long_history_is_merged_seldom() -> None:
    sizes: list[int] = []
    written = most_files = 0
    for _ in range(700):
        first = merge_from(sizes)
        merged = sum(sizes[first:])
        written += merged + 1
        sizes = [*sizes[:first], *([merged] if merged else []), 1]
        most_files = max(most_files, len(sizes))
    assert most_files <= 16
    assert written <= 6 * 700  # rows written in all, for each row of a day


def test_frames_cut_anywhere_give_the_same_bytes(tmp_path: Path) -> None:
    frame = pl.DataFrame({"user_id": range(100), "a.value": range(100, 200)})
    found = set()
    for cuts in ([], [3], [64, 65], list(range(1, 100))):
        parts = [frame[first:last] for first, last in itertools.pairwise([0, *cuts, 100])]
        assert write_blocks(parts, tmp_path / "x.parquet", row_group_rows=32) == 100
        found.add((tmp_path / "x.parquet").read_bytes())
    assert len(found) == 1


def by_reader(written: Written) -> object:
    return ClosingReader(written.folder, written.files, written.schema).rows_of(written.ids)


def by_merging(written: Written) -> object:
    return list(latest_blocks(written.folder, written.files, list(written.schema)))


def by_proof(written: Written) -> object:
    return proof.rows_of(written.folder, written.files, written.ids, written.schema)


@pytest.mark.parametrize("read", [by_reader, by_merging, by_proof])
def test_a_damaged_old_file_is_never_read_on(tmp_path: Path, read: Callable[[Written], object]) -> None:
    """Every page that is read of history has its checksum looked at."""
    written = Written(tmp_path, [dict.fromkeys(range(13), 5)], "int64", group_rows=100)
    path = tmp_path / "0.parquet"
    damaged = bytearray(path.read_bytes())
    place = damaged.index(b"\x28\xb5\x2f\xfd") + 8  # in the first page, behind the head that zstd looks at
    damaged[place] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(PipelineError, match=r"0.parquet: the file cannot be read \(.*[Cc][Rr][Cc]"):
        read(written)

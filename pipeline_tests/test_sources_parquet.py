import hashlib
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.contracts import PipelineError
from pipeline.sources import find_files, read_blocks
from pipeline_tests.raw_files import dataset, read_file

TABLE = pl.DataFrame(
    {
        "user": [2**63 - 1, None, -1] * 7,
        "item": ["a", "", None] * 7,
        "time": [datetime(2020, 1, 1, tzinfo=UTC), None, datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=UTC)] * 7,
        "price": [0.1, float("inf"), None] * 7,
        "flag": [True, False, None] * 7,
        "tags": [["x"], [], None] * 7,
    },
    schema_overrides={"time": pl.Datetime("ns", "UTC"), "flag": pl.Boolean},
)


@pytest.mark.parametrize("block_bytes", [1, 300, 1 << 20])
@pytest.mark.parametrize("row_group_size", [4, 21])
def test_own_columns_and_types(tmp_path: Path, block_bytes: int, row_group_size: int) -> None:
    TABLE.write_parquet(tmp_path / "log.parquet", row_group_size=row_group_size)
    declared = dataset(tmp_path, "log.parquet")
    (file,) = find_files(declared, None)
    found = read_file(file, declared, block_bytes)
    assert found.frame.schema == TABLE.schema
    assert found.frame.equals(TABLE)
    assert found.lines == [None] * 21
    assert found.malformed == [False] * 21
    assert json.loads(found.raw[1]) == {
        "user": None, "item": "", "time": None, "price": float("inf"), "flag": False, "tags": [],
    }  # fmt: skip
    assert json.loads(found.raw[2])["time"] == "2020-01-02 03:04:05.000006+00:00"
    assert found.checksum == hashlib.sha256((tmp_path / "log.parquet").read_bytes()).hexdigest()
    assert found.warnings == {}
    # 300 bytes are three rows; a block begins where a row group does, since one is decoded as a whole
    assert found.blocks == {1: 21, 300: 10 if row_group_size == 4 else 7, 1 << 20: 1}[block_bytes]


def test_zero_rows_still_have_columns(tmp_path: Path) -> None:
    TABLE.clear().write_parquet(tmp_path / "log.pq")
    declared = dataset(tmp_path, "log.pq")
    found = read_file(find_files(declared, None)[0], declared, 1 << 20)
    assert found.frame.schema == TABLE.schema
    assert found.rows == []


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path: Path) -> None:
    (tmp_path / "day=2020-01-01").mkdir()
    TABLE.write_parquet(tmp_path / "day=2020-01-01" / "log[1].parquet")
    declared = dataset(tmp_path, "day=*/log[1].parquet")
    found = read_file(find_files(declared, None)[0], declared, 1 << 20)
    assert found.frame.columns == TABLE.columns


def test_cut_and_corrupt_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    TABLE.write_parquet(path)
    whole = path.read_bytes()
    cuts = [whole[:size] for size in (0, 1, 4, 8, len(whole) // 2, *range(len(whole) - 40, len(whole)))]
    overwritten = whole[:4] + b"\xff" * (len(whole) // 2) + whole[4 + len(whole) // 2 :]
    declared = dataset(tmp_path, "log.parquet")
    for content in (*cuts, b"a,b\n1,2\n", overwritten):
        path.write_bytes(content)
        with pytest.raises(PipelineError, match=r"^log\.parquet: not a complete Parquet file \("):
            list(read_blocks(find_files(declared, None)[0], declared, block_bytes=1 << 20))


def test_a_type_that_polars_lacks_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"p": pa.array([Decimal(1)], pa.decimal256(60, 2))}), tmp_path / "log.parquet")
    declared = dataset(tmp_path, "log.parquet")
    with pytest.raises(PipelineError, match=r"^log\.parquet: the column 'p' holds decimal256\(60, 2\), which cannot"):
        list(read_blocks(find_files(declared, None)[0], declared, block_bytes=1 << 20))


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("ms"), pa.date32()])
def test_the_raw_text_of_a_time_beyond_the_calendar(tmp_path: Path, kind: pa.DataType) -> None:
    far = 2**30 if kind == pa.date32() else 2**60
    number = pa.int32() if kind == pa.date32() else pa.int64()
    table = pa.table({"user": [1, 2], "time": pa.array([far, 0], number).cast(kind)})
    table = table.append_column("times", pa.array([[far], [0]], pa.list_(number)).cast(pa.list_(kind)))
    pq.write_table(table, tmp_path / "log.parquet")
    declared = dataset(tmp_path, "log.parquet")
    (block,) = read_blocks(find_files(declared, None)[0], declared, block_bytes=1 << 20)
    assert json.loads(block.raw_text([0])[0]) == {"user": 1, "time": far, "times": [far]}
    assert json.loads(block.raw_text([1])[0])["time"].startswith("1970-01-01")

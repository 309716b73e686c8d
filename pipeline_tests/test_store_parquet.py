"""The files of the lake: what is written is what is read, and the same rows give the same bytes."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts import PipelineError
from pipeline.stages import STAGES, run_day
from pipeline.store import DataFile, read_blocks
from pipeline.store.parquet import Compression, write_file
from pipeline_tests.test_publish import make_work

ACTIONS = ("view", "cart")
START = datetime(2025, 3, 10, tzinfo=UTC)
FRAME = pl.DataFrame(
    {
        "row_id": [3, 0, 2**40],
        "user_id": [-(2**63), 7, 2**63 - 1],
        "item_id": ["85123A", None, "日本"],
        "timestamp": [START, START + timedelta(microseconds=1), START],
        "action": ["cart", "view", "cart"],
        "time_diff": [0.0, 0.1, 1e30],
        "is_first": [True, False, True],
        "action_view": [0, 1, 0],
        "user_index": [2, 2, 2**31 - 1],
    },
    schema_overrides={
        "timestamp": pl.Datetime("us", "UTC"),
        "action": pl.Enum(ACTIONS),
        "time_diff": pl.Float32,
        "action_view": pl.UInt8,
        "user_index": pl.Int32,
    },
)


def blocks_of(
    path: Path, columns: Sequence[str], *, block_rows: int = 10, **names: Sequence[str]
) -> list[pl.DataFrame]:
    return list(read_blocks(path.parent, [DataFile(path.name, 0, 0, "")], columns, block_rows=block_rows, names=names))


COMPRESSIONS = pytest.mark.parametrize("compression", ["zstd", "lz4"])


@COMPRESSIONS
def test_every_reader_finds_the_declared_types(compression: Compression, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_file(FRAME, path, compression=compression)
    as_texts = FRAME.with_columns(pl.col("action").cast(pl.String))
    assert pl.read_parquet(path).equals(as_texts)
    assert pl.read_parquet(path).schema == as_texts.schema
    assert str(pq.read_schema(path).field("action").type) == "string"
    assert pq.read_table(path).num_rows == FRAME.height


@COMPRESSIONS
def test_duckdb_reads_the_same(compression: Compression, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="pip install '.[bench]' brings it")
    write_file(FRAME, tmp_path / "a.parquet", compression=compression)
    read = duckdb.read_parquet(str(tmp_path / "a.parquet")).pl()
    read = read.with_columns(pl.col("timestamp").dt.convert_time_zone("UTC"))
    assert read.equals(FRAME.with_columns(pl.col("action").cast(pl.String)))


def test_encodings_are_chosen_by_what_a_column_holds(tmp_path: Path) -> None:
    rows = pl.DataFrame({"item_id": range(9), "is_first": [True] * 9})
    write_file(pl.concat([FRAME.drop("item_id", "is_first"), rows[: FRAME.height]], how="horizontal"), tmp_path / "a")
    group = pq.ParquetFile(tmp_path / "a").metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert {column.path_in_schema: set(column.encodings) - {"RLE"} for column in columns} == {
        **{name: {"BYTE_STREAM_SPLIT"} for name in ("row_id", "timestamp", "time_diff", "action_view")},
        **{name: {"PLAIN"} for name in ("user_id", "user_index", "is_first")},
        "item_id": {"DELTA_BINARY_PACKED"},
        "action": {"PLAIN", "RLE_DICTIONARY"},
    }


def test_blocks_are_row_groups_of_one_file_in_one_piece(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_file(pl.DataFrame({"user_id": range(300_000)}), path)
    blocks = blocks_of(path, ["user_id"], block_rows=140_000)
    assert [block.height for block in blocks] == [262_144, 37_856]
    assert [block["user_id"].n_chunks() for block in blocks] == [1, 1]
    assert pl.concat(blocks)["user_id"].to_list() == list(range(300_000))


def test_only_the_column_that_is_searched_has_statistics(tmp_path: Path) -> None:
    write_file(FRAME, tmp_path / "a.parquet")
    group = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0)
    with_statistics = [
        group.column(n).path_in_schema for n in range(group.num_columns) if group.column(n).statistics is not None
    ]
    assert with_statistics == ["user_id"]


def test_a_text_that_is_not_declared_is_null(tmp_path: Path) -> None:
    write_file(FRAME, tmp_path / "a.parquet")
    (block,) = blocks_of(tmp_path / "a.parquet", ["action"], action=["view"])
    assert block["action"].to_list() == [None, "view", None]


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_file(FRAME, path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(PipelineError, match=r"a\.parquet: the file cannot be read .*; make this day again"):
        blocks_of(path, ["row_id"])


ROWS = st.lists(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1),
        st.text(max_size=3) | st.none(),
        st.sampled_from([*ACTIONS, None]),
        st.floats(allow_nan=False, width=32),
    ),
    min_size=1,
    max_size=20,
)
SCHEMA = {"user_id": pl.Int64, "item_id": pl.String, "action": pl.Enum(ACTIONS), "time_diff": pl.Float32}


@given(rows=ROWS, cut=st.integers(0, 20))
def test_what_is_written_is_read_whatever_the_pieces(
    rows: list[tuple[object, ...]], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("files")
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    write_file(frame, folder / "whole.parquet")
    write_file(pl.concat([frame[:cut], frame[cut:]], rechunk=False), folder / "pieces.parquet")
    assert (folder / "whole.parquet").read_bytes() == (folder / "pieces.parquet").read_bytes()
    (block,) = blocks_of(folder / "whole.parquet", list(SCHEMA), action=ACTIONS)
    assert block.equals(frame)
    assert block.schema == frame.schema


def test_events_are_packed_to_be_read_soon_and_features_to_be_kept(tmp_path: Path) -> None:
    work = make_work(tmp_path)
    for asset in STAGES:
        run_day(asset, work.dataset.partitions.start, work)
    packed = {
        asset: {
            pq.ParquetFile(file).metadata.row_group(0).column(0).compression
            for file in work.store.directory(asset, work.dataset.partitions.start).glob("*.parquet")
        }
        for asset in ("events", "features", "user_state")
    }
    assert packed == {"events": {"LZ4"}, "features": {"ZSTD"}, "user_state": {"ZSTD"}}

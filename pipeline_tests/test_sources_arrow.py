import contextlib
import hashlib
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.contracts import PipelineError
from pipeline.sources import find_files
from pipeline_tests.raw_files import Everything, dataset, read_file

ROWS = pa.table(
    {
        "user": pa.array([2**63 - 1, None, -1] * 7, pa.int64()),
        "item": ["a", "", None] * 7,
        "time": pa.array([0, None, 1_577_836_800_000_006] * 7, pa.timestamp("us", "UTC")),
        "kind": pa.array(["buy", None, "view"] * 7).dictionary_encode(),
        "code": pa.array([5, None, 2**40] * 7).dictionary_encode(),
        "price": pa.array([Decimal("1.10"), None, Decimal("-2.00")] * 7, pa.decimal128(20, 2)),
        "tags": pa.array([["x"], [], None] * 7, pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        "at": pa.array([{"lat": 1.5, "in": {"city": "é"}}, None, {"lat": None, "in": None}] * 7),
    }
)


def write(path: Path, rows: pa.Table, form: str, *, batch: int = 4, compression: str | None = None) -> None:
    new = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
    with new(path, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(rows, max_chunksize=batch)


def read(folder: Path, name: str, block_bytes: int = 1 << 20, **source) -> Everything:
    declared = dataset(folder, name, **source)
    return read_file(find_files(declared, None)[0], declared, block_bytes)


@pytest.mark.parametrize("block_bytes", [1, 400, 1 << 20])
@pytest.mark.parametrize("form", ["file", "stream"])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_own_columns_and_types(tmp_path: Path, form: str, block_bytes: int, compression: str | None) -> None:
    write(tmp_path / "log.arrow", ROWS, form, compression=compression)
    found = read(tmp_path, "log.arrow", block_bytes)
    assert found.frame.schema == {
        "user": pl.Int64, "item": pl.String, "time": pl.Datetime("us", "UTC"), "kind": pl.String, "code": pl.Int64,
        "price": pl.Decimal(20, 2), "tags": pl.List(pl.String),
        "at": pl.Struct({"lat": pl.Float64, "in": pl.Struct({"city": pl.String})}),
    }  # fmt: skip
    assert found.rows[:3] == [
        (2**63 - 1, "a", datetime(1970, 1, 1, tzinfo=UTC), "buy", 5, Decimal("1.10"), ["x"], {"lat": 1.5, "in": {"city": "é"}}),
        (None, "", None, None, None, None, [], None),
        (-1, None, datetime(2020, 1, 1, microsecond=6, tzinfo=UTC), "view", 2**40, Decimal("-2.00"), None, {"lat": None, "in": None}),
    ]  # fmt: skip
    assert found.rows == found.rows[:3] * 7
    assert found.lines == [None] * 21
    assert found.malformed == [False] * 21
    assert json.loads(found.raw[0])["price"] == "1.10"
    assert found.checksum == hashlib.sha256((tmp_path / "log.arrow").read_bytes()).hexdigest()
    assert found.warnings == {}
    assert (found.blocks == 21) == (block_bytes == 1)


def test_parquet_gives_the_same(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    write(tmp_path / "log.arrow", ROWS, "file")
    pq.write_table(ROWS, tmp_path / "log.parquet")
    columns = {"item_id": {"from": "at.in.city", "type": "string"}, "user_id": {"from": "at.lat", "type": "int64"}}
    arrow, parquet = (read(tmp_path, f"log.{extension}", columns=columns) for extension in ("arrow", "parquet"))
    assert arrow.frame.equals(parquet.frame)
    assert arrow.raw == parquet.raw
    assert arrow.frame.columns == [*ROWS.column_names, "at.lat", "at.in.city"]
    assert arrow.frame["at.in.city"].to_list() == ["é", None, None] * 7
    assert arrow.frame["at.lat"].to_list() == [1.5, None, None] * 7
    assert len(set(arrow.frame.hash_rows())) == 3


def test_a_column_with_points_wins(tmp_path: Path) -> None:
    rows = pa.table({"at": [{"x": 1}], "at.x": [2], "b": [{"c.d": 3}]})
    write(tmp_path / "log.arrow", rows, "file")
    columns = {"user_id": {"from": "at.x", "type": "int64"}, "item_id": {"from": "b.c.d", "type": "string"}}
    assert read(tmp_path, "log.arrow", columns=columns).rows == [({"x": 1}, 2, {"c.d": 3})]


@pytest.mark.parametrize("form", ["file", "stream"])
def test_zero_rows_still_have_columns(tmp_path: Path, form: str) -> None:
    write(tmp_path / "log.ipc", ROWS.slice(0, 0), form)
    found = read(tmp_path, "log.ipc")
    assert (found.rows, found.blocks) == ([], 1)
    assert found.frame.columns == ROWS.column_names
    with pa.ipc.new_stream(tmp_path / "log.ipc", ROWS.schema):
        pass
    assert read(tmp_path, "log.ipc").frame.schema == found.frame.schema


def test_feather(tmp_path: Path) -> None:
    pyarrow.feather.write_feather(ROWS.select(["user"]), tmp_path / "log.feather")
    assert read(tmp_path, "log.feather").rows == [(2**63 - 1,), (None,), (-1,)] * 7
    (tmp_path / "log.feather").write_bytes(b"FEA1" + bytes(60))
    with pytest.raises(PipelineError, match=r"^log\.feather: an old Feather file \(version 1\)"):
        read(tmp_path, "log.feather")


@pytest.mark.parametrize("form", ["file", "stream"])
def test_cut_and_corrupt_files_are_refused(tmp_path: Path, form: str) -> None:
    path = tmp_path / "log.arrow"
    write(path, ROWS.select(["user", "item", "kind"]).slice(0, 5), form, batch=2)
    whole = path.read_bytes()
    # Messages end at multiples of 8: so this cuts between batches, too.
    for content in (
        *(whole[:size] for size in range(0, len(whole), 8)),
        whole[:-1],
        b"user,item\n1,2\n",
    ):
        path.write_bytes(content)
        with pytest.raises(PipelineError, match=r"^log\.arrow: not a complete Arrow file \("):
            read(tmp_path, "log.arrow")
    for offset in range(8, len(whole) - 1, 97):
        path.write_bytes(whole[:offset] + bytes([whole[offset] ^ 255]) + whole[offset + 1 :])
        # What flips within a value is another value; all else is refused, or does no harm.
        with contextlib.suppress(PipelineError):
            read(tmp_path, "log.arrow")


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (pa.decimal256(60, 2), "with at most 38 digits"),
        (pa.list_(pa.struct({"d": pa.decimal256(60, 2)})), "with at most 38 digits"),
        (pa.month_day_nano_interval(), "as text or numbers"),
        (pa.dense_union([pa.field("a", pa.int8())]), "as text or numbers"),
        (pa.list_view(pa.int8()), "as text or numbers"),
    ],
)
def test_a_type_that_polars_lacks_is_named(tmp_path: Path, kind: pa.DataType, advice: str) -> None:
    schema = pa.schema({"user": pa.int64(), "p": kind})
    with pa.ipc.new_file(tmp_path / "log.arrow", schema):
        pass
    with pytest.raises(
        PipelineError, match=r"^log\.arrow: the column 'p' holds .* which cannot be read; write it " + advice
    ):
        read(tmp_path, "log.arrow")


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    rows = pa.record_batch([pa.array([1]), pa.array([2])], names=["user", "user"])
    with pa.ipc.new_file(tmp_path / "log.arrow", rows.schema) as writer:
        writer.write_batch(rows)
    with pytest.raises(PipelineError, match=r"^log\.arrow: "):
        read(tmp_path, "log.arrow")


def test_a_packed_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.arrow.gz").write_bytes(b"x")
    with pytest.raises(PipelineError, match=r"^log\.arrow\.gz: Arrow inside"):
        read(tmp_path, "log.arrow.gz")


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {"a": st.none() | st.integers(-(2**63), 2**63 - 1), "s": st.none() | st.text(max_size=3)}
        ),
        max_size=12,
    ),
    batch=st.integers(1, 5),
    block_bytes=st.integers(1, 200),
    form=st.sampled_from(["file", "stream"]),
)
def test_block_size_changes_nothing(tmp_path: Path, rows: list, batch: int, block_bytes: int, form: str) -> None:
    schema = pa.schema({"a": pa.int64(), "s": pa.string()})
    write(tmp_path / "log.arrow", pa.Table.from_pylist(rows, schema), form, batch=batch)
    found = read(tmp_path, "log.arrow", block_bytes)
    assert found.frame.to_dicts() == rows

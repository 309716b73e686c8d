"""The second reading of the raw bytes: counts, cells and verdicts in plain Python."""

import gzip
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.checks.raw import excluded_columns, judge, read_records, records
from pipeline.config import Csv, Dataset
from pipeline.sources import RawFile, read_blocks

DAY = date(2024, 3, 1)
NOON_S = int(datetime(2024, 3, 1, 12, tzinfo=UTC).timestamp())


def declared(tmp: Path, **columns: object) -> Dataset:
    raw = {
        "name": "raw",
        "partitions": {"start": "2024-03-01", "end": "2024-03-02"},
        "source": {"path": "{date}.csv"},
        "columns": {
            "user_id": {"from": "u", "type": "int64"},
            "item_id": {"from": "i", "type": "string"},
            "timestamp": {"from": "t", "unit": "s"},
            "action": {"from": "a"},
            **columns,
        },
        "actions": {"names": ["view", "buy"]},
        "extra": {"price": {"from": "p", "type": "float64"}},
        "store": {"root": "out"},
    }
    return Dataset.model_validate(raw).model_copy(update={"file": tmp / "dataset.toml"})


def count(path: Path, wanted: range = range(0), **settings: object) -> records.Reading:
    return read_records(path, declared_format=None, csv_settings=Csv.model_validate(settings), wanted=wanted)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n3,4\n", 2),
        ("a,b\n1,2\n3,4", 2),
        ("a,b\r\n1,2\r\n\r\n3,4\r\n", 2),
        ('a,b\n"1\n1",2\n3,4\n', 2),
        ('a,b\n"1""\n",2\n\n\n3,4\n', 2),
        ('a,b\n1,"never closed\n3,4\n', 1),
        ("a,b\n", 0),
        ("\ufeffa,b\n1,2\n", 1),
    ],
)
def test_records_are_counted_outside_quotes(tmp_path: Path, text: str, expected: int) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    assert count(path).records == expected


def test_other_formats(tmp_path: Path) -> None:
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n"))
    assert count(tmp_path / "x.csv.gz").records == 2
    (tmp_path / "x.jsonl").write_text('{"a": 12345678901234567890, "b": 1.50}\n\nbroken\n{"a": true}')
    reading = count(tmp_path / "x.jsonl", range(9))
    assert reading.records == 3
    assert [record.cells for record in reading.found.values()] == [
        {"a": "12345678901234567890", "b": "1.50"},
        None,
        {"a": "true"},
    ]
    assert [record.line for record in reading.found.values()] == [1, 3, 4]
    pq.write_table(pa.table({"a": list(range(10))}), tmp_path / "x.parquet", row_group_size=3)
    reading = count(tmp_path / "x.parquet", range(4, 6))
    assert reading.records == 10
    assert [record.cells for record in reading.found.values()] == [{"a": 4}, {"a": 5}]


@given(
    body=st.lists(st.sampled_from(["a,b\n", '"x","y\nz"\n', *'a,"\n\r'])).map("".join),
    block_bytes=st.sampled_from([1, 3, 7, 1 << 20]),
)
def test_both_readings_cut_alike(tmp_path_factory: pytest.TempPathFactory, body: str, block_bytes: int) -> None:
    folder = tmp_path_factory.mktemp("cut")
    path = folder / "x.csv"
    path.write_bytes(("h,i\n" + body).encode())
    status = path.stat()
    file = RawFile(path, "x.csv", None, status.st_size, status.st_mtime_ns)
    reader = read_blocks(file, declared(folder), block_bytes=8)
    theirs = [
        (None if malformed else cells, line)
        for block in reader
        for cells, line, malformed in zip(block.frame.rows(), block.line, block.malformed, strict=True)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "BLOCK_BYTES", block_bytes)
        reading = count(path, range(1000))
    ours = [
        (None if record.cells is None else tuple(record.cells.values()), record.line)
        for record in reading.found.values()
    ]
    assert ours == theirs
    assert reading.sha256 == reader.checksum


GOOD = {"u": "17850.0", "i": "85123A", "t": str(NOON_S), "a": "view", "p": "2.55"}


def test_a_good_record(tmp_path: Path) -> None:
    verdict = judge(GOOD, declared(tmp_path), file_day=DAY)
    assert verdict.reason is None
    assert verdict.values == {
        "user_id": 17850,
        "item_id": "85123A",
        "timestamp": NOON_S * 1_000_000,
        "action": "view",
        "price": 2.55,
    }


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (None, "malformed_line"),
        ({"u": None}, "missing_user_id"),
        ({"u": "17850.5"}, "malformed_user_id"),
        ({"i": None}, "missing_item_id"),
        ({"t": None}, "missing_timestamp"),
        ({"t": "noon"}, "malformed_timestamp"),
        ({"t": "0"}, "implausible_timestamp"),
        ({"t": str(NOON_S + 86_400)}, "outside_day"),
        ({"a": None}, "missing_action"),
        ({"a": "cart"}, "unknown_action"),
        ({"u": str(2**63)}, "id_out_of_range"),
        ({"p": "12,34"}, "malformed_extra"),
        ({"p": "inf"}, "malformed_extra"),
        ({"u": str(2**63), "a": "cart"}, "unknown_action"),
        ({"t": "0", "u": "x"}, "malformed_user_id"),
    ],
)
def test_reasons(tmp_path: Path, changed: dict[str, str | None] | None, reason: str) -> None:
    cells = None if changed is None else {**GOOD, **changed}
    assert judge(cells, declared(tmp_path), file_day=DAY).reason == reason


def test_times(tmp_path: Path) -> None:
    zone = {"from": "t", "format": "%Y-%m-%d %H:%M:%S", "timezone": "Europe/Berlin"}
    judged = judge({**GOOD, "t": "2024-03-01 13:00:00"}, declared(tmp_path, timestamp=zone), file_day=DAY)
    assert judged.values["timestamp"] == NOON_S * 1_000_000
    twice = judge({**GOOD, "t": "2023-10-29 02:30:00"}, declared(tmp_path, timestamp=zone), file_day=None)
    assert twice.reason == "malformed_timestamp"
    ns = judge(
        {**GOOD, "t": f"{NOON_S}000000999"}, declared(tmp_path, timestamp={"from": "t", "unit": "ns"}), file_day=DAY
    )
    assert ns.values["timestamp"] == NOON_S * 1_000_000


def test_what_is_not_judged_is_said(tmp_path: Path) -> None:
    assert excluded_columns(declared(tmp_path)) == []
    assert excluded_columns(declared(tmp_path, action={"sql": "'view'"})) == ["action"]
    odd = {"from": "t", "format": "%s", "timezone": "UTC"}
    assert excluded_columns(declared(tmp_path, timestamp=odd)) == ["timestamp"]

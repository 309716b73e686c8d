"""The second reading of the raw bytes: counts and cells in plain Python."""

import bz2
import gzip
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.checks.raw import Reading, Wanted, read_records
from pipeline.checks.raw.records import stored
from pipeline.config import Csv, Dataset
from pipeline.sources import RawFile, read_blocks
from pipeline_tests.raw_files import declared_raw as declared


def read_with(dataset: Dataset, **csv: object) -> Dataset:
    source = dataset.source.model_copy(update={"csv": Csv.model_validate(csv)})
    return dataset.model_copy(update={"source": source})


def count(path: Path, wanted: range = range(0), **csv: object) -> Reading:
    return read_records(path, dataset=read_with(declared(path.parent), **csv), wanted=Wanted(wanted))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n3,4\n", 2),
        ("a,b\n1,2\n3,4", 2),
        ("a,b\r\n1,2\r\n\r\n3,4\r\n", 2),
        ('a,b\n"1\n1",2\n3,4\n', 2),
        ('a,b\n"1""\n",2\n\n\n3,4\n', 2),
        ('a,b\n1,"never closed\n3,4\n', 1),
        ("a,b\n" + '"1"x,2\n3,"4"\n' * 9, 18),
        ("a,b\n", 0),
        ("\ufeffa,b\n1,2\n", 1),
    ],
)
def test_records_are_counted_outside_quotes(tmp_path: Path, text: str, expected: int) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    for block_bytes in (2, 4, 12, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stored, "BLOCK_BYTES", block_bytes)
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
        patch.setattr(stored, "BLOCK_BYTES", block_bytes)
        reading = count(path, range(1000))
    ours = [
        (None if record.cells is None else tuple(record.cells.values()), record.line)
        for record in reading.found.values()
    ]
    assert ours == theirs
    assert reading.sha256 == reader.checksum


def readings(path: Path, **csv: object) -> tuple[list[object], list[object]]:
    """Cells and lines of every record, by the readers of the pipeline and in plain Python."""
    dataset = read_with(declared(path.parent), **csv)
    status = path.stat()
    reader = read_blocks(RawFile(path, path.name, None, status.st_size, status.st_mtime_ns), dataset, block_bytes=8)
    theirs = [
        (None if malformed else cells, line)
        for block in reader
        for cells, line, malformed in zip(block.frame.rows(), block.line, block.malformed, strict=True)
    ]
    found = count(path, range(1000), **csv)
    assert found.records == len(theirs)
    assert found.sha256 == reader.checksum
    ours = [
        (None if record.cells is None else tuple(record.cells.values()), record.line) for record in found.found.values()
    ]
    return ours, theirs  # type: ignore[return-value]


TEXT = 'u,i\n1,\u00e9\n2,"a\nb"\n\n3,c\n4\n'
CELLS = [(("1", "\u00e9"), 2), (("2", "a\nb"), 3), (("3", "c"), 6), (None, 7)]


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "UTF8", "utf_8", "utf-8-sig", "utf_16", "utf-16-le", "UTF-32", "latin-1", "cp1252", "cp037", "utf-7"],
)
def test_both_readings_decode_alike(tmp_path: Path, encoding: str, marked: bool) -> None:
    path = tmp_path / "x.csv"
    own_mark = encoding.lower() in ("utf-8-sig", "utf_16", "utf-32")
    has_marks = encoding.lower().startswith("utf") and encoding != "utf-7" and not own_mark
    path.write_bytes((("\ufeff" if marked and has_marks else "") + TEXT).encode(encoding))
    ours, theirs = readings(path, encoding=encoding)
    assert ours == theirs == CELLS


@pytest.mark.parametrize("encoding", ["shift_jis", "iso2022_jp", "gb18030", "euc_kr", "big5"])
def test_both_readings_decode_letters_of_several_bytes_alike(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes('u,i\n1,"\u4e00\n\u4e8c"\n\u4e09,2\n'.encode(encoding))
    ours, theirs = readings(path, encoding=encoding)
    assert ours == theirs == [(("1", "\u4e00\n\u4e8c"), 2), (("\u4e09", "2"), 4)]


@pytest.mark.parametrize("encoding", ["utf_16", "utf-16-le", "utf-32"])
def test_both_readings_refuse_a_letter_that_is_cut(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("u,i\n1,a\n2,b".encode(encoding)[:-1])
    ours, theirs = readings(path, encoding=encoding)
    assert ours == theirs == [(("1", "a"), 2), (None, 3)]


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n\n"])
def test_nothing_but_a_mark_is_no_record(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    settings = {"encoding": "utf-8-sig", "has_header": False, "columns": ["u"]}
    assert readings(tmp_path / "x.csv", **settings) == ([], [])


@pytest.mark.parametrize(
    ("content", "settings", "expected"),
    [
        (b'u,"i\nj"\n1,2\n', {}, [(("1", "2"), 3)]),
        (b"u,i\n1,2\n\r\r\n3,4\n", {}, [(("1", "2"), 2), (("3", "4"), 4)]),
        (b'u,i\n"""""",1\n"a""b",2\n', {"null_values": ['""', 'a"b']}, [((None, "1"), 2), ((None, "2"), 3)]),
        (b"u,i\n1,\x81\n2,\x80\n", {"encoding": "cp1252"}, [(None, 2), (("2", "\u20ac"), 3)]),
        (b"u,i\n1,\xe0\n2,b\n", {"encoding": "shift_jis"}, [(None, 2), (("2", "b"), 3)]),
        (b",i\n1,2\n3\n", {}, [(("1", "2"), 2), (None, 3)]),
    ],
)
def test_both_readings_of_odd_files(
    tmp_path: Path, content: bytes, settings: dict[str, object], expected: list[object]
) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    ours, theirs = readings(tmp_path / "x.csv", **settings)
    assert ours == theirs == expected


def test_extensions_in_capital_letters(tmp_path: Path) -> None:
    for name, pack in (("X.CSV.GZ", gzip.compress), ("X.CSV.BZ2", bz2.compress)):
        (tmp_path / name).write_bytes(pack(b"u,i\n1,2\n"))
        ours, theirs = readings(tmp_path / name)
        assert ours == theirs == [(("1", "2"), 2)]


def test_records_are_found_by_their_lines(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b'u,i\n1,"a\nb"\n' + b"2,c\n" * 9)
    (tmp_path / "x.ndjson").write_bytes(b'\n{"u": 1}\n' + b'{"u": 2}\n' * 9)
    for block_bytes in (3, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stored, "BLOCK_BYTES", block_bytes)
            for name, expected in (("x.csv", {5: 2}), ("x.ndjson", {5: 3})):
                wanted = Wanted((), {3, 5}, columns={"u"})
                found = read_records(tmp_path / name, dataset=declared(tmp_path), wanted=wanted).found
                assert {record.line: ordinal for ordinal, record in found.items() if record.line == 5} == expected
                assert all(set(record.cells or ()) == {"u"} for record in found.values())


def test_nested_json_is_compact_text_and_half_a_letter_malformed(tmp_path: Path) -> None:
    deep = '{"a":' + "[" * 99 + "]" * 99 + "}\n"
    lines = ['{"a": ["x", 1.50, null, true, "2"], "b": {"k": 1E5}}\n', '{"a": "\\ud83d\\ude00"}\n']
    wrong = ['{"a": "\\ud800"}\n', '{"unused": ["\\udc00x"]}\n', deep.replace("[]", "[[]]")]
    (tmp_path / "x.ndjson").write_text("".join([*lines, deep, *wrong]), encoding="utf-8")
    assert [record.cells for record in count(tmp_path / "x.ndjson", range(9)).found.values()] == [
        {"a": '["x",1.50,null,true,"2"]', "b": '{"k":1E5}'},
        {"a": "\U0001f600"},
        {"a": "[" * 99 + "]" * 99},
        None,
        None,
        None,
    ]


def test_parquet_cells(tmp_path: Path) -> None:
    us = 1_577_872_800_123_456
    columns = {
        "ns": pa.array([us * 1000 + 999, None], pa.timestamp("ns", "UTC")),
        "naive": pa.array([us, 2**62], pa.timestamp("us")),
        "far": pa.array([-(2**60), 2**60], pa.timestamp("ms", "+02:00")),
        "day": pa.array([18_262, 2**30], pa.int32()).cast(pa.date32()),
        "span": pa.array([1, None], pa.duration("ns")),
        "clock": pa.array([7, 8], pa.time64("ns")),
        "half": pa.array([1.5, 2.0**24], pa.float32()),
        "wide": pa.array([Decimal("1.25"), None], pa.decimal256(60, 2)),
        "view": pa.array(["a", "b"], pa.string_view()),
        "word": pa.array(["a", "b"]).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=2)
    stamp = datetime(2020, 1, 1, 10, 0, 0, 123_456)  # noqa: DTZ001
    for wanted in (Wanted({0, 1}), Wanted({1}), Wanted({0}, columns={"ns", "nowhere"})):
        found = read_records(tmp_path / "x.parquet", dataset=declared(tmp_path), wanted=wanted).found
        assert list(found) == sorted(wanted.ordinals)
        if wanted.columns:
            assert found[0].cells == {"ns": stamp.replace(tzinfo=UTC)}
        elif len(found) == 2:
            first, second = (dict(record.cells or {}) for record in found.values())
            assert first == {
                "ns": stamp.replace(tzinfo=UTC), "naive": stamp, "far": datetime(2, 1, 1, tzinfo=UTC), "day": date(2020, 1, 1),
                "span": 1, "clock": 7, "half": 1.5, "wide": Decimal("1.25"), "view": "a", "word": "a",
            }  # fmt: skip
            assert second["ns"] is None
            assert (second["naive"], second["far"], second["day"]) == (
                datetime(9998, 1, 1), datetime(9998, 1, 1, tzinfo=UTC), date(9998, 1, 1),  # noqa: DTZ001
            )  # fmt: skip
        else:
            assert (found[1].cells or {})["half"] == 2.0**24

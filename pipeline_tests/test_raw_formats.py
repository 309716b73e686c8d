"""The second reading, format by format: small files whose records a reader can check by hand."""

import bz2
import gzip
import json
import lzma
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.checks.raw import Wanted, read_records
from pipeline.checks.raw.records import stored
from pipeline.contracts import PipelineError
from pipeline_tests.raw_files import dataset

EVERY = range(1000)
Found = list[tuple[int | None, dict[str, Any] | None]]


def found(folder: Path, name: str, content: bytes | str | None = None, *, path: str = "", **source: Any) -> Found:
    """Line and cells of every record; None for malformed ones."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    if content is not None:
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    declared = dataset(folder, path or name, **source)
    reading = read_records(file, dataset=declared, wanted=Wanted(EVERY))
    assert list(reading.found) == list(range(reading.records))
    assert read_records(file, dataset=declared, wanted=Wanted(())).records == reading.records
    return [(record.line, record.cells) for record in reading.found.values()]


# --- text --------------------------------------------------------------------------------------------------------


def test_cells_between_separators_of_several_characters(tmp_path: Path) -> None:
    text = 'u::i\n1::a:b\n2:::b\n"3::c"\n4\n5::NULL\r\n6::::d\n'
    csv = {"separator": "::", "quote_char": "", "null_values": ["NULL"]}
    assert found(tmp_path, "x.csv", text, csv=csv) == [
        (2, {"u": "1", "i": "a:b"}),
        (3, {"u": "2", "i": ":b"}),
        (4, {"u": '"3', "i": 'c"'}),
        (5, None),
        (6, {"u": "5", "i": None}),
        (7, None),
    ]


def test_cells_between_runs_of_blanks(tmp_path: Path) -> None:
    text = ' u \t i\n1 a\n\t2   "b \r\n3\n4 c d\n\n5\u00a0e f\n'
    csv = {"separator": "whitespace", "quote_char": ""}
    assert found(tmp_path, "x.txt", text, csv=csv) == [
        (2, {"u": "1", "i": "a"}),
        (3, {"u": "2", "i": '"b'}),
        (4, None),
        (5, None),
        (7, {"u": "5\u00a0e", "i": "f"}),
    ]


def test_a_typed_header(tmp_path: Path) -> None:
    text = "user_id:token,t:float:x,plain\n1,2,3\n"
    assert found(tmp_path, "x.csv", text, csv={"typed_header": True}) == [(2, {"user_id": "1", "t": "2", "plain": "3"})]
    named = {"typed_header": True, "columns": ["a", "b", "c"]}
    assert found(tmp_path, "x.csv", text, csv=named) == [(2, {"a": "1", "b": "2", "c": "3"})]


def test_comments_stand_where_records_begin(tmp_path: Path) -> None:
    text = '# made by hand\n\n#u,i\nu,i\n1,a\n#2,b\n3,"c\n#d"\n #4,e\n#"\n5,f\n'
    assert found(tmp_path, "x.csv", text, csv={"comment": "#"}) == [
        (5, {"u": "1", "i": "a"}),
        (7, {"u": "3", "i": "c\n#d"}),
        (9, {"u": " #4", "i": "e"}),
        (11, {"u": "5", "i": "f"}),
    ]


@pytest.mark.parametrize("sign", ["(*", "[", "|"])
def test_a_comment_begins_with_any_sign(tmp_path: Path, sign: str) -> None:
    text = f"u,i\n1,a\n{sign}2,b\n3,c\n"
    assert found(tmp_path, "x.csv", text, csv={"comment": sign}) == [
        (2, {"u": "1", "i": "a"}),
        (4, {"u": "3", "i": "c"}),
    ]


def test_fixed_width(tmp_path: Path) -> None:
    fixed = {"columns": {"u": [1, 3], "i": [6, 9]}, "null_values": ["-"], "has_header": True, "comment": "%"}
    lines = ["%%", "usr  item", "  1xxab", "\t2 xxcdefgh", "333  é è ", "4    -", "5", "      ", "", "12345", "123456"]
    assert found(tmp_path, "x.log", "\r\n".join(lines), format="fixed_width", fixed_width=fixed) == [
        (3, {"u": "1", "i": "ab"}),
        (4, {"u": "2", "i": "cdef"}),
        (5, {"u": "333", "i": "é è"}),
        (6, {"u": "4", "i": None}),
        (7, None),
        (8, {"u": None, "i": None}),
        (10, None),
        (11, {"u": "123", "i": "6"}),
    ]


def test_regex(tmp_path: Path) -> None:
    pattern = r'(?P<host>\S+) (?:"(?P<line>[^"]*)"|-)(?: (?P<size>\d*))?'
    text = 'a "GET /" 12\r\nb - \nc -\nd - 1 \n# e - 1\nf "" NULL\ng "NULL" 007'
    regex = {"pattern": pattern, "null_values": ["NULL"], "comment": "#"}
    assert found(tmp_path, "x.log", text, format="regex", regex=regex) == [
        (1, {"host": "a", "line": "GET /", "size": "12"}),
        (2, {"host": "b", "line": None, "size": None}),
        (3, {"host": "c", "line": None, "size": None}),
        (4, None),
        (6, None),
        (7, {"host": "g", "line": None, "size": "007"}),
    ]


def test_lines_in_another_encoding(tmp_path: Path) -> None:
    regex = {"pattern": "(?P<u>.*)", "encoding": "utf-16"}
    assert found(tmp_path, "x.log", "é\n\u4e00".encode("utf-16"), format="regex", regex=regex) == [
        (1, {"u": "é"}),
        (2, {"u": "\u4e00"}),
    ]
    broken = b"a\n\xff\nb"
    assert found(tmp_path, "x.log", broken, format="regex", regex={"pattern": "(?P<u>.*)"}) == [
        (1, {"u": "a"}),
        (2, None),
        (3, {"u": "b"}),
    ]


@given(
    lines=st.lists(st.sampled_from(["1,2", '1,"2', '3"', '"4,4",5', "", "#", '#"', "\r", '"6","7"x', '8"8,9'])),
    block_bytes=st.sampled_from([3, 16, 64]),
    wanted=st.sets(st.integers(0, 9)),
)
def test_counting_does_not_depend_on_what_is_wanted(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], block_bytes: int, wanted: set[int]
) -> None:
    folder = tmp_path_factory.mktemp("count")
    (folder / "x.csv").write_text("u,i\n" + "\n".join(lines))
    declared = dataset(folder, "x.csv", csv={"comment": "#"})
    every = read_records(folder / "x.csv", dataset=declared, wanted=Wanted(EVERY))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "BLOCK_BYTES", block_bytes)
        some = read_records(folder / "x.csv", dataset=declared, wanted=Wanted(wanted))
    assert some.records == every.records
    assert some.found == {ordinal: every.found[ordinal] for ordinal in sorted(wanted) if ordinal in every.found}


# --- compression -------------------------------------------------------------------------------------------------


def test_compression_by_extension_and_by_declaration(tmp_path: Path) -> None:
    text, expected = b"u\n1\n", [(2, {"u": "1"})]
    assert found(tmp_path, "x.csv.xz", lzma.compress(text)) == expected
    assert found(tmp_path, "x.CSV.XZ", lzma.compress(b"u\n") + lzma.compress(b"1\n")) == expected
    assert found(tmp_path, "y.csv", lzma.compress(text), compression="xz") == expected
    assert found(tmp_path, "y.csv", gzip.compress(text), compression="gzip") == expected
    assert found(tmp_path, "y.csv", bz2.compress(text), compression="bz2") == expected
    assert found(tmp_path, "y.csv", pa.compress(text, "zstd", asbytes=True), compression="zstd") == expected
    assert found(tmp_path, "x.csv.gz", text, compression="none") == expected


# --- JSON --------------------------------------------------------------------------------------------------------

NESTED = '{"user": {"id": 7, "name": {"first": "A"}}, "n": 1}\n{"user": 5}\n[1]\n{"user": {"id": null}}\n{"n": 2.50}\n'


def test_names_with_points_are_paths(tmp_path: Path) -> None:
    columns = {
        "user_id": {"from": "user.id", "type": "int64"},
        "item_id": {"from": "user.name.first", "type": "string"},
    }
    rows = found(tmp_path, "x.ndjson", NESTED, columns=columns)
    assert rows == [
        (1, {"user": '{"id":7,"name":{"first":"A"}}', "n": "1", "user.id": "7", "user.name.first": "A"}),
        (2, {"user": "5", "user.id": None, "user.name.first": None}),
        (3, None),
        (4, {"user": '{"id":null}', "user.id": None, "user.name.first": None}),
        (5, {"n": "2.50", "user.id": None, "user.name.first": None}),
    ]
    document = "[" + ",".join(NESTED.splitlines()) + "]"
    as_document = found(tmp_path, "x.json", document, columns=columns, format="json")
    assert [cells for _, cells in as_document] == [cells for _, cells in rows]


@pytest.mark.parametrize("key", ["user.id", "user\\u002eid"])
@pytest.mark.parametrize("kind", ["ndjson", "json"])
def test_a_literal_key_anywhere_in_the_file_is_no_path(tmp_path: Path, key: str, kind: str) -> None:
    records = ['{"user": {"id": 7}}', '{"' + key + '": 8,\n"user": {}}', '{"x": "user.id"}']
    text = "[" + ",\n".join(records) + "]" if kind == "json" else "\n".join(r.replace("\n", "") for r in records)
    columns = {"user_id": {"from": "user.id", "type": "int64"}}
    rows = found(tmp_path, "x", text, columns=columns, format=kind)
    assert [(cells or {}).get("user.id") for _, cells in rows] == [None, "8", None]


def test_a_document_in_pieces(tmp_path: Path) -> None:
    text = '\ufeff{"a": [[1, {"b": "]"}], {}], "b": {\n"x": null, "list": [ {"u": 1},\n\n 5,{"u": "\\"{\u00e9"\n}, [{}], "s",\nnull ], "y": [{"a": {}}, -1.5e3]}, "z": "end"}\n\n'
    expected = [(2, {"u": "1"}), (4, None), (4, {"u": '"{\u00e9'}), (5, None), (5, None), (6, None)]
    for block_bytes in (1, 2, 5, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stored, "BLOCK_BYTES", block_bytes)
            assert found(tmp_path, "x.json", text, format="json", json={"records": "b.list"}) == expected
    assert found(tmp_path, "x.json", " [ ] ", format="json") == []
    long = f'["{"x" * 500}", {{"a": "{"y" * 500}"}}]'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "BLOCK_BYTES", 7)
        assert found(tmp_path, "x.json", long, format="json") == [(1, None), (1, {"a": "y" * 500})]


def test_what_makes_an_element_malformed(tmp_path: Path) -> None:
    deep = '{"a":' + "[" * 99 + "]" * 99 + "}"
    elements = [deep, deep.replace("[]", "[[]]"), '{"a": "\\ud800"}', "[" * 50_000 + "]" * 50_000, '{"a": 1}']
    rows = found(tmp_path, "x.json", "[" + ",\n".join(elements) + "]", format="json")
    assert rows == [(1, {"a": "[" * 99 + "]" * 99}), (2, None), (3, None), (4, None), (5, {"a": "1"})]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "line 1, column 1 .* expected the list of records"),
        ("{}", "line 1, column 1 .* expected the list of records"),
        ('[{"a": 1}\n', "line 2, column 1 .*: expected , or ], found the end of the file"),
        ('[{"a": 1},\n', "line 2, column 1 .*: expected more JSON, but the file ends"),
        ('[{"a": "1', "the file ends|no JSON"),
        ('[{"a": 1}]\n ]', "line 2, column 2 .*: expected the end of the document"),
        ('[{"a": 1},\n{"a" 2}]', r"line 2, column 6 .*: this is no JSON"),
        ('[{"a": 1}, {"a": NaN}]', "NaN is no JSON"),
        ('[{"a": 1}, 01]', "no JSON"),
        ('[{"a": 1},]', "no JSON"),
    ],
)
def test_a_document_that_is_none_stops(tmp_path: Path, text: str, where: str) -> None:
    for block_bytes in (1, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stored, "BLOCK_BYTES", block_bytes)
            with pytest.raises(PipelineError, match=rf"^x\.json: .*({where})"):
                found(tmp_path, "x.json", text, format="json")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[]", "expected an object with the key 'a'"),
        ('{"b": 1}', "the object that ends here has no key 'a'"),
        ("{}", "the object that ends here has no key 'a'"),
        ('{"a": {"b": {}}}', "expected the list of records"),
        ('{"a": {"b": []}, "a": {}}', "the key 'a' stands twice"),
        ('{"a": {"b": []}, "c": [1, {"d": }]}', "this is no JSON"),
        ('{"a": {"b": []}', "found the end of the file"),
    ],
)
def test_a_document_without_its_list_stops(tmp_path: Path, text: str, where: str) -> None:
    with pytest.raises(PipelineError, match=where):
        found(tmp_path, "x.json", text, format="json", json={"records": "a.b"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(
    records=st.lists(JSON, max_size=6),
    around=st.dictionaries(st.sampled_from(["c", "d", "e"]), JSON),
    indent=st.sampled_from([None, 1]),
    block_bytes=st.sampled_from([1, 7, 30, 1 << 20]),
)
def test_the_records_of_a_document_are_its_elements(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any], around: Any, indent: int | None, block_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("document")
    text = json.dumps({**around, "a": {"b": records, **around}, **around}, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "BLOCK_BYTES", block_bytes)
        rows = found(folder, "x.json", text, format="json", json={"records": "a.b"})
    expected = [list(one) if isinstance(one, dict) else None for one in records]
    assert [None if cells is None else list(cells) for _, cells in rows] == expected


# --- Parquet and Arrow -------------------------------------------------------------------------------------------

TYPED = pa.table(
    {
        "user": pa.array([{"id": 7, "at": 1}, None, {"id": None, "at": 2}], pa.struct([("id", pa.int64()), ("at", pa.timestamp("s", "UTC"))])),
        "word": pa.array(["a", None, "b"]).dictionary_encode(),
        "number": pa.array([3, 4, 3]).dictionary_encode(),
        "price": pa.array([Decimal("1.50"), Decimal("2.00"), None], pa.decimal128(9, 2)),
        "a.b": pa.array([1, 2, 3]),
        "a": pa.array([{"b": 4}] * 3),
    }
)  # fmt: skip
TYPED_COLUMNS = {"user_id": {"from": "user.id", "type": "int64"}, "item_id": {"from": "a.b", "type": "int64"}}


def write_typed(path: Path, kind: str) -> None:
    if kind == "parquet":
        pq.write_table(TYPED, path, row_group_size=2)
        return
    make = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    with pa.OSFile(str(path), "wb") as sink, make(sink, TYPED.schema) as writer:
        writer.write_table(TYPED, max_chunksize=2)


@pytest.mark.parametrize(("name", "kind"), [("x.parquet", "parquet"), ("x.arrow", "file"), ("x.FEATHER", "stream")])
def test_typed_cells(tmp_path: Path, name: str, kind: str) -> None:
    write_typed(tmp_path / name, kind)
    rows = found(tmp_path, name, columns=TYPED_COLUMNS)
    moment = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert rows[0] == (
        None,
        {
            "user": {"id": 7, "at": moment}, "word": "a", "number": 3, "price": Decimal("1.50"), "a.b": 1, "a": {"b": 4},
            "user.id": 7,
        },
    )  # fmt: skip
    chosen = [tuple((cells or {})[name] for name in ("user.id", "word", "number", "price", "a.b")) for _, cells in rows]
    assert chosen[1:] == [(None, None, 4, Decimal("2.00"), 2), (None, "b", 3, None, 3)]
    declared = dataset(tmp_path, name, columns=TYPED_COLUMNS)
    only = read_records(tmp_path / name, dataset=declared, wanted=Wanted({2}, columns=set(declared.raw_columns)))
    assert [record.cells for record in only.found.values()] == [{"a.b": 3, "user.id": None}]


def test_typed_rows_far_down(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": list(range(5000))}), tmp_path / "x.parquet", row_group_size=3000)
    wanted = Wanted({0, 1024, 2999, 3000, 4999})
    reading = read_records(tmp_path / "x.parquet", dataset=dataset(tmp_path, "x.parquet"), wanted=wanted)
    assert reading.records == 5000
    assert {ordinal: record.cells for ordinal, record in reading.found.items()} == {
        n: {"n": n} for n in wanted.ordinals
    }


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_arrow_without_rows(tmp_path: Path, kind: str) -> None:
    make = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as sink, make(sink, TYPED.schema):
        pass
    assert found(tmp_path, "x.arrow") == []


# --- explode -----------------------------------------------------------------------------------------------------

SESSIONS = (
    '{"s": 1, "e": [{"aid": 5, "t": {"x": true}}, {"aid": "6"}]}\n'
    '{"s": 2, "e": []}\n'
    '{"s": 3}\n{"s": 4, "e": null}\n{"s": 5, "e": {"aid": 7}}\nbroken\n'
    '{"s": 8, "e": [null, 9, "ten", [11]]}\n'
)
OF_ELEMENTS = {"user_id": {"from": "s", "type": "int64"}, "item_id": {"from": "e.aid", "type": "string"}}


def test_elements_of_json_lists(tmp_path: Path) -> None:
    columns = {**OF_ELEMENTS, "timestamp": {"from": "e.t.x", "unit": "s"}}
    expected = [
        (1, {"s": "1", "e.aid": "5", "e.t": '{"x":true}', "e.t.x": "true"}),
        (1, {"s": "1", "e.aid": "6", "e.t.x": None}),
        *((line, None) for line in (3, 4, 5, 6)),
        *((7, {"s": "8", "e": cell, "e.t.x": None}) for cell in (None, "9", "ten", "[11]")),
    ]
    rows = found(tmp_path, "x.ndjson", SESSIONS, columns=columns, explode={"column": "e"})
    assert rows == expected
    lines = SESSIONS.replace("broken", "0").splitlines()
    assert found(tmp_path, "x", f"[{','.join(lines)}]", format="json", columns=columns, explode={"column": "e"}) == [
        (1, cells) for _, cells in rows
    ]


def test_a_wanted_line_gives_all_of_its_records(tmp_path: Path) -> None:
    (tmp_path / "x.ndjson").write_text(SESSIONS)
    declared = dataset(tmp_path, "x.ndjson", columns=OF_ELEMENTS, explode={"column": "e"})
    reading = read_records(tmp_path / "x.ndjson", dataset=declared, wanted=Wanted({2}, {7}, columns={"s", "e"}))
    assert reading.records == 10
    assert [(record.ordinal, record.line, record.cells) for record in reading.found.values()] == [
        (2, 3, None),
        *((ordinal, 7, {"s": "8", "e": cell}) for ordinal, cell in enumerate((None, "9", "ten", "[11]"), 6)),
    ]


def test_elements_at_a_path(tmp_path: Path) -> None:
    text = '{"s": 1, "d": {"e": [{"aid": 5}, 6]}}\n{"d": 2}\n'
    columns = {"user_id": {"from": "s", "type": "int64"}, "item_id": {"from": "d.e.aid", "type": "string"}}
    rows = found(tmp_path, "x.ndjson", text, columns=columns, explode={"column": "d.e"})
    assert [None if cells is None else {k: v for k, v in cells.items() if k != "d"} for _, cells in rows] == [
        {"s": "1", "d.e.aid": "5"},
        {"s": "1", "d.e": "6"},
        None,
    ]


def test_pieces_of_text(tmp_path: Path) -> None:
    text = "u\tseen\n1\tN1-0 N2-1\n2\t\n3\t  N3-1   x N4-\n4\tNONE\n5\n6\t  \n"
    csv = {"separator": "\t", "null_values": ["NONE"]}
    assert found(tmp_path, "x.tsv", text, csv=csv, explode={"column": "seen", "separator": " "}) == [
        (2, {"u": "1", "seen": "N1-0"}),
        (2, {"u": "1", "seen": "N2-1"}),
        *((4, {"u": "3", "seen": piece}) for piece in ("N3-1", "x", "N4-")),
        (6, None),
    ]
    explode = {"column": "seen", "separator": " ", "pattern": "(?P<item>N[0-9]+)-(?P<clicked>[01]?)"}
    assert found(tmp_path, "x.tsv", text, csv=csv, explode=explode) == [
        (2, {"u": "1", "seen.item": "N1", "seen.clicked": "0"}),
        (2, {"u": "1", "seen.item": "N2", "seen.clicked": "1"}),
        (4, {"u": "3", "seen.item": "N3", "seen.clicked": "1"}),
        (4, None),
        (4, {"u": "3", "seen.item": "N4", "seen.clicked": None}),
        (6, None),
    ]


def test_lists_written_in_text(tmp_path: Path) -> None:
    text = 'u|e\n1|[{"aid": 1.50}, 2]\n2|\n3|[]\n4|5\n5|[1\n6|["\\ud800"]\n'
    csv = {"separator": "|", "quote_char": ""}
    assert found(tmp_path, "x.csv", text, csv=csv, explode={"column": "e"}) == [
        (2, {"u": "1", "e.aid": "1.50"}),
        (2, {"u": "1", "e": "2"}),
        *((line, None) for line in (5, 6, 7)),
    ]
    inside = '{"s": 1, "e": "[{\\"aid\\": 5}]"}\n{"s": 2, "e": ""}\n'
    assert found(tmp_path, "x.ndjson", inside, columns=OF_ELEMENTS, explode={"column": "e"}) == [
        (1, {"s": "1", "e.aid": "5"})
    ]


def test_elements_of_arrow_lists(tmp_path: Path) -> None:
    element = pa.struct([("aid", pa.int32()), ("t", pa.struct([("x", pa.float32())]))])
    lists = [[{"aid": 1, "t": {"x": 0.5}}, {"aid": None, "t": None}], [], None, [None, {"aid": 4, "t": {"x": None}}]]
    table = pa.table({"s": [1, 2, 3, 4], "e": pa.array(lists, pa.large_list(element)), "w": [["a"], [], None, ["b"]]})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    columns = {**OF_ELEMENTS, "timestamp": {"from": "e.t.x", "unit": "s"}}
    chosen = dataset(tmp_path, "x.parquet", columns=columns, explode={"column": "e"})
    wanted = Wanted(EVERY, columns=set(chosen.raw_columns))
    reading = read_records(tmp_path / "x.parquet", dataset=chosen, wanted=wanted)
    assert [record.cells for record in reading.found.values()] == [
        {"s": 1, "e.aid": 1, "e.t.x": 0.5},
        {"s": 1, "e.aid": None, "e.t.x": None},
        None,
        {"s": 4, "e.aid": None, "e.t.x": None},
        {"s": 4, "e.aid": 4, "e.t.x": None},
    ]
    rows = found(tmp_path, "x.parquet", explode={"column": "w", "pattern": "(?P<a>a)"})
    assert [cells and cells["w.a"] for _, cells in rows] == ["a", None, None]
    assert found(tmp_path, "x.parquet", explode={"column": "s"}) == [(None, None)] * 4


# --- hive --------------------------------------------------------------------------------------------------------


def test_folders_are_columns(tmp_path: Path) -> None:
    name = "raw/day=2020-01-01/shop=a%20b=c/kind=__HIVE_DEFAULT_PARTITION__/u=9/x.csv"
    expected = {"day": "2020-01-01", "shop": "a b=c", "kind": None, "u": "1", "i": "2"}
    assert found(tmp_path, name, "u,i\n1,2\n", path="raw/**/*.csv", hive=True) == [(2, expected)]
    assert found(tmp_path, name, "u,i\n1,2\n", path="raw/**/*.csv") == [(2, {"u": "1", "i": "2"})]
    assert found(tmp_path / "not=this", name, "u,i\n1,2\n", path="raw/**/*.csv", hive=True) == [(2, expected)]


@pytest.mark.parametrize("kind", ["ndjson", "json"])
def test_a_folder_is_no_column_where_a_record_has_one(tmp_path: Path, kind: str) -> None:
    for records, expected in (('{"u": 1},{"a": 3}', ["1", None]), ('{"a": "u"},{"a": 3}', ["9", "9"])):
        text = f"[{records}]" if kind == "json" else records.replace("},", "}\n")
        rows = found(tmp_path, f"u=9/x.{kind}", text, path="*/*", hive=True, format=kind)
        assert [(cells or {}).get("u") for _, cells in rows] == expected


def test_a_folder_beside_typed_columns(tmp_path: Path) -> None:
    (tmp_path / "day=1" / "n=2").mkdir(parents=True)
    pq.write_table(pa.table({"n": [5]}), tmp_path / "day=1/n=2/x.parquet")
    assert found(tmp_path, "day=1/n=2/x.parquet", path="**/*.parquet", hive=True) == [(None, {"day": "1", "n": 5})]

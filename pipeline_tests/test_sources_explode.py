import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.contracts import PipelineError
from pipeline.sources import find_files, read_blocks
from pipeline_tests.datasets import make_dataset, make_events_of, make_store, table
from pipeline_tests.raw_files import Everything, dataset, read, read_file

SIZES = (1, 30, 1 << 20)
NULL = None
on_disk = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def read_table(
    folder: Path, rows: pa.Table, block_bytes: int, *, name: str = "log.parquet", **source: Any
) -> Everything:
    """Writes one Parquet file and reads it."""
    pq.write_table(rows, folder / name)
    declared = dataset(folder, name, **source)
    return read_file(find_files(declared, None)[0], declared, block_bytes)


@pytest.mark.parametrize("block_bytes", SIZES)
@pytest.mark.parametrize("form", ["lines", "document"])
def test_lists_of_objects(tmp_path: Path, block_bytes: int, form: str) -> None:
    records = [
        b'{"session":12,"events":[{"aid":5,"ts":1.50},{"aid":6,"ts":null}],"device":{"os":"x"}}',
        b'{"session":13,"events":[{"aid":7,"ts":2,"more":{"a":[1]}}]}',
    ]
    content = b"\n".join(records) if form == "lines" else b"[" + b",\n".join(records) + b"]"
    explode = {"column": "events"}
    found = read(
        tmp_path, "log.json", content, block_bytes=block_bytes, explode=explode, format="json" if form == "document" else NULL
    )  # fmt: skip
    assert found.frame.to_dict(as_series=False) == {
        "session": ["12", "12", "13"],
        "device": ['{"os":"x"}', '{"os":"x"}', None],
        "events.aid": ["5", "6", "7"],
        "events.ts": ["1.50", None, "2"],
        "events.more": [None, None, '{"a":[1]}'],
    }
    assert found.lines == [1, 1, 2]
    assert found.malformed == [False] * 3
    assert found.raw == [
        '{"session":"12","events.aid":"5","events.ts":"1.50"}',
        '{"session":"12","events.aid":"6"}',
        '{"session":"13","events.aid":"7","events.ts":"2","events.more":"{\\"a\\":[1]}"}',
    ]


@pytest.mark.parametrize("block_bytes", SIZES)
@pytest.mark.parametrize("separators", [(",", ":"), None])
def test_texts_that_look_like_the_end_of_something(tmp_path: Path, block_bytes: int, separators) -> None:
    texts = ["a", "]", "},{", "}, {", "{", "}", "[", '","', "a,b", "null", "", '"e":[', "x]}\n", "\\", "é"]
    records = [{"u": text, "e": [{"i": text, "n": 1}, {"i": "b", "n": None}], "z": text} for text in texts]
    content = "".join(json.dumps(record, ensure_ascii=False, separators=separators) + "\n" for record in records)
    found = read(tmp_path, "log.ndjson", content.encode(), block_bytes=block_bytes, explode={"column": "e"})
    assert found.frame.columns == ["u", "z", "e.i", "e.n"]
    assert found.rows == [row for text in texts for row in ((text, text, text, "1"), (text, text, "b", None))]


@pytest.mark.parametrize("block_bytes", SIZES)
def test_columns_stand_in_the_order_in_which_they_are_first_seen(tmp_path: Path, block_bytes: int) -> None:
    content = b'{"s":0,"e":[]}\n{"s":0,"e":[null]}\n{"s":0,"e":[{"b":1,"a":2}]}\n{"s":0,"t":0,"e":[{"c":1}]}\n'
    found = read(tmp_path, "log.ndjson", content, block_bytes=block_bytes, explode={"column": "e"})
    assert found.frame.columns == ["s", "t", "e", "e.b", "e.a", "e.c"]


@pytest.mark.parametrize("block_bytes", SIZES)
def test_lists_of_other_values(tmp_path: Path, block_bytes: int) -> None:
    content = b'{"u":1,"items":[12345678901234567890,"a",1.0,null,true,[1,[2]],""]}\n'
    found = read(tmp_path, "log.ndjson", content, block_bytes=block_bytes, explode={"column": "items"})
    assert found.frame.columns == ["u", "items"]
    assert found.frame["items"].to_list() == ["12345678901234567890", "a", "1.0", None, "true", "[1,[2]]", ""]


@pytest.mark.parametrize("block_bytes", SIZES)
def test_objects_among_other_values(tmp_path: Path, block_bytes: int) -> None:
    content = b'{"u":1,"items":[{"id":1},2,{}]}\n'
    found = read(tmp_path, "log.ndjson", content, block_bytes=block_bytes, explode={"column": "items"})
    assert found.frame.to_dict(as_series=False) == {
        "u": ["1", "1", "1"], "items.id": ["1", None, None], "items": [None, "2", None],
    }  # fmt: skip


@pytest.mark.parametrize("block_bytes", SIZES)
def test_records_without_a_list_are_malformed_and_empty_lists_are_counted(tmp_path: Path, block_bytes: int) -> None:
    lines = [
        '{"u":1,"x":[{"a":1}]}', '{"u":2,"x":[]}', '{"u":3}', '{"u":4,"x":null}', '{"u":5,"x":7}', '{"u":6,"x":{"a":1}}',
        "oops", '{"u":7,"x":"[{\\"a\\": 2}, 3]"}', '{"u":8,"x":""}', '{"u":9,"x":"no list"}', '{"u":10,"x":[[],{}]}',
        '{"u":11,"x":"[' + "[" * 100 + "]" * 100 + ']"}', '{"u":12,"x":"[\\"\\\\ud800\\"]"}', '{"u":13,"x":[{"a":1}',
    ]  # fmt: skip
    found = read(tmp_path, "log.ndjson", "\n".join(lines).encode(), block_bytes=block_bytes, explode={"column": "x"})
    assert found.frame.rows() == [
        ("1", "1", None), *[(None, None, None)] * 5, ("7", "2", None), ("7", None, "3"), (None, None, None),
        ("10", None, "[]"), ("10", None, None), *[(None, None, None)] * 3,
    ]  # fmt: skip
    assert found.lines == [1, 3, 4, 5, 6, 7, 8, 8, 10, 11, 11, 12, 13, 14]
    malformed = [line for line, flag in zip(found.lines, found.malformed, strict=True) if flag]
    assert malformed == [3, 4, 5, 6, 7, 10, 12, 13, 14]
    raw = {line: text for line, text in zip(found.lines, found.raw, strict=True) if line in malformed}
    assert raw == {number: line for number, line in enumerate(lines, 1) if number in malformed}
    assert found.warnings == {"records_without_elements": 2}


@pytest.mark.parametrize("block_bytes", SIZES)
def test_lists_and_cells_at_paths(tmp_path: Path, block_bytes: int) -> None:
    content = (
        b'{"user":{"id":1},"a":{"list":[{"p":{"q":5}},{"p":6}],"k":"x"}}\n{"a":{"list":[{"p":{"q":7}}]}}\n{"a":[]}\n'
    )
    columns = {"user_id": {"from": "user.id", "type": "int64"}, "item_id": {"from": "a.list.p.q", "type": "string"}}
    found = read(
        tmp_path, "log.ndjson", content, block_bytes=block_bytes, explode={"column": "a.list"}, columns=columns
    )
    assert found.frame.to_dict(as_series=False) == {
        "user": ['{"id":1}', '{"id":1}', None, None],
        "a": ['{"k":"x"}', '{"k":"x"}', "{}", None],
        "user.id": ["1", "1", None, None],
        "a.list.p": ['{"q":5}', "6", '{"q":7}', None],
        "a.list.p.q": ["5", None, "7", None],
    }
    assert found.malformed == [False, False, False, True]
    literal = b'{"a":{"list":[1]}}\n{"a.list":[2]}\n'
    found = read(tmp_path, "log.ndjson", literal, block_bytes=block_bytes, explode={"column": "a.list"})
    assert (found.frame.columns, found.rows, found.malformed) == (["a.list"], [(None,), ("2",)], [True, False])


def test_columns_of_sql_are_typed_by_all_elements(tmp_path: Path) -> None:
    (tmp_path / "log.ndjson").write_bytes(
        b'{"u":true,"e":[{"t":1},{"t":2.5}]}\n{"u":false,"e":[{"t":null}]}\n{"e":0}\n'
    )
    expression = """CASE WHEN u AND "e.t" > 1.5 THEN 'view' END"""
    declared = dataset(tmp_path, "log.ndjson", explode={"column": "e"}, columns={"action": {"sql": expression}})
    for block_bytes in SIZES:
        blocks = list(read_blocks(find_files(declared, None)[0], declared, block_bytes=block_bytes))
        typed = pl.concat([block.sql_frame for block in blocks])
        assert typed.to_dict(as_series=False) == {
            "u": [True, True, False, None], "e.t": [1.0, 2.5, None, None],
        }  # fmt: skip


def test_a_column_of_both_is_refused(tmp_path: Path) -> None:
    content = b'{"e.a":1,"e":[{"a":2}]}\n'
    with pytest.raises(PipelineError, match=r"^log\.ndjson: both the records and the elements .* column 'e\.a'"):
        read(tmp_path, "log.ndjson", content, explode={"column": "e"})


@pytest.mark.parametrize(
    ("name", "content"), [("log.ndjson", b'{"user":1}\n{"user":2}\n'), ("log.csv", b"user,item\n1,2\n"), ("log.csv", b"user\n")]
)  # fmt: skip
def test_a_column_that_the_file_lacks_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(PipelineError, match=rf"^{name}: there is no column 'users', which \[source\.explode\] names"):
        read(tmp_path, name, content, explode={"column": "users"})


@pytest.mark.parametrize("content", [b"", b'{"u":1,"events":[]}\n', b"oops\n"])
def test_without_elements_the_declared_columns_are_there(tmp_path: Path, content: bytes) -> None:
    columns = {"item_id": {"from": "events.aid", "type": "int64"}, "user_id": {"from": "u", "type": "int64"}}
    found = read(tmp_path, "log.ndjson", content, explode={"column": "events"}, columns=columns)
    assert "events.aid" in found.frame.columns
    assert "u" in found.frame.columns
    assert found.frame.height == (content == b"oops\n")


@pytest.mark.parametrize("block_bytes", SIZES)
def test_cells_of_text_are_split(tmp_path: Path, block_bytes: int) -> None:
    content = b"user,items\n1, 5  6 \n2,\n3,   \n4,7\n5,8,9\n"
    found = read(tmp_path, "log.csv", content, block_bytes=block_bytes, explode={"column": "items", "separator": " "})
    assert found.rows == [("1", "5"), ("1", "6"), ("4", "7"), (None, None)]
    assert found.lines == [2, 2, 5, 6]
    assert found.malformed == [False, False, False, True]
    assert found.raw == ['{"user":"1","items":"5"}', '{"user":"1","items":"6"}', '{"user":"4","items":"7"}', "5,8,9"]
    assert found.warnings == {"records_without_elements": 2}


@pytest.mark.parametrize("block_bytes", SIZES)
def test_a_separator_is_plain_text(tmp_path: Path, block_bytes: int) -> None:
    content = b"user,items\n1,a.b||c||||d|\n"
    found = read(tmp_path, "log.csv", content, block_bytes=block_bytes, explode={"column": "items", "separator": "||"})
    assert found.frame["items"].to_list() == ["a.b", "c", "d|"]


@pytest.mark.parametrize("block_bytes", SIZES)
def test_elements_have_to_match_a_pattern(tmp_path: Path, block_bytes: int) -> None:
    explode = {"column": "items", "separator": " ", "pattern": r"(?P<id>[0-9]+)(?:-(?P<click>[01]?))?"}
    content = b"user,items\n1,5-1 6 7-  x5-1 8-2\n2,9-0\n"
    found = read(tmp_path, "log.csv", content, block_bytes=block_bytes, explode=explode)
    assert found.frame.columns == ["user", "items.id", "items.click"]
    assert found.rows == [
        ("1", "5", "1"), ("1", "6", None), ("1", "7", None), (None,) * 3, (None,) * 3, ("2", "9", "0"),
    ]  # fmt: skip
    assert found.malformed == [False, False, False, True, True, False]
    assert found.raw[3:5] == ['{"user":"1","items":"x5-1"}', '{"user":"1","items":"8-2"}']
    lines = b'{"user":1,"items":["5-1","6",7,null,"8-2",[]]}\n{"user":2,"items":"9-0"}\n'
    explode.pop("separator")
    found = read(tmp_path, "log.ndjson", lines, block_bytes=block_bytes, explode=explode)
    assert found.rows[:3] == [("1", "5", "1"), ("1", "6", None), ("1", "7", None)]
    assert found.malformed == [False, False, False, True, True, True, True]
    assert found.raw[3:] == [
        '{"user":"1"}', '{"user":"1","items":"8-2"}', '{"user":"1","items":"[]"}', '{"user":2,"items":"9-0"}',
    ]  # fmt: skip


def test_a_pattern_that_rust_does_not_know_is_refused(tmp_path: Path) -> None:
    explode = {"column": "items", "separator": " ", "pattern": r"(?P<id>[0-9]+)(?=-)"}
    with pytest.raises(PipelineError, match=r"^log\.csv: \[source\.explode\] pattern is not known .*look-around"):
        read(tmp_path, "log.csv", b"user,items\n1,5-1\n", explode=explode)


@pytest.mark.parametrize("block_bytes", SIZES)
def test_cells_of_text_that_hold_json(tmp_path: Path, block_bytes: int) -> None:
    content = b'user;e\n1;[{"a": 1.50, "b": {"c": 2}}, 3]\n2;[]\n3;\n4;{"a": 1}\n5;[1\n6;[{"z": null}]\n7;x;y\n'
    columns = {"item_id": {"from": "e.b.c", "type": "string"}}
    csv = {"separator": ";", "quote_char": ""}
    found = read(
        tmp_path, "log.csv", content, block_bytes=block_bytes, csv=csv, explode={"column": "e"}, columns=columns
    )
    assert found.frame.columns == ["user", "e.a", "e.b", "e", "e.z", "e.b.c"]
    assert found.rows == [
        ("1", "1.50", '{"c":2}', None, None, "2"), ("1", None, None, "3", None, None), (None,) * 6, (None,) * 6,
        ("6", None, None, None, None, None), (None,) * 6,
    ]  # fmt: skip
    assert found.malformed == [False, False, True, True, False, True]
    assert found.raw[1:4] == ['{"user":"1","e":"3"}', '4;{"a": 1}', "5;[1"]
    assert found.warnings == {"records_without_elements": 2}


EVENT = pa.struct(
    {"aid": pa.int64(), "p": pa.struct({"q": pa.string()}), "kind": pa.dictionary(pa.int8(), pa.string())}
)


@pytest.mark.parametrize("block_bytes", [1, 200, 1 << 20])
def test_lists_of_structs(tmp_path: Path, block_bytes: int) -> None:
    events = [
        [{"aid": 2**62, "p": {"q": "x"}, "kind": "buy"}, None, {"aid": None, "p": None, "kind": None}],
        None,
        [],
        [{"aid": 4, "p": {"q": None}, "kind": "buy"}],
    ]
    struct = pa.array([{"aid": row["aid"], "p": row["p"]} if row else None for rows in events for row in rows or ()])
    rows = pa.table(
        {
            "user": pa.array([1, 2, 3, 4], pa.int32()),
            "events": pa.array(
                [rows and [row and {k: row[k] for k in ("aid", "p")} for row in rows] for rows in events],
                pa.list_(struct.type),
            ),
            "tags": [["a"], ["b"], None, []],
        }
    )
    columns = {"item_id": {"from": "events.p.q", "type": "string"}, "user_id": {"from": "user", "type": "int64"}}
    found = read_table(tmp_path, rows, block_bytes, explode={"column": "events"}, columns=columns)
    assert found.frame.schema == {
        "user": pl.Int32, "tags": pl.List(pl.String), "events.aid": pl.Int64, "events.p": pl.Struct({"q": pl.String}),
        "events.p.q": pl.String,
    }  # fmt: skip
    assert found.frame.select("user", "events.aid", "events.p.q").rows() == [
        (1, 2**62, "x"), (1, None, None), (1, None, None), (None, None, None), (4, 4, None),
    ]  # fmt: skip
    assert found.malformed == [False, False, False, True, False]
    assert found.lines == [None] * 5
    assert json.loads(found.raw[0]) == {"user": 1, "events.aid": 2**62, "events.p": {"q": "x"}, "events.p.q": "x"}
    assert json.loads(found.raw[3]) == {"user": 2, "events": None, "tags": ["b"]}
    assert found.warnings == {"records_without_elements": 1}
    assert len(set(found.frame.hash_rows())) == 4  # the two elements without anything are equal


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.list_(pa.int64()), pl.Int64),
        (pa.large_list(pa.string()), pl.String),
        (pa.list_(pa.int64(), 2), pl.Int64),
        (pa.list_(pa.dictionary(pa.int32(), pa.string())), pl.String),
        (pa.list_(pa.list_(pa.int8())), pl.List(pl.Int8)),
    ],
)
def test_lists_of_other_types(tmp_path: Path, kind: pa.DataType, expected: pl.DataType, block_bytes: int) -> None:
    value = {pl.Int64: [7, None], pl.String: ["a", None]}.get(expected, [[1], None])
    rows = pa.table({"user": [1, 2, 3], "x": pa.array([value, None, value], kind)})
    found = read_table(tmp_path, rows, block_bytes, explode={"column": "x"})
    assert found.frame.schema == {"user": pl.Int64, "x": expected}
    assert found.rows == [(1, value[0]), (1, None), (None, None), (3, value[0]), (3, None)]
    assert found.malformed == [False, False, True, False, False]


def test_maps_are_lists_of_pairs(tmp_path: Path) -> None:
    rows = pa.table({"user": [1, 2], "m": pa.array([[("a", 5), ("b", 6)], None], pa.map_(pa.string(), pa.int64()))})
    found = read_table(tmp_path, rows, 1 << 20, explode={"column": "m"})
    assert found.frame.columns == ["user", "m.key", "m.value"]
    assert found.rows == [(1, "a", 5), (1, "b", 6), (None, None, None)]


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_a_list_within_a_struct(tmp_path: Path, block_bytes: int) -> None:
    cells = [{"k": 1, "in": {"list": [5, 6]}}, None, {"k": 2, "in": {"list": []}}]
    kind = pa.struct({"k": pa.int64(), "in": pa.struct({"list": pa.list_(pa.int64())})})
    rows = pa.table({"user": [1, 2, 3], "s": pa.array(cells, kind)})
    columns = {"user_id": {"from": "s.k", "type": "int64"}}
    found = read_table(tmp_path, rows, block_bytes, explode={"column": "s.in.list"}, columns=columns)
    assert found.frame.columns == ["user", "s", "s.k", "s.in.list"]
    assert found.rows == [(1, {"k": 1}, 1, 5), (1, {"k": 1}, 1, 6), (None, None, None, None)]
    assert found.malformed == [False, False, True]
    assert found.warnings == {"records_without_elements": 1}


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_texts_and_others_in_typed_files(tmp_path: Path, block_bytes: int) -> None:
    rows = pa.table({"user": [1, 2, 3, 4], "x": ["[1, 2.50]", None, "", "no"], "n": [1, 2, 3, None]})
    found = read_table(tmp_path, rows, block_bytes, explode={"column": "x"})
    assert found.frame["x"].to_list() == ["1", "2.50", None, None]
    assert found.malformed == [False, False, True, True]
    assert found.warnings == {"records_without_elements": 1}
    found = read_table(tmp_path, rows, block_bytes, explode={"column": "n"})
    assert found.malformed == [True] * 4
    split = read_table(tmp_path, rows, block_bytes, explode={"column": "x", "separator": ", "})
    assert split.frame["x"].to_list() == ["[1", "2.50]", None, "no"]
    empty = read_table(tmp_path, rows.slice(0, 0), block_bytes, explode={"column": "x"})
    assert (empty.rows, empty.blocks) == ([], 1)


def test_a_pattern_needs_texts(tmp_path: Path) -> None:
    rows = pa.table({"user": [1], "x": [[{"a": 1}]]})
    with pytest.raises(PipelineError, match=r"^log\.parquet: the lists in 'x' hold Struct.*needs texts"):
        read_table(tmp_path, rows, 1, explode={"column": "x", "pattern": "(?P<a>.)"})


def test_large_blocks_are_cut_by_what_they_become(tmp_path: Path) -> None:
    rows = pa.table({"user": range(1000), "x": [list(range(100))] * 1000})
    found = read_table(tmp_path, rows, 1 << 16, explode={"column": "x"})
    assert found.frame.height == 100_000
    assert found.blocks > 20
    assert found.frame["x"].to_list() == list(range(100)) * 1000
    assert found.frame["user"].to_list() == np.repeat(np.arange(1000), 100).tolist()


tricky = st.text(st.sampled_from('ab,:{}[]" é'), max_size=4)
scalars = st.none() | st.booleans() | st.integers(-9, 9) | tricky
objects = st.dictionaries(st.sampled_from("ab"), scalars | st.lists(scalars, max_size=2), max_size=2)
plain_objects = st.fixed_dictionaries({"a": scalars, "b": st.integers(0, 9)})
lists = st.lists(plain_objects, max_size=3) | st.lists(objects | scalars, max_size=3) | scalars
sessions = st.lists(st.fixed_dictionaries({"s": st.integers(0, 9), "e": lists}, optional={"t": scalars}), max_size=6)


def exploded(records: Sequence[dict[str, Any]]) -> list[dict[str, str] | None]:
    """What explode means, one record at a time; None for a malformed one."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    found: list[dict[str, str] | None] = []
    for record in records:
        listed = record["e"]
        if isinstance(listed, str):
            try:
                listed = [] if listed == "" else json.loads(listed)
            except ValueError:
                listed = None
        if not isinstance(listed, list):
            found.append(None)
            continue
        for element in listed:
            cells = {key: value for key, value in record.items() if key != "e"}
            if isinstance(element, dict):
                cells |= {f"e.{key}": value for key, value in element.items()}
            else:
                cells["e"] = element
            found.append({key: text(value) for key, value in cells.items() if value is not None})
    return found


@on_disk
@given(records=sessions, block_bytes=st.integers(1, 100), compact=st.booleans(), document=st.booleans())
def test_explode_is_a_loop_over_elements(
    tmp_path: Path, records: list, block_bytes: int, compact: bool, document: bool
) -> None:
    separators = (",", ":") if compact else None
    texts = [json.dumps(record, ensure_ascii=False, separators=separators) for record in records]
    content = f"[{','.join(texts)}]" if document else "\n".join([*texts, ""])
    source: dict[str, Any] = {"format": "json" if document else "ndjson", "explode": {"column": "e"}}
    found = read(tmp_path, "log.json", content.encode(), block_bytes=block_bytes, **source)
    rows = [
        None if malformed else {key: cell for key, cell in row.items() if cell is not None}
        for row, malformed in zip(found.frame.iter_rows(named=True), found.malformed, strict=True)
    ]
    assert rows == exploded(records)
    assert found.frame.equals(read(tmp_path, "log.json", content.encode(), **source).frame)


otto = {
    "partitions": {"start": "2022-07-31", "end": "2022-08-29"},
    "columns": {
        "user_id": {"from": "session", "type": "int64"},
        "item_id": {"from": "events.aid", "type": "int64"},
        "timestamp": {"from": "events.ts", "unit": "ms"},
        "action": {"from": "events.type"},
    },
    "actions": {"names": ["clicks", "carts", "orders"]},
}


def test_a_real_log_of_sessions(tmp_path: Path, shared_data: Path) -> None:
    (tmp_path / "otto.jsonl").write_bytes((shared_data / "otto_sessions.jsonl").read_bytes())
    dataset = make_dataset(tmp_path, source={"path": "otto.jsonl", "explode": {"column": "events"}}, **otto)
    store = make_store(dataset)
    days = ["2022-07-31", *(f"2022-08-{day:02}" for day in range(1, 30))]
    made = [make_events_of(dataset, store, day) for day in days]
    assert all(rejected.rows == 0 for _, rejected in made)
    events = pl.concat([table(store, "events", day) for day in days]).sort("user_id", "timestamp", maintain_order=True)
    assert (events.height, events["user_id"].n_unique(), events["item_id"].n_unique()) == (862, 20, 510)
    since_ms = events["timestamp"].to_physical() // 1000
    same_user = events["user_id"] == events["user_id"].shift(1)
    gaps_ms = since_ms.diff().filter(same_user)
    assert (gaps_ms.sum(), gaps_ms.max(), (gaps_ms == 0).sum()) == (16_152_393_515, 1_856_711_517, 5)


def test_equal_elements_of_equal_records_are_duplicates(tmp_path: Path) -> None:
    day = 1_577_836_800_000
    event = f'{{"aid":1,"ts":{day},"type":"clicks"}}'
    other = f'{{"aid":2,"ts":{day},"type":"clicks"}}'
    lines = [f'{{"session":1,"events":[{event},{event},{other}]}}', f'{{"session":1,"events":[{event}]}}']
    (tmp_path / "log.jsonl").write_text("\n".join([*lines, f'{{"session":2,"events":[{event}]}}', ""]))
    settings = {**otto, "partitions": {"start": "2020-01-01", "end": "2020-01-01"}}
    dataset = make_dataset(tmp_path, source={"path": "log.jsonl", "explode": {"column": "events"}}, **settings)
    events, _ = make_events_of(dataset, make_store(dataset), "2020-01-01")
    assert (events.rows, events.counts["duplicates"]) == (5, 2)

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.contracts import PipelineError
from pipeline.sources import find_files, read_blocks
from pipeline_tests.raw_files import dataset, read

SIZES = (1, 7, 64, 1 << 20)
DECLARED = ["user", "item", "time"]
on_disk = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.parametrize("block_bytes", SIZES)
def test_cells_are_exact_texts(tmp_path: Path, block_bytes: int) -> None:
    content = (
        b'{"user": 9007199254740993, "item": "A", "price": 1.10}\n'
        b"\n"
        b'{"item": true, "user": "9", "tags": {"a": [1.50, "x", null]}}\r\n'
        b'{"user": null, "price": 1E5, "item": ""}\n'
    )
    found = read(tmp_path, "log.ndjson", content, block_bytes=block_bytes)
    assert found.frame.to_dict(as_series=False) == {
        "user": ["9007199254740993", "9", None],
        "item": ["A", "true", ""],
        "price": ["1.10", None, "1E5"],
        "tags": [None, '{"a":[1.50,"x",null]}', None],
    }
    assert set(found.frame.dtypes) == {pl.String}
    assert found.lines == [1, 3, 4]
    assert found.raw[1] == '{"item": true, "user": "9", "tags": {"a": [1.50, "x", null]}}'
    assert found.checksum == hashlib.sha256(content).hexdigest()
    assert found.warnings == {}


@pytest.mark.parametrize("block_bytes", SIZES)
def test_columns_of_sql_are_typed_by_the_whole_file(tmp_path: Path, block_bytes: int) -> None:
    content = (
        b'{"whole": 1, "number": 1, "flag": true, "mixed": 1, "long": 9007199254740993, "huge": 9223372036854775808}\n'
        b'{"whole": 9223372036854775807, "number": 1.5, "flag": null, "mixed": "x", "long": 0.5, "huge": 1}\n'
        b"{}\n"
        b"not json\n"
    )
    expression = "CASE WHEN whole > number AND flag AND mixed = long AND huge = 'x' AND whole > 0 THEN 'a' END"
    (tmp_path / "log.jsonl").write_bytes(content)
    declared = dataset(tmp_path, "log.jsonl", columns={"action": {"sql": expression}})
    blocks = list(read_blocks(find_files(declared, None)[0], declared, block_bytes=block_bytes))
    typed = pl.concat([block.sql_frame for block in blocks])
    assert typed.to_dict(as_series=False) == {
        "whole": [1, 9223372036854775807, None, None],
        "number": [1.0, 1.5, None, None],
        "flag": [True, None, None, None],
        "mixed": ["1", "x", None, None],
        "long": ["9007199254740993", "0.5", None, None],
        "huge": ["9223372036854775808", "1", None, None],
    }
    assert typed.dtypes[:3] == [pl.Int64, pl.Float64, pl.Boolean]
    # What another declaration takes from the same column is the text as it is written.
    found = read(tmp_path, "log.jsonl", content, block_bytes=block_bytes, columns={"action": {"sql": expression}})
    assert set(found.frame.dtypes) == {pl.String}
    assert found.frame["number"].to_list() == ["1", "1.5", None, None]
    assert found.frame["flag"].to_list() == ["true", None, None, None]
    assert found.malformed == [False, False, False, True]


@pytest.mark.parametrize(
    "line",
    [
        b"[1]",
        b"1",
        b"null",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1',
        b'{"a": 1} x',
        b'{"a": 01}',
        b"{'a': 1}",
        b'{"a": "\xff"}',
        b'{"a": "\\ud800"}',
        b'{"\\uDFFF": 1}',
        b"\xef\xbb\xbf{}",
        b"\x0c",
        b'{"a": "\t"}',
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_malformed_lines(tmp_path: Path, line: bytes) -> None:
    content = b'{"a": "1"}\n' + line + b'\n{"a": "2"}\n'
    for block_bytes in (1 << 4, 1 << 20):
        found = read(tmp_path, "log.ndjson", content, block_bytes=block_bytes)
        assert found.rows == [("1",), (None,), ("2",)]
        assert found.malformed == [False, True, False]
        assert found.lines == [1, 2, 3]
        assert found.raw[1] == line.decode("utf-8", "replace")


def test_surrogate_pairs_and_double_keys(tmp_path: Path) -> None:
    found = read(tmp_path, "log.ndjson", b'{"a": "\\ud83d\\ude00", "b": 1, "b": 2}\n')
    assert found.rows == [("\U0001f600", "2")]


def nested(depth: int) -> bytes:
    """An object that holds lists within each other, `depth` deep in all."""
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}\n"


def test_nesting_has_a_limit_that_does_not_depend_on_the_caller(tmp_path: Path) -> None:
    content = nested(100) + nested(101) + nested(900) + nested(985) + b'{"a":"' + b"[" * 200 + b'"}\n'
    found = read(tmp_path, "log.ndjson", content)
    assert found.malformed == [False, True, True, True, False]
    assert found.rows[0] == ("[" * 99 + "]" * 99,)
    assert found.rows[4] == ("[" * 200,)


def test_byte_order_mark_and_last_line(tmp_path: Path) -> None:
    found = read(tmp_path, "log.ndjson", b'\xef\xbb\xbf{"a": 1}\n{"a": 2}', block_bytes=1)
    assert found.rows == [("1",), ("2",)]
    assert found.warnings == {"last_record_without_newline": 1}
    cut = read(tmp_path, "log.ndjson", b'{"a": 1}\n{"a": 2', block_bytes=1)
    assert cut.rows == [("1",), (None,)]
    assert cut.warnings == {}


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\n", b"\xef\xbb\xbf"])
def test_empty_files_have_the_declared_columns_and_no_rows(tmp_path: Path, content: bytes) -> None:
    found = read(tmp_path, "log.ndjson", content)
    assert found.frame.columns == DECLARED
    assert found.rows == []
    assert found.blocks == 1


PATHS = {"user_id": {"from": "user.id", "type": "int64"}, "item_id": {"from": "a.b.c", "type": "string"}}


@pytest.mark.parametrize("block_bytes", SIZES)
def test_names_with_points_are_paths(tmp_path: Path, block_bytes: int) -> None:
    content = (
        b'{"user": {"id": 17850.0, "x": 1}, "a": {"b": {"c": {"d": [1.50]}}}}\n'
        b'{"user": {"id": null}, "a": {"b": 5}}\n'
        b'{"user": [{"id": 1}], "a": "text"}\n'
        b'{"user": {}, "a": {"b": {"c": "x"}}}\n'
        b"{}\n"
        b"oops\n"
    )
    found = read(tmp_path, "log.ndjson", content, block_bytes=block_bytes, columns=PATHS)
    assert found.frame.columns == ["user", "a", "user.id", "a.b.c"]
    assert found.frame["user.id"].to_list() == ["17850.0", None, None, None, None, None]
    assert found.frame["a.b.c"].to_list() == ['{"d":[1.50]}', None, None, "x", None, None]
    assert found.frame["user"].to_list() == ['{"id":17850.0,"x":1}', '{"id":null}', '[{"id":1}]', "{}", None, None]


@pytest.mark.parametrize("block_bytes", SIZES)
def test_a_key_with_points_wins_in_every_record(tmp_path: Path, block_bytes: int) -> None:
    content = b'{"user": {"id": 1}}\n{"user": {"id": 2}, "user.id": 3}\n{"a": {"b": {"c": 4}}}\n'
    found = read(tmp_path, "log.ndjson", content, block_bytes=block_bytes, columns=PATHS)
    assert found.frame["user.id"].to_list() == [None, "3", None]
    assert found.frame["a.b.c"].to_list() == [None, None, "4"]


def test_a_path_that_leads_nowhere_is_no_column(tmp_path: Path) -> None:
    found = read(tmp_path, "log.ndjson", b'{"user": {"name": 1}, "a": {"b": {"c": null}}}\n', columns=PATHS)
    assert found.frame.columns == ["user", "a", "a.b.c"]


def test_paths_in_sql_are_typed(tmp_path: Path) -> None:
    (tmp_path / "log.ndjson").write_bytes(b'{"user": {"id": 1}, "a": {"b": {"c": 0.5}}}\n{"user": {}}\n')
    expression = """CASE WHEN "user.id" > 0 AND "a.b.c" > 0.1 THEN 'view' END"""
    declared = dataset(tmp_path, "log.ndjson", columns={"action": {"sql": expression}})
    (block,) = read_blocks(find_files(declared, None)[0], declared, block_bytes=1 << 20)
    assert block.sql_frame.select("user.id", "a.b.c").to_dict(as_series=False) == {
        "user.id": [1, None],
        "a.b.c": [0.5, None],
    }
    assert block.frame["user.id"].to_list() == ["1", None]


@pytest.mark.parametrize("block_bytes", SIZES)
@pytest.mark.parametrize("content", [b"[1, 2]", b" \n\t[", b"\xef\xbb\xbf\r\n[\n", b'[{"user": 1}]\n{}\n'])
def test_a_document_is_not_read_as_lines(tmp_path: Path, content: bytes, block_bytes: int) -> None:
    with pytest.raises(PipelineError, match=r"^log\.json: the file begins with '\['.*format = \"json\""):
        read(tmp_path, "log.json", content, block_bytes=block_bytes)
    found = read(tmp_path, "log.json", content, block_bytes=block_bytes, format="ndjson")
    assert found.malformed[0] is True


def test_a_key_without_letters_is_a_column(tmp_path: Path) -> None:
    found = read(
        tmp_path, "log.ndjson", b'{"": 1, "a": 2}\n', columns={"action": {"sql": "CASE WHEN a > 1 THEN 'view' END"}}
    )
    assert found.frame.to_dict(as_series=False) == {"": ["1"], "a": ["2"]}


def test_objects_without_keys_are_rows(tmp_path: Path) -> None:
    found = read(tmp_path, "log.ndjson", b"{}\nx\n{}\n")
    assert found.frame.shape == (3, 0)
    assert found.malformed == [False, True, False]


def test_a_broken_expression_is_named(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="column 'action': sql cannot be read"):
        read(tmp_path, "log.ndjson", b"{}\n", columns={"action": {"sql": "CASE WHEN ("}})


def test_a_cut_file_never_gives_a_wrong_value(tmp_path: Path) -> None:
    content = b'{"a": 12, "b": "x"}\n{"a": 345.75, "b": "\xc3\xa9"}\n{"a": -6789, "b": null}\n'
    whole = read(tmp_path, "log.ndjson", content).rows
    for cut in range(len(content) - 40, len(content)):
        found = read(tmp_path, "log.ndjson", content[:cut], block_bytes=5)
        accepted = [row for row, flag in zip(found.rows, found.malformed, strict=True) if not flag]
        assert accepted == whole[: len(accepted)]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)


@on_disk
@given(
    records=st.lists(st.dictionaries(st.sampled_from("abc"), values, max_size=3), max_size=8),
    block_bytes=st.integers(1, 64),
    escaped=st.booleans(),
)
def test_what_python_writes_is_read(tmp_path: Path, records, block_bytes: int, escaped: bool) -> None:
    content = "".join(json.dumps(record, ensure_ascii=escaped) + "\n" for record in records).encode()
    small = read(tmp_path, "log.ndjson", content, block_bytes=block_bytes)
    large = read(tmp_path, "log.ndjson", content)

    def text(value: object) -> str | None:
        if value is None or isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    keys = list(dict.fromkeys(key for record in records for key in record))
    assert large.frame.columns == (keys if records else DECLARED)
    assert large.rows == [tuple(text(record.get(key)) for key in keys) for record in records]
    assert small.frame.equals(large.frame)
    assert (small.lines, small.raw) == (large.lines, large.raw)


# Texts that would end a list, an object or a text where none ends, if they were cut without care.
tricky = st.text(st.sampled_from('ab,:{}[]"\\ \t\u2028é\x7f'), max_size=6)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | tricky


@on_disk
@given(
    records=st.lists(
        st.fixed_dictionaries({"user": scalars, "it-em $@": scalars}, optional={"time": values}), min_size=1, max_size=8
    ),
    compact=st.booleans(),
    escaped=st.booleans(),
    block_bytes=st.integers(1, 200),
)
def test_lines_of_one_shape_are_read_like_all_others(
    tmp_path: Path, records, compact: bool, escaped: bool, block_bytes: int
) -> None:
    separators = (",", ":") if compact else None
    lines = [json.dumps(record, ensure_ascii=escaped, separators=separators) + "\n" for record in records]
    found = read(tmp_path, "log.ndjson", "".join(lines).encode(), block_bytes=block_bytes)
    # A blank at the end makes every line one of no shape.
    others = read(tmp_path, "log.ndjson", "".join(line[:-1] + " \n" for line in lines).encode())
    assert found.frame.columns == others.frame.columns
    assert found.rows == others.rows
    assert found.malformed == others.malformed == [False] * len(records)
    assert found.raw == [line[:-1] for line in lines]


edges = [2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63, -(2**63) - 1]
integers = (st.integers(-9, 9) | st.integers(-(2**64), 2**64) | st.sampled_from(edges)).map(str)
decimals = st.floats(allow_nan=False, allow_infinity=False).map(json.dumps) | st.from_regex(
    r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20}|[eE][+-]?[0-9]{1,3})", fullmatch=True
)
null = st.just("null")
kinds = [
    integers, st.integers(-9, 9).map(str), decimals, st.integers(-9, 9).map(str) | decimals, integers | st.just('"x"'),
    st.sampled_from(["true", "false"]), st.sampled_from(["true", "0"]), st.just('"1"'), st.sampled_from(["-0", "0.0"]),
]  # fmt: skip
columns_of_kinds = st.integers(1, 5).flatmap(
    lambda size: st.tuples(
        *(st.sampled_from(kinds).flatmap(lambda kind: st.lists(kind | null, min_size=size, max_size=size)),) * 2,
        st.lists(st.sampled_from([" ", ""]), min_size=size, max_size=size),
    )
)


@on_disk
@given(columns=columns_of_kinds)
def test_lines_of_one_shape_give_sql_the_same_types(tmp_path: Path, columns) -> None:
    cells = list(zip(*columns, strict=True))
    expression = "CASE WHEN a > 0 THEN b END"

    def typed(lines: list[str]) -> pl.DataFrame:
        (tmp_path / "log.ndjson").write_text("".join(lines))
        declared = dataset(tmp_path, "log.ndjson", columns={"action": {"sql": expression}})
        return pl.concat(
            [block.sql_frame for block in read_blocks(find_files(declared, None)[0], declared, block_bytes=30)]
        )

    mixed = typed([f'{{"a":{a},"b":{b}}}{blank}\n' for a, b, blank in cells])
    parsed = typed([f'{{"a":{a},"b":{b}}} \n' for a, b, _ in cells])
    assert mixed.schema == parsed.schema
    assert mixed.equals(parsed, null_equal=True)


@pytest.mark.parametrize("width", [1, 40, 41, 300])
def test_wide_objects(tmp_path: Path, width: int) -> None:
    records = [{f"key {n}": n * row for n in range(width)} for row in range(3)]
    found = read(tmp_path, "log.ndjson", "".join(json.dumps(record) + "\n" for record in records).encode())
    assert found.rows == [tuple(str(cell) for cell in record.values()) for record in records]


def test_lines_of_one_shape_keep_numbers_as_written(tmp_path: Path) -> None:
    lines = [
        b'{"a":1.10,"b":"x"}', b'{"a":-0,"b":"\xc3\xa9, \xc3\xa9"}', b'{"a":1E5,"b":""}', b'{"a":null,"b":null}',
        b'{"a":00,"b":"x"}', b'{"a":1,"b":"\xff"}', b'{"a":true,"b":"\\u0041"}', b'{"b":1,"a":2}', b'{"a":1,"b":2}\r',
        b'{"a":1,"b":"\t"}', b'{"a":1,"a":2}', b'{"a":123456789012345678901234567890,"b":{"a":1}}', b'{"a":NaN,"b":1}',
    ]  # fmt: skip
    found = read(tmp_path, "log.ndjson", b"\n".join(lines))
    assert found.rows == [
        ("1.10", "x"), ("-0", "é, é"), ("1E5", ""), (None, None), (None, None), (None, None), ("true", "A"),
        ("2", "1"), ("1", "2"), (None, None), ("2", None), ("123456789012345678901234567890", '{"a":1}'), (None, None),
    ]  # fmt: skip
    assert [n for n, malformed in enumerate(found.malformed) if malformed] == [4, 5, 9, 12]
    assert found.lines == list(range(1, 14))
    assert found.warnings == {}

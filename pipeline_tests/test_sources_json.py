import gzip
import hashlib
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.contracts import PipelineError
from pipeline_tests.raw_files import Everything
from pipeline_tests.raw_files import read as read_raw

SIZES = (1, 7, 64, 1 << 20)
on_disk = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def read(folder: Path, content: bytes, *, name: str = "log.json", **source) -> Everything:
    return read_raw(folder, name, content, format="json", **source)


@pytest.mark.parametrize("block_bytes", SIZES)
def test_the_elements_of_the_list_are_records(tmp_path: Path, block_bytes: int) -> None:
    content = b"""[
  {"user": 9007199254740993, "price": 1.10, "item": "A"}, {"user": "9",
   "tags": {"a": [1.50, "x", null]}},

  {"user": null, "price": 1E5, "item": "\\ud83d\\ude00"}, {}
]
"""
    found = read(tmp_path, content, block_bytes=block_bytes)
    assert found.frame.to_dict(as_series=False) == {
        "user": ["9007199254740993", "9", None, None],
        "price": ["1.10", None, "1E5", None],
        "item": ["A", None, "\U0001f600", None],
        "tags": [None, '{"a":[1.50,"x",null]}', None, None],
    }
    assert set(found.frame.dtypes) == {pl.String}
    assert found.lines == [2, 2, 5, 5]
    assert found.raw[1] == '{"user": "9",\n   "tags": {"a": [1.50, "x", null]}}'
    assert found.malformed == [False] * 4
    assert found.checksum == hashlib.sha256(content).hexdigest()
    assert found.warnings == {}


@pytest.mark.parametrize("block_bytes", SIZES)
def test_the_list_stands_at_a_path(tmp_path: Path, block_bytes: int) -> None:
    content = b"""{"meta": {"data": [1, {"list": [{"user": 0}]}], "x": "]}\\\\"}, "none": [], "empty": {},
 "data": {"n": -1.5e3, "list": [{"user": 1},
 {"user": 2}], "list2": [{"user": 3}]}, "after": [[{"user": 4}]]} """
    found = read(tmp_path, content, block_bytes=block_bytes, json={"records": "data.list"})
    assert found.rows == [("1",), ("2",)]
    assert found.lines == [2, 3]


@pytest.mark.parametrize("block_bytes", SIZES)
def test_elements_that_are_no_sound_objects_are_malformed(tmp_path: Path, block_bytes: int) -> None:
    elements = [
        '{"a": 1}', "12", "null", '"x"', "[]", "[[{}]]", "true", '{"a": "\\ud800"}', '{"\\uDFFF": 1}',
        '{"a":' + "[" * 99 + "]" * 99 + "}", '{"a":' + "[" * 100 + "]" * 100 + "}",
        '{"a":' + "[" * 5000 + '"]}\\""' + "]" * 5000 + "}", '{"a": 1, "a": 2}', "-0.5",
    ]  # fmt: skip
    found = read(tmp_path, ("[" + " , ".join(elements) + "]").encode(), block_bytes=block_bytes)
    good = [0, 9, 12]
    assert [n for n, malformed in enumerate(found.malformed) if not malformed] == good
    assert [found.rows[n] for n in good] == [("1",), ("[" * 99 + "]" * 99,), ("2",)]
    assert found.raw == elements
    assert found.lines == [1] * len(elements)


@pytest.mark.parametrize("block_bytes", SIZES)
def test_a_cut_document_fails_wherever_it_is_cut(tmp_path: Path, block_bytes: int) -> None:
    content = b'{"x": {"y": [1, "\xc3\xa9"]}, "data": [{"user": 12, "b": "\\u00e9 \\n"},\n {"user": 1.5e3}, true]}'
    assert read(tmp_path, content, block_bytes=block_bytes, json={"records": "data"}).malformed == [False, False, True]
    for size in range(len(content)):
        with pytest.raises(
            PipelineError, match=r"^log\.json: the JSON document is cut or no JSON on line [12], column"
        ):
            read(tmp_path, content[:size], block_bytes=block_bytes, json={"records": "data"})


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"", "line 1, column 1 where the file ends (expected a list of records)"),
        (b" \n\n ", "line 3, column 2 where the file ends (expected a list of records)"),
        (b'[{"a": 1}\n {"a": 2}]', "line 2, column 2 (expected , or ])"),
        (b'[{"a": 1},\n {"a": 2},]', "line 2, column 11 (Expecting value)"),
        (b'[{"a": 1}]\n[]', "line 2, column 1 (something follows the document)"),
        (b'[{"a": 1}]\n\n  {"a": 2}\n', "line 3, column 3 (something follows the document)"),
        (b'[{"a": 1}]]', "line 1, column 11 (something follows the document)"),
        (b'[{"a": 01}]' + b" " * 50, "line 1, column 9 (Expecting ',' delimiter)"),
        (b'[{"a": \n NaN}]', "line 1, column 2 (NaN is no JSON)"),
        (b'[{"a": "\t"}]' + b" " * 50, "line 1, column 9 (Invalid control character at)"),
        (b"[{'a': 1}]" + b" " * 50, "line 1, column 3 (Expecting property name enclosed in double quotes)"),
        (b'[{"a": "x}]', "line 1, column 8 (Unterminated string starting at)"),
        (b'[{"a":' + b"[" * 50_000 + b"]" * 49_999, "line 1, column 100006 where the file ends (a bracket is not closed)"),
        (b"[", "line 1, column 2 where the file ends (Expecting value)"),
    ],
)  # fmt: skip
def test_what_is_no_document_is_refused_with_the_place(tmp_path: Path, content: bytes, place: str) -> None:
    for block_bytes in SIZES:
        with pytest.raises(PipelineError) as caught:
            read(tmp_path, content, block_bytes=block_bytes)
        assert str(caught.value).startswith(f"log.json: the JSON document is cut or no JSON on {place}; bring"), place


@pytest.mark.parametrize("content", [b'[{"a": "\xff"}]', '[{"a": 1}]'.encode("utf-16"), b'[{"a": "\xed\xa0\x80"}]'])
def test_other_encodings_are_refused(tmp_path: Path, content: bytes) -> None:
    for block_bytes in SIZES:
        with pytest.raises(PipelineError, match=r"^log\.json: the JSON document .* no UTF-8"):
            read(tmp_path, content, block_bytes=block_bytes)


@pytest.mark.parametrize(
    ("content", "records", "sentence"),
    [
        (b'{"a": []}', "", "expected a list of records at the document, found an object on line 1; name the way"),
        (b'\n"a"', "", "expected a list of records at the document, found a text on line 2; name the way"),
        (b"-1", "", "expected a list of records at the document, found a number on line 1; name the way"),
        (b"[]", "a", 'expected a list of records at [source.json] records = "a", found a list on line 1; name the way'),
        (
            b'{"a": {"b": 1}}',
            "a",
            'expected a list of records at [source.json] records = "a", found an object on line 1',
        ),
        (b'{"a":\n null}', "a.b", 'expected a list of records at [source.json] records = "a.b", found null on line 2'),
        (b'{"b": []}', "a.b", "there is no key 'a' on the way to the list that [source.json] records = \"a.b\" names"),
        (
            b'{"a": [],\n "a": []}',
            "a",
            "the key 'a', which [source.json] records names, is there a second time on line 2",
        ),
    ],
)
def test_a_list_that_is_not_there_is_refused(tmp_path: Path, content: bytes, records: str, sentence: str) -> None:
    for block_bytes in SIZES:
        with pytest.raises(PipelineError) as caught:
            read(tmp_path, content, block_bytes=block_bytes, json={"records": records})
        assert str(caught.value).startswith(f"log.json: {sentence}")


def test_an_empty_list_has_the_declared_columns_and_no_rows(tmp_path: Path) -> None:
    found = read(tmp_path, b" [ ] ")
    assert found.frame.columns == ["user", "item", "time"]
    assert (found.rows, found.blocks) == ([], 1)


def test_marks_and_packing(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf[{"user": 1}]\r\n'
    assert read(tmp_path, content, block_bytes=1).rows == [("1",)]
    packed = gzip.compress(content)
    found = read(tmp_path, packed, name="log.json.gz", block_bytes=3)
    assert found.rows == [("1",)]
    assert found.checksum == hashlib.sha256(packed).hexdigest()
    with pytest.raises(PipelineError, match=r"log\.json\.gz: the compressed file is cut or corrupt"):
        read(tmp_path, packed[:-9], name="log.json.gz")


@pytest.mark.parametrize("block_bytes", SIZES)
def test_what_is_skipped_may_be_deep(tmp_path: Path, block_bytes: int) -> None:
    deep = "[" * 5000 + '{"a": "]"}' + "]" * 5000
    content = f'{{"deep": {deep}, "wide": {"[" * 150 + "]" * 150}, "data": [{{"user": 1}}]}}'
    assert read(tmp_path, content.encode(), block_bytes=block_bytes, json={"records": "data"}).rows == [("1",)]


@pytest.mark.parametrize("block_bytes", SIZES)
def test_long_values(tmp_path: Path, block_bytes: int) -> None:
    text, number = "long \\" * 300, "1" * 500 + "." + "0" * 500 + "e+" + "0" * 100
    content = f'[{{"user": {json.dumps(text)}, "item": {number}, "list": {[0] * 400}}}, {json.dumps(text)}, {number}]'
    found = read(tmp_path, content.encode(), block_bytes=block_bytes)
    assert found.rows[0] == (text, number, json.dumps([0] * 400, separators=(",", ":")))
    assert found.raw[1:] == [json.dumps(text), number]
    assert found.malformed == [False, True, True]


def test_small_blocks_hold_no_more_than_they_have_to(tmp_path: Path) -> None:
    content = b"[" + b",".join(b'{"user": %d}' % number for number in range(1000)) + b"]"
    found = read(tmp_path, content, block_bytes=100)
    assert found.blocks > 100
    assert found.frame["user"].to_list() == [str(number) for number in range(1000)]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)


@on_disk
@given(
    elements=st.lists(st.dictionaries(st.sampled_from("abc"), values, max_size=3) | values, max_size=8),
    around=values,
    block_bytes=st.integers(1, 64),
    escaped=st.booleans(),
    indent=st.sampled_from([None, 0, 2]),
)
def test_what_python_writes_is_read(
    tmp_path: Path, elements, around, block_bytes: int, escaped: bool, indent: int | None
) -> None:
    document = {"before": around, "at": {"data": elements, "after": around}}
    content = json.dumps(document, ensure_ascii=escaped, indent=indent).encode()
    found = read(tmp_path, content, block_bytes=block_bytes, json={"records": "at.data"})
    lines = "".join(json.dumps(element) + "\n" for element in elements).encode()
    as_lines = read_raw(tmp_path, "log.ndjson", lines, format="ndjson")
    assert found.frame.equals(as_lines.frame)
    assert found.malformed == as_lines.malformed
    assert [json.loads(raw) for raw in found.raw] == elements
    written = content.decode().split("\n")
    for line, raw in zip(found.lines, found.raw, strict=True):
        assert line is not None
        assert raw.split("\n")[0] in written[line - 1]

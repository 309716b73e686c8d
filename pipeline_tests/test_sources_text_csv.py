"""CSV beyond one character between cells: long separators, runs of blanks, comments, typed headers."""

import csv
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeline.contracts import PipelineError
from pipeline.sources.delimited import scan as csv_scan
from pipeline_tests.raw_files import Everything, read

SIZES = (1, 2, 3, 7, 64, 1 << 20)
HEADERLESS = {"has_header": False, "columns": ["a", "b"], "quote_char": ""}
on_disk = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("block_bytes", SIZES)
def test_a_separator_of_several_characters(tmp_path: Path, block_bytes: int) -> None:
    content = b'1::2\n"3::4"\r\n5:6::7:\n:::8\n9::\n10\n11::12::13\n\n14:: 15\n'
    found = read(tmp_path, "log.csv", content, block_bytes=block_bytes, csv={**HEADERLESS, "separator": "::"})
    assert found.rows == [
        ("1", "2"), ('"3', '4"'), ("5:6", "7:"), (None, ":8"), ("9", None), (None, None), (None, None), ("14", " 15"),
    ]  # fmt: skip
    assert found.malformed == [False, False, False, False, False, True, True, False]
    assert found.lines == [1, 2, 3, 4, 5, 6, 7, 9]
    assert found.raw == ["1::2", '"3::4"', "5:6::7:", ":::8", "9::", "10", "11::12::13", "14:: 15"]


@pytest.mark.parametrize("block_bytes", SIZES)
def test_runs_of_blanks(tmp_path: Path, block_bytes: int) -> None:
    content = b"1 2\n3\t \t4\n  5 6 \r\n\t7\t8\t\n9\n \n10 11 12\n \t\r\n13  14\r\n"
    found = read(tmp_path, "log.csv", content, block_bytes=block_bytes, csv={**HEADERLESS, "separator": "whitespace"})
    none = (None, None)
    assert found.rows == [("1", "2"), ("3", "4"), ("5", "6"), ("7", "8"), none, none, none, none, ("13", "14")]
    assert found.malformed == [False, False, False, False, True, True, True, True, False]
    assert found.lines == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert found.raw[2] == "  5 6 "


@pytest.mark.parametrize("separator", ["::", "whitespace"])
@pytest.mark.parametrize("block_bytes", SIZES)
def test_only_one_return_belongs_to_the_line_end(tmp_path: Path, separator: str, block_bytes: int) -> None:
    content = b"1::\r2\r\n3\r::4\r\r\n\r\r\n5::6\r".replace(b"::", b"::" if separator == "::" else b" ")
    found = read(tmp_path, "log.csv", content, block_bytes=block_bytes, csv={**HEADERLESS, "separator": separator})
    assert found.rows == [("1", "\r2"), ("3\r", "4\r"), ("5", "6")]
    assert found.lines == [1, 2, 4]
    assert found.warnings == {"last_record_without_newline": 1}


@pytest.mark.parametrize("separator", [",", "\u00a7"])  # the latter is left to the csv module
@pytest.mark.parametrize("block_bytes", SIZES)
def test_comments_count_as_lines_and_as_nothing_else(tmp_path: Path, block_bytes: int, separator: str) -> None:
    content = b'# "made\n\n#user,item\nuser,item\n1,2\n#3\n #4,5\n6,#7\n"8\n#9",10\n# a"b\xff,\r\n11,12\n#13\n# the end'
    content = content.replace(b",", separator.encode())
    declared = {"comment": "#", "separator": separator}
    found = read(tmp_path, "log.csv", content, block_bytes=block_bytes, csv=declared)
    assert found.frame.columns == ["user", "item"]
    assert found.rows == [("1", "2"), (" #4", "5"), ("6", "#7"), ("8\n#9", "10"), ("11", "12")]
    assert found.lines == [5, 7, 8, 9, 12]
    assert found.raw[3] == f'"8\n#9"{separator}10'
    assert not any(found.malformed)
    assert found.warnings == {}


@pytest.mark.parametrize("block_bytes", SIZES)
def test_a_comment_may_begin_like_a_cell(tmp_path: Path, block_bytes: int) -> None:
    content = b'a,b\n"x",1\n//,2\n///\n/,3\n"/\n//,""\n",4\n//"\n'
    found = read(tmp_path, "log.csv", content, block_bytes=block_bytes, csv={"comment": "//"})
    assert found.rows == [("x", "1"), ("/", "3"), ('/\n//,"\n', "4")]
    quoted = read(tmp_path, "log.csv", b'a,b\n"x",1\n2,3\n', block_bytes=block_bytes, csv={"comment": '"'})
    assert quoted.rows == [("2", "3")]


@pytest.mark.parametrize("block_bytes", SIZES)
def test_an_open_quote_behind_comments(tmp_path: Path, block_bytes: int) -> None:
    content = b'a,b\n#"\n1,"2\n#3\n'
    found = read(tmp_path, "log.csv", content, block_bytes=block_bytes, csv={"comment": "#"})
    assert (found.malformed, found.lines, found.raw) == ([True], [3], ['1,"2\n#3'])
    assert found.warnings == {"lines_in_unclosed_quote": 2}


@pytest.mark.parametrize("separator", ["::", "whitespace"])
def test_comments_between_plain_lines(tmp_path: Path, separator: str) -> None:
    content = b"\xef\xbb\xbf# a\n1 2\n# x y z\n#\n3 #4\n".replace(b" ", b"::" if separator == "::" else b"\t")
    declared = {**HEADERLESS, "separator": separator, "comment": "#"}
    for block_bytes in SIZES:
        found = read(tmp_path, "log.csv", content, block_bytes=block_bytes, csv=declared)
        assert found.rows == [("1", "2"), ("3", "#4")]
        assert found.lines == [2, 5]


@pytest.mark.parametrize("block_bytes", SIZES)
@pytest.mark.parametrize(
    ("separator", "header"),
    [
        ("\t", b"user_id:token\titem_id:token\tplain\t:float\n"),
        ("whitespace", b" user_id:token  item_id:a:b plain :x\n"),
    ],
)
def test_a_typed_header_names_up_to_its_colon(tmp_path: Path, separator: str, header: bytes, block_bytes: int) -> None:
    declared = {"separator": separator, "quote_char": "", "typed_header": True}
    content = header + b"1\t2\t3\t4:5\n"
    found = read(tmp_path, "log.inter", content, block_bytes=block_bytes, format="csv", csv=declared)
    assert found.frame.columns == ["user_id", "item_id", "plain", ""]
    assert found.rows == [("1", "2", "3", "4:5")]
    renamed = read(tmp_path, "log.inter", content, format="csv", csv={**declared, "columns": ["p", "q", "r", "s"]})
    assert renamed.frame.columns == ["p", "q", "r", "s"]


def test_headers_of_plain_separators(tmp_path: Path) -> None:
    colons = {"separator": "::", "quote_char": ""}
    assert read(tmp_path, "log.csv", b'u::"i\n1::2\n', csv=colons).frame.to_dicts() == [{"u": "1", '"i': "2"}]
    for content in (b"", b"\n\r\n", b"#\n# u::i"):
        with pytest.raises(PipelineError, match=r"^log\.csv: is empty: expected a header line"):
            read(tmp_path, "log.csv", content, csv={**colons, "comment": "#"})
    with pytest.raises(PipelineError, match=r"^log\.csv: the header '' cannot be cut into names"):
        read(tmp_path, "log.csv", b" \t\n1 2\n", csv={"separator": "whitespace", "quote_char": ""})
    with pytest.raises(PipelineError, match=r"^log\.csv: the header holds the column 'u' twice"):
        read(tmp_path, "log.csv", b"u:x,u:y\n", csv={"typed_header": True})
    with pytest.raises(PipelineError, match=r"^log\.csv: the header has 2 columns .* names 1"):
        read(tmp_path, "log.csv", b"u::i\n", csv={**colons, "columns": ["u"]})


def test_files_of_comments_only(tmp_path: Path) -> None:
    for content in (b"#\n#1,2", b"# a", b"#\r\n\r\n"):
        for block_bytes in SIZES:
            with pytest.raises(PipelineError, match=r"^log\.csv: is empty: expected a header line"):
                read(tmp_path, "log.csv", content, block_bytes=block_bytes, csv={"comment": "#"})
            declared = {"has_header": False, "columns": ["a", "b"], "comment": "#"}
            found = read(tmp_path, "log.csv", content, block_bytes=block_bytes, csv=declared)
            assert (found.rows, found.warnings, found.frame.columns) == ([], {}, ["a", "b"])


@pytest.mark.parametrize("separator", ["::", "whitespace", ","])
def test_missing_values_and_undecodable_bytes(tmp_path: Path, separator: str) -> None:
    content = b"1 NULL\nNULL \xc3\xa9\n\xff 2\n3 \xf0\x9f\x98\x80\n".replace(
        b" ", b" " if separator == "whitespace" else separator.encode()
    )
    declared = {**HEADERLESS, "separator": separator, "null_values": ["NULL"]}
    for block_bytes in SIZES:
        found = read(tmp_path, "log.csv", content, block_bytes=block_bytes, csv=declared)
        assert found.rows == [("1", None), (None, "\u00e9"), (None, None), ("3", "\U0001f600")]
        assert found.malformed == [False, False, True, False]


def test_nul_bytes_and_every_other_control_character(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    controls = "".join(map(chr, range(32))).replace("\n", "")
    declared = {**HEADERLESS, "separator": "::"}
    content = f"1::{controls}\n{controls}::2\n3\n".encode()
    found = read(tmp_path, "log.csv", content, csv=declared)
    assert found.rows == [("1", controls), (controls, "2"), (None, None)]
    assert read(tmp_path, "log.csv", content, block_bytes=1, csv=declared).rows == found.rows
    monkeypatch.setattr(csv_scan, "_cut_exactly", None)
    assert read(tmp_path, "log.csv", b"1\x00::\x00\x01\x1f\n", csv=declared).rows == [("1\x00", "\x00\x01\x1f")]


def test_a_line_of_many_blocks(tmp_path: Path) -> None:
    long = "x y" * 100_000
    found = read(
        tmp_path, "log.csv", f"1::{long}\n2::3\n".encode(), block_bytes=100, csv={**HEADERLESS, "separator": "::"}
    )
    assert found.rows == [("1", long), ("2", "3")]


def test_no_plain_line_needs_the_slow_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_scan, "_cut_exactly", None)
    for separator in ("::", "whitespace"):
        content = b"#\n1 2\n\n3\n\xff 4\n \r\n5\r 6\n".replace(b" ", b"::" if separator == "::" else b"\t ")
        declared = {**HEADERLESS, "separator": separator, "comment": "#"}
        found = read(tmp_path, "log.csv", content, csv=declared)
        assert found.malformed[:3] == [False, True, True]
        assert found.rows[-1] == ("5\r", "6")


def seen(found: Everything) -> list[tuple[int | None, list[str] | None]]:
    cells = [
        None if flag else [cell or "" for cell in row] for row, flag in zip(found.rows, found.malformed, strict=True)
    ]
    return list(zip(found.lines, cells, strict=True))


def plain_reference(content: str, separator: str, comment: str, width: int) -> list[tuple[int, list[str] | None]]:
    """Line and cells of every record, line by line; None where malformed."""
    found: list[tuple[int, list[str] | None]] = []
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip("\r") or line.startswith(comment):
            continue
        cut = line.removesuffix("\r")
        cells = re.findall(r"[^ \t]+", cut) if separator == "whitespace" else cut.split(separator)
        found.append((number, cells if len(cells) == width else None))
    return found


@on_disk
@given(
    content=st.text(alphabet="a:é# \t\r\n\x1f", max_size=40),
    separator=st.sampled_from(["::", "whitespace", "aé", ":a:"]),
    block_bytes=st.sampled_from(SIZES),
)
@example(content="a\r \r\n", separator="whitespace", block_bytes=1 << 20)
@example(content=":::\n", separator="::", block_bytes=1)
def test_any_text_is_split_as_python_splits_it(tmp_path: Path, content: str, separator: str, block_bytes: int) -> None:
    for width in (1, 2):
        declared = {"has_header": False, "columns": ["p", "q"][:width], "quote_char": "", "separator": separator}
        found = read(tmp_path, "log.csv", content.encode(), block_bytes=block_bytes, csv={**declared, "comment": "#"})
        assert seen(found) == plain_reference(content, separator, "#", width)
        lines = content.split("\n")
        assert found.raw == [lines[number - 1].removesuffix("\r") for number in found.lines if number]


def slow_reference(content: str, width: int) -> list[tuple[int, list[str] | None]]:
    """Line and cells of every record by the csv module alone, one record after the other; None where malformed."""
    lines = [line + "\n" for line in content.removesuffix("\n").split("\n")]
    at, found = 0, []
    while at < len(lines):
        if lines[at].startswith("#"):
            at += 1
            continue
        reader = csv.reader(lines[at:], strict=True)
        try:
            cells = next(reader)
        except csv.Error:
            cells = None
        if cells != []:
            found.append((at + 1, cells if cells is not None and len(cells) == width else None))
        at += reader.line_num
    return found


@on_disk
@given(content=st.text(alphabet='a,"#\n\r', max_size=40), block_bytes=st.sampled_from(SIZES))
@example(content='"\n#"\n#,"\n#a', block_bytes=1 << 20)
@example(content='#"\na,"#\n#",\n', block_bytes=1 << 20)
def test_comments_and_quotes_never_mix(tmp_path: Path, content: str, block_bytes: int) -> None:
    declared = {"has_header": False, "columns": ["p", "q"], "comment": "#"}
    found = read(tmp_path, "log.csv", content.encode(), block_bytes=block_bytes, csv=declared)
    assert seen(found) == slow_reference(content, 2)

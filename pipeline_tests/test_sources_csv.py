import csv
import hashlib
import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeline.contracts import PipelineError
from pipeline.sources import RawFile
from pipeline.sources.delimited import scan as csv_scan
from pipeline.sources.delimited.exact import Dialect, exact_records
from pipeline.sources.stream import ByteStream
from pipeline.sources.text import HeldText
from pipeline_tests.raw_files import read

SIZES = (1, 2, 3, 5, 8, 13, 64, 1 << 20)
on_disk = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def test_cells_lines_and_checksum(tmp_path: Path) -> None:
    content = b'user,item\n1,a\n\n2,"b,c"\n"3",\n'
    found = read(tmp_path, "log.csv", content)
    assert found.frame.schema == {"user": pl.String, "item": pl.String}
    assert found.rows == [("1", "a"), ("2", "b,c"), ("3", None)]
    assert found.lines == [2, 4, 5]
    assert found.malformed == [False, False, False]
    assert found.raw == ["1,a", '2,"b,c"', '"3",']
    assert found.warnings == {}
    assert found.checksum == hashlib.sha256(content).hexdigest()


def test_text_is_held_up_to_a_line_end(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"ab\ncd\nefghijk")
    file = RawFile(path, "x.csv", None, path.stat().st_size, path.stat().st_mtime_ns)
    with ByteStream(file, None) as stream:
        text = HeldText(stream, encoding="utf-8", table="csv", block_bytes=4)
        held = []
        while not text.ended:
            text.more()
            held.append(text.held)
            text.drop(text.held.rfind(b"\n") + 1)
    assert held == [b"ab\n", b"cd\n", b"efghij", b"efghijk\n"]
    assert text.newline_added


@pytest.mark.parametrize("block_bytes", SIZES)
def test_malformed_records_stay_in_their_place(tmp_path: Path, block_bytes: int) -> None:
    content = b"a,b\n1,2\n3\n4,5,6\n\xff,7\n8,9\n"
    found = read(tmp_path, "log.csv", content, block_bytes=block_bytes)
    assert found.rows == [("1", "2"), (None, None), (None, None), (None, None), ("8", "9")]
    assert found.malformed == [False, True, True, True, False]
    assert found.lines == [2, 3, 4, 5, 6]
    assert found.raw == ["1,2", "3", "4,5,6", "\ufffd,7", "8,9"]


@pytest.mark.parametrize("block_bytes", SIZES)
def test_quoted_newlines_count_as_lines(tmp_path: Path, block_bytes: int) -> None:
    content = b'a,b\r\n1,"x\r\ny\nz"\r\n\r\n2,"say ""hi"""\r\n3,"\r"\r\n'
    found = read(tmp_path, "log.csv", content, block_bytes=block_bytes)
    assert found.rows == [("1", "x\r\ny\nz"), ("2", 'say "hi"'), ("3", "\r")]
    assert found.lines == [2, 6, 7]
    assert found.raw == ['1,"x\r\ny\nz"', '2,"say ""hi"""', '3,"\r"']


@pytest.mark.parametrize("block_bytes", SIZES)
def test_irregular_quotes(tmp_path: Path, block_bytes: int) -> None:
    content = b'a,b\n5" pipe,1\n"x"y,2\n3,"z"\n"p\nq"r,4\n4,5\n'
    found = read(tmp_path, "log.csv", content, block_bytes=block_bytes)
    assert found.rows == [('5" pipe', "1"), (None, None), ("3", "z"), (None, None), ("4", "5")]
    assert found.lines == [2, 3, 4, 5, 7]
    assert found.raw[3] == '"p\nq"r,4'


@pytest.mark.parametrize("block_bytes", SIZES)
def test_an_unclosed_quote_is_one_malformed_record(tmp_path: Path, block_bytes: int) -> None:
    found = read(tmp_path, "log.csv", b'a,b\n1,2\n3,"4\n5,6\n7,8\n', block_bytes=block_bytes)
    assert found.rows == [("1", "2"), (None, None)]
    assert found.malformed == [False, True]
    assert found.lines == [2, 3]
    assert found.raw == ["1,2", '3,"4\n5,6\n7,8']
    assert found.warnings == {"lines_in_unclosed_quote": 3}


def test_a_lone_return_is_malformed_but_one_in_quotes_is_not(tmp_path: Path) -> None:
    found = read(tmp_path, "log.csv", b'a,b\n1\r,2\n"3\r",4\n5,6\r\r\n')
    assert found.rows == [(None, None), ("3\r", "4"), ("5", "6")]


@pytest.mark.parametrize("block_bytes", SIZES)
def test_null_values_and_blanks(tmp_path: Path, block_bytes: int) -> None:
    content = b'a,b\nNULL,"NULL"\n"",\n" NULL",NULL \n"x""y",x"y\n'
    found = read(tmp_path, "log.csv", content, block_bytes=block_bytes, csv={"null_values": ["NULL", 'x"y']})
    assert found.rows == [(None, None), (None, None), (" NULL", "NULL "), (None, None)]


def test_no_quoting(tmp_path: Path) -> None:
    found = read(tmp_path, "log.tsv", b'a\tb\n"1\t2"\n3\t"\n', csv={"separator": "\t", "quote_char": ""})
    assert found.rows == [('"1', '2"'), ("3", '"')]


@pytest.mark.parametrize("separator", [";", "|", " ", "§"])
def test_separators(tmp_path: Path, separator: str) -> None:
    content = 'a§b\n1§2\n"3§x"§4,5\n'.replace("§", separator).encode()
    found = read(tmp_path, "log.txt", content, csv={"separator": separator})
    assert found.rows == [("1", "2"), (f"3{separator}x", "4,5")]


@pytest.mark.parametrize("block_bytes", SIZES)
def test_byte_order_mark_only_at_the_beginning(tmp_path: Path, block_bytes: int) -> None:
    mark = b"\xef\xbb\xbf"
    found = read(tmp_path, "log.csv", mark + b"a,b\n1,2\n" + mark + b"3,4\n", block_bytes=block_bytes)
    assert found.frame.columns == ["a", "b"]
    assert found.rows == [("1", "2"), ("\ufeff3", "4")]


@pytest.mark.parametrize("block_bytes", SIZES)
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8-sig", "shift_jis"])
def test_encodings(tmp_path: Path, encoding: str, block_bytes: int) -> None:
    content = "a,b\n1,caf\u00e9\n2,x\n" if encoding != "shift_jis" else "a,b\n1,\u30bd\u8868\n2,x\n"
    found = read(tmp_path, "log.csv", content.encode(encoding), block_bytes=block_bytes, csv={"encoding": encoding})
    assert found.rows == [tuple(line.split(",")) for line in content.split("\n")[1:3]]


@pytest.mark.parametrize(
    ("encoding", "content"),
    [
        ("ascii", b"a,b\n1,2\n\xc3\xa9,4\n5,6\n"),
        ("cp1252", b"a,b\n1,2\n\x81,4\n5,6\n"),
        ("shift_jis", b"a,b\n1,2\n\x85\xff,4\n5,6\n"),
        ("utf-16-le", "a,b\n1,2\n".encode("utf-16-le") + b"\x00\xdc" + ",4\n5,6\n".encode("utf-16-le")),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 3, 1 << 20])
def test_undecodable_bytes_refuse_their_record_only(
    tmp_path: Path, encoding: str, content: bytes, block_bytes: int
) -> None:
    found = read(tmp_path, "log.csv", content, block_bytes=block_bytes, csv={"encoding": encoding})
    assert found.rows == [("1", "2"), (None, None), ("5", "6")]
    assert found.malformed == [False, True, False]


def test_nul_bytes(tmp_path: Path) -> None:
    assert read(tmp_path, "log.csv", b"a,b\n1\x00,2\n").rows == [("1\x00", "2")]


def test_a_single_column(tmp_path: Path) -> None:
    found = read(tmp_path, "log.csv", b'a\n1\n\n""\n2\n')
    assert found.rows == [("1",), (None,), ("2",)]
    assert found.lines == [2, 4, 5]


def test_last_record_without_newline(tmp_path: Path) -> None:
    found = read(tmp_path, "log.csv", b"a,b\n1,2\n3,4")
    assert found.rows == [("1", "2"), ("3", "4")]
    assert found.warnings == {"last_record_without_newline": 1}
    assert found.raw == ["1,2", "3,4"]
    refused = read(tmp_path, "log.csv", b"a,b\n1,2\n3")
    assert refused.malformed == [False, True]
    assert refused.warnings == {}


def test_without_header(tmp_path: Path) -> None:
    headerless = {"has_header": False, "columns": ["u", "i"]}
    assert read(tmp_path, "log.csv", b"1,2\n", csv=headerless).frame.to_dicts() == [{"u": "1", "i": "2"}]
    empty = read(tmp_path, "log.csv", b"", csv=headerless)
    assert empty.frame.columns == ["u", "i"]
    assert empty.rows == []


def test_columns_rename_the_header(tmp_path: Path) -> None:
    found = read(tmp_path, "log.csv", b"a,a\n1,2\n", csv={"columns": ["u", "i"]})
    assert found.frame.to_dicts() == [{"u": "1", "i": "2"}]
    with pytest.raises(PipelineError, match=r"log\.csv: the header has 2 columns .* names 1"):
        read(tmp_path, "log.csv", b"a,b\n1,2\n", csv={"columns": ["u"]})


def test_header_only_is_zero_rows_with_columns(tmp_path: Path) -> None:
    for content in (b"a,b\n", b'"a","b"\r\n', b"a,b", b"\n\na,b\n\n\n"):
        found = read(tmp_path, "log.csv", content)
        assert found.frame.columns == ["a", "b"]
        assert found.rows == []
        assert found.blocks == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", r"^log\.csv: is empty: expected a header line"),
        (b"\xef\xbb\xbf", r"^log\.csv: is empty: expected a header line"),
        (b"\n\r\n\n", r"^log\.csv: is empty: expected a header line"),
        (b"a,b,a\n", r"^log\.csv: the header holds the column 'a' twice"),
        (b'a,"b\n1,2\n', r"^log\.csv: has an open quote in its header"),
        (b"a,\xff\n1,2\n", r"^log\.csv: the header 'a,\ufffd' cannot be cut into names"),
        (b"a,b\r1,2\r", r"^log\.csv: the header .* cannot be cut into names"),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_headers_that_are_refused(tmp_path: Path, content: bytes, sentence: str, block_bytes: int) -> None:
    with pytest.raises(PipelineError, match=sentence):
        read(tmp_path, "log.csv", content, block_bytes=block_bytes)


def reference(content: bytes, width: int) -> list[tuple[int, list[str] | None]]:
    """Line and cells of every record behind the header, letter by letter; None where malformed."""
    text = content.decode()
    if text and not text.endswith("\n"):
        text += "\n"
    records, at, line = [], 0, 1
    while at < len(text):
        start_line, cells, good = line, [], True
        blank = text[at] in "\r\n"
        while True:  # one cell
            cell = ""
            if text[at] == '"':
                at += 1
                while at < len(text) and not (text[at] == '"' and text[at + 1 : at + 2] != '"'):
                    at += 2 if text[at] == '"' else 1
                    cell += text[at - 1]
                if at >= len(text):
                    records.append((start_line, None))
                    return records
                at += 1
                line += cell.count("\n")
            else:
                while text[at] not in ",\r\n":
                    cell += text[at]
                    at += 1
            cells.append(cell)
            if text[at] != ",":
                break
            at += 1
        while text[at] == "\r":
            at += 1
        if text[at] != "\n":
            good = blank = False
            at = text.index("\n", at)
        at += 1
        line += 1
        if not blank:
            records.append((start_line, cells if good and len(cells) == width else None))
    return records


def seen(found) -> list[tuple[int, list[str] | None]]:
    cells = [
        None if flag else [cell or "" for cell in row] for row, flag in zip(found.rows, found.malformed, strict=True)
    ]
    return list(zip(found.lines, cells, strict=True))


@on_disk
@given(content=st.text(alphabet='a,"\n\r', max_size=40), block_bytes=st.sampled_from(SIZES))
@example(content='a,a\n"a"a,"\n",a\n', block_bytes=1)
@example(content='"a\n"a\n",a"\n', block_bytes=1 << 20)
def test_any_text_gives_the_records_of_the_reference(tmp_path: Path, content: str, block_bytes: int) -> None:
    for width in (1, 2):
        headerless = {"has_header": False, "columns": ["p", "q"][:width]}
        found = read(tmp_path, "log.csv", content.encode(), block_bytes=block_bytes, csv=headerless)
        assert seen(found) == reference(content.encode(), width)
        assert found.frame.null_count().sum_horizontal().sum() == sum(
            width if flag else row.count(None) for row, flag in zip(found.rows, found.malformed, strict=True)
        )


@settings(max_examples=300, deadline=None)
@given(content=st.lists(st.sampled_from([b"a", b",", b'"', b"\n", b"\r", b"\xff", b"\xef\xbb\xbf", b"\xc3\xa9"])))
def test_both_ways_agree_on_any_bytes(content: list[bytes]) -> None:
    text = b"".join(content)
    dialect = Dialect(separator=",", quote='"', nulls=frozenset(["", "a"]))
    fast = csv_scan.cut(text, names=["p", "q"], dialect=dialect)
    records = list(exact_records(text, dialect))
    good = [record.fields is not None and len(record.fields) == 2 for record in records]
    assert fast.borders.malformed.tolist() == [not fits for fits in good]
    assert fast.borders.start.tolist() == [record.start for record in records]
    assert fast.borders.end.tolist() == [record.end for record in records]
    assert fast.borders.line.tolist() == [record.line for record in records]
    assert fast.frame.rows() == [
        tuple(cell if cell not in ("", "a") else None for cell in record.fields) if fits else (None, None)
        for record, fits in zip(records, good, strict=True)
    ]


@on_disk
@given(
    rows=st.lists(
        st.tuples(*[st.text(alphabet='ab ,;"\n\r\u00e9\u20ac\U0001f600\x00', max_size=6) | st.text(max_size=4)] * 3),
        max_size=12,
    ),
    line_end=st.sampled_from(["\n", "\r\n"]),
    block_bytes=st.integers(1, 64),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_what_python_writes_is_read(tmp_path: Path, rows, line_end: str, block_bytes: int, quoting: int) -> None:
    # Python 3.11 leaves a lone return unquoted where lines end in LF, and cannot read that back itself.
    unreadable = "\r" if line_end == "\n" and quoting == csv.QUOTE_MINIMAL else "\ud800"
    rows = [tuple(cell.replace(unreadable, "") for cell in row) for row in rows]
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator=line_end, quoting=quoting)
    writer.writerows([("a", "b", "c"), *rows])
    content = written.getvalue().encode()
    assert [tuple(row) for row in csv.reader(io.StringIO(written.getvalue(), newline=""))][1:] == rows
    small = read(tmp_path, "log.csv", content, block_bytes=block_bytes)
    large = read(tmp_path, "log.csv", content)
    assert small.rows == large.rows == [tuple(cell or None for cell in row) for row in rows]
    assert small.lines == large.lines
    assert small.raw == large.raw
    assert not any(large.malformed)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_cut_file_never_gives_a_wrong_value(tmp_path: Path, end: str) -> None:
    lines = ["a,b,c", "1,2,3", 'x,"y, ""z""",\u20ac', '4,"5\n6",7', "8,9,caf\u00e9", '10,"1,1","12"']
    content = (end.join(lines) + end).encode()
    whole = read(tmp_path, "log.csv", content).rows
    for cut in range(len(content) - 40, len(content)):
        found = read(tmp_path, "log.csv", content[:cut], block_bytes=7)
        accepted = [row for row, flag in zip(found.rows, found.malformed, strict=True) if not flag]
        if found.warnings.get("last_record_without_newline"):
            assert not content[:cut].endswith(b"\n")
            assert not found.malformed[-1]
            accepted.pop()
        assert accepted == whole[: len(accepted)]


def test_large_blocks_of_quoted_newlines(tmp_path: Path) -> None:
    cell = '"1,2\n3,4\n""5"",6\n"'
    content = "a,b\n" + f"{cell},x\ny,{cell}\n" * 40_000
    found = read(tmp_path, "log.csv", content.encode(), block_bytes=1 << 22)
    value = '1,2\n3,4\n"5",6\n'
    assert found.frame.height == 80_000
    assert found.frame["a"].to_list() == [value, "y"] * 40_000
    assert found.frame["b"].to_list() == ["x", value] * 40_000


def test_no_quotes_need_the_slow_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unexpected(*_: object, **__: object) -> None:
        raise AssertionError("the slow way was taken")

    monkeypatch.setattr(csv_scan, "_cut_exactly", unexpected)
    content = b'a,b\r\n1,"2"\r\n"x\r\ny","""q"""\r\n\r\n3\r\n\xff,1\r\n'
    assert read(tmp_path, "log.csv", content, block_bytes=4).malformed == [False, False, True, True]
    irregular = b'a,b\n5",1\n"x"y,2\n3,"\n"\n\r\r\n"4","z"\r\n\xff",1\n6",\r\n,\n'
    for block_bytes in (4, 1 << 20):
        found = read(tmp_path, "log.csv", irregular, block_bytes=block_bytes)
        assert found.rows == [
            ('5"', "1"), (None, None), ("3", "\n"), ("4", "z"), (None, None), ('6"', None), (None, None),
        ]  # fmt: skip
        assert found.malformed == [False, True, False, False, True, False, False]
        assert found.lines == [2, 3, 4, 7, 8, 9, 10]


def test_both_ways_agree_when_polars_sees_other_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b'a,b\n1,2\n3\n"4",5\n'
    fast = read(tmp_path, "log.csv", content)
    monkeypatch.setattr(csv_scan.pl, "read_csv", lambda *_, **__: pl.DataFrame({"a": ["?"], "b": ["?"]}))
    slow = read(tmp_path, "log.csv", content)
    assert fast.frame.equals(slow.frame)
    assert (fast.lines, fast.malformed, fast.raw) == (slow.lines, slow.malformed, slow.raw)
    assert slow.rows == [("1", "2"), (None, None), ("4", "5")]


def test_fields_beyond_the_limit_of_the_csv_module(tmp_path: Path) -> None:
    long = "x" * 200_000
    found = read(tmp_path, "log.csv", f'a,b\n{long},1\n5" ,2\n"{long}",3\n'.encode())
    assert found.frame["a"].str.len_bytes().to_list() == [200_000, 3, 200_000]


@pytest.mark.parametrize(
    "record",
    [b"1,2\n", b'1,2,"a""b",3\n', b'1,2,a"b,3\n', b"1,2,a\xff,3\n", b'1,"a\nb",2,3\n'],
)
@pytest.mark.parametrize("header", [b",u,i,t\n", b"u,i,t,\n"])
def test_a_column_without_a_name_is_a_column(tmp_path: Path, header: bytes, record: bytes) -> None:
    for block_bytes in (8, 1 << 20):
        found = read(tmp_path, "log.csv", header + b"7,8,9,x\n" + record + b"7,8,9,x\n", block_bytes=block_bytes)
        assert found.frame.columns == header.decode().strip().split(",")
        assert len(found.rows) == 3
        assert found.rows[0] == found.rows[2] == ("7", "8", "9", "x")


def test_missing_values_that_hold_quotes(tmp_path: Path) -> None:
    content = b'a,b\n"x""y",1\n"x""""y",2\n"""""",3\n"",4\n'
    found = read(tmp_path, "log.csv", content, csv={"null_values": ['""', 'x""y']})
    assert found.rows == [('x"y', "1"), (None, "2"), (None, "3"), (None, "4")]


@pytest.mark.parametrize(
    ("encoding", "content"),
    [
        ("utf-16", "a,b\n1,2\n".encode("utf-16-le")),
        ("utf-32", "a,b\n1,2\n".encode("utf-32-be")),
        ("utf-16", b"a,b\n1,2\n"),
        ("idna", b"a,b\n1,2\n"),
    ],
)
def test_a_file_that_is_not_in_its_encoding_is_named(tmp_path: Path, encoding: str, content: bytes) -> None:
    with pytest.raises(PipelineError, match=rf'log\.csv: the file cannot be read as .* encoding = "{encoding}" \('):
        read(tmp_path, "log.csv", content, csv={"encoding": encoding})

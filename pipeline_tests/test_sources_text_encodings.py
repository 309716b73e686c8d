"""Text formats in every encoding: characters of several bytes, marks, bytes that are no text, cut files."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.contracts import PipelineError
from pipeline_tests.raw_files import Everything, read

SIZES = (1, 2, 3, 5, 64, 1 << 20)
FORMATS: dict[str, dict[str, Any]] = {
    "csv": {"csv": {"has_header": False, "columns": ["a", "b"], "separator": "|"}},
    "plain": {
        "format": "csv",
        "csv": {"has_header": False, "columns": ["a", "b"], "separator": "||", "quote_char": ""},
    },
    "fixed_width": {"format": "fixed_width", "fixed_width": {"columns": {"a": [1, 2], "b": [4, 9]}}},
    "regex": {"format": "regex", "regex": {"pattern": r"(?P<a>..)[|](?P<b>[^|]+)"}},
}
on_disk = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read_as(folder: Path, kind: str, content: bytes, encoding: str, block_bytes: int = 1 << 20) -> Everything:
    table = "csv" if kind == "plain" else kind
    source = FORMATS[kind]
    return read(
        folder,
        "log.csv",
        content,
        block_bytes=block_bytes,
        **{**source, table: {**source[table], "encoding": encoding}},
    )


def lines_for(kind: str, text: str) -> str:
    return text.replace("|", "||") if kind == "plain" else text


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("encoding", "cells"),
    [
        ("gb18030", [("\u7528\u6237", "\u4f60\u597d"), ("ab", "\U0001f600\u20ac"), ("\u00e9\u3400", "x")]),
        ("gbk", [("\u7528\u6237", "\u4f60\u597d"), ("ab", "c")]),
        ("big5", [("\u7528\u6236", "\u4f60\u597d"), ("ab", "c")]),
        ("shift_jis", [("\u30bd\u8868", "\u80fd"), ("ab", "\uff71")]),
        ("euc_kr", [("\ud55c\uae00", "\uac00"), ("ab", "c")]),
        ("iso2022_jp", [("\u30bd\u8868", "\u80fd"), ("ab", "c")]),
        ("utf-16", [("\u7528\U0001f600", "\u0a0d\u0d0a"), ("ab", "c")]),
        ("utf-16-le", [("\u7528\U0001f600", "\u0a0d\u0d0a"), ("ab", "c")]),
        ("utf-16-be", [("\u7528\U0001f600", "\u0a0d\u0d0a"), ("ab", "c")]),
        ("utf-32", [("\u7528\U0001f600", "\u2028\u0085x"), ("ab", "c")]),
        ("utf-8-sig", [("\u7528\U0001f600", "\u2028\u0085x"), ("ab", "c")]),
        ("cp1251", [("\u0449\u0438", "\u044f"), ("ab", "c")]),
        ("koi8-r", [("\u0449\u0438", "\u044f"), ("ab", "c")]),
        ("cp037", [("ab", "c"), ("de", "f")]),
        ("utf-7", [("\u7528\u6237", "\u20ac"), ("ab", "c")]),
    ],
)  # fmt: skip
def test_characters_of_every_encoding(tmp_path: Path, kind: str, encoding: str, cells: list[tuple[str, str]]) -> None:
    text = lines_for(kind, "".join(f"{a}|{b}\r\n" for a, b in cells))
    for block_bytes in SIZES:
        found = read_as(tmp_path, kind, text.encode(encoding), encoding, block_bytes)
        assert found.rows == cells
        assert found.lines == list(range(1, len(cells) + 1))
        assert found.raw == text.removesuffix("\r\n").split("\r\n")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("encoding", "bad"),
    [
        ("utf-8", b"\xff"), ("utf-8", b"\xc3"), ("utf-8", b"\xed\xa0\x80"), ("ascii", b"\xc3\xa9"), ("cp1252", b"\x81"),
        ("gb18030", b"\x81"), ("gb18030", b"\x81\x30"), ("gb18030", b"\x81\x30\x81"), ("gb18030", b"\xff"),
        ("gbk", b"\x81"), ("shift_jis", b"\x81"), ("euc_jp", b"\x8f\xa1"), ("big5", b"\xa1"),
        ("utf-16-le", b"\x00\xd8"), ("utf-16-le", b"\x00\xdc"), ("utf-16-be", b"\xd8\x00"), ("utf-32-le", b"\x00\xd8\x00\x00"),
    ],
)  # fmt: skip
def test_bytes_that_are_no_text_cost_their_own_line_only(tmp_path: Path, kind: str, encoding: str, bad: bytes) -> None:
    good = [lines_for(kind, line).encode(encoding) for line in ("12|3", "ab|c")]
    end = "\n".encode(encoding)
    content = good[0] + end + good[0] + bad + end + good[1] + end
    for block_bytes in SIZES:
        found = read_as(tmp_path, kind, content, encoding, block_bytes)
        assert found.malformed == [False, True, False]
        assert found.rows == [("12", "3"), (None, None), ("ab", "c")]
        assert found.raw[1].startswith(lines_for(kind, "12|3"))


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("encoding", "lost"), [("gb18030", 1), ("utf-16", 1), ("utf-16-le", 3), ("utf-8", 1), ("utf-32", 2)]
)
def test_a_file_cut_within_a_character(tmp_path: Path, kind: str, encoding: str, lost: int) -> None:
    content = lines_for(kind, "12|3\nab|\u4f60\U0001f600").encode(encoding)[:-lost]
    for block_bytes in SIZES:
        found = read_as(tmp_path, kind, content, encoding, block_bytes)
        assert found.malformed == [False, True]
        assert found.rows[0] == ("12", "3")
        assert found.warnings == {}


@pytest.mark.parametrize("kind", FORMATS)
def test_the_sentence_names_the_table_of_the_format(tmp_path: Path, kind: str) -> None:
    table = "csv" if kind == "plain" else kind
    sentence = rf'^log\.csv: the file cannot be read as \[source\.{table}\] encoding = "utf-16" \('
    with pytest.raises(PipelineError, match=sentence):
        read_as(tmp_path, kind, b"12|3\nab|c\n", "utf-16")


@on_disk
@given(
    content=st.lists(
        st.sampled_from([b"\x81", b"\x30", b"\xff", b"\n", b"\r", b"|", b"a", b"\x00", b"\xd8", b"\xc3\xa9", b"\xa1", b"\x1b$B"])
        | st.binary(max_size=2),
        max_size=20,
    ),
    encoding=st.sampled_from(
        ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "gb18030", "big5hkscs", "euc_jis_2004", "iso2022_jp", "cp1252", "utf-7", "hz"]
    ),
    kind=st.sampled_from(list(FORMATS)),
    block_bytes=st.sampled_from(SIZES),
)  # fmt: skip
def test_block_sizes_never_change_what_is_read(
    tmp_path: Path, content: list[bytes], encoding: str, kind: str, block_bytes: int
) -> None:
    whole = read_as(tmp_path, kind, b"".join(content), encoding)
    found = read_as(tmp_path, kind, b"".join(content), encoding, block_bytes)
    assert found.frame.equals(whole.frame)
    assert (found.lines, found.malformed, found.raw) == (whole.lines, whole.malformed, whole.raw)
    assert found.warnings == whole.warnings


@on_disk
@given(
    text=st.text(alphabet="ab\u4f60\U0001f600\u00e9|\r\n", max_size=30),
    encoding=st.sampled_from(["gb18030", "utf-16", "utf-16-be", "utf-8-sig", "utf-32"]),
    block_bytes=st.sampled_from(SIZES),
)
def test_an_encoding_changes_nothing_but_the_bytes(tmp_path: Path, text: str, encoding: str, block_bytes: int) -> None:
    for kind in FORMATS:
        plain = read_as(tmp_path, kind, text.encode(), "utf-8")
        found = read_as(tmp_path, kind, text.encode(encoding), encoding, block_bytes)
        assert found.frame.equals(plain.frame)
        assert (found.lines, found.malformed, found.raw) == (plain.lines, plain.malformed, plain.raw)
        assert "\ufffd" not in "".join(found.raw)

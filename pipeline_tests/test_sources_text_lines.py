"""Formats with a record on every line: fixed width and regex."""

import hashlib
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeline.contracts import PipelineError
from pipeline_tests.raw_files import Everything, read

SIZES = (1, 2, 3, 7, 64, 1 << 20)
on_disk = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ACCESS = r'(?P<host>\S+) \S+ \S+ \[(?P<time>[^\]]+)\] "(?P<verb>[A-Z]+) (?P<path>[^ "]+)( HTTP/[0-9.]+)?" (?P<status>\d{3}) (?:(?P<bytes>\d+)|-)'


def read_fixed(folder: Path, content: bytes, columns: dict[str, tuple[int, int]], **more: Any) -> Everything:
    block_bytes = more.pop("block_bytes", 1 << 20)
    declared = {"columns": columns, **more}
    return read(folder, "log.dat", content, block_bytes=block_bytes, format="fixed_width", fixed_width=declared)


def read_regex(folder: Path, content: bytes, pattern: str, **more: Any) -> Everything:
    block_bytes = more.pop("block_bytes", 1 << 20)
    return read(
        folder, "access.log", content, block_bytes=block_bytes, format="regex", regex={"pattern": pattern, **more}
    )


@pytest.mark.parametrize("block_bytes", SIZES)
def test_columns_stand_at_their_places(tmp_path: Path, block_bytes: int) -> None:
    lines = [
        "123456789",
        " 12 ab\tc9",
        "3    d 10 and more\r",
        "",
        "4  e",  # ends before `rest` begins
        "5  fg  h",  # ends within it
        "6       ",
        "   \t\u00e9\u20ac\u00e9 7",
    ]
    columns = {"user": (1, 3), "item": (4, 7), "rest": (8, 9)}
    content = "\n".join(lines).encode()
    found = read_fixed(tmp_path, content, columns, block_bytes=block_bytes)
    assert found.frame.schema == dict.fromkeys(columns, pl.String)
    assert found.rows == [
        ("123", "4567", "89"),
        ("12", "ab", "c9"),
        ("3", "d", "10"),
        (None, None, None),
        ("5", "fg", "h"),
        ("6", None, None),
        (None, "\u00e9\u20ac\u00e9", "7"),
    ]
    assert found.malformed == [False, False, False, True, False, False, False]
    assert found.lines == [1, 2, 3, 5, 6, 7, 8]
    assert found.raw == [line.removesuffix("\r") for line in lines if line]
    assert found.warnings == {"last_record_without_newline": 1}
    assert found.checksum == hashlib.sha256(content).hexdigest()


def test_columns_in_any_order_and_over_each_other(tmp_path: Path) -> None:
    columns = {"b": (3, 4), "all": (1, 4), "": (1, 1), "far": (2, 10**12)}
    found = read_fixed(tmp_path, b"1234\n12\n123\n", columns)
    assert found.frame.columns == ["b", "all", "", "far"]
    assert found.rows == [("34", "1234", "1", "234"), (None, None, None, None), ("3", "123", "1", "23")]


def test_positions_count_characters(tmp_path: Path) -> None:
    content = "\u00e9\u20ac\U0001f600x\n\u00e9\u20ac\n".encode()
    found = read_fixed(tmp_path, content, {"a": (2, 2), "b": (3, 4)})
    assert found.rows == [("\u20ac", "\U0001f600x"), (None, None)]
    assert found.malformed == [False, True]


@pytest.mark.parametrize("block_bytes", SIZES)
def test_headers_comments_and_missing_values_of_fixed_width(tmp_path: Path, block_bytes: int) -> None:
    content = b"\xef\xbb\xbf# made\r\n\r\r\nus it\n#\n 1 NA\n#NA x\n NA#2\n\xff1 3\n#"
    more = {"has_header": True, "comment": "#", "null_values": ["NA"], "block_bytes": block_bytes}
    found = read_fixed(tmp_path, content, {"user": (1, 2), "item": (3, 5)}, **more)
    assert found.rows == [("1", None), ("N", "A#2"), (None, None)]
    assert found.lines == [5, 7, 8]
    assert found.malformed == [False, False, True]
    assert found.raw == [" 1 NA", " NA#2", "\ufffd1 3"]
    assert found.warnings == {}


@pytest.mark.parametrize("content", [b"", b"\n\r\n", b"#", b"# a\n#\n", b"\xef\xbb\xbf", b"\n#\nheader only"])
def test_files_without_records(tmp_path: Path, content: bytes) -> None:
    for block_bytes in SIZES:
        found = read_fixed(
            tmp_path, content, {"a": (1, 2), "b": (3, 3)}, has_header=True, comment="#", block_bytes=block_bytes
        )
        assert found.frame.schema == {"a": pl.String, "b": pl.String}
        assert (found.rows, found.warnings, found.blocks) == ([], {}, 1)
    found = read_regex(tmp_path, content.removesuffix(b"header only"), "(?P<a>.)(?P<b>.)", comment="#")
    assert found.frame.schema == {"a": pl.String, "b": pl.String}
    assert (found.rows, found.warnings, found.blocks) == ([], {}, 1)


def test_nul_bytes_long_lines_and_lone_returns(tmp_path: Path) -> None:
    long = "x" * 300_000
    content = f"1\x00 a\n2\r b\r\r\n{long}\n\r3 c\n".encode()
    for block_bytes in (1, 1000, 1 << 20):
        found = read_fixed(tmp_path, content, {"a": (1, 2), "b": (3, 10**6)}, block_bytes=block_bytes)
        assert found.rows == [("1\x00", "a"), ("2\r", "b\r"), ("xx", long[2:]), ("\r3", "c")]
        read_by_pattern = read_regex(tmp_path, content, "(?s)(?P<a>..)(?P<b>.*)", block_bytes=block_bytes)
        assert read_by_pattern.rows == [("1\x00", " a"), ("2\r", " b\r"), ("xx", long[2:]), ("\r3", " c")]


@pytest.mark.parametrize("block_bytes", SIZES)
def test_a_pattern_matches_whole_lines(tmp_path: Path, block_bytes: int) -> None:
    lines = [
        '1.2.3.4 - bob [01/Jan/2020:10:00:00 +0100] "GET /item/7 HTTP/1.1" 200 512',
        '::1 - - [01/Jan/2020:10:00:01 +0100] "POST /cart" 404 -\r',
        "",
        "not a request",
        '::1 - - [01/Jan/2020:10:00:01 +0100] "GET /caf\u00e9" 200 1 more',
        '::1 - - [01/Jan/2020:10:00:02 +0100] "GET /caf\u00e9" 200 1',
    ]
    found = read_regex(tmp_path, "\n".join(lines).encode(), ACCESS, block_bytes=block_bytes)
    assert found.frame.columns == ["host", "time", "verb", "path", "status", "bytes"]
    times = [f"01/Jan/2020:10:00:0{second} +0100" for second in range(3)]
    assert found.rows == [
        ("1.2.3.4", times[0], "GET", "/item/7", "200", "512"),
        ("::1", times[1], "POST", "/cart", "404", None),
        (None,) * 6,
        (None,) * 6,
        ("::1", times[2], "GET", "/caf\u00e9", "200", "1"),
    ]
    assert found.malformed == [False, False, True, True, False]
    assert found.lines == [1, 2, 4, 5, 6]
    assert found.raw == [line.removesuffix("\r") for line in lines if line]
    assert found.warnings == {"last_record_without_newline": 1}


def test_groups_that_match_nothing_are_missing(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf1,\n,\n#,3\n,-\n\xff,2\nx,5\n"
    more = {"comment": "#", "null_values": ["-"]}
    found = read_regex(tmp_path, content, r"(?P<b>\d*),(?P<a>[\d-])?", **more)
    assert found.frame.columns == ["b", "a"]
    assert found.rows == [("1", None), (None, None), (None, None), (None, None), (None, None)]
    assert found.malformed == [False, False, False, True, True]
    assert found.lines == [1, 2, 4, 5, 6]


@pytest.mark.parametrize(
    ("pattern", "line", "expected"),
    [
        ("(?P<a>a|ab)(?P<b>c|bcd)", "abcd", ("a", "bcd")),
        ("(?P<a>a)|b(?P<b>c)", "bc", (None, "c")),
        ("^(?P<a>a*?)(?P<b>a*)$", "aa", (None, "aa")),
        (r"(?P<a>[^]a-c\[-]+)(?P<b>[]\[x-z-]+)", "d][-", ("d", "][-")),
        ("(?i)(?P<a>A)(?P<b>\u00c9)", "a\u00e9", ("a", "\u00e9")),
        (r"(?P<a>[*+]+\+)(?P<b>\d)", "*+1", ("*+", "1")),
    ],
)
def test_patterns_mean_what_they_mean_in_python(tmp_path: Path, pattern: str, line: str, expected: tuple) -> None:
    assert read_regex(tmp_path, line.encode() + b"\n", pattern).rows == [expected]
    match = re.compile(pattern).fullmatch(line)
    assert match is not None
    assert tuple(text or None for text in match.groupdict().values()) == expected


@pytest.mark.filterwarnings("ignore:Possible (nested|set):FutureWarning")
@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?P<a>a)(?=b)", "look-around"),
        (r"(?P<a>a)\1", "backreferences are not supported"),
        ("(?P<a>a++)a", "possessive repetition"),
        (r"(?P<a>[\]+]?+)a", "possessive repetition"),
        ("(?P<a>a{2,}+)a", "possessive repetition"),
        (r"(?P<a>a)\Z", "unrecognized escape"),
        (r"(?P<a>(?:\w{1000}){1000})", "size limit"),
        ("(?x) (?P<a>a) [ ]", "verbose mode"),
        ("(?P<a>a)(?ix:[ ])", "verbose mode"),
        (r"(?P<a>[\]a[b])", r"\[ is an operator within a class"),
        ("(?P<a>[[:digit:]]+)", r"\[ is an operator within a class"),
        ("(?P<a>[a-z&&b]+)", "&& is an operator within a class"),
    ],
)
def test_patterns_that_rust_does_not_know_are_refused(tmp_path: Path, pattern: str, reason: str) -> None:
    sentence = rf"^access\.log: \[source\.regex\] pattern is not known .*{reason}.*; write it without look-around"
    with pytest.raises(PipelineError, match=sentence):
        read_regex(tmp_path, b"", pattern)


def record_lines(content: str) -> list[tuple[int, str]]:
    """Number and text of every line that is neither blank nor a comment."""
    lines = enumerate(content.split("\n"), 1)
    return [(number, line.removesuffix("\r")) for number, line in lines if line.strip("\r") and line[0] != "#"]


@on_disk
@given(
    content=st.text(alphabet="ab\u00e9\U0001f600# \t\r\n\x00", max_size=40),
    columns=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 4)), min_size=1, max_size=3),
    block_bytes=st.sampled_from(SIZES),
)
def test_any_text_is_cut_as_python_slices_it(
    tmp_path: Path, content: str, columns: list[tuple[int, int]], block_bytes: int
) -> None:
    places = {f"c{number}": (first, first + more) for number, (first, more) in enumerate(columns)}
    found = read_fixed(
        tmp_path, content.encode(), places, comment="#", null_values=["a", "b b"], block_bytes=block_bytes
    )
    expected = [
        (number, None)
        if len(line) < max(first for first, _ in places.values())
        else (number, [line[first - 1 : last].strip(" \t") for first, last in places.values()])
        for number, line in record_lines(content)
    ]
    assert found.lines == [number for number, _ in expected]
    assert found.malformed == [cells is None for _, cells in expected]
    assert found.rows == [
        tuple(None if cell in ("", "a", "b b") else cell for cell in cells or [""] * len(columns))
        for _, cells in expected
    ]


@on_disk
@given(
    content=st.text(alphabet="ab\u00e9\U0001f600# \r\n\x00", max_size=40),
    pattern=st.sampled_from(
        [
            "(?P<p>a*)(?P<q>.*)", "(?P<p>[^ab]*)(?:(?P<q>a|ab|b)+| )", "(?P<p>.)(?P<q>a)?.*", "(?P<q>a)|(?P<p>(b|\u00e9)*)",
            r"(?P<p>\w+)\s(?P<q>\S*)", "(?P<p>(a?)*b?)(?P<q>[^a].*)?",
        ]
    ),
    block_bytes=st.sampled_from(SIZES),
)  # fmt: skip
@example(content="ab\r\n", pattern="(?P<p>a*)(?P<q>.*)", block_bytes=1)
def test_any_text_is_matched_as_python_matches_it(tmp_path: Path, content: str, pattern: str, block_bytes: int) -> None:
    found = read_regex(tmp_path, content.encode(), pattern, comment="#", null_values=["a"], block_bytes=block_bytes)
    expected = [(number, re.compile(pattern).fullmatch(line)) for number, line in record_lines(content)]
    assert found.lines == [number for number, _ in expected]
    assert found.malformed == [match is None for _, match in expected]
    assert found.rows == [
        (None, None) if match is None else tuple(None if text in (None, "", "a") else text for text in match.groupdict().values())
        for _, match in expected
    ]  # fmt: skip

"""Numbers that come as numbers: the same records as by the exact way, or none at all."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.sources.delimited.exact import Dialect, exact_records
from pipeline.sources.delimited.numbers import cut_numbers
from pipeline.sources.delimited.scan import cut

DIALECT = Dialect(separator=",", quote='"', nulls=frozenset([""]))
NAMES = ["user", "what", "time"]
INTEGERS = {"user", "time"}


def test_ordinary_lines_come_as_numbers() -> None:
    found = cut_numbers(
        b"7,a,-10\n,,9223372036854775807\n0,b c,\n8,cut", names=NAMES, dialect=DIALECT, integers=INTEGERS
    )
    assert found is not None
    assert found.frame.schema == {"user": pl.Int64, "what": pl.String, "time": pl.Int64}
    assert found.frame.rows() == [(7, "a", -10), (None, None, 2**63 - 1), (0, "b c", None)]
    assert found.borders.start.tolist() == [0, 8, 30]
    assert found.borders.end.tolist() == [8, 30, 37]
    assert found.borders.line.tolist() == [0, 1, 2]
    assert (found.borders.consumed, found.borders.lines) == (37, 3)


@pytest.mark.parametrize(
    "line",
    [
        b"07,a,1\n", b"+7,a,1\n", b"-0,a,1\n", b" 7,a,1\n", b"7.0,a,1\n", b"1e3,a,1\n", b"1_0,a,1\n", b"7e091613,a,1\n",
        b"9223372036854775808,a,1\n", b"x,a,1\n", b"7,a\n", b"7,a,1,2\n", b'7,"a",1\n', b"7,a,1\r\n", b"\n7,a,1\n",
        "7,é,1\n".encode(), b"7,\xff,1\n",
    ],
)  # fmt: skip
def test_any_other_line_is_left_to_the_exact_ways(line: bytes) -> None:
    for text in (line, b"1,b,2\n" + line + b"3,c,4\n"):
        assert cut_numbers(text, names=NAMES, dialect=DIALECT, integers=INTEGERS) is None


@pytest.mark.parametrize(
    "text",
    [
        b"7,a\n007,a,1\n", b"7,a\n8,b,1,\n", b"7,a\n8,b,1,1\n", b",,\n,\n,,,\n",
        b"\n8,b,1,,\n", b"8,b,1,,\n\n", b"9,c,1\n\n8,b,1,,\n", b"9,c,1\n8,b,1,,\n\n", b"\n,,,,\n", b",,,,\n\n",
    ],
)  # fmt: skip
def test_one_line_too_long_does_not_make_up_for_one_too_short_or_blank(text: bytes) -> None:
    assert cut_numbers(text, names=NAMES, dialect=DIALECT, integers=INTEGERS) is None


@pytest.mark.parametrize("text", [b"", b"7", b"7,a,1"])
def test_without_a_whole_line_there_is_nothing(text: bytes) -> None:
    assert cut_numbers(text, names=NAMES, dialect=DIALECT, integers=INTEGERS) is None


def test_a_blank_line_is_no_record_of_one_column() -> None:
    assert cut_numbers(b"1\n\n2\n", names=["user"], dialect=DIALECT, integers={"user"}) is None
    assert cut_numbers(b"\n2\n", names=["user"], dialect=DIALECT, integers={"user"}) is None


CELL = st.one_of(
    st.integers(-(2**63) - 2, 2**63 + 1).map(str),
    st.integers(-1200, 1200).map(str),
    st.sampled_from(
        ["", "0", "-0", "00", "+1", " 1", "1 ", "1.0", "1e5", "-", "9" * 19, "NA", "a b", "#", "é", '"1"', "'"]
    ),
)


@given(st.lists(st.lists(CELL, min_size=2, max_size=4), max_size=8), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_the_records_are_those_of_the_exact_way(rows: list[list[str]], line_end: str) -> None:
    text = "".join(",".join(row) + line_end for row in rows).encode()
    found = cut_numbers(text, names=NAMES, dialect=DIALECT, integers=INTEGERS)
    whole = cut(text, names=NAMES, dialect=DIALECT, integers=INTEGERS)
    exact = list(exact_records(text, DIALECT))
    assert len(exact) == whole.frame.height
    if found is None:
        return
    assert [(r.start, r.end, r.line) for r in exact] == list(
        zip(found.borders.start, found.borders.end, found.borders.line, strict=True)
    )
    assert [tuple(cell or None for cell in r.fields or []) for r in exact] == found.frame.cast(pl.String).rows()


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-1200, 1200)), min_size=1, max_size=20))
def test_numbers_as_python_prints_them_are_always_ordinary(rows: list[tuple[int, int]]) -> None:
    text = "".join(f"{user},x,{time}\n" for user, time in rows).encode()
    found = cut_numbers(text, names=NAMES, dialect=DIALECT, integers=INTEGERS)
    assert found is not None
    assert found.frame.rows() == [(user, "x", time) for user, time in rows]

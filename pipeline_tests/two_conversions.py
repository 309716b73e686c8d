"""Raw cells, converted by the pipeline and judged once more in plain Python."""

import math
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import strategies as st

from pipeline.checks.raw import excluded_columns, judge
from pipeline.checks.raw.values.numbers import NarrowFloat
from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.events.convert import ACCEPTED, convert_block
from pipeline.events.reasons import REASONS
from pipeline.events.times.unit_doctor import UnitDoctor
from pipeline.sources import RawBlock
from pipeline_tests.raw_files import declared_raw

NOON_US = 1_583_064_000_000_000  # 2020-03-01T12:00:00Z, a Sunday
GOOD = {"u": "1", "i": "a", "t": "1583064000", "a": "view"}
BAD, WILD, MISSING = "malformed_timestamp", "implausible_timestamp", "missing_timestamp"
ODD = st.sampled_from(
    [*" \t\n\r\x00\x1c\x1f\x85\xa0\u3000\u2212+-_:.,/eExXzZtTaApPmM0159\u0663\uff14\u017f\u212a\u0130{[\"'"]
)


def declared(columns: dict[str, dict[str, Any]], extra: dict[str, dict[str, Any]] | None = None) -> Dataset:
    return declared_raw(Path(), start="2020-03-01", end="2020-03-02", extra=extra or {}, **columns)


def both(cells: dict[str, pl.Series], dataset: Dataset) -> tuple[list[Any], list[Any]]:
    """A reason, or the typed values, of every row; by the converters and by the judge."""
    rows = len(next(iter(cells.values())))
    frame = pl.DataFrame(
        {name: cells.get(name, pl.Series([text] * rows, dtype=pl.String)) for name, text in GOOD.items()} | cells
    )
    block = RawBlock(
        frame=frame,
        line=pl.Series([0] * rows, dtype=pl.Int64),
        malformed=pl.Series([False] * rows, dtype=pl.Boolean),
        read_raw=lambda _: [],
    )
    found = convert_block(block, dataset, UnitDoctor(dataset.columns.timestamp, "log.csv", "t"))
    assert excluded_columns(dataset) == []
    theirs = [
        row if rank == ACCEPTED else REASONS[rank]
        for row, rank in zip(found.frame.iter_rows(named=True), found.rank, strict=True)
    ]
    narrow = [name for name, dtype in frame.schema.items() if dtype == pl.Float32]
    verdicts = [
        judge(row | {name: NarrowFloat(row[name]) for name in narrow if row[name] is not None}, dataset, file_day=None)
        for row in frame.iter_rows(named=True)
    ]
    return theirs, [verdict.reason or dict(verdict.values) for verdict in verdicts]


def agree_on(column: str, cells: list[Any], dataset: Dataset, dtype: pl.DataType | None = None) -> list[Any]:
    """Demands that both mean the same by the cells of one raw column; returns what."""
    theirs, ours = both({column: pl.Series(cells, dtype=dtype or pl.String())}, dataset)
    for cell, their, our in zip(cells, theirs, ours, strict=True):
        assert their == our, f"{cell!r}: converters {their}, judge {our}"
    return theirs


def timed(format_: str, zone: str = "UTC") -> Dataset:
    offset = any(letters in format_ for letters in ("%z", "%:z", "%#z", "%+"))
    return declared({"timestamp": {"from": "t", "format": format_} | ({} if offset else {"timezone": zone})})


def agree_or_stop(column: str, cells: list[Any], dataset: Dataset, dtype: pl.DataType) -> None:
    """A type that cannot be converted stops before any row."""
    try:
        agree_on(column, [], dataset, dtype)
    except PipelineError:
        return
    agree_on(column, cells, dataset, dtype)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """A text with none to two characters put in, taken out, or exchanged."""
    for _ in range(draw(st.sampled_from((0, 0, 1, 1, 1, 2)))):
        place = draw(st.integers(0, len(text)))
        width = draw(st.sampled_from((0, 1)))
        text = text[:place] + draw(st.one_of(st.just(""), ODD, ODD)) + text[place + width :]
    return text


KINDS = ("int64", "float64", "string", "bool")


FLOATS = st.floats() | st.sampled_from((2.0**53, 2.0**53 - 1, 1e16, -0.0, 17850.0, 16777216.0, math.nan, math.inf))
TYPED = {
    pl.Float64(): FLOATS,
    pl.Float32(): st.floats(width=32)
    | st.sampled_from((2.0**24, 2.0**24 - 1, 0.1, 1.5e9)).map(lambda x: pl.Series([x], dtype=pl.Float32)[0]),
    pl.Categorical(): st.sampled_from(("1", "a", "", " 7 ", "true", "1583064000.5")),
    pl.Int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
    pl.UInt64(): st.integers(0, 2**64 - 1) | st.integers(0, 3),
    pl.Int8(): st.integers(-3, 3),
    pl.Boolean(): st.booleans(),
    pl.Decimal(30, 9): st.decimals(-(10**15), 10**15, places=9),
    pl.Null(): st.none(),
}

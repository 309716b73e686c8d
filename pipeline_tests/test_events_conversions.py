"""Cells to ids, times, actions and extras: by literal examples, then against slow references in plain Python."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config import RawColumn, TimestampColumn
from pipeline.contracts import PipelineError
from pipeline.events.cells import clean
from pipeline.events.ids import CONVERSIONS, Typed
from pipeline.events.times.timestamps import Times, convert_times
from pipeline.events.times.unit_doctor import UnitDoctor
from pipeline_tests.datasets import at, make_dataset, make_events_of, make_store, row, table

MISSING, MALFORMED, BEYOND, IMPLAUSIBLE = "missing", "malformed", "out_of_range", "implausible"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INT64 = range(-(2**63), 2**63)
FORMAT = "%Y-%m-%d %H:%M:%S"


def verdict(values: pl.Series, masks: dict[str, np.ndarray | None]) -> list[Any]:
    """A value a row, or the name of the mask that is set; a row has at most one of both."""
    answers = []
    for position, value in enumerate(values.to_list()):
        names = [name for name, mask in masks.items() if mask is not None and mask[position]]
        assert len(names) <= 1, f"row {position} is {names}"
        assert not names or value is None or names == [IMPLAUSIBLE]
        assert names or value is not None, f"row {position} has neither value nor verdict"
        answers.append(names[0] if names else value)
    return answers


def converted(cells: list[Any], *, to: str, dtype: pl.DataType | None = None) -> list[Any]:
    typed: Typed = CONVERSIONS[to](pl.Series("cell", cells, dtype=dtype or pl.String()), column="cell")
    assert typed.values.dtype == {"int64": pl.Int64, "float64": pl.Float64, "string": pl.String, "bool": pl.Boolean}[to]
    return verdict(typed.values, {MISSING: typed.missing, MALFORMED: typed.malformed, BEYOND: typed.out_of_range})


def times(cells: list[Any], *, dtype: pl.DataType | None = None, **declared: str) -> list[Any]:
    found = convert(cells, dtype=dtype, **declared)
    return verdict(found.us, {MISSING: found.missing, MALFORMED: found.malformed, IMPLAUSIBLE: found.implausible})


def convert(cells: list[Any], *, dtype: pl.DataType | None = None, **declared: str) -> Times:
    column = TimestampColumn.model_validate({"from": "t", **declared})
    return convert_times(pl.Series("t", cells, dtype=dtype or pl.String()), column, UnitDoctor(column, "log.csv", "t"))


# --- ids ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("17850", 17850),
        ("17850.0", 17850),
        ("17850.000", 17850),
        ("17850.", 17850),
        (" 17850 ", 17850),
        ("+5", 5),
        ("-5", -5),
        ("-5.0", -5),
        ("007", 7),
        ("9007199254740993", 9007199254740993),  # 2^53 + 1: a float would make it ...992
        ("9007199254740993.0", 9007199254740993),
        ("9223372036854775807", 9223372036854775807),
        ("9223372036854775807.0", 9223372036854775807),
        ("-9223372036854775808", -9223372036854775808),
        ("9223372036854775808", BEYOND),
        ("-9223372036854775809", BEYOND),
        ("9223372036854775808.0", BEYOND),
        ("99999999999999999999999999999999999999999", BEYOND),
        ("0" * 40 + "7", 7),
        ("17850.5", MALFORMED),
        ("17850.0000001", MALFORMED),
        ("1e3", MALFORMED),
        ("1_000", MALFORMED),
        ("1,000", MALFORMED),
        ("0x10", MALFORMED),
        ("1.0.0", MALFORMED),
        (".0", MALFORMED),
        ("-", MALFORMED),
        ("--5", MALFORMED),
        ("nan", MALFORMED),
        ("٣", MALFORMED),  # a digit, though not an ASCII one
        ("", MISSING),
        ("  ", MISSING),
        (None, MISSING),
    ],
)
def test_text_to_int64(cell: str | None, expected: object) -> None:
    assert converted([cell], to="int64") == [expected]
    # Beside others the answer is the same: clean blocks take another path.
    assert converted(["1", cell, "2"], to="int64") == [1, expected, 2]


def slow_int64(cell: str | None) -> object:
    """By `decimal`, digit by digit."""
    stripped = (cell or "").strip()
    if not stripped:
        return MISSING
    if re.fullmatch(r"[+-]?[0-9]+(\.0*)?", stripped) is None:
        return MALFORMED
    number = Decimal(stripped)
    assert number == number.to_integral_value()
    return int(number) if int(number) in INT64 else BEYOND


NUMBERS = st.one_of(
    st.integers(-(2**63) - 3, 2**63 + 3).map(str),
    st.sampled_from([2**53, 2**63, -(2**63), 0]).flatmap(lambda n: st.integers(n - 2, n + 2)).map(str),
    st.integers().map(lambda n: f"{n}.0"),
    st.text("0123456789+-. eE_,", max_size=12),
    st.text("09", min_size=15, max_size=45),
)


@given(st.lists(st.one_of(st.none(), NUMBERS), min_size=1, max_size=30))
def test_text_to_int64_equals_decimal(cells: list[str | None]) -> None:
    assert converted(cells, to="int64") == [slow_int64(cell) for cell in cells]


@pytest.mark.parametrize(
    ("dtype", "cell", "expected"),
    [
        (pl.Int8(), -128, -128),
        (pl.UInt32(), 2**32 - 1, 4294967295),
        (pl.Int64(), 2**63 - 1, 9223372036854775807),
        (pl.UInt64(), 2**63 - 1, 9223372036854775807),
        (pl.UInt64(), 2**63, BEYOND),
        (pl.Int128(), -(2**63), -9223372036854775808),
        (pl.Int128(), -(2**63) - 1, BEYOND),
        (pl.Int128(), 2**63, BEYOND),
        (pl.Decimal(20, 2), Decimal("17850.00"), 17850),
        (pl.Decimal(20, 2), Decimal("-17850.00"), -17850),
        (pl.Decimal(20, 2), Decimal("17850.50"), MALFORMED),
        (pl.Decimal(38, 0), Decimal(2**63 - 1), 9223372036854775807),
        (pl.Decimal(38, 0), Decimal(2**63), BEYOND),
        (pl.Decimal(38, 38), Decimal("0.1"), MALFORMED),
        (pl.Float64(), 17850.0, 17850),
        (pl.Float64(), -0.0, 0),
        (pl.Float64(), 9007199254740991.0, 9007199254740991),
        (pl.Float64(), 9007199254740992.0, MALFORMED),  # it may be the rounding of 2^53 + 1
        (pl.Float64(), 9007199254740994.0, MALFORMED),  # which integer was meant cannot be told
        (pl.Float64(), 17850.5, MALFORMED),
        (pl.Float64(), float("nan"), MALFORMED),
        (pl.Float64(), float("inf"), MALFORMED),
        (pl.Float64(), None, MISSING),
        (pl.Null(), None, MISSING),
    ],
)
def test_typed_columns_to_int64(dtype: pl.DataType, cell: object, expected: object) -> None:
    assert converted([cell], to="int64", dtype=dtype) == [expected]
    assert converted([cell, None], to="int64", dtype=dtype) == [expected, MISSING]


def test_float32_is_exact_only_up_to_24_bits() -> None:
    assert converted([16777218.0], to="int64", dtype=pl.Float32()) == [MALFORMED]


@pytest.mark.parametrize(
    ("dtype", "cell", "expected"),
    [
        (pl.String(), "071053", "071053"),
        (pl.String(), " a ", " a "),  # text is kept as it stands
        (pl.String(), "Ünï\x00", "Ünï\x00"),
        (pl.String(), "", MISSING),
        (pl.String(), None, MISSING),
        (pl.Int64(), -(2**63), "-9223372036854775808"),
        (pl.UInt64(), 2**64 - 1, "18446744073709551615"),
        (pl.Decimal(38, 3), Decimal("9007199254740993.000"), "9007199254740993"),
        (pl.Decimal(38, 3), Decimal("-1.500"), MALFORMED),
        (pl.Decimal(38, 3), None, MISSING),
        (pl.Boolean(), True, "true"),
        (pl.Boolean(), None, MISSING),
        (pl.Categorical(), "x", "x"),
        (pl.Null(), None, MISSING),
    ],
)
def test_to_strings(dtype: pl.DataType, cell: object, expected: object) -> None:
    assert converted([cell], to="string", dtype=dtype) == [expected]


@pytest.mark.parametrize(
    ("to", "dtype", "sentence"),
    [
        ("string", pl.Float64(), 'column \'cell\' holds Float64, which has no unambiguous text; declare another type or use sql'),
        ("int64", pl.Date(), "column 'cell' holds Date, expected integers; declare type = \"string\" or use sql"),
        ("float64", pl.Date(), "column 'cell' holds Date, expected numbers"),
        ("bool", pl.Float64(), "column 'cell' holds Float64, expected true and false"),
    ],
)  # fmt: skip
def test_a_type_that_cannot_be_converted_stops(to: str, dtype: pl.DataType, sentence: str) -> None:
    with pytest.raises(PipelineError) as caught:
        converted([None], to=to, dtype=dtype)
    assert str(caught.value) == sentence


# --- extras ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("2.55", 2.55), (" 1.5 ", 1.5), ("-.5", -0.5), ("1e5", 100000.0), ("+1.5", 1.5), ("0.1", 0.1),
        ("nan", MALFORMED), ("inf", MALFORMED), ("-Infinity", MALFORMED), ("1e400", MALFORMED), ("1,5", MALFORMED),
        ("1_0", MALFORMED), ("0x1p3", MALFORMED), ("", MISSING), (" ", MISSING), (None, MISSING),
    ],
)  # fmt: skip
def test_text_to_float64(cell: str | None, expected: object) -> None:
    assert converted([cell], to="float64") == [expected]


def slow_float64(cell: str | None) -> object:
    stripped = (cell or "").strip()
    if not stripped:
        return MISSING
    try:
        number = Decimal(stripped)
    except InvalidOperation:
        return MALFORMED
    rounded = float(number)
    return rounded if abs(rounded) != float("inf") else MALFORMED


@given(st.lists(st.one_of(st.floats(allow_nan=False).map(repr), st.text("0123456789+-.eE ", max_size=9)), min_size=1))
def test_text_to_float64_is_correctly_rounded(cells: list[str]) -> None:
    assert converted(cells, to="float64") == [slow_float64(cell) for cell in cells]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("true", True), ("TRUE", True), ("False ", False), ("1", True), ("0", False), ("yes", MALFORMED),
        ("t", MALFORMED), ("2", MALFORMED), ("", MISSING), (None, MISSING),
    ],
)  # fmt: skip
def test_text_to_bool(cell: str | None, expected: object) -> None:
    assert converted([cell], to="bool") == [expected]


# --- times -------------------------------------------------------------------------------------------------------


def test_numbers_with_a_unit() -> None:
    assert times(["1291191960"], unit="s") == [1291191960000000]
    assert times(["1291191960.0", "", "x", "1291191960.5", None], unit="s") == [
        1291191960000000, MISSING, MALFORMED, 1291191960500000, MISSING,
    ]  # fmt: skip
    assert times(["1291191960123"], unit="ms") == [1291191960123000]
    assert times(["1291191960123456"], unit="us") == [1291191960123456]
    assert times(["1291191960123456789"], unit="ns") == [1291191960123456]
    assert times([1291191960123456789], unit="ns", dtype=pl.Int64()) == [1291191960123456]


def test_nanoseconds_are_floored_and_counted() -> None:
    found = convert([1291191960123456789, 1291191960123456000, None], unit="ns", dtype=pl.Int64())
    assert (found.us.to_list(), found.floored) == ([1291191960123456, 1291191960123456, None], 1)
    before_1970 = convert([-1, -1000, -1001], unit="ns", dtype=pl.Int64())
    assert (before_1970.us.to_list(), before_1970.floored) == ([-1, -1, -2], 2)
    stamped = convert([1291191960123456789], timezone="UTC", dtype=pl.Datetime("ns"))
    assert (stamped.us.to_list(), stamped.floored) == ([1291191960123456], 1)


def test_the_borders_of_the_plausible() -> None:
    first = 631_152_000_000_000  # 1990-01-01T00:00:00
    tomorrow = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=2)
    after = (tomorrow - EPOCH) // timedelta(microseconds=1)
    cells = [first - 1, first, after - 1, after]
    assert times(cells, unit="us", dtype=pl.Int64()) == [IMPLAUSIBLE, first, after - 1, IMPLAUSIBLE]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_numbers_far_beyond_the_calendar_are_implausible_and_no_overflow(unit: str) -> None:
    ends = [2**63 - 1, -(2**63), 2**62, -(2**62), 2**63 // 1000 + 1, 0]
    assert times([*ends, None], unit=unit, dtype=pl.Int64()) == [*[IMPLAUSIBLE] * 6, MISSING]


@given(
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2 * 10**9)), min_size=1, max_size=20),
)
def test_numbers_equal_whole_number_arithmetic(unit: str, numbers: list[int]) -> None:
    factor = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    tomorrow = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=2)
    latest = (tomorrow - EPOCH) // timedelta(microseconds=1)
    exact = [number * factor // 1000 for number in numbers]
    expected = [us if 631_152_000_000_000 <= us < latest else IMPLAUSIBLE for us in exact]
    assert times(numbers, unit=unit, dtype=pl.Int64()) == expected
    assert times([str(number) for number in numbers], unit=unit) == expected


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("2010-12-01 08:26:00", 1291191960000000),
        ("2000-02-29 23:59:59", 951868799000000),
        ("2011-02-29 00:00:00", MALFORMED),
        ("2010-13-01 00:00:00", MALFORMED),
        ("2010-12-32 00:00:00", MALFORMED),
        ("2010-12-01 24:00:00", MALFORMED),
        ("2010-12-01 08:60:00", MALFORMED),
        ("2010-12-01T08:26:00", MALFORMED),
        ("2010-12-01 08:26", MALFORMED),
        ("2010-12-01 08:26:00.5", MALFORMED),
        ("2010-12-01 08:26:00Z", MALFORMED),
        ("2010-12-01 08:26:00 ", MALFORMED),
        ("1969-12-31 23:59:59", IMPLAUSIBLE),
        ("", MISSING),
        (None, MISSING),
    ],
)
def test_text_with_a_format(cell: str | None, expected: object) -> None:
    assert times([cell], format=FORMAT, timezone="UTC") == [expected]
    assert times(["2010-12-01 08:26:00", cell], format=FORMAT, timezone="UTC") == [1291191960000000, expected]


def test_second_60_is_malformed() -> None:
    assert times(["2010-12-01 08:26:60"], format=FORMAT, timezone="UTC") == [MALFORMED]


@pytest.mark.parametrize("cell", [" 2010-12-01 08:26:00", "2010-12-0108:26:00", "+2010-12-01 08:26:00"])
def test_text_beside_the_format_is_malformed(cell: str) -> None:
    assert times([cell], format=FORMAT, timezone="UTC") == [MALFORMED]


def test_python_style_fractions_are_read_as_written_or_refused() -> None:
    assert times(["2010-12-01 08:26:00.5"], format=FORMAT + ".%f", timezone="UTC") == [1291191960500000]


def test_nanoseconds_in_text_are_counted() -> None:
    cells = ["2010-12-01 08:26:00.123456789", "2010-12-01 08:26:00.123456000", "2010-13-01 08:26:00.123456789", None]
    assert convert(cells, format=FORMAT + "%.f", timezone="UTC").floored == 1
    assert convert(["20101201082600123456789"], format="%Y%m%d%H%M%S%9f", timezone="UTC").floored == 1
    assert convert(["20101201082600123456000"], format="%Y%m%d%H%M%S%9f", timezone="UTC").floored == 0


def test_other_formats() -> None:
    assert times(["12/1/2010 8:26 AM", "12/1/2010 12:00 PM"], format="%m/%d/%Y %I:%M %p", timezone="UTC") == [
        1291191960000000, 1291204800000000,
    ]  # fmt: skip
    assert times(["2010-12-01", "2010-12-01 00:00:00"], format="%Y-%m-%d", timezone="UTC") == [
        1291161600000000, MALFORMED,
    ]  # fmt: skip
    assert times(["2010-12-01T08:26:00.25", "2010-12-01T08:26:00"], format="%Y-%m-%dT%H:%M:%S%.f", timezone="UTC") == [
        1291191960250000, 1291191960000000,
    ]  # fmt: skip
    assert times(["2010-12-01T08:26:00+0100", "2010-12-01T08:26:00-05:30"], format="%Y-%m-%dT%H:%M:%S%z") == [
        1291188360000000, 1291211760000000,
    ]  # fmt: skip


def test_naive_times_are_in_the_declared_zone_and_never_guessed() -> None:
    cells = ["2020-07-01 00:00:00", "2020-01-01 00:00:00", "2020-03-29 02:30:00", "2020-10-25 02:30:00"]
    expected = [
        1593554400000000,
        1577833200000000,
        MALFORMED,
        MALFORMED,
    ]  # the hour that is not, the hour that is twice
    assert times(cells, format=FORMAT, timezone="Europe/Berlin") == expected
    stamps = [datetime.fromisoformat(cell) for cell in cells]
    assert times(stamps, timezone="Europe/Berlin", dtype=pl.Datetime("us")) == expected


def slow_time(cell: str | None, zone: str) -> object:
    """By `datetime`; an instant that does not exist, or exists twice, is malformed."""
    if not (cell or "").strip():
        return MISSING
    try:
        naive = datetime.strptime(cell or "", FORMAT)  # noqa: DTZ007
    except ValueError:
        return MALFORMED
    early, late = (naive.replace(tzinfo=ZoneInfo(zone), fold=fold) for fold in (0, 1))
    if early.utcoffset() != late.utcoffset():
        return MALFORMED
    us = (early - EPOCH) // timedelta(microseconds=1)
    return us if us >= 631_152_000_000_000 and early < datetime.now(UTC) else IMPLAUSIBLE


@given(
    st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu"]),
    st.lists(
        st.one_of(
            st.datetimes(datetime(1985, 1, 1), datetime(2025, 12, 31)).map(lambda t: t.strftime(FORMAT)),  # noqa: DTZ001
            st.tuples(*(st.integers(0, top) for top in (13, 32, 25, 61))).map(
                lambda p: "2020-{:02}-{:02} {:02}:{:02}:59".format(*p)
            ),
            st.datetimes(datetime(2020, 3, 28, 20), datetime(2020, 3, 29, 8)).map(lambda t: t.strftime(FORMAT)),  # noqa: DTZ001
            st.datetimes(datetime(2020, 10, 24, 20), datetime(2020, 10, 25, 8)).map(lambda t: t.strftime(FORMAT)),  # noqa: DTZ001
        ),
        min_size=1,
        max_size=20,
    ),
)
def test_text_equals_datetime(zone: str, cells: list[str]) -> None:
    assert times(cells, format=FORMAT, timezone=zone) == [slow_time(cell, zone) for cell in cells]


@pytest.mark.parametrize(
    ("declared", "dtype", "sentence"),
    [
        ({}, pl.Int64(), 'log.csv: column \'t\' holds Int64: say unit = "s" (or ms, us, ns) for numbers or format = "..." for text in [columns] timestamp'),
        ({}, pl.String(), 'log.csv: column \'t\' holds String: say unit = "s" (or ms, us, ns) for numbers or format = "..." for text in [columns] timestamp'),
        ({"format": FORMAT, "timezone": "UTC"}, pl.Float64(), "log.csv: column 't' holds Float64, not text: say unit = ... instead of format in [columns] timestamp"),
        ({"unit": "s"}, pl.Boolean(), "log.csv: column 't' holds Boolean, not numbers, as unit = \"s\" in [columns] timestamp says"),
        ({"unit": "s"}, pl.List(pl.Int64), "log.csv: column 't' holds List(Int64), not numbers, as unit = \"s\" in [columns] timestamp says"),
        ({"unit": "s"}, pl.Datetime("us"), "log.csv: column 't' already holds Datetime(time_unit='us', time_zone=None); leave unit out in [columns] timestamp"),
        ({"unit": "s"}, pl.Date(), "log.csv: column 't' already holds Date; leave unit out in [columns] timestamp"),
        ({}, pl.Date(), "log.csv: column 't' holds times without a zone; say timezone = \"UTC\", or the zone that they are in, in [columns] timestamp"),
        ({"format": "%s", "timezone": "UTC"}, pl.String(), 'log.csv: format = "%s" in [columns] timestamp holds %s, which is no field here; write it as in "%Y-%m-%d %H:%M:%S"'),
        ({"format": "%Y-%m %H:%M", "timezone": "UTC"}, pl.String(), 'log.csv: format = "%Y-%m %H:%M" in [columns] timestamp does not give one date and time; write it as in "%Y-%m-%d %H:%M:%S"'),
        ({"format": FORMAT, "timezone": "UTC"}, pl.Datetime("us", "UTC"), "log.csv: column 't' already holds Datetime(time_unit='us', time_zone='UTC'); leave format out in [columns] timestamp"),
        ({}, pl.Datetime("us"), "log.csv: column 't' holds times without a zone; say timezone = \"UTC\", or the zone that they are in, in [columns] timestamp"),
    ],
)  # fmt: skip
def test_a_declaration_that_does_not_fit_the_type_stops(
    declared: dict[str, str], dtype: pl.DataType, sentence: str
) -> None:
    with pytest.raises(PipelineError) as caught:
        convert([None], dtype=dtype, **declared)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("dtype", "zone"), [(pl.Datetime("ms"), "UTC"), (pl.Datetime("ms"), "Europe/Berlin"), (pl.Datetime("us"), "Europe/Berlin")]
)  # fmt: skip
def test_a_wild_datetime_is_implausible(dtype: pl.DataType, zone: str) -> None:
    cells = pl.Series([2**62, 1 - 2**63, 1291191960000], dtype=pl.Int64).cast(dtype)
    column = TimestampColumn.model_validate({"from": "t", "timezone": zone})
    found = convert_times(cells, column, UnitDoctor(column, "log.parquet", "t"))
    assert found.implausible is not None
    assert found.implausible[:2].tolist() == [True, True]


# --- through a whole day -----------------------------------------------------------------------------------------


def day_of(folder: Path, rows: Any, **overrides: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    dataset = make_dataset(folder, days={"2020-01-01": rows}, **overrides)
    store = make_store(dataset)
    make_events_of(dataset, store, "2020-01-01")
    return table(store, "events", "2020-01-01"), table(store, "rejected_events", "2020-01-01")


T = at("2020-01-01", "12:00:00")


def refused(
    cells: dict[str, object], *, extra: dict[str, Any] | None = None, columns: dict[str, Any] | None = None
) -> Callable[[Path], tuple[str, str | None] | None]:
    """Reason and column of one row beside a good one, None when it is accepted."""

    def answer(folder: Path) -> tuple[str, str | None] | None:
        rows = [row(1, "a", T, more="1"), row(1, "a", T) | {"more": "1"} | cells]
        _, rejected = day_of(folder, rows, extra=extra or {}, columns=columns or {})
        return None if rejected.is_empty() else (rejected["reason"][0], rejected["column"][0])

    return answer


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({}, None),
        ({"user": None}, ("missing_user_id", "user")),
        ({"user": "x"}, ("malformed_user_id", "user")),
        ({"user": "9223372036854775808"}, ("id_out_of_range", "user")),
        ({"item": ""}, ("missing_item_id", "item")),
        ({"time": None}, ("missing_timestamp", "time")),
        ({"time": "noon"}, ("malformed_timestamp", "time")),
        ({"time": 0}, ("implausible_timestamp", "time")),
        ({"time": T + 86400}, ("outside_day", "time")),
        ({"event": None}, ("missing_action", "event")),
        ({"event": "buy"}, ("unknown_action", "event")),
        ({"event": "VIEW"}, ("unknown_action", "event")),
        ({"event": "view "}, ("unknown_action", "event")),
        ({"more": "x"}, ("malformed_extra", "more")),
        ({"more": None}, ("malformed_extra", "more")),
        # The first of the closed list, whatever else is wrong; its own column beside it.
        ({"user": None, "item": None, "time": "x", "event": "buy"}, ("missing_user_id", "user")),
        ({"user": "x", "item": None}, ("malformed_user_id", "user")),
        ({"user": "9223372036854775808", "event": "buy"}, ("unknown_action", "event")),
        ({"user": "9223372036854775808", "more": "x"}, ("id_out_of_range", "user")),
        ({"time": T + 86400, "event": "buy", "more": "x"}, ("outside_day", "time")),
        ({"time": T + 86400, "user": "9223372036854775808"}, ("outside_day", "time")),
        ({"time": 0, "event": "buy"}, ("implausible_timestamp", "time")),
    ],
)  # fmt: skip
def test_the_reason_and_the_column_of_a_row(
    tmp_path: Path, cells: dict[str, object], expected: tuple[str, str] | None
) -> None:
    extra = {"more": {"from": "more", "type": "int64"}}
    assert refused(cells, extra=extra)(tmp_path) == expected


def test_item_ids_as_int64_have_reasons_of_their_own(tmp_path: Path) -> None:
    columns = {"item_id": {"from": "item", "type": "int64"}}
    rows = [row(1, "5.0", T), row(1, "a", T), row(1, "9" * 19, T)]
    events, rejected = day_of(tmp_path, rows, columns=columns)
    assert events["item_id"].to_list() == [5]
    assert rejected["reason"].to_list() == ["malformed_item_id", "id_out_of_range"]


def test_optional_items_and_extras_are_null(tmp_path: Path) -> None:
    rows = [row(1, None, T, more="2.5"), row(2, "a", T, more=None), row(3, "b", T, more="x")]
    events, rejected = day_of(
        tmp_path,
        rows,
        columns={"item_id": {"from": "item", "type": "string", "optional": True}},
        extra={"more": {"from": "more", "type": "float64", "optional": True}},
    )
    assert events.select("user_id", "item_id", "more").rows() == [(1, None, 2.5), (2, "a", None)]
    assert rejected.select("reason", "column").rows() == [("malformed_extra", "more")]


def test_every_type_of_extra(tmp_path: Path) -> None:
    kinds = {"n": "int64", "x": "float64", "s": "string", "b": "bool"}
    extra = {name: {"from": name, "type": kind} for name, kind in kinds.items()}
    events, _ = day_of(tmp_path, [row(1, "a", T, n="7.0", x="0.1", s=" é", b="TRUE")], extra=extra)
    assert events.select(*kinds).rows() == [(7, 0.1, " é", True)]
    assert dict(events.select(*kinds).schema) == {"n": pl.Int64, "x": pl.Float64, "s": pl.String, "b": pl.Boolean}


# --- cells, before anything is read from them --------------------------------------------------------------------


def cleaned(cells: list[Any], dtype: pl.DataType, **declared: Any) -> list[Any]:
    return clean(
        pl.Series("cell", cells, dtype=dtype), RawColumn.model_validate({"from": "cell", **declared})
    ).to_list()


@pytest.mark.parametrize(
    ("dtype", "cells", "declared", "expected"),
    [
        (pl.String(), [" a ", "\u3000b\t", "  ", None], {"strip": True}, ["a", "b", "", None]),
        (pl.String(), [" a ", "-1", " -1"], {"null_values": ["-1"]}, [" a ", None, " -1"]),
        (pl.String(), [" a ", "-1", " -1 "], {"null_values": ["-1"], "strip": True}, ["a", None, None]),
        (pl.String(), ["null", "NULL", "\\N", ""], {"null_values": ["NULL", "\\N"]}, ["null", None, None, ""]),
        (pl.String(), ["1.0", "1"], {"null_values": ["1"]}, ["1.0", None]),  # texts are compared as texts
        (pl.Int64(), [-1, 0, 1, None], {"null_values": ["-1", "0.0", "1.5", "x", "9" * 40]}, [None, None, 1, None]),
        (pl.UInt64(), [2**64 - 1, 0], {"null_values": ["-1", str(2**64 - 1)]}, [None, 0]),
        (pl.Int8(), [-1, 7], {"null_values": ["255", "7"]}, [-1, None]),
        (pl.Float64(), [-1.0, 0.1, 0.5], {"null_values": ["-1", "0.1"]}, [None, None, 0.5]),
        (pl.Float32(), [0.5, 0.1], {"null_values": ["0.1"]}, [0.5, None]),
        (pl.Decimal(20, 2), [Decimal("0.10"), Decimal("-1.00"), Decimal(3)], {"null_values": ["0.1", "-1", "0.001"]}, [None, None, Decimal(3)]),
        (pl.Categorical(), [" a", "b", None], {"strip": True, "null_values": ["b"]}, ["a", None, None]),
        (pl.Boolean(), [True, None], {"strip": True, "null_values": ["true", "1"]}, [True, None]),
        (pl.Int64(), [5], {"null_values": ["none"]}, [5]),
    ],
)  # fmt: skip
def test_cells_are_stripped_first_and_then_compared_with_null_values(
    dtype: pl.DataType, cells: list[Any], declared: dict[str, Any], expected: list[Any]
) -> None:
    assert cleaned(cells, dtype, **declared) == expected


@given(
    st.lists(st.one_of(st.none(), st.text(" a\u00a0\u3000\t1", max_size=4)), min_size=1),
    st.lists(st.text(" a1", max_size=2), max_size=3),
    st.booleans(),
)
def test_cells_equal_plain_text(cells: list[str | None], null_values: list[str], strip: bool) -> None:
    stripped = [cell.strip() if strip and cell is not None else cell for cell in cells]
    expected = [None if cell in null_values else cell for cell in stripped]
    assert cleaned(cells, pl.String(), strip=strip, null_values=null_values) == expected


def test_null_values_and_strip_in_every_declared_column(tmp_path: Path) -> None:
    more = {"strip": True, "null_values": ["-"]}
    columns = {
        "user_id": {"from": "user", "type": "string", **more},
        "item_id": {"from": "item", "type": "string", "optional": True, **more},
        "timestamp": {"from": "time", "unit": "s", **more},
        "action": {"from": "event", **more},
    }
    rows = [
        row(" u ", " - ", f" {T} ", " cart ", n=" 7 "), row(" - ", "a", T, n="7"), row("u", "a", "-", n="7"),
        row("u", "a", T, "-", n="7"), row("u", "a", T, n="-"), row("u", "a", T + 1, n="7"),
    ]  # fmt: skip
    extra = {"n": {"from": "n", "type": "int64", **more}}
    events, rejected = day_of(tmp_path, rows, columns=columns, extra=extra)
    assert events.select("user_id", "item_id", "action", "n").rows() == [("u", None, "cart", 7), ("u", "a", "view", 7)]
    assert rejected.select("row_id", "reason", "column").rows() == [
        (1, "missing_user_id", "user"), (2, "missing_timestamp", "time"), (3, "missing_action", "event"), (4, "malformed_extra", "n"),
    ]  # fmt: skip


def test_cells_of_an_expression_are_cleaned_as_well(tmp_path: Path) -> None:
    columns = {
        "user_id": {"from": None, "sql": "\"user\" || ' '", "type": "string", "strip": True, "null_values": ["5"]}
    }
    events, rejected = day_of(tmp_path, [row(4, "a", T), row(5, "a", T)], columns=columns)
    assert (events["user_id"].to_list(), rejected["reason"].to_list()) == (["4"], ["missing_user_id"])


def test_no_number_is_made_of_a_session_in_hexadecimal(tmp_path: Path) -> None:
    events, rejected = day_of(tmp_path, [row("7e091613", "1e5", T), row("0071", "0071", T)])
    assert events.select("user_id", "item_id").rows() == [(71, "0071")]
    assert rejected["reason"].to_list() == ["malformed_user_id"]


def test_actions_are_renamed_after_their_cells_are_cleaned(tmp_path: Path) -> None:
    rename = {"1": "view", "view": "cart", "2": "cart"}
    action = {"from": "event", "rename": rename, "strip": True, "null_values": ["0"]}
    cells = ["1", " 2 ", "view", "cart", "3", "0", "Cart"]
    rows = [row(user, "a", T, cell) for user, cell in enumerate(cells)]
    events, rejected = day_of(tmp_path, rows, columns={"action": action})
    assert events.select("user_id", "action").rows() == [(0, "view"), (1, "cart"), (2, "cart"), (3, "cart")]
    assert rejected.select("row_id", "reason").rows() == [
        (4, "unknown_action"), (5, "missing_action"), (6, "unknown_action"),
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", [pl.Int64(), pl.Categorical(), pl.Decimal(5, 1)], ids=str)
def test_actions_of_any_type_are_renamed(tmp_path: Path, dtype: pl.DataType) -> None:
    cells = pl.Series("event", ["1", "2", None, "3"]).cast(dtype)
    frame = pl.DataFrame({"user": [1, 2, 3, 4], "item": ["a"] * 4, "time": [T] * 4, "event": cells})
    events, rejected = day_of(
        tmp_path,
        frame,
        extension="parquet",
        columns={"action": {"from": "event", "rename": {"1": "view", "2": "cart"}}},
    )
    assert events["action"].to_list() == ["view", "cart"]
    assert rejected["reason"].to_list() == ["missing_action", "unknown_action"]


def test_dictionary_encoded_ids_are_their_text_or_their_integers(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "user": pl.Series(["7", "8.0", "x"], dtype=pl.Categorical),
            "item": pl.Series(["b", "a", "b"], dtype=pl.Enum(["b", "a"])),
            "time": pl.Series([f"{T}"] * 3, dtype=pl.Categorical),
            "event": pl.Series(["view"] * 3, dtype=pl.Categorical),
        }
    )
    events, rejected = day_of(tmp_path, frame, extension="parquet")
    assert events.select("user_id", "item_id").rows() == [(7, "b"), (8, "a")]
    assert rejected["reason"].to_list() == ["malformed_user_id"]


# --- duplicates: two rows that differ in a raw cell are two rows, even where their values are the same ------------


@pytest.mark.parametrize(
    ("cells", "overrides"),
    [
        ({"event": ["1", "view"]}, {"columns": {"action": {"from": "event", "rename": {"1": "view"}}}}),
        ({"event": ["view", " view"]}, {"columns": {"action": {"from": "event", "strip": True}}}),
        ({"item": ["a", " a"]}, {"columns": {"item_id": {"from": "item", "type": "string", "strip": True}}}),
        ({"item": [None, "-"]}, {"columns": {"item_id": {"from": "item", "type": "string", "optional": True, "null_values": ["-"]}}}),
        ({"n": [None, -1]}, {"extra": {"n": {"from": "n", "type": "int64", "optional": True, "null_values": ["-1"]}}}),
        ({"time": [f"{T}", f"{T}.0"]}, {}),
        ({"time": [f"{T}", f"+{T}"]}, {}),
        ({"time": [f"{T}.1234561", f"{T}.1234562"]}, {}),
        ({"time": [Decimal(f"{T}.1234561"), Decimal(f"{T}.1234562")]}, {}),
        ({"time": [float(T), T + 0.0000002]}, {}),
        ({"time": ["2020-1-1", "2020-01-01"], "clock": ["12:00"] * 2}, {"columns": {"timestamp": {"from": "time", "time_from": "clock", "unit": None, "format": "%Y-%m-%d %H:%M", "timezone": "UTC"}}}),
        ({"time": ["2020-01-01"] * 2, "clock": ["9:00", "09:00"]}, {"columns": {"timestamp": {"from": "time", "time_from": "clock", "unit": None, "format": "%Y-%m-%d %H:%M", "timezone": "UTC"}}}),
        ({"more": [[1, 2], [2, 1]]}, {}),
        ({"more": [[{"a": 1}], [{"a": 2}]]}, {}),
        ({"more": [{"a": [1]}, {"a": [1, 1]}]}, {}),
    ],
)  # fmt: skip
def test_equal_values_of_different_cells_are_no_duplicates(
    tmp_path: Path, cells: dict[str, list[Any]], overrides: dict[str, Any]
) -> None:
    columns = {"user": [1, 1], "item": ["a", "a"], "time": [T, T], "event": ["view", "view"]} | cells
    twice = pl.concat([pl.DataFrame(columns), pl.DataFrame(columns)[1:]])
    dataset = make_dataset(tmp_path, days={"2020-01-01": twice}, extension="parquet", **overrides)
    manifest, _ = make_events_of(dataset, make_store(dataset), "2020-01-01")
    assert (manifest.counts["accepted"], manifest.counts["duplicates"]) == (3, 1)


# --- sql ---------------------------------------------------------------------------------------------------------


def test_an_expression_that_fails_for_a_row_refuses_that_row(tmp_path: Path) -> None:
    rows = [row(1, "a", T, "1"), row(2, "a", T, "x"), row(3, "a", T, "2"), row(4, "a", T, "x"), row(5, "a", T, None)]
    sql = "CASE WHEN CAST(event AS BIGINT) > 1 THEN 'cart' WHEN CAST(event AS BIGINT) > 0 THEN 'view' END"
    events, rejected = day_of(tmp_path, rows, columns={"action": {"from": None, "sql": sql}})
    assert events.select("user_id", "action").rows() == [(1, "view"), (3, "cart")]
    assert rejected.select("row_id", "reason", "column").rows() == [
        (1, "malformed_action", "action"), (3, "malformed_action", "action"), (4, "missing_action", "action"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["value", "failed", "0", "query plan"])
def test_a_raw_column_may_have_any_name_in_an_expression(tmp_path: Path, name: str) -> None:
    rows = [row(1, "a", T) | {name: "5"}, row(2, "a", T) | {name: "x"}, row(3, "a", T) | {name: "7"}]
    events, rejected = day_of(tmp_path, rows, extra={"more": {"sql": f'CAST("{name}" AS BIGINT) + 1', "type": "int64"}})
    assert events.select("user_id", "more").rows() == [(1, 6), (3, 8)]
    assert rejected.select("row_id", "reason", "column").rows() == [(1, "malformed_extra", "more")]


def test_a_constant_expression_holds_for_every_row(tmp_path: Path) -> None:
    rows = [row(1, "a", T), row(2, "b", T), row(3, "c", T)]
    events, _ = day_of(tmp_path, rows, columns={"action": {"from": None, "sql": "'cart'"}})
    assert events["action"].to_list() == ["cart"] * 3


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("CASE WHEN event", "raw/2020-01-01.csv: the sql of [extra] more is not valid: "),
        ("no_such(event)", "raw/2020-01-01.csv: the sql of [extra] more is not valid: "),
        ("evnt || 'x'", "raw/2020-01-01.csv: the sql of [extra] more uses the column 'evnt', which the file lacks; did you mean 'event'?"),
        ("MAX(event)", "raw/2020-01-01.csv: the sql of [extra] more looks at more than one row (an aggregate or a window); use row-wise functions only"),
        ("LAG(event) OVER (ORDER BY time)", "raw/2020-01-01.csv: the sql of [extra] more looks at more than one row (an aggregate or a window); use row-wise functions only"),
    ],
)  # fmt: skip
def test_an_expression_that_is_wrong_in_itself_stops(tmp_path: Path, sql: str, sentence: str) -> None:
    with pytest.raises(PipelineError) as caught:
        day_of(tmp_path, [row(1, "a", T)], extra={"more": {"sql": sql, "type": "string"}})
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "out").rglob("*.parquet"))


@pytest.mark.parametrize(
    "sql",
    [
        "COUNT(event)", "COUNT(*)", "RANK() OVER (ORDER BY event)", "ROW_NUMBER() OVER ()", "event || COUNT(*)",
        "UNNEST(STRING_TO_ARRAY(event, 'i'))", 'SUM(CAST("user" AS BIGINT)) OVER (PARTITION BY item)',
    ],
)  # fmt: skip
def test_an_expression_over_many_rows_stops(tmp_path: Path, sql: str) -> None:
    with pytest.raises(PipelineError, match="looks at more than one row"):
        day_of(tmp_path, [row(1, "a", T)], extra={"more": {"sql": sql, "type": "string"}})


@pytest.mark.parametrize("name", ["event", "Len", "Agg"])
def test_in_works_in_expressions(tmp_path: Path, name: str) -> None:
    sql = f"CASE WHEN {name} IN ('view', 'see', 'Len') THEN 'view' ELSE {name} END"
    rows = [row(1, "a", T) | {name: "see"}, row(2, "a", T) | {name: "sea"}, row(3, "a", T) | {name: "cart"}]
    events, rejected = day_of(tmp_path, rows, columns={"action": {"from": None, "sql": sql}})
    assert events.select("user_id", "action").rows() == [(1, "view"), (3, "cart")]
    assert rejected["reason"].to_list() == ["unknown_action"]


def test_expressions_calculate_with_whole_numbers_that_do_not_run_over(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "user": [1, 2], "item": ["a", "b"], "time": [at("2020-01-01")] * 2, "event": ["view"] * 2,
            "cents": [3_000_000, 5], "qty": [1000, 2], "a": [1, 9], "b": [2, 3], "name": ["abc", "abcdefg"],
        },
        schema_overrides={"cents": pl.Int32, "qty": pl.Int32, "a": pl.UInt32, "b": pl.UInt32},
    )  # fmt: skip
    extra = {
        "revenue": {"sql": "cents * qty", "type": "int64"},
        "difference": {"sql": "a - b", "type": "int64"},
        "over": {"sql": "LENGTH(name) - 5", "type": "int64"},
    }
    dataset = make_dataset(tmp_path, days={"2020-01-01": frame}, extension="parquet", extra=extra)
    store = make_store(dataset)
    make_events_of(dataset, store, "2020-01-01")
    found = table(store, "events", "2020-01-01").select("revenue", "difference", "over").rows()
    assert found == [(3_000_000_000, -1, -2), (10, 6, 2)]


def test_a_result_beyond_int64_is_refused_and_not_turned_over(tmp_path: Path) -> None:
    log = "user,item,time,event\n9223372036854775807,a,1577836800,view\n21,b,1577836800,view\n"
    dataset = make_dataset(
        tmp_path,
        days={"2020-01-01": log},
        columns={"user_id": {"sql": 'CAST("user" AS BIGINT) * 2', "type": "int64"}},
    )
    store = make_store(dataset)
    make_events_of(dataset, store, "2020-01-01")
    assert table(store, "events", "2020-01-01")["user_id"].to_list() == [42]
    assert table(store, "rejected_events", "2020-01-01").select("row_id", "reason").rows() == [(0, "id_out_of_range")]

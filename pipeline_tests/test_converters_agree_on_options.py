"""The converters and the plain Python that judges them mean the same by every option of a declared column."""

import math
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.contracts import PipelineError
from pipeline_tests.two_conversions import (
    BAD,
    KINDS,
    MISSING,
    NOON_US,
    TYPED,
    agree_on,
    agree_or_stop,
    both,
    damaged,
    declared,
    timed,
)  # fmt: skip

PAD = st.sampled_from(["", "", " ", "\t", "\u00a0 ", "\u3000", "\x1c", "\x85"])
PADDED = st.tuples(PAD, st.sampled_from(["", "1", "-1", "0", "NULL", "a", "1.0", "view", "1583064000"]), PAD).map(
    "".join
)
PREPARED = st.fixed_dictionaries(
    {
        "strip": st.booleans(),
        "null_values": st.lists(st.sampled_from(["-1", "0", "1.50", "NULL", " ", "a", "1e0"]), max_size=3),
    }
)


@given(st.lists(st.none() | PADDED, min_size=1, max_size=20), PREPARED, st.sampled_from(KINDS), st.booleans())
@settings(max_examples=150)
def test_stripped_cells_and_such_that_mean_nothing(
    cells: list[str | None], prepared: dict[str, Any], kind: str, optional: bool
) -> None:
    agree_on("x", cells, declared({}, {"x": {"from": "x", "type": kind, "optional": optional, **prepared}}))
    agree_on("t", cells, declared({"timestamp": {"from": "t", "unit": "s", **prepared}}))
    agree_on("a", cells, declared({"action": {"from": "a", **prepared}}))
    if kind in ("int64", "string"):
        agree_on("i", cells, declared({"item_id": {"from": "i", "type": kind, "optional": optional, **prepared}}))


@pytest.mark.parametrize("dtype", [dtype for dtype in TYPED if dtype != pl.Boolean], ids=str)
@given(data=st.data())
@settings(max_examples=20)
def test_typed_cells_that_mean_nothing(dtype: pl.DataType, data: st.DataObject) -> None:
    nulls = data.draw(
        st.lists(st.sampled_from(["-1", "0", "+1", "1.50", "0.1", "1.", ".5", "1e0", "NULL", "", " 7 "]), max_size=3)
    )
    cells = data.draw(st.lists(st.none() | TYPED[dtype], min_size=1, max_size=20))
    if dtype in (pl.Float64, pl.Float32):
        cells += [-1.0, 0.0, 1.5, 1.0, 0.5]
    prepared = {"null_values": nulls, "strip": data.draw(st.booleans())}
    for kind in KINDS:
        agree_or_stop("x", cells, declared({}, {"x": {"from": "x", "type": kind, "optional": True, **prepared}}), dtype)
    agree_or_stop("t", cells, declared({"timestamp": {"from": "t", "unit": "s", **prepared}}), dtype)
    agree_or_stop("a", cells, declared({"action": {"from": "a", **prepared}}), dtype)


def test_what_null_values_mean() -> None:
    def extra(cells: list[Any], dtype: pl.DataType, kind: str, nulls: list[str], *, strip: bool = False) -> list[Any]:
        column = {"from": "x", "type": kind, "optional": True, "null_values": nulls, "strip": strip}
        return [one["x"] for one in agree_on("x", cells, declared({}, {"x": column}), dtype)]

    assert extra(["-1", " -1", "-1.0"], pl.String(), "int64", ["-1"]) == [None, -1, -1]
    assert extra(["-1", " -1\u3000", "-1.0"], pl.String(), "int64", ["-1"], strip=True) == [None, None, -1]
    assert extra([" ", "a "], pl.String(), "string", []) == [" ", "a "]
    assert extra([" ", "a "], pl.String(), "string", [], strip=True) == [None, "a"]
    assert extra([-1, 0, 1], pl.Int64(), "int64", ["-1", "0.0", "NULL"]) == [None, None, 1]
    assert extra([Decimal("1.50"), Decimal(2)], pl.Decimal(9, 2), "float64", ["1.5"]) == [None, 2.0]
    assert extra([-1.0, 0.5], pl.Float64(), "float64", ["-1"]) == [None, 0.5]


RENAMES = [{"1": "click"}, {"1": "view", "view": "buy", " ": "buy"}, {"NULL": "view", "2": "buy"}]


@given(
    st.lists(st.none() | PADDED | st.sampled_from(["2", "buy", "click"]), min_size=1),
    st.sampled_from(RENAMES),
    PREPARED,
)
def test_renamed_actions(cells: list[str | None], rename: dict[str, str], prepared: dict[str, Any]) -> None:
    rename = {old: new if new in ("view", "buy") else "buy" for old, new in rename.items()}
    dataset = declared({"action": {"from": "a", "rename": rename, **prepared}})
    agree_on("a", cells, dataset)
    for dtype in (pl.Int64(), pl.UInt8(), pl.Categorical()):
        typed = [cell if dtype == pl.Categorical() else int(cell) for cell in cells if cell in ("1", "2", "0")]
        agree_on("a", typed, dataset, dtype)


def test_what_rename_means() -> None:
    dataset = declared(
        {"action": {"from": "a", "rename": {"1": "buy", "view": "buy"}, "null_values": ["2"], "strip": True}}
    )
    found = agree_on("a", ["1", " 1 ", "view", "buy", "2", "3", ""], dataset)
    assert [one if isinstance(one, str) else one["action"] for one in found] == [
        *["buy"] * 4, "missing_action", "unknown_action", "missing_action",
    ]  # fmt: skip
    assert agree_on("a", [1, 2, 3], dataset, pl.Int64())[0]["action"] == "buy"


# --- times ---------------------------------------------------------------------------------------------------------


@given(data=st.data(), unit=st.sampled_from(("s", "ms", "us", "ns")))
@settings(max_examples=150)
def test_numbers_with_a_fraction(data: st.DataObject, unit: str) -> None:
    dataset = declared({"timestamp": {"from": "t", "unit": unit}})
    ticks = NOON_US * 1000 // {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    near = st.integers(ticks - 10**6, ticks + 10**6) | st.integers(-(2**64), 2**64) | st.integers(-3, 3)
    fraction = st.sampled_from(
        ["", ".", ".0", ".5", ".94", ".9999995", ".000000001", ".0000000", "." + "0" * 30 + "1", "e0"]
    )
    cells = data.draw(st.lists(st.tuples(near.map(str), fraction).map("".join).flatmap(damaged), min_size=1))
    agree_on("t", cells, dataset)
    decimals = st.decimals(-(10**20), 10**20, places=9) | st.decimals(ticks - 5, ticks + 5, places=9)
    agree_on("t", data.draw(st.lists(st.none() | decimals, max_size=9)), dataset, pl.Decimal(38, 9))
    floats = st.floats() | st.floats(ticks - 1e6, ticks + 1e6) | near.map(float)
    agree_on("t", data.draw(st.lists(st.none() | floats, max_size=9)), dataset, pl.Float64())
    narrow = (st.floats(width=32) | floats).map(lambda number: pl.Series([number], dtype=pl.Float32)[0])
    agree_on("t", data.draw(st.lists(narrow, max_size=9)), dataset, pl.Float32())


def test_what_a_fraction_means() -> None:
    def us(cells: list[Any], unit: str, dtype: pl.DataType | None = None) -> list[Any]:
        found = agree_on("t", cells, declared({"timestamp": {"from": "t", "unit": unit}}), dtype)
        return [one if isinstance(one, str) else one["timestamp"] for one in found]

    assert us(["1396437466.94", "1396437466.9400009", "1396437466.94e0", "1396437466."], "s") == [
        1_396_437_466_940_000, 1_396_437_466_940_000, BAD, 1_396_437_466_000_000,
    ]  # fmt: skip
    assert us(["1583064000000.0019"], "ms") == [NOON_US + 1]
    assert us(["1583064000000000999.9"], "ns") == [NOON_US]
    assert us([1396437466.94, math.nan, 1e17, 1e300], "s", pl.Float64()) == [1_396_437_466_940_000, BAD, BAD, BAD]
    # float32 holds 1396437504 here; the shortest decimal that reads back as it is 1396437500.
    assert us([1396437504.0], "s", pl.Float32()) == [1_396_437_500_000_000]
    assert us([Decimal("1396437466.9400009")], "s", pl.Decimal(20, 7)) == [1_396_437_466_940_000]


@given(data=st.data(), dtype=st.sampled_from([pl.Int64(), pl.Int32(), pl.UInt64()]))
def test_formats_of_integers(data: st.DataObject, dtype: pl.DataType) -> None:
    format_, numbers = data.draw(
        st.sampled_from(
            [("%Y%m%d", (19900101, 20991231)), ("%Y", (0, 9999)), ("%y%m%d", (0, 991231)), ("%Y%j", (2020001, 2020400))]
        )
    )
    cells = data.draw(st.lists(st.none() | st.integers(*numbers) | st.integers(0, 2**31 - 1), min_size=1))
    try:
        agree_on("t", [], timed(format_), dtype)
    except PipelineError:
        return
    agree_on("t", cells, timed(format_, data.draw(st.sampled_from(("UTC", "America/Sao_Paulo")))), dtype)


def test_the_last_day_of_the_calendar_is_not_passed() -> None:
    last, *others = agree_on("t", [2020366, 2019366, 2020000, 9999366, 9999365], timed("%Y%j"), pl.Int64())
    assert last["timestamp"] == 1_609_372_800_000_000  # 2020-12-31
    assert others == [BAD, BAD, BAD, "implausible_timestamp"]


def test_what_a_format_of_integers_means() -> None:
    found = agree_on("t", [20200301, 20200230, -20200301, None], timed("%Y%m%d"), pl.Int64())
    assert found[0]["timestamp"] == NOON_US - 43_200_000_000
    assert found[1:] == [BAD, BAD, MISSING]


DATES = st.none() | st.sampled_from(["2020-03-01", " 2020-03-01", "", " ", "-", "2020-02-30", "2020-03-01 "])
CLOCKS = st.none() | st.sampled_from(["12:00", "", "  ", "-", "24:00", "1:05", " 12:00"])


@given(st.lists(st.tuples(DATES, CLOCKS), min_size=1), st.booleans(), st.sampled_from([[], ["-"], ["", " "]]))
def test_dates_and_clocks_in_two_columns(
    rows: list[tuple[str | None, str | None]], strip: bool, nulls: list[str]
) -> None:
    timestamp = {
        "from": "d",
        "time_from": "c",
        "format": "%Y-%m-%d %H:%M",
        "timezone": "UTC",
        "strip": strip,
        "null_values": nulls,
    }
    dataset = declared({"timestamp": timestamp})
    cells = {name: pl.Series([row[n] for row in rows], dtype=pl.String()) for n, name in enumerate("dc")}
    theirs, ours = both(cells, dataset)
    for row, their, our in zip(rows, theirs, ours, strict=True):
        assert their == our, f"{row}: converters {their}, judge {our}"


def test_what_two_columns_mean() -> None:
    dataset = declared({"timestamp": {"from": "d", "time_from": "c", "format": "%Y%m%d %H%M", "timezone": "UTC"}})
    whole = {
        "d": pl.Series([20200301, None, 20200301], dtype=pl.Int64()),
        "c": pl.Series([1200, 1200, None], dtype=pl.Int32()),
    }
    theirs, ours = both(whole, dataset)
    assert theirs == ours
    assert theirs[0]["timestamp"] == NOON_US
    assert theirs[1:] == [MISSING, MISSING]


CHANGES = {
    "Europe/Berlin": (datetime(2020, 3, 29, 2), datetime(2020, 10, 25, 2)),  # noqa: DTZ001
    "America/Sao_Paulo": (datetime(2018, 11, 4), datetime(2018, 2, 17, 23)),  # noqa: DTZ001
    "Australia/Lord_Howe": (datetime(2020, 10, 4, 2), datetime(2020, 4, 5, 1, 30)),  # noqa: DTZ001
}


@pytest.mark.parametrize("zone", CHANGES)
@given(
    data=st.data(),
    ambiguous=st.sampled_from(("refuse", "earliest", "latest")),
    nonexistent=st.sampled_from(("refuse", "forward")),
)
@settings(max_examples=40)
def test_local_times_around_a_change(zone: str, data: st.DataObject, ambiguous: str, nonexistent: str) -> None:
    near = st.tuples(st.sampled_from(CHANGES[zone]), st.integers(-120, 120)).map(
        lambda t: t[0] + timedelta(minutes=t[1])
    )
    clocks = data.draw(st.lists(near | st.datetimes(datetime(1989, 12, 30), datetime(2026, 1, 1)), min_size=1))  # noqa: DTZ001
    options = {"timezone": zone, "ambiguous": ambiguous, "nonexistent": nonexistent}
    written_out = declared({"timestamp": {"from": "t", "format": "%Y-%m-%d %H:%M:%S%.f", **options}})
    agree_on("t", [clock.isoformat(" ") for clock in clocks], written_out)
    agree_on("t", clocks, declared({"timestamp": {"from": "t", **options}}), pl.Datetime("us"))
    days = [clock.date() for clock in clocks]
    agree_on("t", days, declared({"timestamp": {"from": "t", **options}}), pl.Date())


def test_what_happens_to_hours_that_exist_twice_or_not_at_all() -> None:
    def utc(**options: str) -> list[Any]:
        column = {"from": "t", "format": "%Y-%m-%d %H:%M", "timezone": "Europe/Berlin", **options}
        found = agree_on("t", ["2020-10-25 02:30", "2020-03-29 02:30"], declared({"timestamp": column}))
        epoch = datetime(1970, 1, 1)  # noqa: DTZ001
        return [o if isinstance(o, str) else str(epoch + timedelta(microseconds=o["timestamp"]))[11:16] for o in found]

    assert utc() == [BAD, BAD]
    assert utc(ambiguous="earliest") == ["00:30", BAD]
    assert utc(ambiguous="latest", nonexistent="forward") == ["01:30", "01:30"]

"""Times: numbers with fractions, dates as integers, two columns, the shortcut by layouts, and the hours of a clock change."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pipeline.config import TimestampColumn
from pipeline.contracts import PipelineError
from pipeline.events.times.grammar import grammar_of, read_by_grammar
from pipeline.events.times.layout import ROWS_AT_ONCE, lay_out, read_times
from pipeline.events.times.timestamps import Times, convert_times
from pipeline.events.times.unit_doctor import UnitDoctor
from pipeline_tests.datasets import make_dataset, make_events_of, make_store, row, table

MISSING, MALFORMED, IMPLAUSIBLE = "missing", "malformed", "implausible"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FORMAT = "%Y-%m-%d %H:%M:%S"
UNITS = {"s": 10**6, "ms": 10**3, "us": 1, "ns": Decimal("0.001")}  # microseconds each


def convert(cells: list[Any] | pl.Series, *, dtype: pl.DataType | None = None, **declared: str) -> Times:
    column = TimestampColumn.model_validate({"from": "t", **declared})
    series = cells if isinstance(cells, pl.Series) else pl.Series("t", cells, dtype=dtype or pl.String())
    return convert_times(series, column, UnitDoctor(column, "log.csv", "t"))


def verdicts(found: Times) -> list[Any]:
    """The us of every row, implausible or not, or what is wrong with it."""
    masks = {MISSING: found.missing, MALFORMED: found.malformed}
    answers = []
    for position, us in enumerate(found.us.to_list()):
        names = [name for name, rows in masks.items() if rows is not None and rows[position]]
        assert len(names) == (us is None), f"row {position} is {us} and {names}"
        answers.append(names[0] if names else us)
    return answers


def times(cells: list[Any], *, dtype: pl.DataType | None = None, **declared: str) -> list[Any]:
    return verdicts(convert(cells, dtype=dtype, **declared))


# --- numbers with a fraction -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "unit", "expected"),
    [
        ("1396437466.94", "s", 1396437466940000),
        ("1396437466.9", "s", 1396437466900000),
        ("1396437466.", "s", 1396437466000000),
        ("1396437466.000000", "s", 1396437466000000),
        ("1396437466.000001", "s", 1396437466000001),
        ("1396437466.0000019", "s", 1396437466000001),
        ("1396437466.999999999999999999999999", "s", 1396437466999999),
        ("+1396437466.94", "s", 1396437466940000),
        (" 1396437466.94 ", "s", 1396437466940000),
        ("01396437466.94", "s", 1396437466940000),
        ("000000000000000000001396437466.94", "s", 1396437466940000),
        ("1396437466940.25", "ms", 1396437466940250),
        ("1396437466940.2509", "ms", 1396437466940250),
        ("1396437466940250.9", "us", 1396437466940250),
        ("1396437466940250999.9", "ns", 1396437466940250),
        ("17850.0", "s", 17850000000),
        ("-0.5", "s", -500000),
        ("-0.0000001", "s", -1),
        ("-0.0", "s", 0),
        ("-1.5", "us", -2),
        ("-0.5", "ns", -1),
        ("-1396437466.94", "s", -1396437466940000),
        ("915148800", "s", 915148800000000),  # nine digits: 1999
        ("915148800.5", "s", 915148800500000),
        ("9223372036854775808", "s", MALFORMED),
        ("9223372036854775808.5", "s", MALFORMED),
        ("1e9", "s", MALFORMED),
        ("1.396437466e9", "s", MALFORMED),
        ("7e091613", "s", MALFORMED),
        (".5", "s", MALFORMED),
        ("-.5", "s", MALFORMED),
        ("1396437466,94", "s", MALFORMED),
        ("1396437466.9.4", "s", MALFORMED),
        ("1396437466.+94", "s", MALFORMED),
        ("1396437466.-94", "s", MALFORMED),
        ("1396437466.9_4", "s", MALFORMED),
        ("1396437466. 94", "s", MALFORMED),
        ("1396437466.\u0663", "s", MALFORMED),
        ("-", "s", MALFORMED),
        ("nan", "s", MALFORMED),
        ("", "s", MISSING),
        (" ", "s", MISSING),
        (None, "s", MISSING),
    ],
)
def test_text(cell: str | None, unit: str, expected: object) -> None:
    assert times([cell], unit=unit) == [expected]
    # Beside others the answer is the same: clean columns take shorter ways.
    good = str(int(Decimal(1396437466000000) / UNITS[unit]))
    beside = [good, cell, f"{good}.5", f"{good}.25", None, "x"]
    assert times(beside, unit=unit)[1] == expected


@pytest.mark.parametrize(
    ("cells", "unit", "floored"),
    [
        (["1396437466.94", "1396437466.0000010", "1396437466"], "s", 0),
        (["1396437466.0000001", "-1.0000001", "x", None, "1396437466.9"], "s", 2),
        (["1396437466940250.5", "1396437466940250.0"], "us", 1),
        (["1396437466940250000.5", "1396437466940250001", "1396437466940250000"], "ns", 2),
    ],
)
def test_digits_below_a_microsecond_are_counted(cells: list[str | None], unit: str, floored: int) -> None:
    assert convert(cells, unit=unit).floored == floored


def test_only_of_numbers_that_are_read() -> None:
    cells = [Decimal("9223372036854775808.5"), Decimal("1.5"), Decimal("1.0"), None]
    assert convert(cells, dtype=pl.Decimal(38, 1), unit="us").floored == 1
    assert convert([plain(cell) if cell is not None else None for cell in cells], unit="us").floored == 1
    assert convert([1e17, 1.5, 1.0, None], dtype=pl.Float64(), unit="us").floored == 1


@pytest.mark.parametrize(
    "dtype", [pl.String(), pl.Null(), pl.Int64(), pl.UInt64(), pl.Float32(), pl.Float64(), pl.Decimal(20, 3)], ids=str
)
def test_a_block_without_rows_or_without_numbers(dtype: pl.DataType) -> None:
    assert times([], dtype=dtype, unit="s") == []
    assert times([None, None], dtype=dtype, unit="s") == [MISSING, MISSING]


@pytest.mark.parametrize(
    ("dtype", "cell", "unit", "expected"),
    [
        (pl.Float64(), 1396437466.94, "s", 1396437466940000),
        (pl.Float64(), 1396437466.9412456, "s", 1396437466941245),
        (pl.Float64(), -1396437466.9412456, "s", -1396437466941246),
        (pl.Float64(), 1396437466.0, "s", 1396437466000000),
        (pl.Float64(), 1396437466940.25, "ms", 1396437466940250),
        (pl.Float64(), 1396437466940250.0, "us", 1396437466940250),
        (pl.Float64(), 1396437466940250.2, "us", 1396437466940250),
        (pl.Float64(), 0.1, "s", 100000),
        (pl.Float64(), -0.5, "s", -500000),
        (pl.Float64(), 1e-7, "s", 0),
        (pl.Float64(), -1e-7, "s", -1),
        (pl.Float64(), 9007199254740993.0, "us", 9007199254740992),
        (pl.Float64(), 1.5e16, "us", 15000000000000000),
        (pl.Float64(), 1e17, "us", MALFORMED),
        (pl.Float64(), -1e17, "us", MALFORMED),
        (pl.Float64(), float("nan"), "s", MALFORMED),
        (pl.Float64(), float("-inf"), "s", MALFORMED),
        (pl.Float64(), None, "s", MISSING),
        (
            pl.Float32(),
            1396437500.0,
            "s",
            1396437500000000,
        ),  # the float is ...504, but 1.3964375e9 is how it is written
        (pl.Float32(), 0.1, "s", 100000),
        (pl.Float32(), float("inf"), "s", MALFORMED),
        (pl.Decimal(20, 2), Decimal("1396437466.94"), "s", 1396437466940000),
        (pl.Decimal(38, 9), Decimal("1396437466.000001999"), "s", 1396437466000001),
        (pl.Decimal(38, 9), Decimal("-0.000000001"), "s", -1),
        (pl.Decimal(38, 28), Decimal("1396437466.9400000000000000000000000001"), "s", 1396437466940000),
        (pl.Decimal(38, 0), Decimal(2**63), "us", MALFORMED),
        (pl.Decimal(20, 2), None, "s", MISSING),
        (pl.UInt64(), 1396437466, "s", 1396437466000000),
        (pl.UInt64(), 2**63, "s", MALFORMED),
        (pl.UInt64(), 2**64 - 1, "ns", MALFORMED),
        (pl.UInt32(), 1396437466, "s", 1396437466000000),
    ],
)
def test_typed_numbers(dtype: pl.DataType, cell: object, unit: str, expected: object) -> None:
    assert times([cell], dtype=dtype, unit=unit) == [expected]
    assert times([cell, None, cell], dtype=dtype, unit=unit) == [expected, MISSING, expected]


def exactly(number: Decimal, unit: str) -> object:
    """Microseconds, rounded down; malformed where int64 cannot hold the number."""
    if not -(2**63) <= int(number) < 2**63:
        return MALFORMED
    return int((number * UNITS[unit]).to_integral_value(rounding=ROUND_FLOOR))


def plain(number: Decimal) -> str:
    return f"{number:f}"


DECIMALS = st.one_of(
    st.decimals(-(10**4), 10**4, places=8),
    st.builds(lambda whole, places, digits: Decimal(whole) + Decimal(digits).scaleb(-places),
              st.integers(-(10**18), 10**18), st.integers(0, 9), st.integers(0, 999)),
    st.builds(lambda whole, digits: Decimal(f"{whole}.{digits}"), st.integers(0, 2 * 10**9), st.text("0123456789", max_size=25)),
)  # fmt: skip


def in_reach(found: list[Any], expected: list[Any]) -> tuple[list[Any], list[Any]]:
    """Times further than 2^60 us from 1970 are implausible whatever they are exactly."""
    far = [isinstance(us, int) and abs(us) > 2**60 for us in expected]
    return (
        ["far" if out else us for us, out in zip(found, far, strict=True)],
        ["far" if out else us for us, out in zip(expected, far, strict=True)],
    )


@given(st.lists(DECIMALS, min_size=1, max_size=20), st.sampled_from(list(UNITS)))
@example([Decimal("-0.5"), Decimal("0.000001"), Decimal("1396437466.94")], "s")
def test_text_equals_decimal_arithmetic(numbers: list[Decimal], unit: str) -> None:
    found = convert([plain(number) for number in numbers], unit=unit)
    ours, exact = in_reach(verdicts(found), [exactly(number, unit) for number in numbers])
    assert ours == exact
    assert found.floored == sum(number * UNITS[unit] % 1 != 0 for number in numbers)


FLOATS = st.one_of(
    st.floats(-1e18, 1e18),
    st.floats(6e8, 2e9),
    st.floats(2.0**30, 2.0**34),
    st.floats(2.0**40, 2.0**44),
    st.builds(lambda micros: micros / 1e6, st.integers(-(10**10), 4 * 10**15)),
    st.builds(lambda micros, ulps: micros / 1e6 + ulps * 2.0**-22, st.integers(10**15, 2 * 10**15), st.integers(-2, 2)),
    st.floats(-2000, 2000).map(lambda number: round(number, 6)),
)


@given(st.lists(FLOATS, min_size=1, max_size=20), st.sampled_from(list(UNITS)))
def test_floats_mean_their_shortest_decimal(floats: list[float], unit: str) -> None:
    expected = [MALFORMED if abs(number) >= 1e17 else exactly(Decimal(repr(number)), unit) for number in floats]
    found = convert(floats, dtype=pl.Float64(), unit=unit)
    ours, exact = in_reach(verdicts(found), expected)
    assert ours == exact
    known = [Decimal(repr(number)) for number in floats if abs(number) < 1e17]
    assert found.floored == sum(number * UNITS[unit] % 1 != 0 for number in known)


@given(st.lists(st.floats(-(2.0**50), 2.0**50, width=32), min_size=1), st.sampled_from(["s", "ms"]))
def test_floats_of_32_bits_mean_theirs(floats: list[float], unit: str) -> None:
    expected = [exactly(Decimal(str(np.float32(number))), unit) for number in floats]
    ours, exact = in_reach(times(floats, dtype=pl.Float32(), unit=unit), expected)
    assert ours == exact


@given(st.lists(DECIMALS, min_size=1), st.sampled_from(list(UNITS)), st.integers(0, 18))
def test_decimal_columns_are_exact(numbers: list[Decimal], unit: str, scale: int) -> None:
    cells = [number.quantize(Decimal(1).scaleb(-scale)) for number in numbers if abs(number) < 10**9]
    assume(cells)
    ours = times(cells, dtype=pl.Decimal(38, scale), unit=unit)
    assert ours == [exactly(cell, unit) for cell in cells]


# --- formats ------------------------------------------------------------------------------------------------------


def test_dates_as_integers() -> None:
    assert times([20220408, 20220230, None, 2022048, -20220408], dtype=pl.Int64(), format="%Y%m%d", timezone="UTC") == [
        1649376000000000, MALFORMED, MISSING, MALFORMED, MALFORMED,
    ]  # fmt: skip
    assert times([20220408123456], dtype=pl.UInt64(), format="%Y%m%d%H%M%S", timezone="Europe/London") == [
        1649417696000000,
    ]  # fmt: skip


FORMATS = {
    "%Y-%m-%d %H:%M:%S": ["2019-10-01 00:00:59", "2019-10-1 0:0:59", "2000-02-29 23:59:59", "1900-02-29 00:00:00"],
    "%Y-%m-%d %H:%M:%S UTC": ["2019-10-01 00:00:59 UTC", "2019-10-01 00:00:59 UTc"],
    "%Y-%m-%dT%H:%M:%S%.fZ": ["2019-10-01T00:00:59Z", "2019-10-01T00:00:59.1Z", "2019-10-01T00:00:59.123456789Z"],
    "%Y-%m-%dT%H:%M:%S%.3fZ": ["2019-10-01T00:00:59.123Z", "2019-10-01T00:00:59.12Z"],
    "%Y-%m-%dT%H:%M:%S%z": ["2019-10-01T00:00:59Z", "2019-10-01T00:00:59+01:30", "2019-10-01T00:00:59-0130", "2019-10-01T00:00:59+24:00"],
    "[%d/%b/%Y:%H:%M:%S %z]": ["[01/Oct/2019:00:00:59 +0000]", "[01/OCT/2019:00:00:59 -0730]", "[01/Okt/2019:00:00:59 +0000]"],
    "%m/%d/%Y %H:%M": ["10/01/2019 00:59", "1/1/2019 0:5", "13/01/2019 00:00"],
    "%Y%m%d%H%M%S%9f": ["20191001000059123456789", "20191001000059123456000", "20191001000060123456789"],
    "%Y%m%d": ["20191001", "20190931", "00000229", "99991231"],
    "%d.%m.%Y um %H:%M Uhr (%%)é": ["01.10.2019 um 00:59 Uhr (%)é"],
    "%y%m%d %H:%M": ["191001 00:59"],
    "%a, %d %b %Y %H:%M:%S": ["Tue, 01 Oct 2019 00:00:59", "Mon, 01 Oct 2019 00:00:59"],
}  # fmt: skip


@pytest.mark.parametrize("format_", FORMATS)
@given(data=st.data())
def test_the_layouts_mean_what_the_grammar_means(format_: str, data: st.DataObject) -> None:
    near = st.sampled_from(FORMATS[format_]).flatmap(
        lambda cell: st.tuples(
            st.integers(0, len(cell)), st.sampled_from((0, 1)), st.text("0123456789/:;@G +-.TZzé\x00\x7f", max_size=1)
        ).map(lambda edit: cell[: edit[0]] + edit[2] + cell[edit[0] + edit[1] :])
    )
    some = st.one_of(st.sampled_from(FORMATS[format_]), near, st.none(), st.just(""))
    text = pl.Series(data.draw(st.lists(some, min_size=1, max_size=12)), dtype=pl.String)
    grammar = grammar_of(format_, file="log.csv")
    us, floored = read_times(text, grammar)
    expected, more = read_by_grammar(text, grammar)
    assert (us.to_list(), floored) == (expected.to_list(), more)


@pytest.mark.parametrize("format_", list(FORMATS)[:-2])
def test_common_formats_have_a_layout(format_: str) -> None:
    """Else the test above would compare the grammar with itself."""
    assert lay_out(grammar_of(format_, file="log.csv"), FORMATS[format_][0]) is not None


@pytest.mark.parametrize("cells", [[], [None], ["", None], ["x"]])
def test_a_block_without_times(cells: list[str | None]) -> None:
    expected = [MISSING if not cell else MALFORMED for cell in cells]
    assert times(cells, format=FORMAT, timezone="Europe/London") == expected


def test_a_column_longer_than_what_is_read_at_once() -> None:
    moments = [datetime(2019, 10, 1, tzinfo=UTC) + timedelta(seconds=n) for n in range(ROWS_AT_ONCE + 2)]
    cells = [moment.strftime(FORMAT) for moment in moments]
    cells[-2] = "2019-10-02"
    expected: list[Any] = [(moment - EPOCH) // timedelta(microseconds=1) for moment in moments]
    expected[-2] = MALFORMED
    assert times(cells, format=FORMAT, timezone="UTC") == expected


@given(st.lists(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)), min_size=1))  # noqa: DTZ001
def test_iso_texts_equal_datetime(moments: list[datetime]) -> None:
    cells = [moment.isoformat() for moment in moments]
    expected = [(moment.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1) for moment in moments]
    assert times(cells, format="%Y-%m-%dT%H:%M:%S%.f", timezone="UTC") == expected


# --- date and time of day in two columns --------------------------------------------------------------------------


def two_columns(folder: Path, frame: pl.DataFrame, **more: Any) -> tuple[list[Any], list[Any]]:
    timestamp = {"from": "d", "time_from": "c", "unit": None, "format": FORMAT, "timezone": "UTC", **more}
    rows = frame.height
    frame = frame.with_columns(user=pl.Series(range(rows)), item=pl.lit("a"), event=pl.lit("view"))
    dataset = make_dataset(folder, days={"2020-01-01": frame}, extension="parquet", columns={"timestamp": timestamp})
    store = make_store(dataset)
    make_events_of(dataset, store, "2020-01-01")
    events, rejected = table(store, "events", "2020-01-01"), table(store, "rejected_events", "2020-01-01")
    return events.select("row_id", "timestamp").rows(), rejected.select("row_id", "reason", "column").rows()


def test_date_and_time_of_day_in_two_columns(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "d": ["2020-01-01", " 2020-01-01", "2020-01-01", None, "-", "2020-01-01", "2020-01-01", "  "],
            "c": ["12:00:00", "12:00:01 ", None, "12:00:00", "12:00:00", "-", "24:00:00", "12:00:00"],
        }
    )
    accepted, refused = two_columns(tmp_path, frame, strip=True, null_values=["-"])
    noon = datetime(2020, 1, 1, 12, tzinfo=UTC)
    assert accepted == [(0, noon), (1, noon + timedelta(seconds=1))]
    assert refused == [
        *((row_id, "missing_timestamp", "d") for row_id in (2, 3, 4, 5)),
        (6, "malformed_timestamp", "d"), (7, "missing_timestamp", "d"),
    ]  # fmt: skip


def test_date_and_time_of_day_as_integers(tmp_path: Path) -> None:
    frame = pl.DataFrame({"d": [20200101, 20200101], "c": pl.Series([93005, 123005], dtype=pl.UInt32)})
    accepted, refused = two_columns(tmp_path, frame, format="%Y%m%d %H%M%S")
    assert accepted == [(1, datetime(2020, 1, 1, 12, 30, 5, tzinfo=UTC))]
    assert refused == [(0, "malformed_timestamp", "d")]  # its zero is lost: nobody can tell 09:30:05 from 93:00:5


@pytest.mark.parametrize(
    ("dates", "clocks", "column", "holds"),
    [
        ([date(2020, 1, 1)], ["12:00:00"], "d", "Date"),
        ([datetime(2020, 1, 1)], ["12:00:00"], "d", "Datetime(time_unit='us', time_zone=None)"),  # noqa: DTZ001
        (["2020-01-01"], [time(12)], "c", "Time"),
        (["2020-01-01"], [12.5], "c", "Float64"),
    ],
)
def test_columns_that_cannot_be_joined_stop(
    tmp_path: Path, dates: list[Any], clocks: list[Any], column: str, holds: str
) -> None:
    with pytest.raises(PipelineError) as caught:
        two_columns(tmp_path, pl.DataFrame({"d": dates, "c": clocks}))
    assert str(caught.value) == (
        f"raw/2020-01-01.parquet: column '{column}' holds {holds}, but time_from in [columns] timestamp joins two columns of "
        "text or integers; leave time_from out, or write sql = ... instead of from and time_from"
    )


def test_a_column_that_time_from_names_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as caught:
        two_columns(tmp_path, pl.DataFrame({"d": ["2020-01-01"], "clock": ["12:00:00"]}), time_from="clok")
    assert str(caught.value) == (
        "raw/2020-01-01.parquet: there is no column 'clok', which [columns] timestamp names; did you mean 'clock'?"
    )


# --- the hours of a clock change ----------------------------------------------------------------------------------

RULES = [(twice, never) for twice in ("refuse", "earliest", "latest") for never in ("refuse", "forward")]


@pytest.mark.parametrize(("twice", "never"), RULES)
@pytest.mark.parametrize(
    ("zone", "cell", "refuse", "earliest", "latest", "forward"),
    [
        # On 2020-10-25 at 02:00 London's clocks went back to 01:00; on 2020-03-29 at 01:00 they went on to 02:00.
        ("Europe/London", "2020-10-25 01:30:00", None, "00:30", "01:30", None),
        ("Europe/London", "2020-03-29 01:30:00", None, None, None, "01:30"),
        ("Europe/London", "2020-03-29 02:00:00", "01:00", None, None, None),
        ("Europe/London", "2020-03-29 00:59:59", "00:59:59", None, None, None),
        # New York, on 2020-11-01 at 02:00 and on 2020-03-08 at 02:00.
        ("America/New_York", "2020-11-01 01:30:00", None, "05:30", "06:30", None),
        ("America/New_York", "2020-03-08 02:30:00", None, None, None, "07:30"),
        ("America/New_York", "2020-03-08 03:00:00", "07:00", None, None, None),
        ("America/New_York", "2020-03-08 12:00:00", "16:00", None, None, None),
    ],
)  # fmt: skip
def test_an_hour_that_exists_twice_and_one_that_does_not(
    zone: str, cell: str, refuse: str | None, earliest: str | None, latest: str | None, forward: str | None,
    twice: str, never: str,
) -> None:  # fmt: skip
    utc = refuse or {"earliest": earliest, "latest": latest}.get(twice) or (forward if never == "forward" else None)
    expected: object = MALFORMED
    if utc is not None:
        stamp = datetime.fromisoformat(f"{cell[:10]}T{utc}+00:00")
        expected = (stamp - EPOCH) // timedelta(microseconds=1)
    assert times([cell, None], format=FORMAT, timezone=zone, ambiguous=twice, nonexistent=never) == [expected, MISSING]
    stamps = [datetime.fromisoformat(cell), None]
    found = times(stamps, dtype=pl.Datetime("us"), timezone=zone, ambiguous=twice, nonexistent=never)
    assert found == [expected, MISSING]


def by_zoneinfo(naive: datetime, zone: str, twice: str, never: str) -> object:
    first, second = (naive.replace(tzinfo=ZoneInfo(zone), fold=fold) for fold in (0, 1))
    before, after = first.utcoffset(), second.utcoffset()
    assert before is not None
    assert after is not None
    if before > after and twice == "refuse":
        return MALFORMED
    if before < after and never == "refuse":
        return MALFORMED
    chosen = second if before > after and twice == "latest" else first
    return (chosen - EPOCH) // timedelta(microseconds=1)


ZONES = {  # with a day on which something odd happens
    "Europe/London": datetime(2019, 10, 27), "America/New_York": datetime(2021, 3, 14),  # noqa: DTZ001
    "Australia/Lord_Howe": datetime(2019, 4, 7), "America/St_Johns": datetime(2006, 10, 29),  # noqa: DTZ001
    "Pacific/Apia": datetime(2011, 12, 30), "Africa/Casablanca": datetime(2019, 5, 5),  # noqa: DTZ001
    "Asia/Kathmandu": datetime(2020, 1, 1), "Asia/Pyongyang": datetime(2015, 8, 15), "UTC": datetime(2020, 1, 1),  # noqa: DTZ001
}  # fmt: skip


@pytest.mark.parametrize("zone", ZONES)
@given(data=st.data())
def test_clock_times_equal_zoneinfo(zone: str, data: st.DataObject) -> None:
    odd = ZONES[zone]
    moments = st.datetimes(odd - timedelta(days=1), odd + timedelta(days=2)) | st.datetimes(
        datetime(1990, 1, 2),  # noqa: DTZ001
        datetime(2025, 12, 31),  # noqa: DTZ001
    )
    cells = data.draw(st.lists(moments, min_size=1, max_size=20))
    twice, never = data.draw(st.sampled_from(RULES))
    expected = [by_zoneinfo(cell, zone, twice, never) for cell in cells]
    assert times(cells, dtype=pl.Datetime("us"), timezone=zone, ambiguous=twice, nonexistent=never) == expected


def test_a_day_between_two_clock_changes_through_a_whole_run(tmp_path: Path) -> None:
    timestamp = {"from": "time", "unit": None, "format": FORMAT, "timezone": "Europe/London", "ambiguous": "latest"}
    rows = [row(1, "a", "2020-10-25 01:30:00"), row(1, "a", "2020-10-25 00:59:59")]
    dataset = make_dataset(
        tmp_path, days={"2020-10-25": rows}, columns={"timestamp": timestamp},
        partitions={"start": "2020-10-24", "end": "2020-10-26"}, source={"neighbours": [1, 1]},
    )  # fmt: skip
    store = make_store(dataset)
    make_events_of(dataset, store, "2020-10-25")
    assert table(store, "events", "2020-10-25")["timestamp"].to_list() == [datetime(2020, 10, 25, 1, 30, tzinfo=UTC)]

"""The converters and the plain Python that judges them mean the same by every cell, however odd."""

import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.contracts import PipelineError
from pipeline_tests.two_conversions import (
    BAD,
    KINDS,
    MISSING,
    NOON_US,
    ODD,
    TYPED,
    WILD,
    agree_on,
    agree_or_stop,
    damaged,
    declared,
    timed,
)  # fmt: skip

FORMATS = (
    "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S%.f", "%d.%m.%Y %H:%M:%S%.f", "%d.%m.%y %H:%M", "%m/%d/%Y %H:%M",
    "%m/%d/%y %I:%M %p", "%I:%M%p %d %b %Y", "%Y%m%d %H%M%S", "%Y%m%d%H%M%S", "%y%m%d %H%M", "%Y%j", "%Y-%j %H:%M",
    "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M:%S%.f %z", "[%d/%b/%Y:%H:%M:%S %:z]", "%a %b %e %H:%M:%S %Y",
    "%A, %d %B %Y %k:%M", "%d-%b-%y %I.%M.%S%.6f %P", "%Y-%m-%d %H:%M:%S,%3f", "%Y-%m-%d %H:%M:%S%.3f",
    "%Y%m%d%H%M%S%9f", "%F %T UTC", "%D %R", "%+", "%-m/%-d/%Y %-I:%M:%S %p", "ZEIT %d.%m.%Y UM %H:%M Uhr (%%)",
    "%Y-%m-%d", "%Y-%m-%d\t%H:%M", "%d%b%Y:%H:%M:%S", "%Y年%m月%d日 %H:%M", "%T %F%#z", "%Y/%m/%d 0%H:%M",
    "%d.%m.%Y  %H:%M", "%Y-%m-%d %l:%M:%S%.9f %p",
)  # fmt: skip
FIELDS = (
    "%Y", "%y", "%m", "%d", "%e", "%j", "%b", "%B", "%h", "%a", "%A", "%H", "%I", "%k", "%l", "%M", "%S", "%p", "%P",
    "%.f", "%.3f", "%.6f", "%.9f", "%3f", "%6f", "%9f", "%z", "%:z", "%#z", "%-d", "%-H", "%%", "%F", "%T", "%R", "%s",
    "-", "-", ":", " ", " ", "T", "Z", "/", ".", "0", "é", "\t",
)  # fmt: skip


def times(format_: str, cells: list[str], zone: str = "UTC") -> list[Any]:
    """Microseconds from noon of 2020-03-01, or what is wrong."""
    found = agree_on("t", cells, timed(format_, zone))
    return [one if isinstance(one, str) else one["timestamp"] - NOON_US for one in found]


@pytest.mark.parametrize(
    ("format_", "cell", "expected"),
    [
        ("%d.%m.%y %H:%M", "01.03.20 12:00", 0),
        ("%d.%m.%y %H:%M", "01.03.2A 12:00", BAD),
        ("%d.%m.%y %H:%M", "01.03.2 12:00", BAD),
        ("%d.%m.%y %H:%M", "01.03.2020 12:00", BAD),
        ("%d.%m.%y %H:%M", "01.03.69 12:00", WILD),
        ("%d.%m.%y %H:%M", "01.03.70 12:00", WILD),
        ("%y%m%d %H%M", "200301 1200", 0),
        ("%y%m%d %H%M", "9.0914 1200", BAD),
        ("%y%m%d %H%M", "-90206 1200", BAD),
        ("%d/%m/%Y", "01/03/+2020", BAD),
        ("%d/%m/%Y", "01/03/02020", BAD),
        ("%d/%m/%Y", "01/03/0000", WILD),
        ("%d/%m/%Y", "29/02/0000", WILD),
        ("%d/%m/%Y", "30/02/0000", BAD),
        ("%m/%d/%Y %H:%M", "3/1/2020 12:00", 0),
        ("%m/%d/%Y %H:%M", "3/1/2020 12:0", 0),
        ("%m/%d/%Y %H:%M", "003/1/2020 12:00", BAD),
        ("%m/%d/%Y %H:%M", "3/1/2020\t12:00", BAD),
        ("%m/%d/%Y %H:%M", "3/1/2020 \u00a012:00", BAD),
        ("%m/%d/%Y %H:%M", "3/1/2020  12:00", BAD),
        ("%m/%d/%Y %H:%M", "3/1/2020 12:00\n", BAD),
        ("%m/%d/%Y %H:%M", "3/1/2020 12:\u06600", BAD),
        ("%Y%m%d %H%M%S", "20200301 120000", 0),
        ("%Y%m%d %H%M%S", "20200301 120060", BAD),
        ("%Y%m%d %H%M%S", "20200301 90705", BAD),
        ("%Y%m%d", "2020301", BAD),
        ("%Y-%j %H:%M", "2020-061 12:00", 0),
        ("%Y-%j %H:%M", "2020-61 12:00", BAD),
        ("%Y-%j %H:%M", "2020-366 12:00", 305 * 86_400_000_000),
        ("%Y-%j %H:%M", "2021-366 12:00", BAD),
        ("%Y-%j %H:%M", "2021-000 12:00", BAD),
        ("%d.%m.%Y %H:%M:%S%.f", "01.03.2020 12:00:00", 0),
        ("%d.%m.%Y %H:%M:%S%.f", "01.03.2020 12:00:00.1234567", 123_456),
        ("%d.%m.%Y %H:%M:%S%.f", "01.03.2020 12:00:00.", BAD),
        ("%d.%m.%Y %H:%M:%S%.f", "01.03.2020 12:00:00.1234567890", BAD),
        ("%d.%m.%Y %H:%M:%S%.3f", "01.03.2020 12:00:00.120", 120_000),
        ("%d.%m.%Y %H:%M:%S%.3f", "01.03.2020 12:00:00.12", BAD),
        ("%d.%m.%Y %H:%M:%S,%3f", "01.03.2020 12:00:00,120", 120_000),
        ("%Y-%m-%dT%H:%M:%S%z", "2020-03-01T12:00:00Z", 0),
        ("%Y-%m-%dT%H:%M:%S%z", "2020-03-01T12:00:00z", BAD),
        ("%Y-%m-%dT%H:%M:%S%z", "2020-03-01t12:00:00Z", BAD),
        ("%Y-%m-%dT%H:%M:%S%z", "2020-03-01T12:00:00+01:00", -3_600_000_000),
        ("%Y-%m-%dT%H:%M:%S%z", "2020-03-01T12:00:00-0130", 5_400_000_000),
        ("%Y-%m-%dT%H:%M:%S%z", "2020-03-01T12:00:00+01", BAD),
        ("%Y-%m-%dT%H:%M:%S%z", "2020-03-01T12:00:00+24:00", BAD),
        ("%Y-%m-%dT%H:%M:%S%z", "2020-03-01T12:00:00\u221201:00", BAD),
        ("[%d/%b/%Y:%H:%M:%S %z]", "[01/Mar/2020:12:00:00 Z]", 0),
        ("%a %d %B %Y %I:%M %p", "SUN 1 march 2020 12:00 pM", 0),
        ("%a %d %B %Y %I:%M %p", "Mon 1 March 2020 12:00 PM", BAD),
        ("%a %d %B %Y %I:%M %p", "Sun 1 Mar 2020 12:00 PM", BAD),
        ("%a %d %B %Y %I:%M %p", "Sun 1 March 2020 13:00 PM", BAD),
        ("%a %d %B %Y %I:%M %p", "Sun 1 March 2020 00:00 PM", BAD),
        ("%a %d %b %Y %I:%M %p", "Sun 1 March 2020 12:00 PM", BAD),
        ("%a %d %b %Y %I:%M %p", "\u017fun 1 Mar 2020 12:00 PM", BAD),
        ("%B%A%d.%Y %H:%M", "MarchSunday1.2020 12:00", 0),
        ("%b %e %Y %H:%M", "Mar  1 2020 12:00", 0),
        ("%b %e %Y %H:%M", "Mar 1 2020 12:00", BAD),
        ("ZEIT %d.%m.%Y UM %H:%M", "ZEIT 1.3.2020 UM 12:00", 0),
        ("ZEIT %d.%m.%Y UM %H:%M", "Zeit 1.3.2020 UM 12:00", BAD),
        ("%d.%m.%Y %H:%M", "\u00a0", MISSING),
        ("%d.%m.%Y %H:%M", "\x1c", BAD),
    ],
)  # fmt: skip
def test_text_that_follows_a_format_and_text_that_does_not(format_: str, cell: str, expected: object) -> None:
    assert times(format_, [cell]) == [expected]


@pytest.mark.parametrize(
    "format_",
    ["%s", "%Y-%m-%d %H:%M %Z", "%Y-%m-%d %H", "%Y-%m %H:%M", "%Y-%m-%d %I:%M", "%Y-%m-%d %H:%M %p %", "%H:%M",
     "%Y %m %m %d", "%Y-%m-%d %H:%M%.f", "%Y-%m-%d %j", "%d.%m.%Y %H:%M %I %p", "%Y-%m-%dT%z", "%H:%M:%S%.f%Y%m%d", "%b%e%Y"],
)  # fmt: skip
def test_a_format_that_gives_no_time_stops(format_: str) -> None:
    with pytest.raises(PipelineError, match=r'log.csv: format = ".*" in \[columns\] timestamp'):
        times(format_, ["2020"])


def test_a_wall_clock_far_away_is_implausible_whatever_its_zone() -> None:
    cells = ["0001-01-01 00:00", "1980-04-06 02:30", "9999-12-31 23:59", "1990-01-01 00:30", "1990-01-01 01:00"]
    expected = [WILD, WILD, WILD, WILD, (631_152_000_000_000 - NOON_US)]
    assert times("%Y-%m-%d %H:%M", cells, "Europe/Berlin") == expected


# --- generated ---------------------------------------------------------------------------------------------------


def written(format_: str, moment: datetime, *, pad: bool, upper: bool, digits: int) -> str:
    """A moment in a format, by hand: padded or not, names in capitals or not, a fraction of so many digits."""
    nanoseconds = f"{moment.microsecond:06d}789"
    for letters, meant in (
        ("%+", "%FT%T%.f%z"),
        ("%F", "%Y-%m-%d"),
        ("%T", "%H:%M:%S"),
        ("%R", "%H:%M"),
        ("%D", "%m/%d/%y"),
    ):
        format_ = format_.replace(letters, meant)
    for n in "369":
        format_ = format_.replace(f"%.{n}f", "." + nanoseconds[: int(n)]).replace(f"%{n}f", nanoseconds[: int(n)])
    format_ = format_.replace("%.f", "." + nanoseconds[:digits] if digits else "").replace("%-", "%")
    format_ = (
        format_.replace("%:z", "%z").replace("%#z", "%z").replace("%z", ("+05:30", "-0130", "Z")[moment.second % 3])
    )
    for letter in "mdHIMS":
        number = moment.strftime(f"%{letter}")
        format_ = format_.replace(f"%{letter}", number if pad else str(int(number)))
    for letter, number in (("e", moment.day), ("k", moment.hour), ("l", (moment.hour - 1) % 12 + 1)):
        format_ = format_.replace(f"%{letter}", f"{number:2d}")
    format_ = format_.replace("%Y", f"{moment.year:04d}").replace("%P", "%p").replace("%h", "%b")
    for letter in "bBaAp":
        name = moment.strftime(f"%{letter}")
        format_ = format_.replace(f"%{letter}", name.upper() if upper else name)
    return moment.strftime(format_.replace("%y", f"{moment.year % 100:02d}"))


@st.composite
def time_cells(draw: st.DrawFn, format_: str) -> str:
    moment = draw(
        st.datetimes(datetime(1989, 12, 29), datetime(2028, 1, 1))  # noqa: DTZ001
        | st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31))  # noqa: DTZ001
        | st.datetimes(datetime(2020, 3, 28, 23), datetime(2020, 3, 29, 5))  # noqa: DTZ001
    )
    style = {"pad": draw(st.booleans()), "upper": draw(st.booleans()), "digits": draw(st.integers(0, 9))}
    return draw(damaged(written(format_, moment, **style)))


def cells_of(format_: str) -> st.SearchStrategy[list[str]]:
    return st.lists(time_cells(format_) | st.text(ODD, max_size=3), min_size=1, max_size=20)


@pytest.mark.parametrize("format_", FORMATS)
@given(data=st.data())
@settings(max_examples=15)
def test_times_in_known_formats(format_: str, data: st.DataObject) -> None:
    times(format_, data.draw(cells_of(format_)), data.draw(st.sampled_from(("UTC", "Europe/Berlin"))))


@given(st.data())
@settings(max_examples=200)
def test_times_in_any_format(data: st.DataObject) -> None:
    day = data.draw(st.sampled_from(("%Y %m %d", "%y %b %d", "%B %e %Y", "%Y %j", "%m %d %y", "%h %-d %Y")))
    clock = data.draw(st.sampled_from(("", "%H %M", "%I %M %p", "%k %M %S", "%H %M %S %.f", "%T", "%l %M %S %6f %P")))
    more = data.draw(st.sampled_from(("", "%z", "%a", "%A %#z", "%%", "%s", "%Y")))
    fields = data.draw(st.permutations(f"{day} {clock} {more}".split()))
    between = [data.draw(st.sampled_from(("", "", *FIELDS[-12:], "%%"))) for _ in fields]
    format_ = "".join(field + literal for field, literal in zip(fields, between, strict=True))
    try:
        dataset = timed(format_)
        agree_on("t", [], dataset)
    except (PipelineError, ValueError):
        return  # it is refused as a whole
    agree_on("t", data.draw(cells_of(format_)), dataset)


def odd_numbers() -> st.SearchStrategy[str]:
    plain = st.one_of(
        st.integers(-(2**64), 2**64).map(str),
        st.integers(0, 10**6).map(lambda number: f"{number}.0"),
        st.floats().map(str),
        st.sampled_from(
            ("nan", "-inf", "Infinity", "1e400", "-1e-400", "1_000", "1,5", ".5", "5.", ".", "+", "1e", "1e+5", "0x1p3")
        ),
        st.sampled_from(("true", "FALSE", "True", "1", "0", "yes", "T", "fal\u017fe", "")),
        st.decimals(allow_nan=False, allow_infinity=False, places=20).map(str),
    )
    return st.one_of(plain, plain.flatmap(damaged), st.text(ODD, max_size=4))


@given(st.lists(odd_numbers(), min_size=1, max_size=30), st.sampled_from(KINDS), st.booleans())
@settings(max_examples=200)
@example(["9" * 5_000, "0" * 5_000 + "7", "-" + "9" * 4_301, "1." + "0" * 5_000], "int64", False)
@example(["9" * 5_000, "0." + "1" * 5_000, "1e400", "\u0663", "1_000", "\x1c1", "\u00a01"], "float64", False)
def test_extras(cells: list[str], kind: str, optional: bool) -> None:
    agree_on("x", cells, declared({}, {"x": {"from": "x", "type": kind, "optional": optional}}))


@given(st.lists(odd_numbers(), min_size=1, max_size=30), st.sampled_from(("int64", "string")), st.booleans())
@example(["9" * 5_000, "0" * 5_000 + "7", "-" + "9" * 4_301, "\x1c1", "\u00a01", "\u0663"], "int64", True)
def test_ids(cells: list[str], kind: str, optional: bool) -> None:
    agree_on("i", cells, declared({"item_id": {"from": "i", "type": kind, "optional": optional}}))


@given(
    st.lists(odd_numbers() | st.integers(10**8, 2 * 10**18).map(str), min_size=1),
    st.sampled_from(("s", "ms", "us", "ns")),
)
@example(
    ["9" * 5_000, "0" * 5_000 + "1583064000", "1583064000.0", "1583064000.5", "+1583064000", "\x1f1583064000"], "s"
)
def test_times_in_units(cells: list[str], unit: str) -> None:
    agree_on("t", cells, declared({"timestamp": {"from": "t", "unit": unit}}))


@pytest.mark.parametrize("dtype", TYPED, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=15)
def test_typed_columns(dtype: pl.DataType, kind: str, data: st.DataObject) -> None:
    cells = data.draw(st.lists(st.none() | TYPED[dtype], min_size=1, max_size=20))
    agree_or_stop(
        "x", cells, declared({}, {"x": {"from": "x", "type": kind, "optional": data.draw(st.booleans())}}), dtype
    )
    agree_or_stop(
        "t", cells, declared({"timestamp": {"from": "t", "unit": data.draw(st.sampled_from(("s", "ns")))}}), dtype
    )
    if kind in ("int64", "string"):
        agree_or_stop("i", cells, declared({"item_id": {"from": "i", "type": kind}}), dtype)


def test_typed_columns_that_do_agree() -> None:
    def extra(cells: list[Any], dtype: pl.DataType, kind: str) -> list[Any]:
        found = agree_on("x", cells, declared({}, {"x": {"from": "x", "type": kind}}), dtype)
        return [one if isinstance(one, str) else one["x"] for one in found]

    assert extra([1.5, math.nan, math.inf, 1e16], pl.Float64(), "float64") == [1.5, *["malformed_extra"] * 2, 1e16]
    assert extra([1.0, 1e16, 1.5], pl.Float64(), "int64") == [1, "malformed_extra", "malformed_extra"]
    assert extra([Decimal("0.1")], pl.Decimal(10, 1), "float64") == [0.1]
    assert extra([0, 1, 2], pl.Int8(), "bool") == [False, True, "malformed_extra"]


@pytest.mark.parametrize(
    "dtype", [pl.Datetime("us"), pl.Datetime("ms", "UTC"), pl.Datetime("us", "Asia/Tokyo"), pl.Date()]
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@given(data=st.data())
@settings(max_examples=15)
def test_columns_of_times(dtype: pl.DataType, zone: str, data: st.DataObject) -> None:
    dataset = declared({"timestamp": {"from": "t", "timezone": zone}})
    moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))  # noqa: DTZ001
    days = moments.map(datetime.date) if dtype == pl.Date() else moments
    cells = data.draw(
        st.lists(days | st.none() | st.just(date(2020, 3, 29) if dtype == pl.Date() else datetime(2020, 3, 29, 2, 30)))  # noqa: DTZ001
    )
    agree_on("t", cells, dataset, dtype)


def test_a_date_is_midnight_in_the_declared_zone() -> None:
    dataset = declared({"timestamp": {"from": "t", "timezone": "Europe/Berlin"}})
    found = agree_on("t", [date(2020, 3, 1), None, date(1, 1, 1), date(9999, 12, 31)], dataset, pl.Date())
    assert found[0]["timestamp"] == NOON_US - timedelta(hours=13) // timedelta(microseconds=1)
    assert found[1:] == [MISSING, WILD, WILD]

"""`python -m pipeline inspect`: times that need an expression, and logs that have none."""

from datetime import date, datetime, timedelta
from datetime import time as clock
from pathlib import Path

import polars as pl
import pytest

from pipeline.config import load_dataset
from pipeline_tests.test_inspect import proposed
from pipeline_tests.test_inspect_lists import events_of

START = 1577836800  # 2020-01-01
HOUR, DAY = 3600, 86_400


def times(folder: Path, header: str, *rows: str) -> list[int]:
    """The times of the events of a small log, in seconds."""
    lines = "".join(f"u{at},a{at},{row}\n" for at, row in enumerate(rows))
    return [second for _, _, second in events_of(proposed(folder, "log.csv", f"user,item,{header}\n{lines}"))]


def test_an_hour_without_minutes(tmp_path: Path) -> None:
    assert times(tmp_path, "time", "2020-01-01 05", "2020-01-02 23") == [START + 5 * HOUR, START + DAY + 23 * HOUR]


def test_a_date_and_an_hour_beside_it(tmp_path: Path) -> None:
    found = times(tmp_path, "SHOP_DATE,SHOP_HOUR", "20200101,5", "20200101,23", "20200102,0")
    assert found == [START + 5 * HOUR, START + 23 * HOUR, START + DAY]


@pytest.mark.parametrize("before", ["", "date_"])
def test_parts_in_columns_of_their_own(tmp_path: Path, before: str) -> None:
    header = ",".join(before + part for part in ("day", "month", "year", "hour", "minute", "second"))
    found = times(tmp_path, header, "1,1,2020,0,0,7", "2,1,2020,23,5,59")
    assert found == [START + 7, START + DAY + 23 * HOUR + 5 * 60 + 59]


def test_parts_without_a_clock(tmp_path: Path) -> None:
    assert times(tmp_path, "year,month,day", "2020,1,1", "2020,1,2") == [START, START + DAY]


def test_seconds_from_a_start_that_is_not_told(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.tsv", "uid\titem_id\ttimestamp\n1\ta\t5\n2\tb\t86399\n3\tc\t86405\n")
    assert found.columns["timestamp"] == {"sql": 'CAST("timestamp" AS BIGINT) + 1577836800', "unit": "s"}
    assert found.comment("2020-01-01 (1577836800 in sql) is made up: write the true start in its place, or keep it")
    assert [second - START for _, _, second in events_of(found)] == [5, 86399, 86405]


def test_fractions_of_seconds_from_a_start_that_is_not_told(tmp_path: Path) -> None:
    assert [at - START for at in times(tmp_path, "ts", "5.50", "7.25", "9.00")] == [5, 7, 9]


def test_days_from_a_start_and_the_clock_as_a_number(tmp_path: Path) -> None:
    found = times(tmp_path, "DAY,TRANS_TIME", "1,1631", "1,5", "2,0", "9,2359")
    assert [at - START for at in found] == [
        DAY + 5 * 60,
        DAY + 16 * HOUR + 31 * 60,
        2 * DAY,
        9 * DAY + 23 * HOUR + 59 * 60,
    ]


def test_days_before_and_behind_a_start(tmp_path: Path) -> None:
    assert [(at - START) // DAY for at in times(tmp_path, "date", "-10", "0", "7")] == [-10, 0, 7]


def test_days_as_a_spreadsheet_counts_them(tmp_path: Path) -> None:
    """43831 is 2020-01-01."""
    found = times(tmp_path, "Date", "43831.0000", "43831.5000", "43832.041667")
    assert found == [START, START + 12 * HOUR, START + DAY + HOUR]


@pytest.mark.parametrize(
    ("cells", "format_"), [(("0101", "0102"), "%Y%m%d"), (("01-01 10:00", "01-02 10:00"), "%Y-%m-%d %H:%M")]
)
def test_a_date_without_a_year(tmp_path: Path, cells: tuple[str, str], format_: str) -> None:
    found = proposed(tmp_path, "log.csv", f"user,item,time_stamp\n1,a,{cells[0]}\n2,b,{cells[1]}\n")
    assert found.columns["timestamp"]["format"] == format_
    assert found.comment("time_stamp holds no year; 2020 in sql is made up: write the true one in its place")
    first, second = (second for _, _, second in events_of(found))
    assert (first - first % DAY, second - first) == (START, DAY)


def test_numbers_with_an_exponent(tmp_path: Path) -> None:
    assert times(tmp_path, "ts", "1.577836800e+09", "1.577836805e+09") == [START, START + 5]


def test_times_of_the_same_days_go_before_their_date(tmp_path: Path) -> None:
    rows = "".join(f"u{at},a{at},20200101,{START + at}\n" for at in range(3))
    found = proposed(tmp_path, "log.csv", "user,item,date,visitStartTime\n" + rows)
    assert found.columns["timestamp"] == {"from": "visitStartTime", "unit": "s"}
    assert found.comment("date can be read as the time as well; visitStartTime was taken")


def test_another_time_than_that_of_the_date_does_not(tmp_path: Path) -> None:
    rows = "".join(f"u{at},a{at},20200101,{START - 900 * DAY + at}\n" for at in range(3))
    found = proposed(tmp_path, "log.csv", "user,item,date,visitStartTime\n" + rows)
    assert found.columns["timestamp"]["from"] == "date"


def test_a_key_is_no_time_where_a_date_is(tmp_path: Path) -> None:
    """Its digits read as microseconds of 2001."""
    rows = "".join(f"2020010{at + 1},99410010000000{at},u{at},a{at}\n" for at in range(3))
    found = proposed(tmp_path, "log.csv", "SHOP_DATE,BASKET_ID,user,item\n" + rows)
    assert found.columns["timestamp"]["from"] == "SHOP_DATE"


def test_a_log_without_times_can_be_given_one(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", "user_id,book_id,rating\n1,a,5\n2,b,3\n")
    assert found.comment("no column reads as a time, and none is named like one")
    fix = """timestamp = { sql = "'2020-01-01'", format = "%Y-%m-%d", timezone = "UTC" }"""
    assert found.comment(f'{fix} with start and end = "2020-01-01" puts all rows on one day')
    text = found.text.replace('timestamp = { from = "?", unit = "s" }', fix)
    text = text.replace('start = "1990-01-01"', 'start = "2020-01-01"\nend = "2020-01-01"')
    file = tmp_path / "fixed.toml"
    file.write_text(text)
    found.dataset = load_dataset(file)
    assert events_of(found) == [("1", "a", START), ("2", "b", START)]


def test_cells_that_are_no_known_time_are_shown(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", "user,item,time\n1,a,noon\n2,b,dawn\n")
    assert found.comment("time may hold one, in which cells such as 'noon' or 'dawn' are no time that is known here")


def test_zero_dates_are_missing(tmp_path: Path) -> None:
    rows = "1,a,0000-00-00 00:00:00\n2,b,2020-01-01 00:00:05\n"
    found = proposed(tmp_path, "log.csv", "user,item,time\n" + rows)
    assert found.columns["timestamp"]["format"] == "%Y-%m-%d %H:%M:%S"
    assert found.comment("2 rows; 1 are accepted")


def test_a_date_and_a_clock_in_digits(tmp_path: Path) -> None:
    assert times(tmp_path, "date,time", "20200101,000005", "20200101,235959") == [START + 5, START + DAY - 1]


@pytest.mark.parametrize(("header", "rows"), [("day", ["1", "3", "7"]), ("day,month", ["1,1", "3,1", "31,2"])])
def test_a_day_of_the_week_or_of_a_month_counts_nothing(tmp_path: Path, header: str, rows: list[str]) -> None:
    lines = "".join(f"u{at},a{at},{row}\n" for at, row in enumerate(rows))
    found = proposed(tmp_path, "log.csv", f"user,item,{header}\n{lines}")
    assert found.columns["timestamp"] == {"from": "day", "unit": "s"}
    assert found.comment("no column reads as a time; day may hold one")


@pytest.mark.parametrize("name", ["time", "hour", "day"])
@pytest.mark.parametrize(
    "cells",
    [
        *([[1], [2], [3, 4]], [{"a": 1}] * 3, [b"\xff\x01", b"a", b"b"], [None] * 3, [True, False, True]),
        *([timedelta(1), timedelta(2), timedelta(3)], [clock(1), clock(2), clock(3)], [[datetime(2020, 1, 1)]] * 3),  # noqa: DTZ001
    ],
)
def test_types_that_are_no_times(tmp_path: Path, name: str, cells: list[object]) -> None:
    """Nothing of it is an error: the draft says what it could not find."""
    file = tmp_path / "log.parquet"
    pl.DataFrame({"user": [1, 2, 3], "item": [4, 5, 6], "date": [date(2020, 1, 1)] * 3, name: cells}).write_parquet(
        file
    )
    found = proposed(tmp_path, "log.parquet", file.read_bytes())
    assert found.columns["timestamp"] == {"from": "date", "timezone": "UTC"}
    pl.DataFrame({"user": [1, 2, 3], "item": [4, 5, 6], name: cells}).write_parquet(file)
    found = proposed(tmp_path, "log.parquet", file.read_bytes())
    assert found.comment("no column reads as a time")


def test_milliseconds_behind_a_name_as_dot_net_writes_them(tmp_path: Path) -> None:
    assert times(tmp_path, "Time", f"/Date({START}000)/", f"/Date({START + 7}000)/") == [START, START + 7]


def test_seventeen_digits_are_a_date_with_milliseconds(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", "user,item,time\n7,a,20200101000007250\n8,b,20200101000008000\n")
    assert found.columns["timestamp"]["format"] == "%Y%m%d%H%M%S%3f"

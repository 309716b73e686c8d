"""`python -m pipeline inspect`: how times are written, from where they count, and clocks that are shown twice."""

from pathlib import Path

import polars as pl
import pytest

from pipeline.inspection.formats import formats_of
from pipeline.inspection.readings import times_of
from pipeline.inspection.times import sniff_time
from pipeline_tests.test_inspect import Proposed, proposed

START = 1678010644  # 2023-03-05 10:04:04
START_US = START * 1_000_000


def log_of(folder: Path, header: str, rows: list[str]) -> Proposed:
    """A log of 12 users and some items, whose further columns are given."""
    lines = [f"{at % 12},{at % 5},{row}\n" for at, row in enumerate(rows)]
    return proposed(folder, "log.csv", f"user,item,{header}\n" + "".join(lines))


def days_of(count: int, step_s: int = 3700) -> list[int]:
    return [START + step_s * at for at in range(count)]


def text(seconds: int, form: str) -> str:
    column = pl.Series([seconds * 1_000_000]).cast(pl.Datetime("us"))
    return str(column.dt.strftime(form)[0])


# How they are written


@pytest.mark.parametrize(
    ("cell", "format_"),
    [
        ("2023年03月05日 10:04:04", "%Y年%m月%d日 %H:%M:%S"),
        ("05MAR2023:10:04:04", "%d%b%Y:%H:%M:%S"),
        ("2023-03-05 10:04:04:000", "%Y-%m-%d %H:%M:%S:%3f"),
        ("Sunday, March 05, 2023 10:04:04 AM", "%A, %B %d, %Y %I:%M:%S %p"),
        ("Sun Mar 05 2023 10:04:04 GMT+0000", "%a %b %d %Y %H:%M:%S GMT%z"),
        ("Sun Mar 05 10:04:04 UTC 2023", "%a %b %d %H:%M:%S UTC %Y"),
        ("Sun Mar 05 10:04:04 GMT 2023", "%a %b %d %H:%M:%S GMT %Y"),
        ("05-MAR-23 10.04.04.000000 AM", "%d-%b-%y %I.%M.%S%.f %p"),
        ("20230305100404000", "%Y%m%d%H%M%S%3f"),
    ],
)
def test_a_time_of_its_own_kind(cell: str, format_: str) -> None:
    found = sniff_time(pl.Series("time", [cell, cell]))
    assert found is not None
    assert found.says["format"] == format_
    assert (found.first_us, found.last_us) == (START_US, START_US)


def test_an_offset_keeps_the_blank_before_it() -> None:
    assert formats_of(["2023-03-05 10:04 +0100"]) == [{"format": "%Y-%m-%d %H:%M %z"}]
    assert formats_of(["2023-03-05 10:04+01"]) == [{"format": "%Y-%m-%d %H:%M+01", "timezone": "UTC"}]


def test_an_hour_behind_a_hyphen(tmp_path: Path) -> None:
    found = log_of(tmp_path, "time", ["2023-03-05-10", "2023-03-05-11", "2023-03-06-00"])
    assert found.columns["timestamp"]["sql"] == "\"time\" || ':00'"
    assert found.says["partitions"] == {"start": "2023-03-05", "end": "2023-03-06"}


def test_blanks_around_a_time_are_cut_off(tmp_path: Path) -> None:
    found = log_of(tmp_path, "time,event", [" 2023-03-05 10:04:04 ,view", " 2023-03-05 10:04:05 ,view"])
    assert found.columns["timestamp"]["strip"] is True
    assert found.comment("all are accepted")


def test_blanks_around_a_date_its_clock_and_ticks_are_cut_off(tmp_path: Path) -> None:
    parts = log_of(tmp_path, "date,clock", [" 05.03.2023 , 10:04:04 ", " 06.03.2023 , 10:04:05 "])
    assert parts.columns["timestamp"]["time_from"] == "clock"
    assert parts.columns["timestamp"]["strip"] is True
    assert parts.comment("all are accepted")
    ticks = log_of(tmp_path, "ticks", [f" {(second + 62_135_596_800) * 10**7} " for second in days_of(3)])
    assert ticks.comment("all are accepted")


def test_am_and_pm_go_with_the_month_first(tmp_path: Path) -> None:
    found = log_of(tmp_path, "time", ["03/05/2023 10:04 AM", "03/05/2023 11:04 PM"])
    assert found.columns["timestamp"]["format"] == "%m/%d/%Y %I:%M %p"
    assert found.comment("month before day was taken, as AM and PM go with it")
    other = log_of(tmp_path, "time", ["03/05/2023 10:04", "03/05/2023 23:04"])
    assert other.columns["timestamp"]["format"] == "%d/%m/%Y %H:%M"


# From where they count


@pytest.mark.parametrize(
    ("before_1970_us", "a_us", "looks"),
    [
        (62_135_596_800_000_000, 10, ".NET ticks"),
        (11_644_473_600_000_000, 10, "Windows ticks"),
        (11_644_473_600_000_000, 1, "microseconds since 1601"),
    ],
)
def test_ticks_are_no_nanoseconds(tmp_path: Path, before_1970_us: int, a_us: int, looks: str) -> None:
    cells = [str((second * 1_000_000 + before_1970_us) * a_us) for second in days_of(30)]
    found = log_of(tmp_path, "time", cells)
    assert found.says["partitions"] == {"start": "2023-03-05", "end": "2023-03-06"}
    assert found.comment(looks)


def test_ids_are_no_ticks(tmp_path: Path) -> None:
    rows = "".join(f"{133224842440000000 + at % 7},{at % 5},{START + at}\n" for at in range(30))
    found = proposed(tmp_path, "log.csv", "user,item,time\n" + rows)
    assert found.columns["user_id"] == {"from": "user", "type": "int64"}


def test_an_early_log_may_count_from_another_start(tmp_path: Path) -> None:
    since_2001 = log_of(tmp_path, "time", [str(second - 978_307_200) for second in days_of(30)])
    assert since_2001.comment("is of 1992-03-04..1992-03-05, which is early for a log")
    since_1970 = log_of(tmp_path, "time", [str(second) for second in days_of(30)])
    assert not since_1970.comment("which is early for a log")


# One clock, shown twice


def test_of_two_clocks_the_one_that_names_its_zone(tmp_path: Path) -> None:
    rows = [f"{text(second + 28_800, '%Y-%m-%d %H:%M:%S')},{second}" for second in days_of(30)]
    found = log_of(tmp_path, "time,epoch", rows)
    assert found.columns["timestamp"] == {"from": "epoch", "unit": "s"}
    assert found.comment("the same times as in time, which names no zone")
    assert not found.comment("timestamp: ")


def test_a_clock_with_summer_time_is_the_same_clock(tmp_path: Path) -> None:
    rows = [f"{text(second + 3600 * (1 + (at > 15)), '%F %T')},{second}" for at, second in enumerate(days_of(30))]
    assert log_of(tmp_path, "time,epoch", rows).columns["timestamp"]["from"] == "epoch"


def test_minutes_give_way_to_seconds_of_the_same_clock(tmp_path: Path) -> None:
    rows = [f"{text(second, '%F %R')},{second}" for second in days_of(30, 61)]
    assert log_of(tmp_path, "time,epoch", rows).columns["timestamp"]["from"] == "epoch"


def test_a_coarser_clock_does_not_take_the_place_of_a_finer_one(tmp_path: Path) -> None:
    rows = [f"{text(second, '%F %T')}.{at:03},{second}" for at, second in enumerate(days_of(30))]
    assert log_of(tmp_path, "time,epoch", rows).columns["timestamp"]["from"] == "time"


def test_another_time_does_not_take_the_place_of_a_naive_one(tmp_path: Path) -> None:
    rows = [f"{text(second, '%F %T')},{second + 17 * at}" for at, second in enumerate(days_of(30))]
    assert log_of(tmp_path, "time,epoch", rows).columns["timestamp"]["from"] == "time"


def test_one_clock_years_apart_is_a_doubt(tmp_path: Path) -> None:
    rows = [f"{text(second, '%F %T')},{second - 2557 * 86_400}" for second in days_of(30)]
    found = log_of(tmp_path, "trans_date_time,unix_time", rows)
    assert found.columns["timestamp"]["from"] == "unix_time"
    assert found.comment("trans_date_time tells the same times, but 2,557 days apart from unix_time")
    near = log_of(tmp_path, "made_time,unix_time", [f"{text(second, '%F %T')},{second}" for second in days_of(30)])
    assert not near.comment("tells the same times, but")


def test_a_time_of_day_alone_wants_its_day(tmp_path: Path) -> None:
    found = log_of(tmp_path, "time", ["10:04:04", "10:04:05", "10:04:06"])
    assert found.comment("time holds the time of day alone, and no column the day")


def test_a_time_of_day_is_no_item(tmp_path: Path) -> None:
    rows = [f"{text(second, '%F %T')},00:{at:02}:05,S{at % 9}" for at, second in enumerate(days_of(40))]
    lines = "".join(f"u{at % 7},{row}\n" for at, row in enumerate(rows))
    found = proposed(tmp_path, "log.csv", "user,time,bookmark,show\n" + lines)
    assert found.columns["item_id"]["from"] == "show"


def test_blanks_are_cut_off_before_a_cell_is_read() -> None:
    assert times_of(pl.Series("t", [" 5 ", "x"]), {"unit": "s"}).to_list() == [5_000_000, None]

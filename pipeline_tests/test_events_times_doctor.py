"""What the unit doctor says of a declaration that cannot be right, word for word, and that its advice works."""

import re
import tomllib
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.config import TimestampColumn
from pipeline.contracts import PipelineError
from pipeline.events.times.timestamps import convert_times
from pipeline.events.times.unit_doctor import UnitDoctor
from pipeline_tests.datasets import at, make_dataset, make_events_of, make_store, row, table

NOON = at("2020-01-01", "12:00:00")
OUTSIDE = "lie outside 1990-01-01..tomorrow"
FORMAT = "%Y-%m-%d %H:%M:%S"


def judged(*blocks: list[Any] | pl.Series, **declared: Any) -> str | None:
    """What the doctor says of a file; None when it lets it pass."""
    column = TimestampColumn.model_validate({"from": "ts", **declared})
    doctor = UnitDoctor(column, "log.csv", column.from_ or column.sql or "")
    for block in blocks:
        convert_times(block if isinstance(block, pl.Series) else pl.Series(block), column, doctor)
    try:
        doctor.judge()
    except PipelineError as error:
        return str(error)
    return None


def refusal(outside: int, parsed: int, example: object, rest: str, *, unit: str = "s", share: str = "") -> str:
    return (
        f"log.csv: column 'ts' is declared with unit = \"{unit}\", but {outside:,} of {parsed:,} values (for example {example}) "
        f"{OUTSIDE}{share}; {rest}"
    )


@pytest.mark.parametrize(
    ("number", "unit", "looks", "advice"),
    [
        (NOON * 1000, "s", "milliseconds", 'unit = "ms"'),
        (NOON, "ns", "seconds", 'unit = "s"'),
        (NOON // 10, "s", "seconds divided by 10", 'sql = "CAST(ts AS BIGINT) * 10", unit = "s"'),
        (NOON * 10, "s", "seconds times 10", 'sql = "CAST(ts AS BIGINT) * 100", unit = "ms"'),
        (NOON * 100, "ms", "seconds times 100", 'sql = "CAST(ts AS BIGINT) * 10", unit = "ms"'),
        (NOON * 10**4, "ms", "milliseconds times 10", 'sql = "CAST(ts AS BIGINT) * 100", unit = "us"'),
        (NOON * 10**5, "us", "milliseconds times 100", 'sql = "CAST(ts AS BIGINT) * 10", unit = "us"'),
    ],
)
def test_another_unit_or_a_power_of_ten(number: int, unit: str, looks: str, advice: str) -> None:
    said = refusal(200, 200, number, f"they look like {looks}: write {advice} in [columns] timestamp", unit=unit)
    assert judged([number] * 100, [number + 1] * 100, unit=unit) == said
    assert judged([str(number)] * 100, [f"{number}"] * 100, unit=unit) == said


@pytest.mark.parametrize(
    ("declared", "sql"),
    [
        ({"from": "event time"}, 'CAST("event time" AS BIGINT) * 10'),
        ({"from": "user"}, 'CAST("user" AS BIGINT) * 10'),  # a word of SQL
        ({"from": 'a"b'}, 'CAST("a""b" AS BIGINT) * 10'),
        ({"from": None, "sql": "a + b"}, "CAST(a + b AS BIGINT) * 10"),
    ],
)
def test_the_advice_names_any_column(declared: dict[str, str], sql: str) -> None:
    said = judged([NOON // 10], unit="s", **declared)
    assert said is not None
    written = tomllib.loads(said[said.index("sql = ") : said.index(", unit")])
    assert written == {"sql": sql}


def test_numbers_with_fractions_have_their_unit_told_too() -> None:
    assert judged(["1577880000123.5"], unit="s") == refusal(
        1, 1, "1577880000123.5", 'they look like milliseconds: write unit = "ms" in [columns] timestamp'
    )
    assert judged([1577880000123.5], unit="s") == refusal(
        1, 1, 1577880000123.5, 'they look like milliseconds: write unit = "ms" in [columns] timestamp'
    )


def test_wild_rows_are_no_matter_of_the_declaration() -> None:
    assert judged([NOON] * 100 + [0] * 5 + [5, 2**40, -1], unit="s") is None
    assert judged([], unit="s") is None
    assert judged([None], unit="s") is None


# --- two units ----------------------------------------------------------------------------------------------------


def two_units(seconds: int, milliseconds: int, zeros: int = 0) -> str | None:
    return judged([NOON] * seconds, [NOON * 1000] * milliseconds + [0] * zeros, unit="s")


def test_two_units_are_told_from_wild_rows() -> None:
    advice = (
        "these look like milliseconds, the others like seconds: split the file by unit, or write "
        'sql = "CASE WHEN CAST(ts AS BIGINT) < 100000000000 THEN CAST(ts AS BIGINT) * 1000 ELSE CAST(ts AS BIGINT) END", '
        'unit = "ms" in [columns] timestamp'
    )
    assert two_units(980, 20) == refusal(20, 1000, NOON * 1000, advice, share=" (2.0%)")
    assert two_units(989, 11) == refusal(11, 1000, NOON * 1000, advice, share=" (1.1%)")
    assert two_units(990, 10) is None  # no more than 1 %
    assert two_units(90, 10) == refusal(10, 100, NOON * 1000, advice, share=" (10.0%)")
    assert two_units(91, 9) is None  # fewer than 10
    assert two_units(800, 198, 2) == refusal(200, 1000, NOON * 1000, advice, share=" (20.0%)")
    assert two_units(800, 197, 3) is None  # more of them are something else
    assert two_units(400, 600) == refusal(600, 1000, NOON * 1000, advice, share=" (60.0%)")
    assert two_units(10, 990) == refusal(  # then nearly all of the file is of the other unit
        990, 1000, NOON * 1000, 'they look like milliseconds: write unit = "ms" in [columns] timestamp'
    )


UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@pytest.mark.parametrize("declared", UNITS)
@pytest.mark.parametrize("other", UNITS)
def test_the_expression_for_two_units_reads_both(tmp_path: Path, declared: str, other: str) -> None:
    if declared == other:
        return
    rows = [row(1, "a", NOON * UNITS[declared])] * 30 + [row(2, "b", (NOON + 1) * UNITS[other])] * 20
    columns: dict[str, Any] = {"timestamp": {"from": "time", "unit": declared}}
    dataset = make_dataset(tmp_path, days={"2020-01-01": rows}, columns=columns)
    with pytest.raises(PipelineError, match="these look like") as caught:
        make_events_of(dataset, make_store(dataset), "2020-01-01")
    advice = re.search(r'write (sql = ".*"), (unit = ".*") in \[columns\]', str(caught.value))
    assert advice is not None
    columns = {"timestamp": {"from": None, **tomllib.loads(f"{advice[1]}\n{advice[2]}")}}
    dataset = make_dataset(tmp_path, days={"2020-01-01": rows}, columns=columns, store={"root": "again"})
    store = make_store(dataset)
    make_events_of(dataset, store, "2020-01-01")
    stamps = table(store, "events", "2020-01-01")["timestamp"].unique().sort().to_list()
    assert stamps == [datetime(2020, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=n) for n in (0, 1)]


@pytest.mark.parametrize("number", [NOON // 10, NOON * 10, NOON * 100, NOON * 10**4, NOON * 10**5])
def test_the_expression_for_a_power_of_ten_reads_it(tmp_path: Path, number: int) -> None:
    dataset = make_dataset(tmp_path, days={"2020-01-01": [row(1, "a", number)]})
    with pytest.raises(PipelineError, match="look like") as caught:
        make_events_of(dataset, make_store(dataset), "2020-01-01")
    advice = re.search(r'write (sql = ".*"), (unit = ".*") in \[columns\]', str(caught.value))
    assert advice is not None
    columns = {"timestamp": {"from": None, **tomllib.loads(f"{advice[1]}\n{advice[2]}")}}
    dataset = make_dataset(tmp_path, columns=columns, store={"root": "again"})
    store = make_store(dataset)
    make_events_of(dataset, store, "2020-01-01")
    assert table(store, "events", "2020-01-01")["timestamp"].to_list() == [datetime(2020, 1, 1, 12, tzinfo=UTC)]


# --- times that are none ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "declared", "outside", "example", "rest"),
    [
        (
            [0, 0, 0, NOON], {"unit": "s"}, "3 of 4", "0",
            "all of these are 1970-01-01, like a time that was never set: name the column that holds the time in [columns] "
            'timestamp, or write null_values = ["0"] in [columns] timestamp if that means none',
        ),
        (
            ["1970-01-01 00:00:00"], {"format": FORMAT, "timezone": "UTC"}, "1 of 1", "1970-01-01T00:00:00+00:00",
            "all of these are 1970-01-01, like a time that was never set: name the column that holds the time in [columns] "
            'timestamp, or write null_values = ["1970-01-01 00:00:00"] in [columns] timestamp if that means none',
        ),
        (
            [date(1970, 1, 1)], {"timezone": "UTC"}, "1 of 1", "1970-01-01T00:00:00+00:00",
            "all of these are 1970-01-01, like a time that was never set: name the column that holds the time in [columns] "
            "timestamp, or write sql in [columns] timestamp that gives NULL instead if that means none",
        ),
        (
            [1, 0, -1], {"unit": "ms"}, "3 of 3", "1",
            "these are -1, 0 or 1, like flags: name the column that holds the time in [columns] timestamp",
        ),
        (
            ["9999-12-31 00:00:00"] * 2, {"format": FORMAT, "timezone": "Europe/London"}, "2 of 2", "9999-12-31T00:00:00+00:00",
            'all of these are equal and far in the future, like a placeholder for "never": write null_values = '
            '["9999-12-31 00:00:00"] in [columns] timestamp if that means none',
        ),
        (
            ["253402214400", "253402214400"], {"unit": "s"}, "2 of 2", "253402214400",
            'all of these are equal and far in the future, like a placeholder for "never": write null_values = '
            '["253402214400"] in [columns] timestamp if that means none',
        ),
        (
            ["2090-01-01 00:00:00", "2091-01-01 00:00:00"], {"format": FORMAT, "timezone": "UTC"}, "2 of 2", "2090-01-01T00:00:00+00:00",
            "these lie in the future, from 2090-01-01T00:00:00+00:00 to 2091-01-01T00:00:00+00:00: check [columns] timestamp, "
            "and the clock that wrote them",
        ),
        (
            [5, 10**17], {"unit": "s"}, "2 of 2", "5",
            "no other unit fits either: check [columns] timestamp against the log",
        ),
        (
            [10**18, -(10**18)], {"unit": "us"}, "2 of 2", "1000000000000000000",
            "no other unit fits either: check [columns] timestamp against the log",
        ),
    ],
)  # fmt: skip
def test_what_times_that_are_none_look_like(
    cells: list[Any], declared: dict[str, str], outside: str, example: str, rest: str
) -> None:
    said = [f'is declared with {key} = "{declared[key]}"' for key in ("unit", "format") if key in declared]
    assert judged(cells, **declared) == (
        f"log.csv: column 'ts' {(said or ['holds dates or times'])[0]}, but {outside} values (for example {example}) {OUTSIDE}; {rest}"
    )

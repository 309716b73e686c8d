"""The second reading of the raw bytes where files hold rows of several days: small and large logs, of every format."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.checks import Proof, ProofFailed, prove_again, publish, raw_sample
from pipeline.checks.raw import day_number, owners
from pipeline.config import Dataset
from pipeline.events import convert, make_events, reading
from pipeline.store import Manifest
from pipeline_tests.datasets import at, make_dataset, make_store, row, silent, write_csv

FIRST, SECOND, THIRD = (date(2020, 1, number) for number in (1, 2, 3))
NOON = at("2020-01-02", "12:00:00")
GARBAGE = "garbage"
SAMPLED = "sampled raw records read in plain Python = what was written"
COUNTED = "records whose day is this one by plain Python = rows in"
FORMATS = ("csv", "ndjson", "parquet")
SHARED = {"path": "raw/*.{}"}
NEIGHBOURS = {"path": "raw/{{date}}.{}", "neighbours": [1, 1]}
LAYOUTS = {"shared": SHARED, "neighbours": NEIGHBOURS}


@pytest.fixture(params=["small", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "large":
        monkeypatch.setattr(raw_sample, "EVERY_TIME", 0)
    return request.param


def rows_of(day: date, *, count: int = 60) -> list[dict[str, Any]]:
    """Rows around a day, every fifth wrong in some way; all cells are texts, so that every format can hold them."""
    rows = []
    for number in range(count):
        time: object = at(day.isoformat(), "02:00:00") + 1_500 * number  # the last ones lie in the next day
        time, action, user = str(time), "view", str(number % 7)
        wrong = number // 5 % 5 if number % 5 == 4 else None
        if wrong == 0:
            time = GARBAGE
        elif wrong == 1:
            action = "unknown"
        elif wrong == 2:
            user = "nobody"
        elif wrong == 3:
            time = None
        elif wrong == 4:
            time = "4102444800"  # 2100
        rows.append(row(user, f"i{number}", time, action, price="1.5"))
    return [*rows, rows[-2]]


def dataset_of(folder: Path, layout: str, extension: str, **overrides: Any) -> Dataset:
    source = {**LAYOUTS[layout], "path": LAYOUTS[layout]["path"].format(extension)}
    days = {day.isoformat(): rows_of(day) for day in (FIRST, SECOND, THIRD)}
    overrides = {"extra": {"price": {"from": "price", "type": "float64"}}, **overrides}
    return make_dataset(folder, days=days, extension=extension, source={**source, "missing_day": "empty"}, **overrides)


def prove(dataset: Dataset, day: date = SECOND) -> tuple[Manifest, Proof]:
    """Makes, proves and publishes a day of events."""
    store = make_store(dataset)
    events, rejected = make_events(day=day, dataset=dataset, store=store, run="run", report=silent)
    published = publish(events, dataset=dataset, features=(), store=store, companion=rejected)
    assert published is not None
    return published.manifest, published.proof


def failed(dataset: Dataset) -> list[str]:
    """The findings that keep a day from being published."""
    with pytest.raises(ProofFailed) as failure:
        prove(dataset)
    return [finding.name for finding in failure.value.proof.failed]


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("duplicates", ["keep", "drop"])
def test_a_right_day_is_proven(tmp_path: Path, size: str, layout: str, extension: str, duplicates: str) -> None:
    quality = {"max_rejected_share": 1.0, "duplicates": duplicates}
    dataset = dataset_of(tmp_path, layout, extension, quality=quality)
    for day in (FIRST, SECOND, THIRD):
        manifest, proof = prove(dataset, day)
        assert proof.figures["raw_columns_not_judged"] == []
        least = 20 if size == "small" or extension != "parquet" else 8
        assert least <= proof.figures["raw_records_proven"] <= manifest.counts["in"]
    assert manifest.counts["rejected"].keys() >= {"malformed_user_id", "unknown_action", "implausible_timestamp"}
    assert ("duplicate" in manifest.counts["rejected"]) == (duplicates == "drop")


SQL: dict[str, dict[str, Any]] = {
    "user_id": {"columns": {"user_id": {"sql": 'CAST("user" AS BIGINT)', "type": "int64", "from": None}}},
    "item_id": {"columns": {"item_id": {"sql": "UPPER(item)", "type": "string", "from": None}}},
    "timestamp": {"columns": {"timestamp": {"sql": "time", "unit": "s", "from": None}}},
    "action": {"columns": {"action": {"sql": "CASE WHEN item = 'i7' THEN 'odd' ELSE event END"}}},
    "price": {"extra": {"price": {"sql": "CAST(REPLACE(item, 'i3', 'x') AS DOUBLE)", "type": "float64"}}},
}


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("column", SQL)
def test_expressions_are_left_out_and_the_rest_is_compared(
    tmp_path: Path, size: str, layout: str, extension: str, column: str
) -> None:
    columns = {**make_columns(), **SQL[column].get("columns", {})}
    overrides = {**SQL[column], "columns": columns}
    manifest, proof = prove(dataset_of(tmp_path, layout, extension, **overrides))
    assert proof.figures["raw_columns_not_judged"] == [column]
    assert proof.figures["raw_records_proven"] >= (1 if size == "large" or column == "timestamp" else 20)
    assert manifest.rows or column == "price"


def make_columns() -> dict[str, Any]:
    return {
        "user_id": {"from": "user", "type": "int64"},
        "item_id": {"from": "item", "type": "string"},
        "timestamp": {"from": "time", "unit": "s"},
        "action": {"from": "event"},
    }


@pytest.fixture
def garbage_is_read_as_noon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    right = convert.convert_times

    def lenient(raw: pl.Series, *rest: Any) -> Any:
        return right(raw.replace(GARBAGE, str(NOON)), *rest)

    monkeypatch.setattr(convert, "convert_times", lenient)
    return


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.usefixtures("garbage_is_read_as_noon")
def test_an_accepted_row_that_plain_python_refuses_is_found(
    tmp_path: Path, size: str, layout: str, extension: str
) -> None:
    assert SAMPLED in failed(dataset_of(tmp_path, layout, extension))


def refuse_every_third(result: convert.ConvertedBlock) -> convert.ConvertedBlock:
    result.rank[::3] = convert.RANK["unknown_action"]
    result.culprit[::3] = 3
    return result


def double_the_prices(result: convert.ConvertedBlock) -> convert.ConvertedBlock:
    return replace(result, frame=result.frame.with_columns(pl.col("price") * 2))


def misread_users(result: convert.ConvertedBlock) -> convert.ConvertedBlock:
    return replace(result, frame=result.frame.with_columns(pl.col("user_id") + 100))


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("change", [refuse_every_third, double_the_prices, misread_users])
def test_wrong_values_and_refusals_are_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: str,
    layout: str,
    extension: str,
    change: Callable[[convert.ConvertedBlock], convert.ConvertedBlock],
) -> None:
    right = reading.convert_block
    monkeypatch.setattr(reading, "convert_block", lambda *given: change(right(*given)))
    assert SAMPLED in failed(dataset_of(tmp_path, layout, extension))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_a_judged_time_values_are_still_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str, layout: str
) -> None:
    right = reading.convert_block
    monkeypatch.setattr(reading, "convert_block", lambda *given: misread_users(right(*given)))
    columns = {**make_columns(), **SQL["timestamp"]["columns"]}
    assert SAMPLED in failed(dataset_of(tmp_path, layout, "csv", columns=columns))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_row_that_is_given_to_another_day_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    right = reading.convert_block

    def later(*given: Any) -> convert.ConvertedBlock:
        result = right(*given)
        moved = result.day[7] + (result.day[7] == day_number(SECOND))
        return replace(result, day=result.day.scatter([7], [moved]))

    monkeypatch.setattr(reading, "convert_block", later)
    assert COUNTED in failed(dataset_of(tmp_path, layout, "csv"))


def test_a_file_of_which_nothing_can_be_compared_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_sample, "EVERY_TIME", 0)
    monkeypatch.setattr(raw_sample, "compare_by_value", lambda *_: ([], []))
    found = failed(dataset_of(tmp_path, "shared", "csv"))
    assert found == ["raw files with rows of the day of which none was compared"]


def test_a_new_raw_file_is_noticed(tmp_path: Path) -> None:
    dataset = dataset_of(tmp_path, "shared", "csv")
    prove(dataset)
    store = make_store(dataset)
    assert prove_again("events", SECOND, dataset=dataset, features=(), store=store).passed
    write_csv(tmp_path / "raw" / "new.csv", rows_of(SECOND))
    (finding,) = prove_again("events", SECOND, dataset=dataset, features=(), store=store).failed
    assert (finding.name, finding.found) == ("raw files are those that were read", "raw/new.csv")


@pytest.mark.parametrize("path", ["raw/*.csv", "raw/{date}.csv"])
@pytest.mark.parametrize("late", ["cart", "unknown"])
def test_what_was_in_the_future_is_judged_by_the_day_on_which_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str, path: str, late: str
) -> None:
    """An instant that is past now was the future for the run that refused it, and still was so when it was proven."""
    limit = at("2020-01-04")
    monkeypatch.setattr(reading, "tomorrow_us", lambda: limit * 1_000_000)
    rows = [row(number, "a", at("2020-01-02") + number) for number in range(9)]
    rows.insert(4, row(99, "b", limit, late))
    dataset = make_dataset(tmp_path, days={SECOND.isoformat(): rows}, source={"path": path, "missing_day": "empty"})
    manifest, proof = prove(dataset)
    assert manifest.counts["latest_us"] == limit * 1_000_000
    assert manifest.counts["rejected"] == {"implausible_timestamp": 1}
    assert proof.figures["raw_records_proven"] == 10
    assert prove_again("events", SECOND, dataset=dataset, features=(), store=make_store(dataset)).passed


def test_the_owner_of_a_record(tmp_path: Path) -> None:
    day_us = 86_400_000_000
    first = 18_262  # 2020-01-01
    times = [None, (first + 2) * day_us, None, (first + 1) * day_us - 1, None]
    shared = make_dataset(tmp_path, source={"path": "raw/*.csv"})
    assert owners(times, shared, file_day=None) == [first + 2, first + 2, first + 2, first, first]
    assert owners([None, None], shared, file_day=None) == [first, first]
    dated = make_dataset(tmp_path, source={"neighbours": [1, 0]})
    assert owners(times, dated, file_day=SECOND) == [first + 1, first + 2, first + 1, first + 1, first + 1]


# --- several records on one line ---------------------------------------------------------------------------------

OF_ELEMENTS = {
    "user_id": {"from": "user", "type": "int64"},
    "item_id": {"from": "events.item", "type": "string"},
    "timestamp": {"from": "events.time", "unit": "s"},
    "action": {"from": "events.event"},
}
EXPLODE: dict[str, dict[str, Any]] = {
    "ndjson": {"column": "events"},
    "parquet": {"column": "events"},
    "csv": {
        "column": "events",
        "separator": ";",
        "pattern": "(?P<item>[^@]*)@(?P<time>[^@]*)@(?P<event>[^@]*)@(?P<price>[^@]*)",
    },
}


def sessions_of(day: date, extension: str) -> list[dict[str, Any]]:
    """The rows of a day, five to a line; and two lines without elements, of which CSV takes one for empty."""
    rows = rows_of(day)
    lines: list[dict[str, Any]] = []
    for first in range(0, len(rows), 5):
        events = [{name: cell for name, cell in one.items() if name != "user"} for one in rows[first : first + 5]]
        text = ";".join("@".join(str(cell or "") for cell in one.values()) for one in events)
        user = None if first == 20 else str(first)
        lines.append({"user": user, "events": text if extension == "csv" else [*events, events[0]]})
    broken = {"csv": "no@pattern", "ndjson": "no list", "parquet": None}[extension]
    return [*lines, {"user": "7", "events": broken}, {"user": "7", "events": "" if extension == "csv" else []}]


def sessions(folder: Path, extension: str, **overrides: Any) -> Dataset:
    frames = {day.isoformat(): sessions_of(day, extension) for day in (FIRST, SECOND, THIRD)}
    source = {"path": f"raw/*.{extension}", "explode": EXPLODE[extension]}
    extra = {"price": {"from": "events.price", "type": "float64"}}
    return make_dataset(
        folder, days=frames, extension=extension, source=source, columns=OF_ELEMENTS, extra=extra, **overrides
    )


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("duplicates", ["keep", "drop"])
def test_right_days_of_exploded_lists_are_proven(tmp_path: Path, size: str, extension: str, duplicates: str) -> None:
    dataset = sessions(tmp_path, extension, quality={"max_rejected_share": 1.0, "duplicates": duplicates})
    for day in (FIRST, SECOND, THIRD):
        manifest, proof = prove(dataset, day)
        least = 20 if size == "small" or extension != "parquet" else 8
        assert least <= proof.figures["raw_records_proven"] <= manifest.counts["in"]
    rejected = {"malformed_line", "missing_user_id", "unknown_action", "implausible_timestamp", "missing_timestamp"}
    assert manifest.counts["rejected"].keys() >= rejected
    assert manifest.counts["records_without_elements"] == 3


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("change", [refuse_every_third, double_the_prices, misread_users])
def test_wrong_values_and_refusals_of_exploded_lists_are_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: str,
    extension: str,
    change: Callable[[convert.ConvertedBlock], convert.ConvertedBlock],
) -> None:
    right = reading.convert_block
    monkeypatch.setattr(reading, "convert_block", lambda *given: change(right(*given)))
    assert SAMPLED in failed(sessions(tmp_path, extension))


def test_one_refused_record_of_a_line_does_not_prove_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    """On one line stand a good record and one without a time; taking the good one for the other kind is found."""
    noon = [{"item": "a", "time": NOON, "event": "view"}, {"item": "b", "time": None, "event": "view"}]
    lines = [{"user": user, "events": noon} for user in range(30)]
    dataset = make_dataset(
        tmp_path, days={"all": lines}, extension="ndjson",
        source={"path": "raw/*.ndjson", "explode": {"column": "events"}}, columns=OF_ELEMENTS,
    )  # fmt: skip
    manifest, _ = prove(dataset)
    assert (manifest.rows, manifest.counts["rejected"]) == (30, {"missing_timestamp": 30})
    right = reading.convert_block

    def both(*given: Any) -> convert.ConvertedBlock:
        result = right(*given)
        result.rank[::2] = convert.RANK["missing_timestamp"]
        result.culprit[::2] = 2
        return result

    monkeypatch.setattr(reading, "convert_block", both)
    assert SAMPLED in failed(dataset)


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_of_equal_records_each_has_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str) -> None:
    """Ten equal records of a large log, of which nine are taken for ten of another user."""
    monkeypatch.setattr(raw_sample, "EVERY_TIME", 0)
    rows = [row("1", "a", str(NOON), "view") for _ in range(10)]
    source = {"path": f"raw/*.{extension}"}
    dataset = make_dataset(tmp_path, days={"all": rows}, extension=extension, source=source)
    prove(dataset)
    right = reading.convert_block

    def another(*given: Any) -> convert.ConvertedBlock:
        result = right(*given)
        users = pl.Series("user_id", [1] * 9 + [2], dtype=pl.Int64)
        return replace(result, frame=result.frame.with_columns(users))

    monkeypatch.setattr(reading, "convert_block", another)
    assert SAMPLED in failed(dataset)


def test_equal_records_of_a_line_are_refused_for_the_same_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    without = {"item": "b", "time": None, "event": "view"}
    lines = [{"user": 1, "events": [{"item": "a", "time": NOON, "event": "view"}, without, without]}] * 9
    source = {"path": "raw/*.ndjson", "explode": {"column": "events"}}
    dataset = make_dataset(tmp_path, days={"all": lines}, extension="ndjson", source=source, columns=OF_ELEMENTS)
    prove(dataset)
    right = reading.convert_block

    def one_otherwise(*given: Any) -> convert.ConvertedBlock:
        result = right(*given)
        result.rank[1::3] = convert.RANK["unknown_action"]
        return result

    monkeypatch.setattr(reading, "convert_block", one_otherwise)
    assert SAMPLED in failed(dataset)


def test_equal_records_of_a_line_may_belong_to_two_days(tmp_path: Path, size: str) -> None:
    """Both have no time, and each goes with the one before it."""
    without = {"item": "b", "time": None, "event": "view"}
    timed = [{"item": "a", "time": NOON + late, "event": "view"} for late in (0, 86_400)]
    lines = [{"user": 1, "events": [timed[0], without, timed[1], without]}] * 9
    source = {"path": "raw/*.ndjson", "explode": {"column": "events"}}
    dataset = make_dataset(tmp_path, days={"all": lines}, extension="ndjson", source=source, columns=OF_ELEMENTS)
    for day in (SECOND, THIRD):
        manifest, _ = prove(dataset, day)
        assert (manifest.rows, manifest.counts["rejected"]) == (9, {"missing_timestamp": 9})

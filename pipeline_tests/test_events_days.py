"""Which day a row belongs to, its number in that day, and that no row vanishes on the way."""

import gzip
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.events import REASONS, make_events
from pipeline.store import Store
from pipeline_tests.datasets import (
    at,
    make_dataset,
    make_events_of,
    make_store,
    row,
    silent,
    table,
    write_csv,
    write_parquet,
)

FIRST, SECOND, THIRD, FOURTH, FIFTH = (f"2020-01-0{number}" for number in range(1, 6))
ALL_DAYS = (FIRST, SECOND, THIRD, FOURTH, FIFTH)


def noon(day: str) -> int:
    return at(day, "12:00:00")


def counts_of(dataset: Dataset, store: Store, day: str) -> dict[str, Any]:
    """Makes a day and gives its counts, after the books are balanced."""
    events, rejected = make_events_of(dataset, store, day)
    counts = dict(events.counts)
    assert counts["in"] == events.rows + rejected.rows
    assert counts["read"] == counts["in"] + counts["other_day"] + counts["outside_partitions"]
    assert counts["read"] == sum(file["rows"] for file in events.raw_files)
    assert sum(counts["rejected"].values()) == rejected.rows
    assert counts["accepted"] == events.rows == sum(counts["by_action"].values())
    both = [*table(store, "events", day)["row_id"], *table(store, "rejected_events", day)["row_id"]]
    assert sorted(both) == list(range(counts["in"])), "row_id counts the rows of the day, refused ones included"
    assert table(store, "rejected_events", day)["row_id"].is_sorted()
    return counts


def refusal(dataset: Dataset, day: str, *, run: str = "run") -> str:
    """The sentence of a day that cannot be made; nothing of it is left in the store."""
    store = make_store(dataset)
    with pytest.raises(PipelineError) as caught:
        make_events(day=date.fromisoformat(day), dataset=dataset, store=store, run=run, report=silent)
    assert "\n" not in str(caught.value)
    left = [path for path in store.root.rglob("*.parquet") if "_failed" not in path.parts]
    assert left == []
    assert not list(store.root.glob("_scratch/*"))
    assert store.manifest("events", date.fromisoformat(day)) is None
    return str(caught.value)


# --- one file a day ----------------------------------------------------------------------------------------------


def test_a_day_in_full(tmp_path: Path) -> None:
    rows = [
        row(2, "b", noon(FIRST)),
        row(None, "x", noon(FIRST)),
        row(1, "a", noon(FIRST) + 5, "cart"),
        row(2, "a", noon(FIRST)),
    ]
    dataset = make_dataset(tmp_path, days={FIRST: rows})
    store = make_store(dataset)
    counts = counts_of(dataset, store, FIRST)
    us = noon(FIRST) * 1_000_000
    events = table(store, "events", FIRST)
    assert dict(events.schema) == {
        "row_id": pl.Int64, "user_id": pl.Int64, "item_id": pl.String, "timestamp": pl.Datetime("us", "UTC"), "action": pl.String,
    }  # fmt: skip
    assert events.with_columns(pl.col("timestamp").to_physical()).rows() == [
        (2, 1, "a", us + 5_000_000, "cart"), (0, 2, "b", us, "view"), (3, 2, "a", us, "view"),
    ]  # fmt: skip
    rejected = table(store, "rejected_events", FIRST)
    assert rejected.rows() == [(1, "raw/2020-01-01.csv", 3, "missing_user_id", "user", f",x,{noon(FIRST)},view")]
    assert counts == {
        "read": 4, "in": 4, "other_day": 0, "outside_partitions": 0, "accepted": 3, "rejected": {"missing_user_id": 1},
        "ties": 2, "duplicates": 0, "by_action": {"view": 2, "cart": 1},
    }  # fmt: skip


def test_rows_are_numbered_over_files_in_path_order(tmp_path: Path) -> None:
    for name, users in {"b": [3], "B": [1, 1], "a": [None, 2]}.items():
        write_csv(tmp_path / "raw" / FIRST / f"{name}.csv", [row(user, name, noon(FIRST)) for user in users])
    dataset = make_dataset(tmp_path, source={"path": "raw/{date}/*.csv"})
    store = make_store(dataset)
    counts_of(dataset, store, FIRST)
    assert table(store, "events", FIRST).select("row_id", "user_id", "item_id").rows() == [
        (0, 1, "B"), (1, 1, "B"), (3, 2, "a"), (4, 3, "b"),
    ]  # fmt: skip
    assert table(store, "rejected_events", FIRST).select("row_id", "file", "line").rows() == [
        (2, "raw/2020-01-01/a.csv", 2)
    ]


def test_a_row_beyond_its_file_is_refused_in_the_day_of_the_file(tmp_path: Path) -> None:
    midnight = at(SECOND)
    rows = [
        row(1, "a", midnight),
        row(1, "b", midnight - 1),
        row(1, "c", midnight + 86_399),
        row(1, "d", midnight + 86_400),
    ]
    dataset = make_dataset(tmp_path, days={SECOND: rows})
    store = make_store(dataset)
    assert counts_of(dataset, store, SECOND)["rejected"] == {"outside_day": 2}
    assert table(store, "events", SECOND)["item_id"].to_list() == ["a", "c"]
    assert table(store, "rejected_events", SECOND)["column"].to_list() == ["time", "time"]


# --- neighbours --------------------------------------------------------------------------------------------------


def test_neighbours_give_every_row_to_its_day_once(tmp_path: Path) -> None:
    # Files cut at local midnight of a zone west of Greenwich: the file of a day also holds the first hours of the next.
    days = {
        FIRST: [row(1, "a", noon(FIRST)), row(1, "b", at(SECOND, "03:00:00")), row(None, "c", at(SECOND, "04:00:00"))],
        SECOND: [row(1, "d", noon(SECOND)), row(1, "e", None), row(1, "f", at(THIRD, "03:00:00"))],
        THIRD: [row(1, "g", noon(THIRD)), row(1, "h", noon(FIRST)), row(1, "i", at(FIFTH))],
    }
    dataset = make_dataset(tmp_path, days=days, source={"neighbours": [1, 0], "missing_day": "empty"})
    store = make_store(dataset)
    found = {day: counts_of(dataset, store, day) for day in ALL_DAYS}
    items = {day: table(store, "events", day)["item_id"].to_list() for day in ALL_DAYS}
    assert items == {FIRST: ["a"], SECOND: ["b", "d"], THIRD: ["f", "g"], FOURTH: [], FIFTH: []}
    refused = {day: table(store, "rejected_events", day).select("row_id", "reason", "raw").rows() for day in ALL_DAYS}
    assert refused == {
        FIRST: [],
        SECOND: [(1, "missing_user_id", f",c,{at(SECOND, '04:00:00')},view"), (3, "missing_timestamp", "1,e,,view")],
        THIRD: [
            (2, "outside_day", f"1,h,{noon(FIRST)},view"),
            (3, "outside_day", f"1,i,{at(FIFTH)},view"),
        ],
        FOURTH: [],
        FIFTH: [],
    }
    assert sum(counts["in"] for counts in found.values()) == 9
    assert {day: (c["read"], c["in"], c["other_day"]) for day, c in found.items()} == {
        FIRST: (3, 1, 2), SECOND: (6, 4, 2), THIRD: (6, 4, 2), FOURTH: (3, 0, 3), FIFTH: (0, 0, 0),
    }  # fmt: skip


def test_rows_of_neighbours_before_the_first_day_are_counted_as_outside(tmp_path: Path) -> None:
    days = {
        "2019-12-31": [row(1, "a", noon("2019-12-31")), row(1, "b", at(FIRST, "01:00:00"))],
        FIRST: [row(1, "c", noon(FIRST))],
    }
    dataset = make_dataset(tmp_path, days=days, source={"neighbours": [1, 0]})
    store = make_store(dataset)
    counts = counts_of(dataset, store, FIRST)
    assert (counts["in"], counts["other_day"], counts["outside_partitions"]) == (2, 0, 1)
    assert table(store, "events", FIRST)["item_id"].to_list() == ["b", "c"]


# --- files for all days ------------------------------------------------------------------------------------------


def undated(folder: Path, files: dict[str, Any], **overrides: Any) -> tuple[Dataset, Store]:
    overrides.setdefault("source", {"path": "raw/*.csv"})
    dataset = make_dataset(folder, days=files, **overrides)
    return dataset, make_store(dataset)


def test_a_row_without_usable_time_belongs_to_the_nearest_row_before_it(tmp_path: Path) -> None:
    rows = [
        row(1, "a", None),  # none before: the nearest after, which is of the second
        row(1, "b", "x"),
        row(1, "c", noon(SECOND)),
        row(1, "d", 5),  # implausible, so of the second
        row(1, "e", noon(FIRST)),
        row(1, "f", None),
        "malformed",
        row(1, "g", noon(THIRD)),
    ]
    text = "user,item,time,event\n" + "".join(
        one + "\n" if isinstance(one, str) else ",".join("" if v is None else str(v) for v in one.values()) + "\n"
        for one in rows
    )
    dataset, store = undated(tmp_path, {"all": text})
    for day in ALL_DAYS:
        counts_of(dataset, store, day)
    accepted = {day: table(store, "events", day).select("row_id", "item_id").rows() for day in ALL_DAYS}
    assert accepted == {FIRST: [(0, "e")], SECOND: [(2, "c")], THIRD: [(0, "g")], FOURTH: [], FIFTH: []}
    refused = {day: table(store, "rejected_events", day).select("row_id", "reason", "line").rows() for day in ALL_DAYS}
    assert refused[FIRST] == [(1, "missing_timestamp", 7), (2, "malformed_line", 8)]
    assert refused[SECOND] == [
        (0, "missing_timestamp", 2),
        (1, "malformed_timestamp", 3),
        (3, "implausible_timestamp", 5),
    ]
    assert (refused[THIRD], refused[FOURTH], refused[FIFTH]) == ([], [], [])


def test_a_file_without_any_usable_time_belongs_to_the_first_day(tmp_path: Path) -> None:
    dataset, store = undated(
        tmp_path, {"a": [row(1, "a", None), row(1, "b", "x")], "b": [row(1, "c", noon(SECOND)), row(1, "d", None)]}
    )
    assert [counts_of(dataset, store, day)["in"] for day in ALL_DAYS] == [2, 2, 0, 0, 0]


def test_rows_outside_the_partitions_are_counted_by_every_day_that_met_them(tmp_path: Path) -> None:
    rows = [
        row(1, "a", noon("2019-12-31")),
        row(1, "b", None),
        row(1, "c", noon(SECOND)),
        row(1, "d", noon("2020-01-06")),
    ]
    dataset, store = undated(tmp_path, {"all": rows})
    found = {day: counts_of(dataset, store, day) for day in ALL_DAYS}
    assert [found[day]["in"] for day in ALL_DAYS] == [0, 1, 0, 0, 0]
    assert {counts["outside_partitions"] for counts in found.values()} == {3}
    assert [found[day]["other_day"] for day in ALL_DAYS] == [1, 0, 1, 1, 1]


CELL_TIMES = st.one_of(
    st.none(),
    st.just("x"),
    st.just(7),
    st.integers(at("2019-12-30"), at("2020-01-08") - 1),
)
FILES = st.lists(
    st.lists(
        st.tuples(st.sampled_from([1, 2, None]), CELL_TIMES, st.sampled_from(["view", "cart", "buy"])), max_size=12
    ),
    min_size=1,
    max_size=3,
)


def in_blocks_of(block_bytes: int) -> Any:
    """Files are read in blocks of about so many bytes, which otherwise takes large files."""
    return mock.patch("pipeline.events.reading.usual_block_bytes", return_value=block_bytes)


@pytest.mark.parametrize("block_bytes", [1, 30, 100])
def test_a_row_without_usable_time_looks_over_the_border_of_a_block(tmp_path: Path, block_bytes: int) -> None:
    times = [None, None, noon(SECOND), noon(FIRST), None, None, None, noon(THIRD), None]
    rows = [row(1, str(number), time) for number, time in enumerate(times)]
    dataset, store = undated(tmp_path, {"all": rows})
    with in_blocks_of(block_bytes):
        assert [counts_of(dataset, store, day)["in"] for day in ALL_DAYS] == [4, 3, 2, 0, 0]
    assert table(store, "rejected_events", FIRST)["line"].to_list() == [6, 7, 8]


@pytest.mark.parametrize("block_bytes", [1, 50, 200])
def test_a_day_is_the_same_whatever_the_blocks(tmp_path: Path, block_bytes: int) -> None:
    dataset = make_dataset(tmp_path, days={FIRST: TWICE}, quality={"duplicates": "drop"})
    store = make_store(dataset)
    whole = make_events_of(dataset, store, FIRST)
    with in_blocks_of(block_bytes):
        cut = make_events_of(dataset, store, FIRST, run="cut")
    assert [one.version() for one in cut] == [one.version() for one in whole]
    assert [one.files[0].sha256 for one in cut] == [one.files[0].sha256 for one in whole]


def slow_day(times: list[Any], position: int, start: date) -> date:
    """The day of a row of a file for all days, by looking around."""

    def usable(cell: Any) -> bool:
        return isinstance(cell, int) and cell > 631_152_000

    around = [*range(position, -1, -1), *range(position + 1, len(times))]
    for other in around:
        if usable(times[other]):
            return datetime.fromtimestamp(times[other], UTC).date()
    return start


@settings(max_examples=10)
@given(FILES, st.sampled_from([150, 10**6]))
def test_no_row_of_files_for_all_days_vanishes(files: list[list[tuple[Any, ...]]], block_bytes: int) -> None:
    # The unit doctor has its own tests; here 30 good rows of the fifth keep it quiet.
    quiet = [(9, at(FIFTH, "23:00:00"), "view")] * 30
    files = [[*file, *quiet] for file in files]
    written = {
        f"f{number}": [row(user, f"{number}-{line}", time, action) for line, (user, time, action) in enumerate(file)]
        for number, file in enumerate(files)
    }
    expected: Counter[Any] = Counter()
    for file in files:
        times = [time for _, time, _ in file]
        expected.update(slow_day(times, position, date(2020, 1, 1)) for position in range(len(file)))
    with TemporaryDirectory() as folder, in_blocks_of(block_bytes):
        dataset, store = undated(Path(folder), written)
        found = {day: counts_of(dataset, store, day) for day in ALL_DAYS}
    inside = {day: expected.pop(date.fromisoformat(day), 0) for day in ALL_DAYS}
    assert {day: counts["in"] for day, counts in found.items()} == inside
    assert {counts["outside_partitions"] for counts in found.values()} == {sum(expected.values())}


@settings(max_examples=10)
@given(
    st.lists(st.lists(st.tuples(st.sampled_from([1, None]), CELL_TIMES), max_size=6), min_size=7, max_size=7),
    st.integers(0, 2),
    st.integers(0, 2),
)
def test_no_row_of_dated_files_vanishes(files: list[list[tuple[Any, Any]]], before: int, after: int) -> None:
    days = [date(2019, 12, 31) + timedelta(days=number) for number in range(7)]
    expected: Counter[Any] = Counter()
    written = {}
    for day, file in zip(days, files, strict=True):
        full = [*file, *[(9, at(day.isoformat(), "23:00:00"))] * 15]
        written[day.isoformat()] = [row(user, str(line), time) for line, (user, time) in enumerate(full)]
        for _, time in full:
            own = datetime.fromtimestamp(time, UTC).date() if isinstance(time, int) and time > 631_152_000 else day
            expected[own if day - timedelta(days=after) <= own <= day + timedelta(days=before) else day] += 1
    with TemporaryDirectory() as folder:
        dataset = make_dataset(
            Path(folder), days=written, source={"neighbours": [before, after], "missing_day": "empty"}
        )
        store = make_store(dataset)
        # Files beyond 12-31 and 01-06 are not there, so the days in between see all that is theirs.
        found = {day: counts_of(dataset, store, day) for day in ALL_DAYS}
    assert {day: counts["in"] for day, counts in found.items()} == {
        day: expected[date.fromisoformat(day)] for day in ALL_DAYS
    }


# --- days without rows -------------------------------------------------------------------------------------------


def test_a_skipped_day_has_no_rows_whatever_its_file_holds(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, days={FIRST: "garbage"}, partitions={"skip": [FIRST, SECOND]})
    store = make_store(dataset)
    for day in (FIRST, SECOND):
        assert counts_of(dataset, store, day)["read"] == 0
        manifest = store.manifest("events", date.fromisoformat(day))
        assert manifest is not None
        assert (manifest.rows, list(manifest.files), manifest.config["skipped"]) == (0, [], True)
        assert list(manifest.inputs) == ["rejected_events"]


def test_a_file_with_only_a_header_is_a_day_without_rows(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, days={FIRST: []})
    store = make_store(dataset)
    assert counts_of(dataset, store, FIRST)["in"] == 0
    assert table(store, "events", FIRST).columns == ["row_id", "user_id", "item_id", "timestamp", "action"]


def test_a_missing_day_fails_unless_declared_empty(tmp_path: Path) -> None:
    days = {SECOND: [row(1, "a", noon(SECOND))]}
    assert refusal(make_dataset(tmp_path, days=days), FIRST) == (
        f"events of 2020-01-01: no file matches raw/{{date}}.csv in {tmp_path}; bring the file, or declare the day in "
        '[partitions] skip, or every missing day with [source] missing_day = "empty"'
    )
    dataset = make_dataset(tmp_path, source={"missing_day": "empty"})
    assert counts_of(dataset, make_store(dataset), FIRST)["in"] == 0


def test_missing_day_is_about_the_own_file_and_not_the_neighbours(tmp_path: Path) -> None:
    days = {FIRST: [row(1, "a", at(SECOND))]}
    neighbours = {"neighbours": [1, 1]}
    assert "no file matches" in refusal(make_dataset(tmp_path, days=days, source=neighbours), SECOND)
    dataset = make_dataset(tmp_path, source=neighbours | {"missing_day": "empty"})
    assert counts_of(dataset, make_store(dataset), SECOND)["in"] == 1


def test_a_day_waits_for_its_ready_file(tmp_path: Path) -> None:
    days = {FIRST: [row(1, "a", noon(FIRST))]}
    dataset = make_dataset(tmp_path, days=days, source={"ready": "raw/{date}/_SUCCESS"})
    assert (
        refusal(dataset, FIRST)
        == "events of 2020-01-01: raw/{date}/_SUCCESS is not there yet; run the day again when it is"
    )
    (tmp_path / "raw" / FIRST).mkdir()
    (tmp_path / "raw" / FIRST / "_SUCCESS").touch()
    assert counts_of(dataset, make_store(dataset), FIRST)["in"] == 1


# --- duplicates --------------------------------------------------------------------------------------------------

TWICE = [
    row(1, "a", noon(FIRST), more="p"),
    row(1, "a", noon(FIRST), more="q"),  # another raw cell: no duplicate, though nothing declared differs
    row(1, "a", noon(FIRST), more="p"),
    row(2, "a", noon(FIRST), more="p"),
    row(None, "a", noon(FIRST), more="p"),
    row(None, "a", noon(FIRST), more="p"),  # refused already: no duplicate
    row(1, "a", noon(FIRST), more="p"),
]


def test_duplicates_are_counted_and_kept(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, days={FIRST: TWICE})
    store = make_store(dataset)
    counts = counts_of(dataset, store, FIRST)
    assert (counts["duplicates"], counts["ties"], counts["accepted"]) == (2, 4, 5)
    assert table(store, "events", FIRST)["row_id"].to_list() == [0, 1, 2, 6, 3]


def test_duplicates_are_dropped_but_the_first(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, days={FIRST: TWICE}, quality={"duplicates": "drop", "max_rejected_share": 0.3})
    store = make_store(dataset)
    counts = counts_of(dataset, store, FIRST)  # 2 of 7 are 0.286: the duplicates do not count towards the share
    assert (counts["duplicates"], counts["accepted"], counts["rejected"]) == (
        2,
        3,
        {"missing_user_id": 2, "duplicate": 2},
    )
    assert table(store, "events", FIRST)["row_id"].to_list() == [0, 1, 3]
    duplicate = f"1,a,{noon(FIRST)},view,p"
    assert table(store, "rejected_events", FIRST).rows() == [
        (2, "raw/2020-01-01.csv", 4, "duplicate", None, duplicate),
        (4, "raw/2020-01-01.csv", 6, "missing_user_id", "user", f",a,{noon(FIRST)},view,p"),
        (5, "raw/2020-01-01.csv", 7, "missing_user_id", "user", f",a,{noon(FIRST)},view,p"),
        (6, "raw/2020-01-01.csv", 8, "duplicate", None, duplicate),
    ]


@pytest.mark.parametrize("extension", ["ndjson", "parquet"])
def test_duplicates_in_other_formats_and_across_files(tmp_path: Path, extension: str) -> None:
    one, other = (
        row(1, "a", noon(FIRST), nested=[1, {"x": None}] if extension == "ndjson" else [1, 2]),
        row(1, "a", noon(FIRST), nested=[1, 3]),
    )
    dataset = make_dataset(
        tmp_path, days={FIRST: [one, other, one], f"{FIRST}-b": [one]}, extension=extension,
        source={"path": f"raw/{{date}}*.{extension}"}, quality={"duplicates": "drop"},
    )  # fmt: skip
    store = make_store(dataset)
    assert counts_of(dataset, store, FIRST)["duplicates"] == 2
    # The bytes of a path decide: "-b." comes before ".".
    assert table(store, "events", FIRST)["row_id"].sort().to_list() == [0, 2]
    assert table(store, "rejected_events", FIRST)["row_id"].to_list() == [1, 3]


def test_duplicates_across_files_with_columns_in_another_order(tmp_path: Path) -> None:
    first = f"user,item,time,event\n1,a,{noon(FIRST)},view\n"
    second = f"event,item,time,user\nview,a,{noon(FIRST)},1\n"
    dataset = make_dataset(
        tmp_path, days={f"{FIRST}-a": first, f"{FIRST}-b": second}, source={"path": "raw/{date}*.csv"}, quality={"duplicates": "drop"}
    )  # fmt: skip
    assert counts_of(dataset, make_store(dataset), FIRST)["duplicates"] == 1


# --- too many refused --------------------------------------------------------------------------------------------

MIXED = [row(1, "a", noon(FIRST))] * 6 + [row(None, "a", noon(FIRST))] * 3 + [row(1, "a", noon(FIRST), "buy")]


def test_a_day_above_the_share_publishes_nothing_and_leaves_its_refused_rows(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, days={FIRST: MIXED}, quality={"max_rejected_share": 0.39})
    sentence = refusal(dataset, FIRST, run="run/../../7")
    path = dataset.root / "_failed" / "run7" / "rejected_events" / "day=2020-01-01" / "run7-0.parquet"
    assert sentence == (
        "events of 2020-01-01: 4 of 10 rows (40.0%) are refused, more than max_rejected_share = 0.39: missing_user_id 3, "
        f"unknown_action 1 (column user, for example ',a,{noon(FIRST)},view'); they lie in {path}: mend the log or the "
        "dataset file, or raise [quality] max_rejected_share"
    )
    left = pl.read_parquet(path)
    assert left.columns == ["row_id", "file", "line", "reason", "column", "raw"]
    assert left.select("row_id", "line", "reason").rows() == [
        (6, 8, "missing_user_id"), (7, 9, "missing_user_id"), (8, 10, "missing_user_id"), (9, 11, "unknown_action"),
    ]  # fmt: skip


def test_exactly_the_share_is_allowed(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, days={FIRST: MIXED}, quality={"max_rejected_share": 0.4})
    assert counts_of(dataset, make_store(dataset), FIRST)["accepted"] == 6


def test_a_former_version_stays_when_the_day_fails(tmp_path: Path) -> None:
    make_dataset(tmp_path, days={FIRST: MIXED[:6]})
    dataset = make_dataset(tmp_path, quality={"max_rejected_share": 0.1})
    store = make_store(dataset)
    make_events_of(dataset, store, FIRST)
    before = store.manifest("events", date.fromisoformat(FIRST))
    write_csv(tmp_path / "raw" / f"{FIRST}.csv", MIXED)
    with pytest.raises(PipelineError):
        make_events_of(dataset, store, FIRST)
    assert store.manifest("events", date.fromisoformat(FIRST)) == before
    assert table(store, "events", FIRST).height == 6


# --- the unit doctor ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "declared", "looks", "fix"),
    [
        (1_000, "s", "milliseconds", "ms"),
        (1, "ms", "seconds", "s"),
        (1_000_000, "ms", "microseconds", "us"),
        (1_000_000_000, "us", "nanoseconds", "ns"),
        (1_000_000_000, "s", "nanoseconds", "ns"),
    ],
)
def test_a_wrong_unit_is_told(tmp_path: Path, factor: int, declared: str, looks: str, fix: str) -> None:
    rows = [row(1, "a", noon(FIRST) * factor)] * 99 + [row(1, "a", 0)]
    dataset = make_dataset(tmp_path, days={FIRST: rows}, columns={"timestamp": {"from": "time", "unit": declared}})
    assert refusal(dataset, FIRST) == (
        f"raw/2020-01-01.csv: column 'time' is declared with unit = \"{declared}\", but 100 of 100 values (for example "
        f'{noon(FIRST) * factor}) lie outside 1990-01-01..tomorrow; they look like {looks}: write unit = "{fix}" in [columns] timestamp'
    )


def test_times_that_no_unit_explains(tmp_path: Path) -> None:
    rows = [row(1, "a", noon(FIRST))] * 2 + [row(1, "a", 5)] * 3
    assert refusal(make_dataset(tmp_path, days={FIRST: rows}), FIRST) == (
        "raw/2020-01-01.csv: column 'time' is declared with unit = \"s\", but 3 of 5 values (for example 5) lie outside "
        "1990-01-01..tomorrow; no other unit fits either: check [columns] timestamp against the log"
    )


def test_half_of_the_times_outside_is_still_a_matter_of_rows(tmp_path: Path) -> None:
    rows = [row(1, "a", noon(FIRST))] * 3 + [row(1, "a", 5)] * 3 + [row(1, "a", None), row(1, "a", "x")]
    dataset = make_dataset(tmp_path, days={FIRST: rows})
    assert counts_of(dataset, make_store(dataset), FIRST)["rejected"] == {
        "missing_timestamp": 1, "malformed_timestamp": 1, "implausible_timestamp": 3,
    }  # fmt: skip


def test_text_in_another_century_is_told_as_well(tmp_path: Path) -> None:
    dataset = make_dataset(
        tmp_path, days={FIRST: [row(1, "a", "0020-01-01")]},
        columns={"timestamp": {"from": "time", "format": "%Y-%m-%d", "timezone": "UTC"}},
    )  # fmt: skip
    assert refusal(dataset, FIRST) == (
        "raw/2020-01-01.csv: column 'time' is declared with format = \"%Y-%m-%d\", but 1 of 1 values (for example "
        "0020-01-01T00:00:00+00:00) lie outside 1990-01-01..tomorrow; no other unit fits either: check [columns] timestamp against the log"
    )


def test_the_doctor_looks_at_the_whole_file_whichever_day_is_made(tmp_path: Path) -> None:
    rows = [row(1, "a", noon(FIRST))] * 2 + [row(1, "a", noon(SECOND) * 1000)] * 3
    dataset, _ = undated(tmp_path, {"all": rows})
    for day in ALL_DAYS:
        assert "3 of 5 values" in refusal(dataset, day)


# --- what cannot be read -----------------------------------------------------------------------------------------


def test_a_file_that_lacks_a_column(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, days={FIRST: "usr,item,time,event\n1,a,1,view\n"})
    assert refusal(dataset, FIRST) == (
        "raw/2020-01-01.csv: there is no column 'user', which [columns] user_id names; did you mean 'usr'?"
    )


def test_an_empty_file(tmp_path: Path) -> None:
    assert refusal(make_dataset(tmp_path, days={FIRST: b""}), FIRST).startswith(
        "raw/2020-01-01.csv: is empty: expected a header"
    )


def test_a_bad_second_file_leaves_nothing_of_the_first(tmp_path: Path) -> None:
    write_csv(tmp_path / "raw" / FIRST / "a.csv", [row(1, "a", noon(FIRST))])
    write_csv(tmp_path / "raw" / FIRST / "b.csv", "x,y\n1,2\n")
    dataset = make_dataset(tmp_path, source={"path": "raw/{date}/*.csv"})
    assert refusal(dataset, FIRST).startswith("raw/2020-01-01/b.csv: there is no column 'user'")


def test_every_reason_of_the_closed_list_is_in_order() -> None:
    assert REASONS == (
        "malformed_line", "missing_user_id", "malformed_user_id", "missing_item_id", "malformed_item_id", "missing_timestamp",
        "malformed_timestamp", "implausible_timestamp", "outside_day", "missing_action", "malformed_action", "unknown_action",
        "id_out_of_range", "malformed_extra", "duplicate",
    )  # fmt: skip


LAST = f'3,"c,d",{noon(FIRST) + 2},view,"end"\n'
QUOTED = f'user,item,time,event,note\n1,"a ""x""",{noon(FIRST)},view,"two\nlines"\n2,b,{noon(FIRST) + 1},cart,\n{LAST}'
PLAIN = f"user,item,time,event,note\n1,a,{noon(FIRST)},view,x\n2,b,{noon(FIRST) + 1},cart,\n3,c,{noon(FIRST) + 2},view,end\n"


@pytest.mark.parametrize("cut", range(1, 41))
@pytest.mark.parametrize("text", [QUOTED, PLAIN], ids=["quoted", "plain"])
def test_a_file_cut_short_gives_no_value_that_is_not_in_the_original(tmp_path: Path, text: str, cut: int) -> None:
    whole, _ = rows_of(tmp_path / "whole", text)
    found, counts = rows_of(tmp_path / "cut", text[:-cut])
    last = len(text.splitlines()[-1]) + 1
    assert counts["in"] == (3 if cut < last else 2)
    made_up = [one for one in found if one not in whole]
    if cut == 1:  # only the newline is gone
        assert found == whole
        assert counts["last_record_without_newline"] == 1
    elif text[:-cut].endswith("\n"):
        assert found == whole[:2]
        assert "last_record_without_newline" not in counts
    elif made_up:
        # It looks complete, as the last cell may be empty, or shorter where no quote ends it: accepted, and counted.
        assert text == PLAIN or text[:-cut].endswith("view,")
        assert [one[:4] for one in made_up] == [one[:4] for one in whole[2:]]
        assert counts["last_record_without_newline"] == 1


def rows_of(folder: Path, text: str) -> tuple[list[tuple[Any, ...]], dict[str, Any]]:
    folder.mkdir()
    extra = {"note": {"from": "note", "type": "string", "optional": True}}
    dataset = make_dataset(folder, days={FIRST: text}, extra=extra)
    store = make_store(dataset)
    counts = counts_of(dataset, store, FIRST)
    return table(store, "events", FIRST).drop("row_id").rows(), counts


@pytest.mark.parametrize("cut", range(1, 41))
@pytest.mark.parametrize("extension", ["parquet", "csv.gz"])
def test_a_packed_file_cut_short_is_refused(tmp_path: Path, extension: str, cut: int) -> None:
    path = tmp_path / "raw" / f"{FIRST}.{extension}"
    path.parent.mkdir()
    rows = [row(1, "a", noon(FIRST))] * 3
    if extension == "parquet":
        write_parquet(path, rows)
        whole = path.read_bytes()
    else:
        write_csv(tmp_path / "plain.csv", rows)
        whole = gzip.compress((tmp_path / "plain.csv").read_bytes())
    path.write_bytes(whole[:-cut])
    dataset = make_dataset(tmp_path, source={"path": f"raw/{{date}}.{extension}"})
    assert refusal(dataset, FIRST).startswith(f"raw/2020-01-01.{extension}: ")


def test_a_json_line_cut_short_is_a_malformed_line(tmp_path: Path) -> None:
    whole = f'{{"user":1,"item":"a","time":{noon(FIRST)},"event":"view"}}\n{{"user":2,"item":"b","time":{noon(FIRST)},"event":"view"}}\n'
    for cut in range(1, 41):
        folder = tmp_path / str(cut)
        folder.mkdir()
        dataset = make_dataset(folder, days={FIRST: whole[:-cut]}, extension="ndjson")
        store = make_store(dataset)
        counts = counts_of(dataset, store, FIRST)
        users = table(store, "events", FIRST)["user_id"].to_list()
        assert (users, counts["rejected"]) == (([1, 2], {}) if cut == 1 else ([1], {"malformed_line": 1}))

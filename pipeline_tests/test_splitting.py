"""The law of splitting: how a log is cut into chunks, files, runs and days' orders changes no value.

Every example makes a small log, computes all features with the loop oracle from the first event on, and lets the
pipeline make the same days in one of many ways. Both must agree bit for bit.
"""

import itertools
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from unittest import mock

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeline.config import Dataset, load_dataset
from pipeline.contracts import Event
from pipeline.events.write import FILE_ROWS
from pipeline.features import load_features, output_columns
from pipeline.stages import STAGES, run_day
from pipeline.store import scan
from pipeline_tests.works import work_of

START = date(2024, 2, 27)  # a leap day lies ahead
DAYS = 4
ACTIONS = ("view", "buy")
MEMORY_DISK = Path("/dev/shm")
reached: Counter[str] = Counter()

TOML = """
name = "law"
[partitions]
start = "2024-02-27"
end = "2024-03-01"
[source]
path = "raw/{{date}}/*.csv"
missing_day = "empty"
[columns]
user_id = {{ from = "u", type = "{user_type}" }}
item_id = {{ from = "i", type = "string" }}
timestamp = {{ from = "t", unit = "us" }}
action = {{ from = "a" }}
[actions]
names = ["view", "buy"]
[vocabulary]
mode = "{mode}"
[store]
root = "store"
"""


@dataclass(frozen=True)
class Row:
    """One raw event."""

    day: int
    user: int
    item: str
    time_us: int
    action: str


@dataclass(frozen=True)
class Way:
    """One way to make the same days."""

    chunk_rows: int
    cuts: tuple[int, ...]  # where each day's rows are cut into files
    by_day: bool
    spill: bool
    file_rows: int  # rows in a file of events
    frozen_after_first: bool
    remade: int | None  # a day that is made twice, first from other rows
    user_type: str


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    """A few users over a few days; times come from few values, so that ties are common."""
    instants = st.sampled_from([0, 1, 1_000_000, 43_200_000_000, 86_399_999_999])
    row = st.builds(
        Row,
        day=st.integers(0, DAYS - 1),
        user=st.sampled_from([1, 2, 3, 2**53 + 1]),
        item=st.sampled_from(["a", "B", "é", "10"]),
        time_us=instants,
        action=st.sampled_from(ACTIONS),
    )
    rows = draw(st.lists(row, max_size=16))
    repeated = draw(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=8))
    for source, place in repeated:  # the same user and instant once more, somewhere else in the log
        if source < len(rows):
            rows.insert(place, replace(rows[source], item="again"))
    return rows


ways = st.builds(
    Way,
    chunk_rows=st.sampled_from([1, 2, 3, 1000]),
    cuts=st.lists(st.integers(0, 5), max_size=2).map(lambda cuts: tuple(sorted(cuts))),
    by_day=st.booleans(),
    spill=st.booleans(),
    file_rows=st.sampled_from([1, 2, 5, FILE_ROWS]),
    frozen_after_first=st.booleans(),
    remade=st.none() | st.integers(0, DAYS - 1),
    user_type=st.sampled_from(["int64", "string"]),
)


def day_of(number: int) -> date:
    return START + timedelta(days=number)


def time_of(row: Row) -> int:
    midnight = datetime.combine(day_of(row.day), datetime.min.time(), tzinfo=UTC)
    return int(midnight.timestamp()) * 1_000_000 + row.time_us


def write_raw(folder: Path, rows: list[Row], cuts: tuple[int, ...]) -> None:
    """Writes the rows of every day, cut into files; the order over the files is the order of the rows."""
    shutil.rmtree(folder / "raw", ignore_errors=True)
    for number in range(DAYS):
        of_day = [row for row in rows if row.day == number]
        borders = [0, *(min(cut, len(of_day)) for cut in cuts), len(of_day)]
        directory = folder / "raw" / day_of(number).isoformat()
        directory.mkdir(parents=True)
        for position, (first, last) in enumerate(itertools.pairwise(borders)):
            lines = [f"{r.user},{r.item},{time_of(r)},{r.action}\n" for r in of_day[first:last]]
            (directory / f"{position}.csv").write_text("u,i,t,a\n" + "".join(lines), encoding="utf-8")


def make(folder: Path, way: Way) -> Dataset:
    """Lets the pipeline make all days in one of the ways."""
    file = folder / "dataset.toml"
    for mode in ("append", "frozen") if way.frozen_after_first else ("append",):
        file.write_text(TOML.format(mode=mode, user_type=way.user_type))
        dataset = load_dataset(file)
        if way.spill:
            compute = dataset.compute.model_copy(update={"memory": 1024})
            dataset = dataset.model_copy(update={"compute": compute})
        work = work_of(dataset, run=mode, chunk_rows=way.chunk_rows)
        first_only = way.frozen_after_first and mode == "append"
        numbers = range(1) if first_only else range(1 if mode == "frozen" else 0, DAYS)
        tasks = [(asset, number) for number in numbers for asset in STAGES]
        if not way.by_day:
            tasks.sort(key=lambda task: STAGES.index(task[0]))
        for asset, number in tasks:
            run_day(asset, day_of(number), work)
    return dataset


def by_loop(rows: list[Row], way: Way) -> list[dict[str, object]]:
    """All features by the loop oracle over the whole history, in the order (day, row_id)."""
    features = load_features(None, {})
    numbered: Counter[int] = Counter()
    by_user: dict[int, list[tuple[int, Event]]] = {}
    for row in sorted(rows, key=lambda row: row.day):
        event = Event(numbered[row.day], row.user, row.item, time_of(row), row.action, ACTIONS, {})
        numbered[row.day] += 1
        by_user.setdefault(row.user, []).append((row.day, event))
    known = indices([row for row in rows if row.day == 0 or not way.frozen_after_first], way)
    result = []
    for user, events in by_user.items():
        state = {feature.name: feature.initial() for feature in features}
        for number, event in sorted(events, key=lambda e: (e[1].timestamp_us, e[1].row_id)):
            written: dict[str, object] = {
                "day": day_of(number),
                "row_id": event.row_id,
                "user_index": known["user"].get(user, 1),
                "item_index": known["item"].get(event.item_id, 1),
            }
            for feature in features:
                state[feature.name], values = feature.step(state[feature.name], event)
                written |= values
            result.append(written)
    return sorted(result, key=lambda row: (row["day"], row["row_id"]))


def indices(rows: list[Row], way: Way) -> dict[str, dict[object, int]]:
    """Dense indices as the contract gives them: day by day, new ids ascending (strings bytewise), from 2."""
    found: dict[str, dict[object, int]] = {"user": {}, "item": {}}
    for number in range(DAYS):
        for name, as_key in (("user", str if way.user_type == "string" else int), ("item", str)):
            ids = {getattr(row, name) for row in rows if row.day == number} - set(found[name])
            ascending = sorted(ids, key=lambda id_: str(as_key(id_)).encode() if as_key is str else id_)
            found[name] |= {id_: 2 + len(found[name]) + place for place, id_ in enumerate(ascending)}
    return found


def note_what_is_reached(rows: list[Row], way: Way) -> None:
    """Counts the situations in which pipelines of this kind go wrong."""
    for number in range(DAYS):
        of_day = [row for row in rows if row.day == number]
        if not of_day:
            reached["empty day"] += 1
        for place, row in enumerate(of_day):
            for cut in way.cuts:
                ties = [other for other in of_day[cut:] if place < cut and same_instant(row, other)]
                reached["tie across files"] += bool(ties)
        largest = max(Counter(row.user for row in of_day).values(), default=0)
        reached["user in two files of events"] += largest > way.file_rows
        reached["user larger than a chunk"] += largest > way.chunk_rows
    for user in {row.user for row in rows}:
        days = sorted({row.day for row in rows if row.user == user})
        reached["user on 3 days with a gap day"] += len(days) >= 3 and days[-1] - days[0] >= len(days)
    unknown = {row.user for row in rows} - {row.user for row in rows if row.day == 0}
    reached["frozen with unknowns"] += way.frozen_after_first and bool(unknown) and any(r.day == 0 for r in rows)
    reached["re-made day"] += way.remade is not None
    reached["spilled day"] += way.spill and bool(rows)


def same_instant(one: Row, other: Row) -> bool:
    return (one.user, one.time_us) == (other.user, other.time_us)


def agree(rows: list[Row], way: Way) -> None:
    """Makes the days and compares every value with the loop."""
    if way.frozen_after_first:  # a frozen vocabulary needs ids, and its days are made once
        way = replace(way, remade=None)
        if not any(row.day == 0 for row in rows):
            way = replace(way, frozen_after_first=False)
    note_what_is_reached(rows, way)
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as name:
        folder = Path(name)
        if way.remade is not None:
            others = [replace(row, user=3, time_us=1) if row.day == way.remade else row for row in rows[1:]]
            write_raw(folder, others, way.cuts)
            make(folder, way)
        write_raw(folder, rows, way.cuts)
        with mock.patch("pipeline.events.write.FILE_ROWS", way.file_rows):
            dataset = make(folder, way)
        made = scan(dataset.root, "features", START, day_of(DAYS - 1)).collect().sort("day", "row_id")
    expected = by_loop(rows, way)
    columns = output_columns(load_features(None, {}), dataset)
    names = [column.name for column in columns]
    if way.remade is None:
        names += ["user_index", "item_index"]
    assert made.height == len(expected) == len(rows)
    wanted = pl.DataFrame(
        {name: [row[name] for row in expected] for name in ["day", "row_id", *names]},
        schema={name: made.schema[name] for name in ["day", "row_id", *names]},
    )
    assert made.select(wanted.columns).equals(wanted)


def test_a_log_by_hand() -> None:
    """Two users, a tie and a day between: 5 s, the same instant, and a day minus 4 s apart."""
    rows = [
        Row(0, 1, "a", 1_000_000, "view"),
        Row(0, 2, "a", 1_000_000, "view"),
        Row(0, 1, "B", 6_000_000, "buy"),
        Row(0, 1, "é", 6_000_000, "view"),
        Row(2, 1, "a", 2_000_000, "view"),
    ]
    way = Way(1000, (), by_day=True, spill=False, file_rows=1, frozen_after_first=False, remade=None, user_type="int64")
    expected = by_loop(rows, way)
    assert [row["time_diff"] for row in expected] == [0, 0, 5, 0, 172_796]
    assert [row["is_first"] for row in expected] == [True, True, False, False, False]
    assert [row["history_position"] for row in expected] == [0, 0, 1, 2, 3]
    assert [row["user_index"] for row in expected] == [2, 3, 2, 2, 2]
    assert [row["item_index"] for row in expected] == [3, 3, 2, 4, 3]
    agree(rows, way)


BUSY = [
    Row(0, 1, "a", 1, "view"),
    Row(0, 1, "B", 1, "buy"),
    Row(0, 1, "é", 1, "view"),
    Row(1, 1, "a", 0, "view"),
    Row(1, 2, "a", 0, "view"),
    Row(3, 1, "10", 0, "buy"),
    Row(3, 2, "10", 0, "buy"),
]


@example(
    rows=BUSY,
    way=Way(2, (1, 2), by_day=False, spill=True, file_rows=2, frozen_after_first=True, remade=None, user_type="int64"),
)
@example(
    rows=BUSY,
    way=Way(1, (1,), by_day=True, spill=False, file_rows=1, frozen_after_first=False, remade=1, user_type="string"),
)
@given(rows=logs(), way=ways)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_every_way_gives_the_values_of_the_loop(rows: list[Row], way: Way) -> None:
    agree(rows, way)


@pytest.mark.parametrize(
    "situation",
    [
        "empty day",
        "tie across files",
        "user larger than a chunk",
        "user in two files of events",
        "user on 3 days with a gap day",
        "frozen with unknowns",
        "re-made day",
        "spilled day",
    ],
)
def test_the_examples_reach(situation: str) -> None:
    """Runs after the law, in the same process: a law that never met a border proves nothing about it."""
    assert reached[situation] > 0

"""An index once given to an id is that id's for ever, whatever is made again, wiped or killed."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.memory import held_bytes
from pipeline.store import Currency, Store
from pipeline.vocabularies import (
    Segment,
    ids_of,
    log_directory,
    make_vocabulary,
    read_vocabulary,
    segment_paths,
)
from pipeline.vocabularies.day import distinct_ids
from pipeline.vocabularies.length import longest_length, note_length
from pipeline_tests.datasets import at, make_dataset, make_events_of, make_store, make_vocabulary_of, row, write_csv

FIRST, SECOND, THIRD = "2020-01-01", "2020-01-02", "2020-01-03"
USERS, ITEMS = "user_vocabulary", "item_vocabulary"


def rows_of(day: str, users: list[Any]) -> list[dict[str, Any]]:
    """Events of these users; each has an item named after them."""
    return [row(user, f"i{user}", at(day, "12:00:00")) for user in users]


def lake(folder: Path, days: dict[str, list[Any]], **overrides: Any) -> tuple[Dataset, Store]:
    """Events of some days, published."""
    dataset = make_dataset(folder, days={day: rows_of(day, users) for day, users in days.items()}, **overrides)
    store = make_store(dataset)
    for day in days:
        make_events_of(dataset, store, day)
    return dataset, store


def again(dataset: Dataset, store: Store, day: str, users: list[Any]) -> None:
    """Another raw file for a day, and its events made again."""
    write_csv(dataset.directory / "raw" / f"{day}.csv", rows_of(day, users))
    make_events_of(dataset, store, day, run="again")


def log(store: Store, vocabulary: str = USERS) -> dict[Any, int]:
    """id -> index, of all segments, read with nothing of the project."""
    found: dict[Any, int] = {}
    for path in sorted((store.root / vocabulary / "_log").glob("[0-9]*.parquet")):
        for index, identity in pl.read_parquet(path).select("index", "id").iter_rows():
            assert identity not in found, f"{identity!r} has two indices"
            assert index == len(found) + 2, "indices are dense, from 2"
            found[identity] = index
    return found


def entries(store: Store, dataset: Dataset) -> list[Any]:
    """The ids of the log in the order of their indices, as the project reads them."""
    known = read_vocabulary(store, USERS, dataset)
    return known.ids_of(pl.int_range(2, 2 + known.length, eager=True)).to_list()


def staged(dataset: Dataset, store: Store, day: str, run: str = "run") -> Segment:
    """A segment that waits to be linked."""
    _, segment = make_vocabulary(vocabulary=USERS, day=date.fromisoformat(day), dataset=dataset, store=store, run=run)
    assert segment is not None
    return segment


# --- appending ---------------------------------------------------------------------------------------------------


def test_new_ids_are_appended_in_ascending_order_of_their_day(tmp_path: Path) -> None:
    dataset, store = lake(tmp_path, {FIRST: [30, -5, 30, 7], SECOND: [7, 100, 1], THIRD: [100]})
    found = [make_vocabulary_of(dataset, store, day, run=f"r{day}") for day in (FIRST, SECOND, THIRD)]
    assert log(store) == {-5: 2, 7: 3, 30: 4, 1: 5, 100: 6}
    assert [(m.rows, m.size, list(m.files), dict(m.counts)) for m in found] == [
        (3, 3, [], {"ids": 3, "new_ids": 3}), (3, 5, [], {"ids": 3, "new_ids": 2}), (1, 5, [], {"ids": 1, "new_ids": 0}),
    ]  # fmt: skip
    directory = tmp_path / "out" / USERS / "_log"
    assert [path.name for path in sorted(directory.iterdir())] == ["00000000.parquet", "00000001.parquet"]
    assert [path.name for path in (tmp_path / "out" / USERS / "_index").iterdir()] == ["length-0000000005"]
    assert pl.read_parquet(directory / "00000001.parquet").rows(named=True) == [
        {"index": 5, "id": 1, "first_day": SECOND, "run": "r2020-01-02"},
        {"index": 6, "id": 100, "first_day": SECOND, "run": "r2020-01-02"},
    ]
    assert pl.read_parquet(directory / "00000000.parquet").schema["index"] == pl.Int32


def test_the_manifest_has_the_events_as_its_only_input(tmp_path: Path) -> None:
    dataset, store = lake(tmp_path, {FIRST: [1]})
    manifest = make_vocabulary_of(dataset, store, FIRST)
    events = store.manifest("events", date.fromisoformat(FIRST))
    assert events is not None
    assert dict(manifest.inputs) == {"events": events.version()}
    assert (manifest.to_json()["files"], manifest.to_json()["size"]) == ([], 1)


def test_text_is_appended_in_the_order_of_its_bytes(tmp_path: Path) -> None:
    users = ["b", "é", "a", "Z", "10", "9", "日本", "\U0001f600", "\uffee"]
    dataset, store = lake(tmp_path, {FIRST: users}, columns={"user_id": {"from": "user", "type": "string"}})
    make_vocabulary_of(dataset, store, FIRST)
    assert list(log(store)) == sorted(users, key=str.encode)


def test_missing_items_and_refused_rows_have_no_entry(tmp_path: Path) -> None:
    rows = [row(1, None, at(FIRST)), row(2, "b", at(FIRST)), row(3, "c", at(FIRST), "unknown")]
    dataset = make_dataset(
        tmp_path, days={FIRST: rows}, columns={"item_id": {"from": "item", "type": "string", "optional": True}}
    )
    store = make_store(dataset)
    make_events_of(dataset, store, FIRST)
    assert make_vocabulary_of(dataset, store, FIRST, vocabulary=ITEMS).rows == 1
    assert (log(store, ITEMS), log(store, USERS)) == ({"b": 2}, {})


def test_a_day_without_rows(tmp_path: Path) -> None:
    dataset, store = lake(tmp_path, {FIRST: [1, 2], SECOND: []})
    make_vocabulary_of(dataset, store, FIRST)
    manifest = make_vocabulary_of(dataset, store, SECOND)
    assert (manifest.rows, manifest.size) == (0, 2)
    assert len(segment_paths(store, USERS)) == 1


def test_a_first_build_in_day_order_is_reproducible(tmp_path: Path) -> None:
    days = {FIRST: [5, 3], SECOND: [9, 3, 1], THIRD: [2]}
    logs = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        dataset, store = lake(tmp_path / name, days)
        versions = [make_vocabulary_of(dataset, store, day).version() for day in days]
        logs.append((log(store), versions))
    assert logs[0] == logs[1]


# --- the five ways in which it could go wrong ---------------------------------------------------------------------


@pytest.fixture
def built(tmp_path: Path) -> tuple[Dataset, Store, dict[Any, int]]:
    dataset, store = lake(tmp_path, {FIRST: [10, 20], SECOND: [20, 5], THIRD: [30, 5]})
    for day in (FIRST, SECOND, THIRD):
        make_vocabulary_of(dataset, store, day)
    assert log(store) == {10: 2, 20: 3, 5: 4, 30: 5}
    return dataset, store, log(store)


def test_an_old_day_made_again_with_an_id_first_seen_later(built: Any) -> None:
    dataset, store, before = built
    again(dataset, store, FIRST, [10, 20, 30, 1])
    manifest = make_vocabulary_of(dataset, store, FIRST)
    assert log(store) == {**before, 1: 6}
    assert (manifest.rows, manifest.size) == (4, 5)
    currency = Currency(store)
    assert [currency.problem(USERS, date.fromisoformat(day)) for day in (FIRST, SECOND, THIRD)] == [None] * 3


def test_an_old_day_made_again_with_fewer_ids(built: Any) -> None:
    dataset, store, before = built
    again(dataset, store, FIRST, [10])
    manifest = make_vocabulary_of(dataset, store, FIRST)
    assert log(store) == before
    assert (manifest.rows, manifest.size) == (1, 4)
    again(dataset, store, FIRST, [10, 20])
    make_vocabulary_of(dataset, store, FIRST)
    assert log(store) == before


def test_a_partition_deleted(built: Any) -> None:
    dataset, store, before = built
    for day in (FIRST, SECOND, THIRD):
        folder = store.directory(USERS, date.fromisoformat(day))
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    for day in (THIRD, SECOND, FIRST):  # in another order than before
        assert make_vocabulary_of(dataset, store, day).size == 4
    assert log(store) == before


def test_two_runs_at_once(tmp_path: Path) -> None:
    dataset, store = lake(tmp_path, {FIRST: [1, 2], SECOND: [2, 3]})
    early, late = staged(dataset, store, FIRST, "early"), staged(dataset, store, SECOND, "late")
    assert (early.number, late.number, early.first_index, late.first_index) == (0, 0, 2, 2)
    assert early.link()
    assert not late.link()
    assert log(store) == {1: 2, 2: 3}
    assert not early.path.exists()
    assert not late.path.exists()
    make_vocabulary_of(dataset, store, SECOND)  # the loser reads again and renumbers
    assert log(store) == {1: 2, 2: 3, 3: 4}


def test_a_run_that_dies_before_its_append(tmp_path: Path) -> None:
    dataset, store = lake(tmp_path, {FIRST: [1, 2], SECOND: [3]})
    staged(dataset, store, FIRST, "dead")  # never linked
    assert entries(store, dataset) == []
    make_vocabulary_of(dataset, store, SECOND)
    make_vocabulary_of(dataset, store, FIRST)
    assert log(store) == {3: 2, 1: 3, 2: 4}


def test_a_run_that_dies_after_its_append(tmp_path: Path) -> None:
    dataset, store = lake(tmp_path, {FIRST: [1, 2], SECOND: [3, 0]})
    assert staged(dataset, store, FIRST, "dead").link()  # and no manifest
    assert store.manifest(USERS, date.fromisoformat(FIRST)) is None
    make_vocabulary_of(dataset, store, SECOND)
    assert make_vocabulary_of(dataset, store, FIRST).size == 4
    assert log(store) == {1: 2, 2: 3, 0: 4, 3: 5}


def test_many_threads_at_once(tmp_path: Path) -> None:
    days = {f"2020-01-0{number}": list(range(number, number + 20)) for number in range(1, 6)}
    dataset, _ = lake(tmp_path, days)

    def make(day: str) -> int | None:
        return make_vocabulary_of(dataset, Store(dataset.root), day, run=day).size

    with ThreadPoolExecutor(5) as threads:
        sizes = list(threads.map(make, days))
    store = Store(dataset.root)
    assert set(log(store)) == set(range(1, 25))
    assert max(size or 0 for size in sizes) == 24
    for day, size in zip(days, sizes, strict=True):
        index = read_vocabulary(store, USERS, dataset).index_of(pl.Series(days[day]), size=size or 0)
        assert index.min() >= 2, f"{day} finds all of its ids within its own size"
    assert not list(log_directory(store, USERS).glob("_staged*"))


RACER = """
import sys
from pathlib import Path
from pipeline.config import load_dataset
from pipeline.store import Store
from pipeline_tests.datasets import make_vocabulary_of

dataset = load_dataset(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for day in sys.argv[2:]:
    make_vocabulary_of(dataset, Store(dataset.root), day, run="racer" + day)
"""


def test_two_processes_at_once(tmp_path: Path) -> None:
    days = {f"2020-01-0{number}": [100 - number, 200 + number, 50] for number in range(1, 6)}
    dataset, store = lake(tmp_path, days)
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(dataset.file), *order], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1]
        )
        for order in (list(days), list(reversed(days)))
    ]  # fmt: skip
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == b"ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(b"go\n")
        racer.stdin.flush()
    for racer in racers:
        racer.communicate(timeout=60)
    assert [racer.returncode for racer in racers] == [0, 0]
    assert set(log(store)) == {user for users in days.values() for user in users}
    assert all(store.manifest(USERS, date.fromisoformat(day)) is not None for day in days)


DAYS = (FIRST, SECOND, THIRD)


@settings(max_examples=10)
@given(st.lists(st.tuples(st.sampled_from(DAYS), st.lists(st.integers(0, 9), max_size=4)), min_size=1, max_size=5))
def test_whatever_is_made_in_whatever_order_no_index_ever_changes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, list[int]]]
) -> None:
    dataset, store = lake(tmp_path_factory.mktemp("lake"), {})
    before: dict[Any, int] = {}
    for day, users in steps:
        again(dataset, store, day, users)
        manifest = make_vocabulary_of(dataset, store, day)
        now = log(store)
        assert {user: now[user] for user in before} == before
        assert set(now) == set(before) | set(users)
        assert [user for user in now if user not in before] == sorted(set(users) - set(before))
        assert (manifest.rows, manifest.size) == (len(set(users)), len(now))
        before = now


# --- content versions --------------------------------------------------------------------------------------------


def test_later_growth_makes_nothing_stale(built: Any) -> None:
    dataset, store, _ = built
    before = {day: store.manifest(USERS, date.fromisoformat(day)).version() for day in (FIRST, SECOND, THIRD)}
    again(dataset, store, THIRD, [30, 5, 99, -7])
    third = make_vocabulary_of(dataset, store, THIRD)
    assert third.version() != before[THIRD]
    for day in (FIRST, SECOND):  # made again over the longer log
        assert make_vocabulary_of(dataset, store, day).version() == before[day]


def test_the_version_tells_which_index_an_id_has(tmp_path: Path) -> None:
    versions = []
    for name, order in {"a": (FIRST, SECOND), "b": (SECOND, FIRST)}.items():
        (tmp_path / name).mkdir()
        dataset, store = lake(tmp_path / name, {FIRST: [1], SECOND: [2]})
        found = {day: make_vocabulary_of(dataset, store, day).version() for day in order}
        versions.append(found[FIRST])
    assert versions[0] != versions[1]


# --- frozen ------------------------------------------------------------------------------------------------------

FROZEN = {"vocabulary": {"mode": "frozen"}}


def test_frozen_appends_nothing(built: Any, tmp_path: Path) -> None:
    _, store, before = built
    frozen = make_dataset(tmp_path, **FROZEN)
    again(frozen, store, SECOND, [20, 77, 88])
    manifest = make_vocabulary_of(frozen, store, SECOND)
    assert log(store) == before
    assert (manifest.rows, manifest.size, dict(manifest.counts)) == (3, 4, {"ids": 3, "new_ids": 0})
    assert manifest.config["mode"] == "frozen"
    known = read_vocabulary(store, USERS, frozen)
    assert known.index_of(pl.Series([20, 77, 88]), size=4).to_list() == [3, 1, 1]


def test_frozen_over_an_empty_log_is_refused(tmp_path: Path) -> None:
    dataset, store = lake(tmp_path, {FIRST: [1]}, **FROZEN)
    with pytest.raises(PipelineError) as caught:
        make_vocabulary_of(dataset, store, FIRST)
    assert str(caught.value) == (
        f"user_vocabulary is frozen but its log in {tmp_path}/out/user_vocabulary/_log is empty: build it first with "
        '[vocabulary] mode = "append", or copy the segments of a store that has it'
    )


def test_frozen_over_a_seeded_log(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    source, old = lake(tmp_path / "old", {FIRST: [7, 8]})
    make_vocabulary_of(source, old, FIRST)
    dataset, store = lake(tmp_path / "new", {FIRST: [8, 9]}, **FROZEN)
    log_directory(store, USERS).mkdir(parents=True)
    for path in segment_paths(old, USERS):
        (log_directory(store, USERS) / path.name).write_bytes(path.read_bytes())
    assert make_vocabulary_of(dataset, store, FIRST).size == 2
    assert log(store) == {7: 2, 8: 3}


def test_reverse_look_up(built: Any) -> None:
    dataset, store, _ = built
    assert ids_of(store.root, USERS, [5, 2, 0, 1, 2], dataset).to_list() == [30, 10, None, None, 10]
    assert ids_of(store.root, USERS, [], dataset).to_list() == []
    for wrong, found in {6: 6, -1: -1}.items():
        with pytest.raises(PipelineError) as caught:
            ids_of(store.root, USERS, [2, wrong], dataset)
        assert str(caught.value) == f"found index {found}, expected 0..5: it was never given to an id"


# --- a damaged log -----------------------------------------------------------------------------------------------


@pytest.fixture
def two_segments(tmp_path: Path) -> tuple[Dataset, Store, list[Path]]:
    dataset, store = lake(tmp_path, {FIRST: [1, 2], SECOND: [3]})
    for day in (FIRST, SECOND):
        make_vocabulary_of(dataset, store, day)
    return dataset, Store(store.root), segment_paths(store, USERS)


def test_a_missing_segment(two_segments: Any) -> None:
    dataset, store, (first, _) = two_segments
    first.unlink()
    with pytest.raises(PipelineError) as caught:
        read_vocabulary(store, USERS, dataset)
    assert str(caught.value) == (
        f"{first.parent}: found 00000001.parquet, expected 00000000.parquet: restore that segment of the log"
    )
    with pytest.raises(PipelineError):
        make_vocabulary_of(dataset, store, SECOND)


@pytest.mark.parametrize("damage", ["swapped", "twice", "cut", "garbage", "empty", "other type"])
def test_a_damaged_segment(two_segments: Any, damage: str) -> None:
    dataset, store, (first, second) = two_segments
    content = {path: path.read_bytes() for path in (first, second)}
    if damage == "swapped":
        first.write_bytes(content[second])
        second.write_bytes(content[first])
    elif damage == "twice":
        second.write_bytes(content[first])
    elif damage == "cut":
        second.write_bytes(content[second][:-20])
    elif damage == "garbage":
        second.write_bytes(b"PAR1 and no more")
    elif damage == "empty":
        second.write_bytes(b"")
    else:
        pl.read_parquet(second).with_columns(pl.col("id").cast(pl.String)).write_parquet(second)
    with pytest.raises(PipelineError, match="the log is damaged") as caught:
        read_vocabulary(store, USERS, dataset)
    assert "\n" not in str(caught.value)
    assert str(first.parent) in str(caught.value)


def test_what_lies_beside_the_segments_is_no_segment(two_segments: Any) -> None:
    dataset, store, (first, _) = two_segments
    for name in ("_staged-x.parquet", "notes.parquet", "0.parquet", "00000002.parquet.bak"):
        (first.parent / name).write_bytes(b"x")
    assert entries(store, dataset) == [1, 2, 3]


def test_sweeping_a_day_leaves_the_log_alone(two_segments: Any) -> None:
    dataset, store, paths = two_segments
    for day in (FIRST, SECOND):
        store.sweep(USERS, date.fromisoformat(day), keep_hours=0)
    assert all(path.exists() for path in paths)
    assert len(entries(store, dataset)) == 3


def test_a_root_wiped_and_built_again_under_a_living_store(tmp_path: Path) -> None:
    dataset, store = lake(tmp_path, {FIRST: [1]})
    make_vocabulary_of(dataset, store, FIRST)
    read_vocabulary(store, USERS, dataset)
    shutil.rmtree(store.root / USERS)
    again(dataset, store, FIRST, [9])
    make_vocabulary_of(dataset, store, FIRST)
    assert entries(store, dataset) == [9]


@pytest.mark.parametrize("how", ["", "a day made again", "no length noted", "an older length noted", "a backup"])
def test_a_log_that_lost_its_end_is_refused(tmp_path: Path, how: str) -> None:
    dataset, store = lake(tmp_path, {FIRST: [5, 7], SECOND: [9]})
    make_vocabulary_of(dataset, store, FIRST)
    saved = tmp_path / "backup"
    for name in ("_log", "_index"):
        shutil.copytree(store.root / USERS / name, saved / name)
    make_vocabulary_of(dataset, store, SECOND)
    seen = SECOND
    if how == "a day made again":  # the longest log was seen by an old day
        again(dataset, store, FIRST, [5, 7, 8])
        make_vocabulary_of(dataset, store, FIRST)
        seen = FIRST
    index = store.root / USERS / "_index"
    if how == "no length noted":
        shutil.rmtree(index)
    if how == "an older length noted":  # a run died between its segment and the note; the next day notes it
        (index / "length-0000000003").rename(index / "length-0000000002")
        make_vocabulary_of(dataset, store, SECOND)
        assert [path.name for path in index.iterdir()] == ["length-0000000003"]
    paths = segment_paths(store, USERS)
    paths[-1].unlink()
    if how == "a backup":  # brings the note of its time along
        for name in ("_log", "_index"):
            shutil.rmtree(store.root / USERS / name)
            shutil.copytree(saved / name, store.root / USERS / name)
    length = 3 if seen == FIRST else 2
    with pytest.raises(
        PipelineError,
        match=f"found {length} entries, but it has had {length + 1}: the end of the log is lost",
    ):
        make_vocabulary_of(dataset, store, SECOND)
    assert segment_paths(store, USERS) == paths[:-1]


def test_noted_lengths_only_grow(tmp_path: Path) -> None:
    _, store = lake(tmp_path, {FIRST: [1]})
    assert longest_length(store, USERS) == 0
    for length in (7, 5, 9, 9, 8):
        note_length(store.root / USERS, length)
    assert longest_length(store, USERS) == 9
    assert [path.name for path in (store.root / USERS / "_index").iterdir()] == ["length-0000000009"]


@pytest.mark.parametrize("vocabulary", [USERS, ITEMS])
def test_distinct_ids_do_not_keep_the_rows_in_which_they_were_found(
    vocabulary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, store = lake(tmp_path, {FIRST: [1]})
    events = store.manifest("events", date.fromisoformat(FIRST))
    assert events is not None
    column, held = vocabulary.replace("vocabulary", "id"), list[int]()
    ids = {USERS: list(range(40)), ITEMS: [f"i{number:02}" for number in range(40)]}[vocabulary]

    def blocks(*_: object, **__: object) -> Iterator[pl.DataFrame]:
        for one in ids:
            yield pl.select(pl.repeat(one, 1 << 20, dtype=pl.Series([one]).dtype).alias(column))
            held.append(held_bytes())

    monkeypatch.setattr("pipeline.vocabularies.day.read_blocks", blocks)
    assert distinct_ids(store, vocabulary, events).to_list() == ids
    assert max(held) - held[4] < 20 * 8 * 2**20  # all of them would be 40 blocks of at least 8 MiB


@pytest.mark.parametrize("vocabulary", [USERS, ITEMS])
def test_a_damaged_segment_never_gives_other_ids(vocabulary: str, tmp_path: Path) -> None:
    """Else a known id would be lacking, and get a second index."""
    dataset, store = lake(tmp_path, {FIRST: list(range(1000, 1040))})
    make_vocabulary_of(dataset, store, FIRST, vocabulary=vocabulary)
    right = read_vocabulary(store, vocabulary, dataset, whole=True).ids_of(pl.Series(range(2, 42)))
    (segment,) = segment_paths(store, vocabulary)
    intact, refused = segment.read_bytes(), 0
    for place in range(4, len(intact)):
        damaged = bytearray(intact)
        damaged[place] ^= 1
        segment.write_bytes(damaged)
        found = None
        with suppress(PipelineError):
            found = read_vocabulary(store, vocabulary, dataset, whole=True).ids_of(pl.Series(range(2, 42)))
        refused += found is None
        assert found is None or found.equals(right)
    assert refused > len(intact) // 4

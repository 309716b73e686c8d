"""Look-ups in a whole log and in the ids of a day, against a plain dict; and the index, which is never needed."""

import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.checks.vocabularies import known_ids
from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.store import Store
from pipeline.vocabularies import (
    DayIds,
    DayVocabulary,
    MappedPiece,
    Vocabulary,
    build,
    index,
    mapped,
    pieces,
    prove_index,
    read_vocabulary,
    segment_paths,
)
from pipeline.vocabularies.log import Segments
from pipeline.vocabularies.pieces import Piece
from pipeline.vocabularies.slots import Slots
from pipeline_tests.datasets import make_vocabulary_of
from pipeline_tests.test_vocabularies import FIRST, FROZEN, SECOND, THIRD, USERS, again, entries, lake, log

TEXT_IDS = {"columns": {"user_id": {"from": "user", "type": "string"}}}
INTEGERS = st.one_of(st.integers(-20, 20), st.integers(-(2**63), 2**63 - 1), st.sampled_from([2**63 - 1, -(2**63)]))


def slow_index(ids: list[Any], known: list[Any], size: int) -> list[int]:
    indices = {identity: position + 2 for position, identity in enumerate(known[:size])}
    return [indices.get(identity, 1) for identity in ids]


def write_log(store: Store, parts: list[pl.Series]) -> None:
    """A log of some segments, written with nothing of the project."""
    directory = store.root / USERS / "_log"
    directory.mkdir(parents=True, exist_ok=True)
    start = 2
    for number, ids in enumerate(parts):
        frame = pl.DataFrame({"index": pl.int_range(start, start + ids.len(), dtype=pl.Int32, eager=True), "id": ids})
        start += ids.len()
        path = directory / f"{number:08d}.parquet"
        if not path.exists():
            frame.with_columns(first_day=pl.lit(FIRST), run=pl.lit("r")).write_parquet(path)


def ids_with(kind: str) -> st.SearchStrategy[list[Any]]:
    return st.lists(INTEGERS if kind == "int64" else st.text(max_size=3), unique=True, max_size=40)


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Borders of blocks, windows, runs and merges after a few entries instead of millions."""
    for module, sizes in {
        mapped: {"BLOCK": 4, "WINDOW": 8},
        build: {"BLOCK": 4, "RUN_ROWS": 5, "SAMPLE": 2, "MERGE_ROWS": 4},
        index: {"BLOCK": 4, "TAIL_SEGMENTS": 2, "TAIL_ROWS": 6},
    }.items():
        for name, size in sizes.items():
            patch.setattr(module, name, size)


def collide(patch: pytest.MonkeyPatch) -> None:
    """Texts have one of five hashes."""

    def few(ids: pl.Series) -> np.ndarray:
        return ids.to_numpy() if ids.dtype == pl.Int64 else (ids.hash() % 5).cast(pl.Int64).to_numpy() - 2

    for module in (
        "vocabularies.pieces",
        "vocabularies.build",
        "vocabularies.lookup",
        "vocabularies.day",
        "checks.vocabularies",
    ):
        patch.setattr(f"pipeline.{module}.keys_of", few)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)


@pytest.fixture
def colliding(monkeypatch: pytest.MonkeyPatch) -> None:
    collide(monkeypatch)


def index_files(store: Store) -> list[Path]:
    return sorted((store.root / USERS / "_index").glob("*.piece"))


def grown(store: Store, dataset: Dataset) -> Vocabulary:
    """The log, with its index brought after it."""
    scratch = store.root / "_scratch" / "test"
    vocabulary = read_vocabulary(Store(store.root), USERS, dataset, scratch=scratch)
    assert not scratch.exists()
    return vocabulary


def expect_same(vocabulary: Vocabulary, known: list[Any], asked: list[Any], dtype: pl.DataType) -> None:
    """All look-ups equal those in a dict."""
    assert vocabulary.length == len(known)
    for size in {0, len(known) // 2, len(known)}:
        for ids in (asked, sorted(set(asked), key=lambda one: one.encode() if isinstance(one, str) else one)):
            found = vocabulary.index_of(pl.Series(ids, dtype=dtype), size=size)
            assert found.dtype == pl.Int32
            assert found.to_list() == slow_index(ids, known, size)
    distinct = pl.Series(asked, dtype=dtype).unique()
    assert set(known_ids(vocabulary, distinct).to_list()) == set(known) & set(asked)
    backwards = list(range(len(known) + 1, -1, -1))
    expected = [known[place - 2] if place > 1 else None for place in backwards]
    assert vocabulary.ids_of(pl.Series(backwards + backwards)).to_list() == expected + expected


CASES = st.sampled_from(["int64", "string"]).flatmap(
    lambda kind: st.tuples(st.just(kind), ids_with(kind), ids_with(kind), st.lists(st.integers(0, 40), max_size=8))
)


def expect_all_ways(folder: Path, case: tuple[str, list[Any], list[Any], list[int]]) -> None:
    """With and without an index, which is brought after the log once or segment by segment."""
    kind, known, others, borders = case
    dtype = pl.Int64() if kind == "int64" else pl.String()
    dataset, store = lake(folder, {}, **(TEXT_IDS if kind == "string" else {}))
    cuts = sorted({0, len(known), *(border for border in borders if border < len(known))})
    parts = [pl.Series("id", known[a:b], dtype=dtype) for a, b in pairwise(cuts)]
    for number in range(len(parts) + 1):
        write_log(store, parts[:number])
        now = known[: cuts[number]]
        vocabulary = grown(store, dataset)
        expect_same(vocabulary, now, known + others, dtype)
        covered = sum(piece.rows for piece in vocabulary.pieces if isinstance(piece, MappedPiece))
        assert len(now) - covered < 6
        assert prove_index(store, USERS, dataset) == []
    index.drop_index(store.root / USERS / "_index")
    expect_same(read_vocabulary(Store(store.root), USERS, dataset), known, known + others, dtype)
    expect_same(grown(store, dataset), known, known + others, dtype)  # in one piece


@settings(max_examples=40)
@given(CASES)
def test_look_ups_equal_a_dict(tmp_path_factory: pytest.TempPathFactory, case: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        expect_all_ways(tmp_path_factory.mktemp("log"), case)


@settings(max_examples=40)
@given(CASES)
def test_look_ups_equal_a_dict_when_hashes_collide(tmp_path_factory: pytest.TempPathFactory, case: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        collide(patch)
        expect_all_ways(tmp_path_factory.mktemp("log"), case)


def test_an_empty_log_knows_nothing(tmp_path: Path) -> None:
    dataset, store = lake(tmp_path, {})
    expect_same(grown(store, dataset), [], [1, -7], pl.Int64())


def test_an_index_that_was_never_given(tmp_path: Path) -> None:
    dataset, store = lake(tmp_path, {})
    write_log(store, [pl.Series("id", [5, 6])])
    for wrong in (4, -1):
        with pytest.raises(PipelineError) as caught:
            grown(store, dataset).ids_of(pl.Series([2, wrong]))
        assert str(caught.value) == f"found index {wrong}, expected 0..3: it was never given to an id"


# --- the index ---------------------------------------------------------------------------------------------------

DAYS = [(date(2020, 1, 1) + timedelta(days=number)).isoformat() for number in range(9)]


def named(kind: str, numbers: Iterable[int]) -> list[Any]:
    return [f"u{number}" if kind == "string" else number for number in numbers]


@pytest.fixture(params=["int64", "string"])
def indexed(small: None, tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Dataset, Store, dict[Any, int]]:
    """Nine days of ten ids each, five of them new; the index covers all but the last."""
    days = {day: named(request.param, range(5 * n, 5 * n + 10)) for n, day in enumerate(DAYS)}
    dataset, store = lake(tmp_path, days, **(TEXT_IDS if request.param == "string" else {}))
    for day in DAYS:
        make_vocabulary_of(dataset, Store(store.root), day)
    assert index_files(store)
    return dataset, store, log(store)


def test_pieces_are_merged_as_the_log_grows(indexed: Any) -> None:
    dataset, store, known = indexed
    vocabulary = read_vocabulary(Store(store.root), USERS, dataset)
    rows = [piece.rows for piece in vocabulary.pieces if isinstance(piece, MappedPiece)]
    assert all(rows[place] >= index.RATIO * rows[place + 1] for place in range(len(rows) - 1))
    assert len(rows) < len(segment_paths(store, USERS))
    assert entries(Store(store.root), dataset) == list(known)


def copies(store: Store, dataset: Dataset) -> Iterator[tuple[Dataset, Store, Path]]:
    """One copy of the lake for each file of the index."""
    for place in range(len(index_files(store))):
        folder = dataset.directory.parent / f"{dataset.directory.name}-{place}"
        shutil.copytree(dataset.directory, folder, copy_function=shutil.copy2)
        copied = Store(folder / "out")
        yield dataset, copied, index_files(copied)[place]


DAMAGES = [
    "removed", "empty", "cut", "longer", "garbage", "header", "keys", "indices", "fences", "checks", "ids", "texts"
]  # fmt: skip


def damage_file(path: Path, damage: str) -> None:
    content = bytearray(path.read_bytes())
    piece = MappedPiece.open(path)
    places = {name: getattr(piece.layout, name) + 1 for name in ("keys", "indices", "fences", "checks", "ids", "texts")}
    if damage == "removed":
        path.unlink()
        return
    if damage in places or damage == "header":
        content[min(places.get(damage, 20), len(content) - 1)] ^= 0x10
    changed = {"empty": b"", "cut": bytes(content[:-3]), "longer": bytes(content) + b"x", "garbage": b"{" * 5000}
    path.write_bytes(changed.get(damage, bytes(content)))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_changes_no_index(indexed: Any, damage: str) -> None:
    """Whatever is damaged: days made again and new ones get the same, and the index is whole again after that."""
    dataset, store, before = indexed
    for _, copied, path in copies(store, dataset):
        damage_file(path, damage)
        kind = dataset.columns.user_id.type
        late = named(kind, [-1, 10**12])
        again(dataset, copied, THIRD, [*named(kind, range(10, 20)), *late])
        again(dataset, copied, FIRST, named(kind, range(10)))
        for day in (FIRST, THIRD, DAYS[-1]):
            made = make_vocabulary_of(dataset, Store(copied.root), day)
            looked_up = DayVocabulary.read(Store(copied.root), USERS, date.fromisoformat(day), dataset)
            read_back = DayIds.read(Store(copied.root), USERS, date.fromisoformat(day), dataset)
            assert made.version() == store_version(looked_up)
            assert read_back.ids_of(looked_up.indices).to_list() == looked_up.ids.to_list()
        assert log(copied) == {**before, late[0]: len(before) + 2, late[1]: len(before) + 3}
        prove_index(copied, USERS, dataset)  # which removes what nobody has stumbled over
        grown(copied, dataset)
        assert prove_index(copied, USERS, dataset) == []
        assert index_files(copied)


@pytest.mark.parametrize("damage", ["keys", "indices", "ids", "texts"])
def test_a_damaged_piece_is_not_merged(indexed: Any, damage: str) -> None:
    dataset, store, known = indexed
    for path in index_files(store):
        damage_file(path, damage)
    names = [path.name for path in index_files(store)]
    number = 0
    while [path.name for path in index_files(store)] == names:  # until something has been merged
        number += 1
        more = named(dataset.columns.user_id.type, range(1000, 1000 + 20 * number))
        parts = [pl.read_parquet(path)["id"] for path in segment_paths(store, USERS)]
        write_log(store, [*parts, pl.Series("id", more[-20:])])
        grown(store, dataset)
    assert prove_index(store, USERS, dataset) == []
    assert entries(Store(store.root), dataset) == list(log(store))
    assert list(log(store))[: len(known)] == list(known)


def store_version(day: DayVocabulary) -> str:
    from pipeline.vocabularies.day import pairs_version

    return pairs_version(day.ids, day.indices)


@pytest.mark.parametrize("indexed", ["int64"], indirect=True)
def test_an_index_of_other_segments_is_not_used(indexed: Any) -> None:
    """As after a backup of another log was put back: a piece that is whole, but of what lay there before."""
    dataset, store, _ = indexed
    kept = {path: path.read_bytes() for path in index_files(store)}
    shutil.rmtree(store.root / USERS)
    write_log(store, [pl.Series("id", [100 + number, 200 + number]) for number in range(9)])
    (store.root / USERS / "_index").mkdir()
    for path, content in kept.items():
        path.write_bytes(content)
    assert entries(Store(store.root), dataset) == [one for n in range(9) for one in (100 + n, 200 + n)]
    expect_same(grown(store, dataset), entries(Store(store.root), dataset), [0, 1, 100, 208], pl.Int64())
    assert prove_index(store, USERS, dataset) == []


def test_an_index_with_other_hashes_is_not_used(small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, store = lake(tmp_path, {}, **TEXT_IDS)
    write_log(store, [pl.Series("id", ["b", "a"]), pl.Series("id", ["c"])])
    assert isinstance(grown(store, dataset).pieces[0], MappedPiece)
    monkeypatch.setattr(pieces, "PROBE", pl.Series(["as of another version"]))
    assert not isinstance(read_vocabulary(Store(store.root), USERS, dataset).pieces[0], MappedPiece)


@pytest.mark.parametrize("kind", ["int64", "string"])
def test_a_log_that_holds_an_id_twice_is_not_indexed(small: None, tmp_path: Path, kind: str) -> None:
    dataset, store = lake(tmp_path, {}, **(TEXT_IDS if kind == "string" else {}))
    parts = [[3, 4], [5, 6, 9], [8, 7, 4]]
    write_log(store, [pl.Series("id", part).cast(pl.String if kind == "string" else pl.Int64) for part in parts])
    with pytest.raises(PipelineError, match=r"the log is damaged: '?4'? has two indices; restore it from a backup"):
        grown(store, dataset)
    assert index_files(store) == []


def test_a_writer_of_pieces_that_is_wrong_is_found(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It loses an entry and writes another twice."""
    dataset, store = lake(tmp_path, {})
    write_log(store, [pl.Series("id", [3, 4]), pl.Series("id", [5, 6, 9])])
    right = build._merged

    def wrong(runs: Any) -> Iterator[Any]:
        for keys, indices in right(runs):
            yield np.where(keys == 5, 4, keys), indices

    monkeypatch.setattr(build, "_merged", wrong)
    with pytest.raises(
        PipelineError, match=r"the index came out wrong .it holds other entries than its segments.; report this"
    ):
        grown(store, dataset)
    assert index_files(store) == []


def test_a_disk_without_room_for_the_index_costs_only_time(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, store = lake(tmp_path, {FIRST: [1, 9]})
    write_log(store, [pl.Series("id", [3, 4]), pl.Series("id", [5, 6, 9])])

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(index, "write_piece", full)
    assert make_vocabulary_of(dataset, store, FIRST).size == 6
    assert log(store) == {3: 2, 4: 3, 5: 4, 6: 5, 9: 6, 1: 7}
    assert index_files(store) == []
    assert not list((store.root / "_scratch").iterdir())


def test_many_runs_at_once_bring_the_index_after_the_log(small: None, tmp_path: Path) -> None:
    days = {day: list(range(5 * number, 5 * number + 10)) for number, day in enumerate(DAYS)}
    dataset, store = lake(tmp_path, days)
    for _ in range(2):
        with ThreadPoolExecutor(5) as threads:
            sizes = list(
                threads.map(lambda day: make_vocabulary_of(dataset, Store(store.root), day, run=day).size, days)
            )
        assert max(size or 0 for size in sizes) == 50
    known = log(store)
    assert set(known) == set(range(50))
    expect_same(grown(store, dataset), list(known), [*known, -1], pl.Int64())
    assert prove_index(store, USERS, dataset) == []
    assert not list((store.root / "_scratch").iterdir())


def test_a_run_that_is_killed_while_it_writes_the_index(indexed: Any) -> None:
    """What it leaves is no index, in the way of nobody, and swept like all scratch folders."""
    dataset, store, known = indexed
    left = store.root / "_scratch" / "dead-user_vocabulary-index-2020-01-01"
    left.mkdir(parents=True)
    (left / "abcd.piece").write_bytes(index_files(store)[0].read_bytes()[:100])
    index.drop_index(store.root / USERS / "_index")
    again(dataset, store, FIRST, named(dataset.columns.user_id.type, [0, 77_777]))
    make_vocabulary_of(dataset, Store(store.root), FIRST)
    assert list(log(store))[: len(known)] == list(known)
    assert prove_index(store, USERS, dataset) == []
    assert [path.name for path in (store.root / "_scratch").iterdir()] == [left.name]


@pytest.mark.parametrize("indexed", ["int64"], indirect=True)
def test_a_piece_that_another_run_has_merged_meanwhile(indexed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is gone between the listing and the opening, and so are the pages of nobody who has it open."""
    dataset, store, known = indexed
    opened = read_vocabulary(Store(store.root), USERS, dataset)
    first = index_files(store)[0]
    right, misses = MappedPiece.open, [True, True]

    def missing(path: Path) -> MappedPiece:
        if misses and path == first:
            misses.pop()
            raise FileNotFoundError(path)
        return right(path)

    monkeypatch.setattr(MappedPiece, "open", staticmethod(missing))
    assert isinstance(read_vocabulary(Store(store.root), USERS, dataset).pieces[0], MappedPiece)
    for path in index_files(store):
        path.unlink()
    expect_same(opened, list(known), [*known, -5], pl.Int64())


def test_a_key_that_is_found_in_no_block_is_looked_for_in_the_right_one(small: None, tmp_path: Path) -> None:
    """Around every border of a block, in a piece whose blocks hold four keys."""
    dataset, store = lake(tmp_path, {})
    known = list(range(0, 60, 3))
    write_log(store, [pl.Series("id", known)])
    piece = grown(store, dataset).pieces[0]
    assert isinstance(piece, MappedPiece)
    asked = list(range(-2, 64))
    found = piece.find(pl.Series(asked), np.array(asked))
    assert [index or 1 for index in found.tolist()] == slow_index(asked, known, len(known))
    assert piece.positions(np.array(asked)).tolist() == np.searchsorted(known, asked).tolist()


# --- the ids of a day ----------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(INTEGERS, st.integers(0, 99)), unique_by=lambda pair: pair[0], max_size=30), st.data())
def test_slots_equal_a_dict(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    known = dict(pairs)
    slots = Slots(
        np.array(list(known), dtype=np.int64), np.array(list(known.values()), dtype=np.int32), absent=-1
    )  # fmt: skip
    some = st.one_of(INTEGERS, st.sampled_from(list(known) or [0]))
    for most in (3, 100):  # by binary search, and by table
        asked = data.draw(st.lists(some, min_size=min(most, 31), max_size=most))
        assert slots.find(np.array(asked, dtype=np.int64)).tolist() == [known.get(one, -1) for one in asked]


@pytest.mark.parametrize(
    ("values", "direct"),
    [
        (np.arange(1_000) * 16, True),
        (np.arange(1_000) * 17, False),
        (np.arange(1_000) + np.int64(-(2**63)), True),
        (np.int64(2**63 - 1) - np.arange(1_000), True),
        (np.array([-(2**63), 2**63 - 1]), False),
        (np.arange(300_000) * 3_000_017, False),  # a few of them share a place
    ],
)
def test_slots_by_place_and_by_hash(values: np.ndarray, direct: bool) -> None:
    numbers = np.arange(len(values), dtype=np.int32) + 2
    slots = Slots(values[::-1], numbers[::-1], absent=1)
    assert slots._direct == direct
    extremes = np.array([2**63 - 1, -(2**63), 0, -1, 1], dtype=np.int64)
    with np.errstate(over="ignore"):
        asked = np.concatenate([values, values + 1, values - 1, extremes])
    known = dict(zip(values.tolist(), numbers.tolist(), strict=True))
    expected = [known.get(one, 1) for one in asked.tolist()]
    assert slots.find(asked).tolist() == expected
    assert slots.find(asked[: len(values)]).tolist() == expected[: len(values)]


ITEMS_OF_DAY = st.sampled_from(["int64", "string"]).flatmap(
    lambda kind: st.tuples(
        st.just(kind),
        st.lists(st.one_of(st.none(), INTEGERS if kind == "int64" else st.text("abé", max_size=2)), min_size=1, max_size=20),
    )
)  # fmt: skip


def items_lake(folder: Path, kind: str, items: list[Any], **overrides: Any) -> tuple[Dataset, Store]:
    from pipeline_tests.datasets import at, make_dataset, make_events_of, make_store, row

    rows = [row(place % 3, item, at(FIRST, "12:00:00")) for place, item in enumerate(items)]
    columns = {"item_id": {"from": "item", "type": kind, "optional": True}}
    dataset = make_dataset(folder, days={FIRST: rows}, columns=columns, **overrides)
    store = make_store(dataset)
    make_events_of(dataset, store, FIRST)
    return dataset, store


@settings(max_examples=25)
@given(ITEMS_OF_DAY)
def test_the_ids_of_a_day_are_looked_up_forwards_and_in_reverse(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[str, list[Any]]
) -> None:
    kind, items = case
    items = [None if item == "" else item for item in items]  # an empty cell is a missing one
    dataset, store = items_lake(tmp_path_factory.mktemp("day"), kind, items)
    make_vocabulary_of(dataset, store, FIRST, vocabulary="item_vocabulary")
    expected = log(store, "item_vocabulary")
    for known in (store, Store(store.root)):  # remembered, and read from disk
        day = DayVocabulary.read(known, "item_vocabulary", date.fromisoformat(FIRST), dataset)
        assert dict(zip(day.ids.to_list(), day.indices.to_list(), strict=True)) == expected
        in_order = sorted({one for one in items if one is not None}, key=str.encode if kind == "string" else None)
        assert day.ids.to_list() == list(expected) == in_order
        asked = pl.Series(items * 3 + [None], dtype=day.ids.dtype)
        found = day.index_of(asked)
        assert found.dtype == pl.Int32
        assert found.to_list() == [0 if item is None else expected[item] for item in asked]
        strange = pl.Series([12345 if kind == "int64" else "strange", None], dtype=day.ids.dtype)
        assert day.index_of(strange).to_list() == [expected.get(12345, 1), 0]
        back = DayIds.read(known, "item_vocabulary", date.fromisoformat(FIRST), dataset)
        assert back.unknown.to_list() == []
        asked_back = pl.Series([*found.to_list(), 1, 0, len(expected) + 2, -1], dtype=pl.Int32)
        assert back.ids_of(asked_back).to_list() == [*asked.to_list(), None, None, None, None]


def test_texts_of_a_day_with_the_same_hash(colliding: None, tmp_path: Path) -> None:
    texts = [f"i{number}" for number in range(12)]
    dataset, store = items_lake(tmp_path, "string", texts)
    make_vocabulary_of(dataset, store, FIRST, vocabulary="item_vocabulary")
    day = DayVocabulary.read(Store(store.root), "item_vocabulary", date.fromisoformat(FIRST), dataset)
    expected = log(store, "item_vocabulary")
    found = day.index_of(pl.Series([*texts, "other", None]))
    assert found.to_list() == [*(expected[text] for text in texts), 1, 0]


def test_a_frozen_day_knows_what_the_log_held_then(tmp_path: Path) -> None:
    dataset, store = lake(tmp_path, {FIRST: [1, 2], SECOND: [2, 3, 4], THIRD: [3]})
    make_vocabulary_of(dataset, store, FIRST)
    (tmp_path / "frozen").mkdir()
    frozen, _ = lake(tmp_path / "frozen", {}, **FROZEN)
    dataset_frozen = dataset.model_copy(update={"vocabulary": frozen.vocabulary})
    make_vocabulary_of(dataset_frozen, store, SECOND)
    make_vocabulary_of(dataset, store, THIRD)  # 3 comes into the log after that
    assert log(store) == {1: 2, 2: 3, 3: 4}
    day = DayVocabulary.read(Store(store.root), USERS, date.fromisoformat(SECOND), dataset_frozen)
    assert (day.ids.to_list(), day.indices.to_list()) == ([2, 3, 4], [3, 1, 1])
    back = DayIds.read(Store(store.root), USERS, date.fromisoformat(SECOND), dataset_frozen)
    assert (back.indices.to_list(), back.ids.to_list(), back.unknown.to_list()) == ([3], [2], [3, 4])
    assert back.ids_of(pl.Series([3, 4, 1, 0])).to_list() == [2, None, None, None]


def test_a_log_with_other_indices_than_published_is_refused(tmp_path: Path) -> None:
    dataset, store = lake(tmp_path, {FIRST: [1, 2, 3]})
    make_vocabulary_of(dataset, store, FIRST)
    path = segment_paths(store, USERS)[0]
    pl.read_parquet(path).with_columns(pl.col("id").reverse()).write_parquet(path)
    with pytest.raises(PipelineError, match=f"{path.parent}: the log is damaged .* was published with other indices"):
        DayVocabulary.read(Store(store.root), USERS, date.fromisoformat(FIRST), dataset)


def test_distinct_ids_over_many_blocks_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline.vocabularies import day as module

    _, store = lake(tmp_path, {FIRST: [number % 7 for number in range(100)]})
    events = store.manifest("events", date.fromisoformat(FIRST))
    assert events is not None
    for most in (1, 10, 10**6):
        monkeypatch.setattr(module, "UNIQUE_ROWS", most)
        assert module.distinct_ids(store, USERS, events).to_list() == list(range(7))
        assert module.distinct_ids(store, "item_vocabulary", events).to_list() == [f"i{n}" for n in range(7)]


def test_pieces_in_memory_and_in_a_file_are_the_same(small: None, tmp_path: Path) -> None:
    dataset, store = lake(tmp_path, {})
    write_log(store, [pl.Series("id", [9, -4, 7]), pl.Series("id", [2**62, 0])])
    in_file = grown(store, dataset).pieces[0]
    held = Piece.of(pl.Series("id", [9, -4, 7, 2**62, 0]), 2)
    assert isinstance(in_file, MappedPiece)
    assert in_file.keys.tolist() == held.keys.tolist()
    assert in_file.indices.tolist() == held.indices.tolist()
    assert Segments.of(store, USERS, dataset).rows_from(1) == 2

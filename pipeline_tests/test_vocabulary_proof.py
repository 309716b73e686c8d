"""What the proof of a vocabulary lets through, and what it finds."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.checks.findings import Findings
from pipeline.checks.reading import Subject
from pipeline.checks.vocabularies import prove_vocabulary
from pipeline.config import Dataset
from pipeline.store import Staged, Store
from pipeline.vocabularies import DayVocabulary, MappedPiece, Segment, make_vocabulary, read_vocabulary, segment_paths
from pipeline.vocabularies.day import pairs_version
from pipeline_tests.datasets import make_vocabulary_of
from pipeline_tests.test_vocabularies import FIRST, SECOND, THIRD, USERS, again, lake
from pipeline_tests.test_vocabulary_pieces import DAMAGES, TEXT_IDS, collide, damage_file, index_files, shrink

publishing: Any = import_module("pipeline.checks.publish")  # the package has a function of that name

DAYS = {FIRST: [10, 20, -7], SECOND: [20, 5, 2**62], THIRD: [30, 5, 8, 9]}


@pytest.fixture(params=["integers", "texts", "texts of few hashes"])
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Dataset, Store]:
    """Two days of a vocabulary, the second of which reads the first by an index; the third has its events."""
    shrink(monkeypatch)
    monkeypatch.setattr("pipeline.vocabularies.index.TAIL_SEGMENTS", 1)
    if request.param == "texts of few hashes":
        collide(monkeypatch)
    text = request.param != "integers"
    days = {day: [f"u{user}" if text else user for user in users] for day, users in DAYS.items()}
    dataset, store = lake(tmp_path, days, **(TEXT_IDS if text else {}))
    for day in (FIRST, SECOND):
        make_vocabulary_of(dataset, Store(store.root), day)
    assert index_files(store)
    return dataset, store


def stage(dataset: Dataset, store: Store, day: str = THIRD) -> tuple[Staged, Segment | None]:
    return make_vocabulary(vocabulary=USERS, day=date.fromisoformat(day), dataset=dataset, store=store, run="run")


def failed(staged: Staged, segment: Segment | None, dataset: Dataset, store: Store, *, deep: bool = False) -> list[str]:
    """Names of the findings that block."""
    findings = Findings()
    prove_vocabulary(Subject(staged.manifest, store, dataset, ()), segment, findings, deep=deep)
    return [finding.name for finding in findings.found if finding.blocking and not finding.passed]


@pytest.mark.parametrize("remembered", [True, False])
def test_what_is_right_is_let_through(made: Any, remembered: bool) -> None:
    dataset, store = made
    staged, segment = stage(dataset, store)
    assert segment is not None
    proving = store if remembered else Store(store.root)
    assert (DayVocabulary.remembered(proving, staged.manifest) is not None) == remembered
    assert isinstance(read_vocabulary(proving, USERS, dataset).pieces[0], MappedPiece)
    assert failed(staged, segment, dataset, proving) == []
    assert segment.link()
    store.commit(staged, proof={})
    for day in DAYS:  # again, over a longer log
        manifest = store.manifest(USERS, date.fromisoformat(day))
        assert manifest is not None
        for deep in (False, True):
            assert failed(replace(staged, manifest=manifest), None, dataset, Store(store.root), deep=deep) == []


def test_a_frozen_day_is_let_through_then_and_later(made: Any) -> None:
    dataset, store = made
    frozen = dataset.model_copy(update={"vocabulary": dataset.vocabulary.model_copy(update={"mode": "frozen"})})
    staged, segment = stage(frozen, store)
    assert segment is None
    assert failed(staged, segment, frozen, store) == []
    assert failed(staged, segment, frozen, Store(store.root)) == []
    store.commit(staged, proof={})
    again(dataset, store, SECOND, named(dataset, [*DAYS[SECOND], DAYS[THIRD][0]]))
    make_vocabulary_of(dataset, Store(store.root), SECOND)  # an unknown id of the frozen day comes into the log
    assert failed(staged, segment, frozen, Store(store.root), deep=True) == []


def named(dataset: Dataset, users: list[int]) -> list[Any]:
    return [f"u{user}" if dataset.columns.user_id.type == "string" else user for user in users]


Change = Callable[[pl.DataFrame, Dataset], pl.DataFrame]


def with_rows(users: list[int]) -> Change:
    """Other ids, with indices that go on as they should."""

    def change(frame: pl.DataFrame, dataset: Dataset) -> pl.DataFrame:
        ids = pl.Series("id", named(dataset, users), dtype=frame["id"].dtype).sort()
        start = frame["index"][0]
        index = pl.int_range(start, start + ids.len(), dtype=pl.Int32, eager=True)
        first_day, run = frame["first_day"][0], frame["run"][0]
        return pl.DataFrame({"index": index, "id": ids}).with_columns(first_day=pl.lit(first_day), run=pl.lit(run))

    return change


SEGMENT_ERRORS: dict[str, tuple[Change, str]] = {
    "an id of the log, of this day": (with_rows([5, 30, 8, 9]), "ids that are added were not in the log"),
    "an id of the log, of another day": (with_rows([10, 30, 8, 9]), "ids that are added were not in the log"),
    "an id of no event": (with_rows([31, 30, 8, 9]), "only ids of the day are added"),
    "an id too few": (with_rows([30, 8]), "new ids as recorded"),
    "an id twice": (with_rows([30, 8, 8, 9]), "new ids ascend"),
    "ids out of order": (
        lambda frame, _: frame.with_columns(pl.col("id").reverse()),
        "new ids ascend",
    ),
    "an index given twice": (
        lambda frame, _: frame.with_columns(pl.col("index") - 1),
        "new indices go on where the log ends",
    ),
    "an index left out": (
        lambda frame, _: frame.with_columns(pl.col("index") + (pl.col("index") == pl.col("index").max()).cast(pl.Int32)),
        "new indices go on where the log ends",
    ),
    "a null": (
        lambda frame, _: frame.with_columns(pl.when(pl.int_range(pl.len()) > 0).then("id")),
        "new ids ascend",
    ),
    "another day": (
        lambda frame, _: frame.with_columns(first_day=pl.lit(FIRST)),
        "the segment records the day",
    ),
}  # fmt: skip


@pytest.mark.parametrize("remembered", [True, False])
@pytest.mark.parametrize("error", SEGMENT_ERRORS)
def test_a_wrong_segment_is_found(made: Any, error: str, remembered: bool) -> None:
    dataset, store = made
    change, finding = SEGMENT_ERRORS[error]
    staged, segment = stage(dataset, store)
    assert segment is not None
    changed = change(pl.read_parquet(segment.path), dataset)
    assert not changed.equals(pl.read_parquet(segment.path))
    changed.write_parquet(segment.path)
    assert finding in failed(staged, segment, dataset, store if remembered else Store(store.root))


@pytest.mark.parametrize(
    ("user", "index", "finding"),
    [
        (5, 2, "every index looked up in reverse gives its id"),
        (5, 1, "unknown ids were not in the log"),
        (30, 1, "every id of the day has an index"),
        (30, 2, "every index looked up in reverse gives its id"),
        (30, 8, "only ids of the day are added"),
        (30, 11, "indices are within the size"),
        (5, 0, "indices are within the size"),
    ],
)
def test_indices_that_the_making_got_wrong_are_found(made: Any, user: int, index: int, finding: str) -> None:
    """Version and memory agree, as they would if the look-up itself were wrong."""
    dataset, store = made
    staged, segment = stage(dataset, store)
    right = DayVocabulary.remembered(store, staged.manifest)
    assert right is not None
    place = right.ids.index_of(named(dataset, [user])[0])
    assert place is not None
    assert right.indices[place] != index
    wrong = DayVocabulary(right.ids, right.indices.scatter(place, index))
    version = pairs_version(wrong.ids, wrong.indices)
    staged = replace(staged, manifest=replace(staged.manifest, content_version=version))
    wrong.remember(store, USERS, date.fromisoformat(THIRD), version)
    assert finding in failed(staged, segment, dataset, store)
    assert "content version is that of the ids and indices" in failed(staged, segment, dataset, Store(store.root))


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"rows": 5}, "rows = distinct ids of the day"),
        ({"size": 7}, "size = length of the log"),
        ({"content_version": "0" * 32}, "content version is that of the ids and indices"),
        ({"counts": {"ids": 4, "new_ids": 2}}, "new ids as recorded"),
        ({"inputs": {"events": "0" * 32}}, "the manifest of user_vocabulary records its inputs as they are"),
    ],
)
def test_a_wrong_manifest_is_found(made: Any, change: dict[str, Any], finding: str) -> None:
    dataset, store = made
    staged, segment = stage(dataset, store)
    staged = replace(staged, manifest=replace(staged.manifest, **change))
    assert finding in failed(staged, segment, dataset, Store(store.root))


def test_another_run_that_added_to_the_log_meanwhile_is_found(made: Any) -> None:
    dataset, store = made
    staged, segment = stage(dataset, store)
    again(dataset, store, FIRST, named(dataset, [*DAYS[FIRST], 99]))
    make_vocabulary_of(dataset, Store(store.root), FIRST)
    files = index_files(store)
    assert "no other run has added to the log meanwhile" in failed(staged, segment, dataset, Store(store.root))
    assert index_files(store) == files


def test_a_run_that_adds_to_the_log_during_the_proof_is_no_failure(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, store = made
    staged, segment = stage(dataset, store)
    again(dataset, store, FIRST, named(dataset, [*DAYS[FIRST], 99]))
    prove = publishing._prove

    def prove_late(*arguments: Any, **settings: Any) -> Any:
        make_vocabulary_of(dataset, Store(store.root), FIRST)
        return prove(*arguments, **settings)

    monkeypatch.setattr(publishing, "_prove", prove_late)
    assert publishing.publish(staged, segment=segment, dataset=dataset, features=(), store=Store(store.root)) is None
    assert store.manifest(USERS, date.fromisoformat(THIRD)) is None


def test_a_frozen_vocabulary_that_grows_is_found(made: Any) -> None:
    dataset, store = made
    staged, segment = stage(dataset, store)
    frozen = dataset.model_copy(update={"vocabulary": dataset.vocabulary.model_copy(update={"mode": "frozen"})})
    assert "a frozen vocabulary does not grow" in failed(staged, segment, frozen, store)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_does_not_make_a_proof_fail(made: Any, damage: str) -> None:
    dataset, store = made
    staged, segment = stage(dataset, store)
    damage_file(index_files(store)[0], damage)
    assert failed(staged, segment, dataset, Store(store.root)) == []
    staged, segment = stage(dataset, Store(store.root))
    assert failed(staged, segment, dataset, Store(store.root), deep=True) == []


def test_what_only_the_deep_form_finds(made: Any) -> None:
    """The log was damaged before: an old segment holds an id twice, and no day of the proof has to do with it."""
    dataset, store = made
    first, second = segment_paths(store, USERS)
    twice = pl.read_parquet(first)["id"][1]
    changed = pl.read_parquet(second).with_columns(
        pl.when(pl.col("index") == 6).then(pl.lit(twice)).otherwise("id").alias("id")
    )
    changed.write_parquet(second)
    manifest = store.manifest(USERS, date.fromisoformat(FIRST))
    assert manifest is not None
    findings = Findings()
    prove_vocabulary(Subject(manifest, Store(store.root), dataset, ()), None, findings, deep=True)
    assert "every id has one index (bijection)" in [one.name for one in findings.found if not one.passed]

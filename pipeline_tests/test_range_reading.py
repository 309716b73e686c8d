"""A run over many days whose raw files hold rows of all of them: read once, and every day as if it were made alone."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.checks import Proof, prove_days_again, raw_oracle, raw_sample
from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.events import convert, reading, write
from pipeline.events.arrange import Arranger
from pipeline.events.parts import DayParts
from pipeline.stages import Outcome, Work, run_day, run_days
from pipeline.store import Manifest, Store
from pipeline_tests.datasets import at, make_dataset, make_store, row, table, write_csv
from pipeline_tests.works import work_of

DAYS = [date(2020, 1, number) for number in range(1, 6)]
FIRST, SECOND, THIRD, FOURTH, FIFTH = DAYS
TABLES = ("events", "rejected_events")


def noon(day: date, after: int = 0) -> int:
    return at(day.isoformat(), "12:00:00") + after


def shared(folder: Path, files: dict[str, Any], **overrides: Any) -> Dataset:
    """A dataset whose files hold rows of all days."""
    overrides["source"] = {"path": "raw/*.csv", **overrides.get("source", {})}
    return make_dataset(folder, days=files, **overrides)


def work(dataset: Dataset, *, memory: int | None = None, force: bool = False) -> Work:
    make_store(dataset)
    if memory is not None:  # far below what a dataset file may say
        compute = dataset.compute.model_copy(update={"memory": memory})
        dataset = dataset.model_copy(update={"compute": compute})
    return replace(work_of(dataset, run="run", force=force), features=())


def made_of(found: dict[date, Outcome | PipelineError]) -> dict[date, Manifest]:
    return {day: outcome.manifest for day, outcome in found.items() if isinstance(outcome, Outcome)}


def errors_of(found: dict[date, Outcome | PipelineError]) -> dict[date, str]:
    return {day: str(outcome) for day, outcome in found.items() if isinstance(outcome, PipelineError)}


def one_by_one(given: Work, days: list[date] = DAYS) -> dict[date, Outcome | PipelineError]:
    found: dict[date, Outcome | PipelineError] = {}
    for day in days:
        try:
            found[day] = run_day("events", day, given)
        except PipelineError as error:
            found[day] = error
    return found


def together(given: Work, days: list[date] = DAYS) -> dict[date, Outcome | PipelineError]:
    return dict(run_days("events", days, given))


def everything(store: Store) -> dict[Any, Any]:
    """All that is published: of the proofs what was found, and no times."""
    found: dict[Any, Any] = {}
    for asset in TABLES:
        for day in store.days(asset):
            manifest = store.manifest(asset, day)
            assert manifest is not None
            written = manifest.to_json()
            proof = written.pop("proof")
            figures = {name: value for name, value in proof["figures"].items() if name != "seconds_a_part"}
            found[asset, day] = (written, proof["findings"], figures, table(store, asset, day.isoformat()).rows())
    return found


def lying_about(store: Store) -> list[str]:
    """Data files that no manifest names, and scratch files."""
    named = {
        store.directory(asset, day) / file.path
        for asset in TABLES
        for day in store.days(asset)
        if (manifest := store.manifest(asset, day)) is not None
        for file in manifest.files
    }
    files = (path for path in store.root.rglob("*") if path.suffix in (".parquet", ".arrow", ".tmp"))
    return [str(path) for path in files if path not in named and "_failed" not in path.parts]


# --- read once ---------------------------------------------------------------------------------------------------


@pytest.fixture
def read_files(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a raw file is read: to make days, and to prove them."""
    read: Counter[str] = Counter()
    read_blocks, read_records = reading.read_blocks, raw_sample.read_records

    def blocks(file: Any, *rest: Any, **more: Any) -> Any:
        read[f"made of {file.name}"] += 1
        return read_blocks(file, *rest, **more)

    def records(path: Path, **more: Any) -> Any:
        read[f"proven by {path.name}"] += 1
        return read_records(path, **more)

    monkeypatch.setattr(reading, "read_blocks", blocks)
    monkeypatch.setattr(raw_sample, "read_records", records)
    return read


@pytest.mark.parametrize(("every_time", "readings"), [(200_000, 2), (0, 1)])
def test_files_of_all_days_are_read_once(
    tmp_path: Path, read_files: Counter[str], monkeypatch: pytest.MonkeyPatch, every_time: int, readings: int
) -> None:
    """The proof reads a small file a second time, for what it samples once it knows the day of every record."""
    monkeypatch.setattr(raw_sample, "EVERY_TIME", every_time)
    files = {
        "a": [row(1, "x", noon(SECOND)), row(2, "y", noon(FIRST)), row(None, "y", noon(FIRST, 1))],
        "b": [row(3, "z", noon(SECOND, 5)), row(1, "w", noon(FOURTH))],
    }
    given = work(shared(tmp_path, files))
    made = made_of(together(given))
    assert [made[day].rows for day in DAYS] == [1, 2, 0, 1, 0]
    assert read_files == {
        "made of raw/a.csv": 1, "made of raw/b.csv": 1, "proven by a.csv": readings, "proven by b.csv": readings,
    }  # fmt: skip
    second = table(given.store, "events", "2020-01-02").select("row_id", "user_id", "item_id")
    assert second.rows() == [(0, 1, "x"), (1, 3, "z")]
    assert table(given.store, "rejected_events", "2020-01-01").select("row_id", "file", "line").rows() == [
        (1, "raw/a.csv", 4)
    ]
    assert made[SECOND].counts == {
        "read": 5, "in": 2, "other_day": 3, "outside_partitions": 0, "accepted": 2, "rejected": {}, "ties": 0,
        "duplicates": 0, "by_action": {"view": 2, "cart": 0},
    }  # fmt: skip
    assert [(file["day_rows"], file["day_ends"]) for file in made[SECOND].raw_files] == [(1, [0, 0]), (1, [0, 0])]
    assert [(file["day_rows"], file["day_ends"]) for file in made[FOURTH].raw_files] == [(0, []), (1, [1, 1])]


@pytest.mark.parametrize("block_bytes", [1, 10**6])
def test_where_the_rows_of_a_day_stand_in_a_file(tmp_path: Path, block_bytes: int) -> None:
    days = [SECOND, FIRST, SECOND, FOURTH, FIRST, FIRST]
    given = work(shared(tmp_path, {"all": [row(1, "x", noon(day)) for day in days]}))
    with mock.patch("pipeline.events.reading.usual_block_bytes", return_value=block_bytes):
        made = made_of(together(given))
    assert [(made[day].raw_files[0]["day_rows"], made[day].raw_files[0]["day_ends"]) for day in DAYS] == [
        (3, [1, 5]), (2, [0, 2]), (0, []), (1, [3, 3]), (0, []),
    ]  # fmt: skip


def test_dropped_duplicates_take_one_more_reading_for_all_days(tmp_path: Path, read_files: Counter[str]) -> None:
    rows = [row(user, "x", noon(day)) for day in DAYS for user in (1, 2, 1)]
    given = work(shared(tmp_path, {"all": rows}, quality={"duplicates": "drop"}))
    made = made_of(together(given))
    assert [made[day].counts["rejected"] for day in DAYS] == [{"duplicate": 1}] * 5
    assert read_files["made of raw/all.csv"] == 2
    assert table(given.store, "rejected_events", "2020-01-03").rows() == [
        (2, "raw/all.csv", 10, "duplicate", None, f"1,x,{noon(THIRD)},view")
    ]


@pytest.mark.parametrize("memory", [None, 4_000])
def test_files_with_and_without_further_columns_in_one_run(tmp_path: Path, memory: int | None) -> None:
    """Rows of the first file are told apart by their values, those of the second by all of their cells."""
    plain = [row(1, "x", noon(day)) for day in DAYS for _ in range(2)]
    more = [row(1, "x", noon(day), more=cell) for day in DAYS for cell in ("p", "p", "q")]
    dataset = make_dataset(
        tmp_path, days={"a": plain, "b": more}, extension="parquet", source={"path": "raw/*.parquet"}
    )
    made = made_of(together(work(dataset, memory=memory)))
    assert [(made[day].counts["ties"], made[day].counts["duplicates"]) for day in DAYS] == [(5, 2)] * 5


def test_reused_days_are_not_read(tmp_path: Path, read_files: Counter[str]) -> None:
    given = work(shared(tmp_path, {"all": [row(1, "x", noon(day)) for day in DAYS]}))
    together(given, DAYS[:2])
    read_files.clear()
    found = together(given)
    assert [outcome.reused for outcome in found.values() if isinstance(outcome, Outcome)] == [True, True, *[False] * 3]
    assert read_files["made of raw/all.csv"] == 1
    read_files.clear()
    assert all(outcome.reused for outcome in together(given).values() if isinstance(outcome, Outcome))
    assert not read_files
    forced = together(replace(given, force=True))
    assert not any(outcome.reused for outcome in forced.values() if isinstance(outcome, Outcome))
    assert read_files["made of raw/all.csv"] == 1


def test_a_touched_file_is_hashed_once_for_all_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline.events import recipe

    given = work(shared(tmp_path, {"all": [row(1, "x", noon(day)) for day in DAYS]}))
    together(given)
    (tmp_path / "raw" / "all.csv").touch()
    hashed: list[Path] = []
    right = recipe.file_sha256
    monkeypatch.setattr(recipe, "file_sha256", lambda path: hashed.append(path) or right(path))
    assert all(outcome.reused for outcome in together(given).values() if isinstance(outcome, Outcome))
    assert hashed == [tmp_path / "raw" / "all.csv"]


def test_progress_is_reported(tmp_path: Path) -> None:
    lines: list[str] = []
    given = work(shared(tmp_path, {"all": [row(1, "x", noon(day)) for day in DAYS]}))
    together(replace(given, report=lines.append))
    assert lines == [
        "events of 5 days: 5 rows read, now in raw/all.csv",
        "events of 5 days: reading the raw files a second time, for the proof",
    ]


# --- as if made alone --------------------------------------------------------------------------------------------

TIMES = st.one_of(
    st.none(),
    st.just("x"),
    st.just(7),
    st.integers(at("2019-12-30"), at("2020-01-08") - 1),
    st.sampled_from([noon(day) for day in DAYS]),
)
ROWS = st.tuples(st.sampled_from([1, 2, 3, None]), TIMES, st.sampled_from(["view", "cart", "buy"]))
FILES = st.lists(st.lists(ROWS, max_size=15), min_size=1, max_size=2)


@settings(max_examples=10)
@given(
    FILES,
    st.sampled_from(["keep", "drop"]),
    st.sampled_from([0.05, 0.5, 1.0]),
    st.sampled_from([150, 4_000, 2**26]),
    st.sampled_from([120, 10**6]),
    st.sampled_from([0, 200_000]),
    st.sampled_from([[], ["2020-01-02"]]),
    st.booleans(),
)
def test_a_range_is_its_days_one_by_one(
    files: list[list[tuple[Any, ...]]],
    duplicates: str,
    share: float,
    memory: int,
    block_bytes: int,
    every_time: int,
    skip: list[str],
    in_order: bool,
) -> None:
    # The unit doctor has its own tests; here good rows of the fifth keep it quiet.
    quiet = [(9, noon(FIFTH, number), "view") for number in range(20)]
    if in_order:
        files = [sorted(file, key=lambda one: one[1] if isinstance(one[1], int) else 0) for file in files]
    written = {
        f"f{number}": [
            row(user, f"item-number-{(user or 0) % 2}", time, action) for user, time, action in [*file, *quiet]
        ]
        for number, file in enumerate(files)
    }
    overrides: dict[str, Any] = {
        "quality": {"duplicates": duplicates, "max_rejected_share": share},
        "partitions": {"skip": skip},
    }
    with (
        TemporaryDirectory() as alone,
        TemporaryDirectory() as range_,
        mock.patch("pipeline.events.reading.usual_block_bytes", return_value=block_bytes),
        mock.patch("pipeline.checks.raw_sample.EVERY_TIME", every_time),
    ):
        both = [
            work(shared(Path(alone), written, **overrides), memory=memory),
            work(shared(Path(range_), written, **overrides), memory=memory),
        ]
        _same_times(Path(alone) / "raw", Path(range_) / "raw")
        first, second = one_by_one(both[0]), together(both[1])
        assert sorted(second) == DAYS
        assert errors_of(second) == {day: said.replace(alone, range_) for day, said in errors_of(first).items()}
        expected, found = everything(both[0].store), everything(both[1].store)
        assert list(found) == list(expected)
        for key, all_of_it in found.items():
            assert all_of_it == expected[key]
        assert lying_about(both[1].store) == []
        assert not list(both[1].store.root.glob("_scratch/*"))


def _same_times(folder: Path, other: Path) -> None:
    """Manifests record when raw files were modified."""
    import os

    for path in folder.iterdir():
        found = path.stat()
        os.utime(other / path.name, ns=(found.st_atime_ns, found.st_mtime_ns))


def test_days_that_do_not_fit_into_memory_are_the_same_to_the_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a day is cut into files does not depend on the days that were read with it, nor on the memory."""
    monkeypatch.setattr(write, "FILE_ROWS", 300)
    rows = [row(number * 7 % 97, f"item-{number % 11}", noon(DAYS[number % 3], number % 50)) for number in range(3_000)]
    sums = []
    for name, way, memory in (("alone", one_by_one, 40_000), ("range", together, 40_000), ("held", together, 2**30)):
        given = work(shared(tmp_path / name, {"all": rows}), memory=memory)
        made = made_of(way(given))
        assert [[file.rows for file in made[day].files] for day in DAYS] == [[300, 300, 300, 100]] * 3 + [[]] * 2
        sums.append({day: [(file.rows, file.sha256) for file in made[day].files] for day in DAYS})
    assert sums[0] == sums[1] == sums[2]


@pytest.mark.parametrize("at_once", [1, 2, 1_000])
def test_days_are_proven_in_batches_when_there_are_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_files: Counter[str], at_once: int
) -> None:
    monkeypatch.setattr(raw_oracle, "FILES_AT_ONCE", at_once)
    monkeypatch.setattr(raw_sample, "EVERY_TIME", 0)
    given = work(shared(tmp_path, {"all": [row(1, "x", noon(day)) for day in DAYS]}))
    assert len(made_of(together(given))) == 5
    assert read_files["proven by all.csv"] == {1: 5, 2: 3, 1_000: 1}[at_once]
    read_files.clear()
    again = dict(prove_days_again("events", DAYS, dataset=given.dataset, features=(), store=given.store))
    assert [isinstance(proof, Proof) and proof.passed for proof in again.values()] == [True] * 5
    assert list(again) == DAYS
    assert read_files["proven by all.csv"] == {1: 5, 2: 3, 1_000: 1}[at_once]


def test_a_file_that_grew_is_read_once_to_find_that_no_day_is_of_it_any_more(
    tmp_path: Path, read_files: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_sample, "EVERY_TIME", 0)
    rows = [row(1, "x", noon(day)) for day in DAYS]
    given = work(shared(tmp_path, {"all": rows}))
    together(given, DAYS[:4])
    write_csv(tmp_path / "raw" / "all.csv", [*rows, row(2, "x", noon(FIRST))])
    read_files.clear()
    again = dict(prove_days_again("rejected_events", DAYS, dataset=given.dataset, features=(), store=given.store))
    assert read_files["proven by all.csv"] == 1
    assert {finding.name for proof in again.values() if isinstance(proof, Proof) for finding in proof.failed} == {
        "raw files are those that were read",
        "records counted from the bytes = rows read",
    }
    assert "events of 2020-01-05 is missing" in str(again[FIFTH])


# --- what is wrong with one day, and with all ----------------------------------------------------------------------


def test_a_day_of_which_too_much_is_refused_fails_alone(tmp_path: Path) -> None:
    rows = [row(None if day == THIRD else 1, "x", noon(day)) for day in DAYS]
    given = work(shared(tmp_path, {"all": rows}, quality={"max_rejected_share": 0.5}))
    found = together(given)
    assert list(errors_of(found)) == [THIRD]
    assert errors_of(found)[THIRD].startswith("events of 2020-01-03: 1 of 1 rows (100.0%) are refused")
    assert given.store.days("events") == given.store.days("rejected_events") == [FIRST, SECOND, FOURTH, FIFTH]
    assert lying_about(given.store) == []
    assert list(given.store.failed_directory("run", "rejected_events", THIRD).glob("*.parquet"))


def test_a_fault_of_a_file_is_one_of_every_day(tmp_path: Path) -> None:
    """As alone: the second file is wrong, and every day reads it."""
    good = [row(1, "x", noon(day)) for day in DAYS]
    wrong = [row(1, "x", noon(day) * 1000) for day in DAYS]
    given = work(shared(tmp_path, {"a": good, "b": wrong}))
    alone = errors_of(one_by_one(given))
    assert list(alone) == DAYS
    assert errors_of(together(given)) == alone
    assert "they look like milliseconds" in alone[FIRST]
    assert given.store.days("events") == []
    assert lying_about(given.store) == []


def test_days_that_wait_or_are_skipped_leave_the_others_as_they_are(tmp_path: Path) -> None:
    source = {"ready": "ready/{date}"}
    rows = {"all": [row(1, "x", noon(day)) for day in DAYS]}
    dataset = shared(tmp_path, rows, source=source, partitions={"skip": ["2020-01-02"]})
    (tmp_path / "ready").mkdir()
    for day in (FIRST, FOURTH):
        (tmp_path / "ready" / day.isoformat()).touch()
    found = together(work(dataset))
    assert {day: manifest.rows for day, manifest in made_of(found).items()} == {FIRST: 1, SECOND: 0, FOURTH: 1}
    assert {said.split(":")[1] for said in errors_of(found).values()} == {
        " ready/{date} is not there yet; run the day again when it is"
    }
    assert sorted(errors_of(found)) == [THIRD, FIFTH]


def test_a_file_that_changes_between_the_readings_fails_the_days_that_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only days with dropped duplicates are read a second time while they are made; the proof reads for all."""
    rows = [row(1, "x", noon(day)) for day in (*DAYS, SECOND)]
    given = work(shared(tmp_path, {"all": rows}, quality={"duplicates": "drop"}))
    right = reading.DaysReader.again

    def changed(reader: Any, days: Any) -> Any:
        if days:
            (tmp_path / "raw" / "all.csv").write_text((tmp_path / "raw" / "all.csv").read_text() + "\n")
        return right(reader, days)

    monkeypatch.setattr(reading.DaysReader, "again", changed)
    found = together(given)
    assert errors_of(found).keys() == set(DAYS)
    assert errors_of(found)[SECOND] == (
        "events of 2020-01-02: raw files changed while they were read; run the day again when they are complete"
    )
    assert (
        "events of 2020-01-01 was proven wrong and is not published: raw files are those that were read"
        in (errors_of(found)[FIRST])
    )
    assert given.store.days("events") == []


def test_a_day_that_is_made_wrong_is_the_only_one_that_is_kept_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(number % 7, f"i{number}", noon(day, number)) for day in DAYS for number in range(40)]
    right = reading.convert_block

    def misread(*given: Any) -> convert.ConvertedBlock:
        result = right(*given)
        users = pl.when(result.day == (FOURTH - date(1970, 1, 1)).days).then(pl.col("user_id") + 100)
        return replace(result, frame=result.frame.with_columns(users.otherwise(pl.col("user_id")).alias("user_id")))

    monkeypatch.setattr(reading, "convert_block", misread)
    for every_time in (200_000, 0):
        monkeypatch.setattr(raw_sample, "EVERY_TIME", every_time)
        given = work(shared(tmp_path / str(every_time), {"all": rows}))
        found = together(given)
        assert list(errors_of(found)) == [FOURTH]
        assert "sampled raw records read in plain Python = what was written" in errors_of(found)[FOURTH]
        assert given.store.days("events") == [FIRST, SECOND, THIRD, FIFTH]


def test_a_day_that_cannot_be_written_leaves_nothing_and_the_others_are_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(number, "x", noon(day)) for day in DAYS for number in range(200)]
    given = work(shared(tmp_path, {"all": rows}), memory=20_000)
    right, seen = write.find_ties, Counter[int]()

    def no_room_for_the_third(frame: pl.DataFrame) -> tuple[int, list[int]]:
        day = int(frame["timestamp"][0]) // 86_400_000_000
        seen[day] += 1
        if day == (THIRD - date(1970, 1, 1)).days and seen[day] == 2:  # one file is written
            raise PipelineError("no room")
        return right(frame)

    monkeypatch.setattr(write, "find_ties", no_room_for_the_third)
    found = together(given)
    assert errors_of(found) == {THIRD: "no room"}
    assert min(seen.values()) >= 2
    assert given.store.days("events") == [FIRST, SECOND, FOURTH, FIFTH]
    assert lying_about(given.store) == []


def test_a_run_that_is_stopped_leaves_nothing_of_the_days_that_are_not_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = work(shared(tmp_path, {"all": [row(1, "x", noon(day)) for day in DAYS]}))
    done: list[date] = []
    for day, _ in run_days("events", DAYS, given):
        done.append(day)
        if len(done) == 2:
            break
    assert given.store.days("events") == done == [FIRST, SECOND]
    assert lying_about(given.store) == []

    def stopped(*_: Any) -> Iterator[Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr("pipeline.events.write.find_ties", stopped)
    with pytest.raises(KeyboardInterrupt):
        together(replace(given, run="again"))
    assert lying_about(given.store) == []
    assert not list(given.store.root.glob("_scratch/*"))


# --- rows of many days within a budget -----------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(0, 4), max_size=9), max_size=8), st.sampled_from([1, 60, 10**6]), st.booleans())
def test_parts_give_every_day_its_rows_in_order(blocks: list[list[int]], budget: int, forget: bool) -> None:
    with TemporaryDirectory() as folder:
        parts = DayParts(budget_bytes=budget, directory=Path(folder) / "parts")
        expected: dict[int, list[tuple[int, str]]] = {day: [] for day in range(5)}
        number = 0
        for block in blocks:
            rows = [(number + place, f"text of {number + place}") for place in range(len(block))]
            frame = pl.DataFrame(rows, schema={"row_id": pl.Int64, "text": pl.String}, orient="row")
            parts.add(frame, np.array(block, dtype=np.int32))
            for day, one in zip(block, rows, strict=True):
                expected[day].append(one)
            number += len(block)
        assert (parts.spilled_bytes > 0) == (budget == 1 and number > 0) or budget == 60
        for day in range(5):
            assert [one for frame in parts.of(day) for one in frame.rows()] == expected[day]
            if forget:
                parts.forget(day)
        left = list(Path(folder).rglob("*.arrow"))
        assert not left if forget else len(left) <= max(1, number)


def test_files_are_as_many_as_the_budget_makes_and_not_as_the_days(tmp_path: Path) -> None:
    parts = DayParts(budget_bytes=100_000, directory=tmp_path / "parts")
    days = np.arange(2_000, dtype=np.int32) % 730
    for _ in range(20):
        parts.add(pl.DataFrame({"number": np.arange(2_000)}), days)
    assert parts.spilled_bytes > 0
    assert len(list((tmp_path / "parts").iterdir())) <= 1 + 20 * 2_000 * 24 // 100_000
    assert sum(frame.height for frame in parts.of(729)) == 20 * int((days == 729).sum())


@given(st.integers(1, 40), st.integers(1, 40))
@settings(max_examples=10)
def test_where_a_day_is_cut_depends_on_its_rows_alone(block: int, other_block: int) -> None:
    rows = pl.DataFrame(
        {
            "row_id": pl.int_range(400, eager=True),
            "user_id": [f"user-{number * number % 31}" for number in range(400)],
            "timestamp": [number * 37 % 100 for number in range(400)],
        }
    )
    found = []
    with TemporaryDirectory() as folder:
        for name, size, between in (("a", block, False), ("b", other_block, True)):
            arranger = Arranger(budget_bytes=2_500, directory=Path(folder) / name)
            for start in range(0, 400, size):
                frame = rows[start : start + size]
                arranger.add(frame, np.full(frame.height, 7, dtype=np.int32))
                if between:
                    arranger.add(frame, np.full(frame.height, 8, dtype=np.int32))
            found.append([frame.rows() for frame in arranger.ranges(7)])
    assert found[0] == found[1]
    assert len(found[0]) > 3


def test_a_dated_dataset_reads_each_day_by_itself(tmp_path: Path, read_files: Counter[str]) -> None:
    days = {day.isoformat(): [row(1, "x", noon(day))] for day in DAYS}
    given = work(make_dataset(tmp_path, days=days))
    write_csv(tmp_path / "raw" / "2020-01-03.csv", "no such column\n1\n")
    found = together(given)
    assert list(found) == DAYS
    assert list(errors_of(found)) == [THIRD]
    assert {count for name, count in read_files.items() if name.startswith("made")} == {1}


def test_days_are_dates(tmp_path: Path) -> None:
    """The last day of the partitions may be the last of the file, and rows behind it are counted."""
    rows = [row(1, "x", noon(day)) for day in (*DAYS, FIFTH + timedelta(days=1))]
    made = made_of(together(work(shared(tmp_path, {"all": rows}))))
    assert {manifest.counts["outside_partitions"] for manifest in made.values()} == {1}
    assert {manifest.counts["other_day"] for manifest in made.values()} == {4}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("exploded", [False, True])
def test_records_of_a_document_may_stand_on_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indent: int | None, exploded: bool
) -> None:
    monkeypatch.setattr(raw_sample, "EVERY_TIME", 0)
    rows = [
        row(1, "a", noon(DAYS[0])), row(2, "a", noon(DAYS[0]), "no such event"), row(None, "a", noon(DAYS[0])),
        row(3, "a", noon(DAYS[1])),
    ]  # fmt: skip
    declared: dict[str, Any] = {"source": {"path": "raw/*.json", "format": "json"}}
    if exploded:
        rows = [{"user": one["user"], "list": [{k: v for k, v in one.items() if k != "user"}]} for one in rows]
        declared["source"]["explode"] = {"column": "list"}
        declared["columns"] = {
            "item_id": {"from": "list.item", "type": "string"},
            "timestamp": {"from": "list.time", "unit": "s"},
            "action": {"from": "list.event"},
        }
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "all.json").write_text(json.dumps(rows, indent=indent))
    dataset = make_dataset(tmp_path, **declared)
    given = work_of(dataset, run="run")
    given.store.open_for(dataset)
    made = made_of(together(given))
    assert [made[day].rows for day in DAYS] == [1, 1, 0, 0, 0]
    assert made[DAYS[0]].counts["rejected"] == {"missing_user_id": 1, "unknown_action": 1}

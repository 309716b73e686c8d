"""The benchmark's long history and its long day, at a small size."""

from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest

from pipeline.store import Store
from pipeline_tests.bench import history, history_day, long_day, ours
from pipeline_tests.bench.logs import DAY, write_logs

DAYS = 4
USERS = 6_000


def _history(folder: Path, *, days: int = DAYS) -> dict[date, pl.DataFrame]:
    folder.mkdir()
    log = folder / f"{DAY}.parquet"
    write_logs(log, events=3_000, users=400, items=100)
    history.write_history(log, days=days, users=USERS)
    return {date.fromisoformat(file.stem): pl.read_parquet(file) for file in sorted(folder.iterdir())}


def test_a_history_leaves_the_users_behind_and_most_of_the_days_own(tmp_path: Path) -> None:
    logs = _history(tmp_path / "raw")
    assert list(logs) == [DAY - timedelta(days=ago) for ago in (4, 3, 2, 1, 0)]
    last = logs.pop(DAY)
    for day, log in logs.items():
        assert set(log["timestamp"].cast(pl.Datetime("ms")).dt.date()) == {day}
        assert log["timestamp"].is_sorted()
        assert log.schema == last.schema
    first, *small = logs.values()
    assert first["user_id"].n_unique() == len(first) == 0.9 * USERS
    assert [len(log) for log in small] == [2_000] * 3
    before = set(pl.concat(logs.values())["user_id"])
    assert len(before) == USERS
    assert len(before & set(last["user_id"])) == 0.8 * last["user_id"].n_unique()


def test_a_history_is_reproducible(tmp_path: Path) -> None:
    one, other = _history(tmp_path / "one"), _history(tmp_path / "other")
    assert all(one[day].equals(other[day]) for day in one)


def test_a_measured_day_leaves_the_history_as_it_was(tmp_path: Path) -> None:
    _history(tmp_path / "raw")
    folder, out = tmp_path / "long", tmp_path / "out"
    history.build(folder, tmp_path / "raw", days=DAYS, last=DAYS)
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    out.mkdir()
    history_day.copy(folder, out)
    found = history_day.convert(folder, out)
    assert found["rows"] == 3_000
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before
    made, kept = Store(out / "store"), Store(folder / "store")
    assert made.days("features") == [DAY]
    assert kept.days("user_state") == [DAY - timedelta(days=ago) for ago in (4, 3, 2, 1)]
    assert made.manifest("user_vocabulary", DAY).size == USERS + 0.2 * 400
    segment = next((folder / "store" / "user_vocabulary" / "_log").iterdir())
    assert segment.stat().st_nlink > 1  # a copy by links


@pytest.mark.slow
def test_both_sections_are_written(tmp_path: Path) -> None:
    said: list[str] = []
    text = history.measured(tmp_path / "h", events=3_000, days=3, users=USERS, runs=1, say=said.append)
    assert "\n## A day after a history of 3 days\n" in text
    assert "3,000 events on a day after 3 earlier ones, which left 6,000 users behind" in text
    assert "| after 3 days | " in text
    assert "- after an empty day, to make: events " in text
    text = long_day.measured(tmp_path / "l", events=6_000, short_events=3_000, runs=1, say=said.append)
    assert "\n## 6,000 events in a day\n" in text
    assert "| the whole graph with all proofs: time per event / that of the short day | at most 1.2 | " in text
    assert "| the whole graph without proofs, 6,000 | " in text
    assert said[0] == "history: 3 days, 6,000 users"


def test_a_store_of_ours_is_made_for_the_day_alone(tmp_path: Path) -> None:
    write_logs(tmp_path / "raw.parquet", events=100)
    dataset = ours.prepare(tmp_path / "raw.parquet", tmp_path).dataset
    assert (dataset.partitions.start, dataset.partitions.end, dataset.partitions.skip) == (DAY, DAY, ())
    assert dataset.features.use == ("core",)

"""Users with more events than a proof holds: their rows are read again for the loop, which judges them all the same."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline import stages
from pipeline.checks import ProofFailed, publish
from pipeline.checks.reading import Subject
from pipeline.stages import Work, run_day
from pipeline.store import read_blocks
from pipeline_tests.test_planted_errors import make_work as make_population
from pipeline_tests.test_publish import START, at, make_work, plant

SECOND = START + timedelta(days=1)


@pytest.fixture(autouse=True)
def every_user_is_a_giant(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("sampled_rows", "state"):
        monkeypatch.setattr(f"pipeline.checks.{place}.HELD_ROWS", 0)


@pytest.fixture
def read_again(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Users whose rows were asked for by themselves."""
    asked: list[Any] = []
    right = Subject.blocks

    def blocks(self: Subject, *args: Any, user: Any = None, **more: Any) -> Any:
        asked.extend([] if user is None else [user])
        return right(self, *args, user=user, **more)

    monkeypatch.setattr(Subject, "blocks", blocks)
    return asked


def made(folder: Path) -> Work:
    work = make_work(folder)
    for asset in stages.STAGES:
        for day in (START, SECOND):
            run_day(asset, day, work)
    return replace(work, run="second", force=True)


def test_the_loop_goes_through_as_many_rows(tmp_path: Path, read_again: list[Any]) -> None:
    work = made(tmp_path)
    for asset in ("features", "user_state"):
        read_again.clear()
        streamed = run_day(asset, SECOND, work).proof
        assert streamed is not None
        assert streamed.figures["users_proven"] == 40
        assert len(set(read_again)) == 40
        with pytest.MonkeyPatch.context() as patch:
            for place in ("sampled_rows", "state"):
                patch.setattr(f"pipeline.checks.{place}.HELD_ROWS", 10**9)
            held = run_day(asset, SECOND, work).proof
        assert held is not None
        events = work.store.manifest("events", SECOND)
        assert events is not None
        assert streamed.figures["rows_proven"] == held.figures["rows_proven"] == events.rows


def test_only_as_many_rows_are_held_as_fit(
    tmp_path: Path, read_again: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty users of four events each: ten of them are forty rows."""
    work = made(tmp_path)
    for place in ("sampled_rows", "state"):
        monkeypatch.setattr(f"pipeline.checks.{place}.HELD_ROWS", 40)
    for asset in ("features", "user_state"):
        read_again.clear()
        run_day(asset, SECOND, work)
        assert len(set(read_again)) == 30


def test_a_wrong_value_of_a_giant_is_found(tmp_path: Path) -> None:
    work = made(tmp_path)
    staged, _, _ = stages._make("features", SECOND, work)
    changed = plant(staged, at(7, history_position=99))
    with pytest.raises(ProofFailed, match="values of sampled users = the loop"):
        publish(changed, dataset=work.dataset, features=work.features, store=work.store)


def test_a_wrong_state_of_a_giant_is_found(tmp_path: Path) -> None:
    work = made(tmp_path)
    staged, _, _ = stages._make("user_state", SECOND, work)
    changed = plant(staged, at(0, **{"history_position.events": 9}), role="closing", place=-1)
    with pytest.raises(ProofFailed, match="closing = the loop from opening over the day"):
        publish(changed, dataset=work.dataset, features=work.features, store=work.store)


def test_columns_of_events_stand_beside_the_rows_that_are_read_again(tmp_path: Path) -> None:
    work = make_population(tmp_path, more='[extra]\nweight = { from = "t", type = "int64" }\n')
    for asset in stages.STAGES:
        assert run_day(asset, work.dataset.partitions.start, work).proof is not None


@pytest.mark.parametrize("text", [False, True])
def test_only_row_groups_that_may_hold_a_user_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bool
) -> None:
    from pipeline.store import DataFile, parquet

    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 3)
    users = pl.Series([1, 1, 2, 2, 2, 2, 2, 2, 2, 5, 5, 5], dtype=pl.Int64)
    frame = pl.DataFrame({"user_id": users.cast(pl.String) if text else users, "row_id": range(12)})
    parquet.write_file(frame, tmp_path / "a.parquet")
    read: list[list[int]] = []
    right = parquet.pq.ParquetFile.read_row_groups

    def read_row_groups(self: Any, groups: list[int], **more: Any) -> Any:
        read.append(groups)
        return right(self, groups, **more)

    monkeypatch.setattr(parquet.pq.ParquetFile, "read_row_groups", read_row_groups)

    def rows(user: int) -> list[int]:
        wanted = str(user) if text else user
        blocks = read_blocks(
            tmp_path, [DataFile("a.parquet", 12, 0, "")], ["user_id", "row_id"], block_rows=6, user=wanted
        )
        return [row for block in blocks for row in block["row_id"].to_list()]

    assert rows(2) == [2, 3, 4, 5, 6, 7, 8]
    assert read == [[0, 1], [2]]
    read.clear()
    assert rows(5) == [9, 10, 11]
    assert read == [[3]]
    assert rows(3) == rows(9) == []

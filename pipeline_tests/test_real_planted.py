"""Errors planted into days of real logs: each is found, and what was published before stays."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from pipeline import stages
from pipeline.checks import ProofFailed, publish
from pipeline.events import reading
from pipeline.stages import STAGES, Work, run_day
from pipeline_tests.test_planted_errors import _Tampered, drop_a_row, read_twice
from pipeline_tests.test_publish import Change, at, plant
from pipeline_tests.test_real_logs import declare, retail
from pipeline_tests.works import work_of

RETAIL_DAYS = [date(2010, 12, 1), date(2010, 12, 2)]


@pytest.fixture(scope="module")
def shop(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Work:
    """The first two days of Online Retail."""
    work = work_of(retail(shared_data, tmp_path_factory.mktemp("shop")), run="real", force=True)
    for asset in STAGES:
        for day in RETAIL_DAYS:
            run_day(asset, day, work)
    return work


@pytest.fixture(scope="module")
def store_day(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Work:
    """REES46: 1,755 users, of whom a sample holds some 300."""
    dataset = declare("rees46", shared_data / "rees46_2019-Oct-01.csv", tmp_path_factory.mktemp("rees46"))
    work = work_of(dataset, run="real", force=True)
    for asset in STAGES:
        run_day(asset, date(2019, 10, 1), work)
    return work


def lost_user(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("user_id") != frame["user_id"][frame.height // 2])


def one_item(frame: pl.DataFrame) -> pl.DataFrame:
    """An error in nearly every row; a single row is missed as often as docs/trust.md says."""
    return frame.with_columns(item_id=pl.lit("85123A"))


@pytest.mark.parametrize(
    ("asset", "role", "change", "finding"),
    [
        ("features", None, at(700, time_diff=60.0), "every time_diff and is_first = shifted timestamps"),
        ("features", None, at(700, user_index=2), "indices are those of the vocabularies"),
        ("features", None, at(700, history_position=99), "values of sampled users = the loop"),
        ("user_state", "closing", lost_user, "rows of closing = yesterday's + users without opening"),
        ("events", None, one_item, "sampled raw records read in plain Python = what was written"),
    ],
)
def test_planted_into_online_retail(shop: Work, asset: str, role: str | None, change: Change, finding: str) -> None:
    before = shop.store.manifest(asset, RETAIL_DAYS[1])
    staged, companion, segment = stages._make(asset, RETAIL_DAYS[1], shop)
    with pytest.raises(ProofFailed) as failure:
        publish(
            plant(staged, change, role=role),
            companion=companion,
            segment=segment,
            dataset=shop.dataset,
            features=shop.features,
            store=shop.store,
        )
    assert finding in [found.name for found in failure.value.proof.failed]
    assert shop.store.manifest(asset, RETAIL_DAYS[1]) == before


@pytest.mark.parametrize(
    ("row", "column", "finding"),
    [
        (2_500, "time_diff", "every time_diff and is_first = shifted timestamps"),
        (2_500, "item_index", "indices are those of the vocabularies"),
    ],
)
def test_planted_into_rees46_outside_the_sample(store_day: Work, row: int, column: str, finding: str) -> None:
    staged, _, _ = stages._make("features", date(2019, 10, 1), store_day)
    value = 1.0 if column == "time_diff" else 7
    with pytest.raises(ProofFailed) as failure:
        publish(
            plant(staged, at(row, **{column: value})),
            dataset=store_day.dataset,
            features=store_day.features,
            store=store_day.store,
        )
    assert finding in [found.name for found in failure.value.proof.failed]


@pytest.mark.parametrize("wrong", [drop_a_row, read_twice])
def test_a_swallowed_or_doubled_line_of_online_retail(
    shop: Work, monkeypatch: pytest.MonkeyPatch, wrong: Callable[[object], object]
) -> None:
    right = reading.read_blocks
    monkeypatch.setattr(reading, "read_blocks", lambda *given, **named: _Tampered(right(*given, **named), wrong))
    with pytest.raises(ProofFailed, match="records counted from the bytes = rows read"):
        run_day("events", RETAIL_DAYS[0], replace(shop, run="wrong"))

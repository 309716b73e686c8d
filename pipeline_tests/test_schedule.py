"""The daily schedule: which day it asks for, and why it skips."""

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from pipeline.definitions import Environment, build
from pipeline_tests.datasets import make_dataset


def tick(folder: Path, moment: datetime, **overrides: object) -> dg.RunRequest | dg.SkipReason:
    """What the schedule answers at a moment."""
    dataset = make_dataset(folder, **overrides)  # type: ignore[arg-type]
    definitions = build(Environment(dataset=dataset.file, executor="in_process", days_per_run=None))
    schedule = definitions.resolve_schedule_def("daily")
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_schedule_context(
            instance=instance, scheduled_execution_time=moment, repository_def=definitions.get_repository_def()
        )
        data = schedule.evaluate_tick(context)
    return data.run_requests[0] if data.run_requests else dg.SkipReason(data.skip_message)


def test_it_asks_for_the_day_that_ended_two_hours_ago(tmp_path: Path) -> None:
    request = tick(tmp_path, datetime(2020, 1, 4, 2, tzinfo=UTC))
    assert isinstance(request, dg.RunRequest)
    assert request.partition_key == "2020-01-03"
    assert request.run_key == "2020-01-03"


def test_it_makes_the_last_day_and_then_says_that_nothing_is_left(tmp_path: Path) -> None:
    last = tick(tmp_path, datetime(2020, 1, 6, 2, tzinfo=UTC))
    assert isinstance(last, dg.RunRequest)
    assert last.partition_key == "2020-01-05"
    after = tick(tmp_path, datetime(2020, 1, 7, 2, tzinfo=UTC))
    assert isinstance(after, dg.SkipReason)
    assert "2020-01-06 lies after the last day, 2020-01-05" in str(after.skip_message)


def test_before_the_first_day_it_waits(tmp_path: Path) -> None:
    early = tick(tmp_path, datetime(2020, 1, 1, 2, tzinfo=UTC))
    assert isinstance(early, dg.SkipReason)
    assert "2019-12-31 lies before the first day, 2020-01-01" in str(early.skip_message)


def test_without_an_end_it_never_stops(tmp_path: Path) -> None:
    request = tick(tmp_path, datetime(2021, 3, 1, 2, tzinfo=UTC), partitions={"end": None})
    assert isinstance(request, dg.RunRequest)
    assert request.partition_key == "2021-02-28"


@pytest.mark.parametrize(("name", "cron"), [("daily", "0 2 * * *"), ("deep", "0 4 * * 0")])
def test_schedules_start_out_stopped_and_run_on_utc(tmp_path: Path, name: str, cron: str) -> None:
    dataset = make_dataset(tmp_path)
    definitions = build(Environment(dataset=dataset.file, executor="in_process", days_per_run=None))
    schedule = definitions.resolve_schedule_def(name)
    assert schedule.cron_schedule == cron
    assert schedule.execution_timezone == "UTC"
    assert schedule.default_status is dg.DefaultScheduleStatus.STOPPED

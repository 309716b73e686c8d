"""Partitions, jobs and schedules."""

from collections.abc import Sequence
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

import dagster as dg

from pipeline.asset_checks import CHECKED, PROOF_AGAIN
from pipeline.config import Dataset
from pipeline.resources import asset_key, prefixed

DAILY = "0 2 * * *"
WEEKLY = "0 4 * * 0"

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition as Job


def build_partitions(dataset: Dataset) -> dg.DailyPartitionsDefinition:
    """One partition for each UTC day; without an end the days run on to yesterday."""
    end = dataset.partitions.end
    return dg.DailyPartitionsDefinition(
        start_date=dataset.partitions.start.isoformat(),
        end_date=None if end is None else (end + timedelta(days=1)).isoformat(),
    )


def build_jobs(dataset: Dataset) -> tuple["Job", ...]:
    """`make_days` for a day, `all_checks` and `deep_checks` for what lies on disk."""
    every = dg.AssetSelection.assets(*(asset_key(dataset, asset) for asset in CHECKED))
    again = dg.AssetSelection.checks(*(dg.AssetCheckKey(asset_key(dataset, asset), PROOF_AGAIN) for asset in CHECKED))
    deep = {"config": {"deep": True, "newest_days": 1}}
    return (
        dg.define_asset_job(
            prefixed(dataset, "make_days"),
            selection=every,
            description="Makes, proves and publishes every asset of a day.",
        ),
        dg.define_asset_job(
            prefixed(dataset, "all_checks"),
            selection=again,
            description="Proves again what lies on disk: the newest days, or as many as newest_days says.",
        ),
        dg.define_asset_job(
            prefixed(dataset, "deep_checks"),
            selection=again,
            config={"ops": {prefixed(dataset, f"prove_{asset}_again"): deep for asset in CHECKED}},
            description="Proves the newest day from the first day on; its cost grows with history.",
        ),
    )


def build_schedules(dataset: Dataset, jobs: Sequence["Job"]) -> list[dg.ScheduleDefinition]:
    """The daily run, and the deep proof once a week; both start out stopped."""
    make_days, _, deep_checks = jobs

    @dg.schedule(
        name=prefixed(dataset, "daily"),
        job=make_days,
        cron_schedule=DAILY,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description="At 02:00 UTC, the day that ended at midnight.",
    )
    def daily(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        day = context.scheduled_execution_time.astimezone(UTC).date() - timedelta(days=1)
        start, end = dataset.partitions.start, dataset.partitions.end
        if end is not None and day > end:
            return dg.SkipReason(f"{day} lies after the last day, {end} ([partitions] end): nothing is left to make")
        if day < start:
            return dg.SkipReason(f"{day} lies before the first day, {start} ([partitions] start)")
        return dg.RunRequest(run_key=day.isoformat(), partition_key=day.isoformat())

    deep = dg.ScheduleDefinition(
        name=prefixed(dataset, "deep"),
        job=deep_checks,
        cron_schedule=WEEKLY,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description="Sundays at 04:00 UTC, the deep proof.",
    )
    return [daily, deep]

"""The whole asset graph on one page; each asset calls one stage."""

from collections.abc import Iterator, Sequence
from datetime import date

import dagster as dg

from pipeline.asset_checks import proof_spec, run_days
from pipeline.config import Dataset
from pipeline.contracts import Feature
from pipeline.range_run import make_days, prove_days
from pipeline.resources import Compute, Lake, MakeConfig, asset_key, prefixed

GROUP = "pipeline"
POOL = "gpu"
DAY_BEFORE = dg.TimeWindowPartitionMapping(start_offset=-1, end_offset=-1)
DESCRIPTIONS = {
    "raw_logs": "The raw log files as they arrive. Read, never written.",
    "events": "Accepted rows: typed, canonical columns, sorted by user and time.",
    "rejected_events": "Every refused row with its reason and raw text.",
    "user_vocabulary": "User id -> dense index, append-only: an index once given is given for ever.",
    "item_vocabulary": "Item id -> dense index, append-only: an index once given is given for ever.",
    "user_state": "What features need to know of the past: `opening` of the day's users, `closing` of all users.",
    "features": "The output: one row an event, in the order of `events`.",
}

Results = Iterator[dg.MaterializeResult | dg.AssetCheckResult]


def build_assets(
    *,
    dataset: Dataset,
    features: Sequence[Feature],
    partitions: dg.DailyPartitionsDefinition,
    days_per_run: int | None,
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """The graph.

    Args:
        dataset: The declarations.
        features: The features in use.
        partitions: The days, one object for all assets.
        days_per_run: How many days of a fan-out asset one run of a backfill makes; None: all in one.
    """
    graph = _Graph(dataset=dataset, features=features, partitions=partitions)
    one_run = dg.BackfillPolicy.single_run()
    fan_out = one_run if days_per_run is None else dg.BackfillPolicy.multi_run(days_per_run)
    return [
        graph.spec("raw_logs", after=[]),
        graph.step("events", makes=["events", "rejected_events"], after=["raw_logs"], backfill=fan_out),
        graph.step("user_vocabulary", after=["events"], backfill=one_run, chained=True),
        graph.step("item_vocabulary", after=["events"], backfill=one_run, chained=True),
        graph.step("user_state", after=["events"], backfill=one_run, chained=True),
        graph.step(
            "features",
            after=["events", "user_vocabulary", "item_vocabulary", "user_state"],
            backfill=fan_out,
            pool=prefixed(dataset, POOL),
        ),
    ]


class _Graph:
    """What all assets share."""

    def __init__(
        self, *, dataset: Dataset, features: Sequence[Feature], partitions: dg.DailyPartitionsDefinition
    ) -> None:
        self.dataset, self.features, self.partitions = dataset, features, partitions

    def spec(self, asset: str, *, after: Sequence[str], chained: bool = False) -> dg.AssetSpec:
        """The asset in the lineage; a chained one also depends on itself, one day back."""
        deps = [dg.AssetDep(asset_key(self.dataset, name)) for name in after]
        if chained:
            deps.append(dg.AssetDep(asset_key(self.dataset, asset), partition_mapping=DAY_BEFORE))
        return dg.AssetSpec(
            asset_key(self.dataset, asset),
            deps=deps,
            description=DESCRIPTIONS[asset],
            group_name=prefixed(self.dataset, GROUP),
            partitions_def=self.partitions,
            kinds=_kinds(asset, self.dataset),
        )

    def step(
        self,
        stage: str,
        *,
        after: Sequence[str],
        backfill: dg.BackfillPolicy,
        makes: Sequence[str] | None = None,
        chained: bool = False,
        pool: str | None = None,
    ) -> dg.AssetsDefinition:
        """A step that calls one stage, day by day, for one or two tables."""
        tables = list(makes or [stage])
        dataset, features = self.dataset, self.features

        @dg.multi_asset(
            name=prefixed(dataset, stage),
            specs=[self.spec(table, after=after, chained=chained) for table in tables],
            check_specs=[proof_spec(dataset, table) for table in tables],
            can_subset=True,
            backfill_policy=backfill,
            pool=pool,
        )
        def run(context: dg.AssetExecutionContext, config: MakeConfig, lake: Lake, compute: Compute) -> Results:
            days: list[date] = run_days(context)
            chosen = [table for table in tables if asset_key(dataset, table) in context.selected_asset_keys]
            shared = {"context": context, "dataset": dataset, "features": features, "lake": lake}
            if chosen:
                yield from make_days(
                    stage, days, tables=chosen, chained=chained, compute=compute, config=config, **shared
                )
            else:  # only the check was asked for
                yield from prove_days(days, tables=tables, **shared)

        return run


def _kinds(asset: str, dataset: Dataset) -> set[str]:
    if asset == "raw_logs":
        return {dataset.source.format} if dataset.source.format else set()
    return {"parquet", "torch"} if asset == "features" else {"parquet"}

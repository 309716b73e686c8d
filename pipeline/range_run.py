"""A run over some days of one stage: what is recorded, and how it ends when days fail."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING

import dagster as dg

from pipeline.asset_checks import PROOF, check_result, proofs_again
from pipeline.config import Dataset
from pipeline.contracts import Feature, PipelineError
from pipeline.reports.metadata import day_metadata
from pipeline.reports.proofs import DayProof, of_error, of_manifest, of_proof
from pipeline.resources import Compute, Lake, MakeConfig, asset_key, work_for

if TYPE_CHECKING:
    from pipeline.stages import Outcome, Work

LATER = {
    "events": ("user_vocabulary", "item_vocabulary", "user_state", "features"),
    "user_vocabulary": ("features",),
    "item_vocabulary": ("features",),
    "user_state": ("features",),
    "features": (),
}
NEWEST_DAYS = 7  # that the check `proof` proves when it is executed alone, without a partition
SENTENCES = 3  # of bad days that the description quotes; the check's table and the log have all


@dataclass
class _Days:
    """What became of the days of a run so far."""

    outcomes: list["Outcome"] = field(default_factory=list)
    errors: dict[date, PipelineError] = field(default_factory=dict)


def make_days(
    stage: str,
    days: Sequence[date],
    *,
    tables: Sequence[str],
    chained: bool,
    context: dg.AssetExecutionContext,
    dataset: Dataset,
    features: Sequence[Feature],
    lake: Lake,
    compute: Compute,
    config: MakeConfig,
) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
    """Makes, proves and publishes every day that can be; fails at the end when one could not.

    Args:
        stage: One of `stages.STAGES`.
        days: The days of the run, ascending.
        tables: The assets that the run asked for.
        chained: Stops at the first bad day, since the next builds on it.
        context: Of the step.
        dataset: The declarations.
        features: The features in use.
        lake: Where the days lie.
        compute: How the work is done.
        config: Run config of the step.

    Yields:
        For each asset one result for all days, then the result of its check `proof`.

    Raises:
        Failure: One sentence; the good days are published and recorded.
    """
    if not days:
        hint = dataset.command(tables, dataset.partitions.start, dataset.last_day())
        raise dg.Failure(
            f"{stage} is made day by day, and this run names no day; choose one, or run: {hint}", allow_retries=False
        )
    try:
        work = work_for(
            asset=stage, context=context, dataset=dataset, features=features, lake=lake, compute=compute, config=config
        )
    except PipelineError as error:
        raise dg.Failure(str(error), allow_retries=False) from None
    done = _Days()
    try:
        _run_days(stage, days, work=work, chained=chained, done=done, log=context.log)
    except BaseException:  # a bug or a signal: what is published is recorded all the same
        _record_each(context, tables, done.outcomes, work)
        raise
    if done.errors:
        _record_each(context, tables, done.outcomes, work)
    else:
        yield from _results(context, tables, done.outcomes, work)
    for table in tables:
        if _check_asked_for(context, dataset, table):
            yield check_result(dataset, table, PROOF, _proofs(done))
    if done.errors:
        errors = dict(sorted(done.errors.items()))
        raise dg.Failure(failure_sentence(stage, days, errors, dataset, chained=chained), allow_retries=False)


def prove_days(
    days: Sequence[date],
    *,
    tables: Sequence[str],
    context: dg.AssetExecutionContext,
    dataset: Dataset,
    features: Sequence[Feature],
    lake: Lake,
) -> Iterator[dg.AssetCheckResult]:
    """The check `proof` without its asset: proves what lies on disk."""
    store = lake.reading()
    for table in tables:
        if not _check_asked_for(context, dataset, table):
            continue
        proofs = proofs_again(
            table,
            days or store.days(table)[-NEWEST_DAYS:],
            dataset=dataset,
            features=features,
            store=store,
            run=context.run.run_id,
            deep=False,
        )
        yield check_result(dataset, table, PROOF, proofs)


def _run_days(
    stage: str, days: Sequence[date], *, work: "Work", chained: bool, done: _Days, log: dg.DagsterLogManager
) -> None:
    from pipeline.stages import run_days

    for number, (day, outcome) in enumerate(run_days(stage, days, work), 1):
        if isinstance(outcome, PipelineError):
            log.error(f"{stage} {day} failed: {outcome}")
            done.errors[day] = outcome
            if chained:
                return
            continue
        done.outcomes.append(outcome)
        how = "reused" if outcome.reused else f"made in {outcome.make_s:.2f} s, proven in {outcome.prove_s:.2f} s"
        log.info(f"{stage} {day}: {outcome.manifest.rows:,} rows {how} (day {number} of {len(days)})")


def _results(
    context: dg.AssetExecutionContext, tables: Sequence[str], outcomes: Sequence["Outcome"], work: "Work"
) -> Iterator[dg.MaterializeResult]:
    """One result an asset; the metadata is each day's own."""
    for table in tables:
        key = asset_key(work.dataset, table)
        for outcome in outcomes:
            context.add_asset_metadata(
                day_metadata(table, outcome, work), asset_key=key, partition_key=outcome.day.isoformat()
            )
        yield dg.MaterializeResult(asset_key=key)


def _record_each(
    context: dg.AssetExecutionContext, tables: Sequence[str], outcomes: Sequence["Outcome"], work: "Work"
) -> None:
    """Records good days one by one: a step that raises would record none of them."""
    for table in tables:
        for outcome in outcomes:
            context.log_event(
                dg.AssetMaterialization(
                    asset_key(work.dataset, table),
                    partition=outcome.day.isoformat(),
                    metadata=day_metadata(table, outcome, work),
                )
            )


def _proofs(done: _Days) -> list[DayProof]:
    proofs = [
        of_manifest(outcome.manifest, status="reused")
        if outcome.proof is None
        else of_proof(outcome.proof, status="made")
        for outcome in done.outcomes
    ]
    proofs += [of_error(day, error) for day, error in done.errors.items()]
    return sorted(proofs, key=lambda proof: proof.day)


def _check_asked_for(context: dg.AssetExecutionContext, dataset: Dataset, table: str) -> bool:
    return dg.AssetCheckKey(asset_key(dataset, table), PROOF) in context.selected_asset_check_keys


def failure_sentence(
    stage: str, days: Sequence[date], errors: dict[date, PipelineError], dataset: Dataset, *, chained: bool
) -> str:
    """What went wrong and what to run, in one sentence.

    Args:
        stage: The stage that failed.
        days: The days of the run, ascending.
        errors: The bad days, ascending, and what is wrong with each.
        dataset: For the commands.
        chained: Whether the stage stopped at the bad day.
    """
    quoted = "; ".join(str(error).rstrip(".") for error in list(errors.values())[:SENTENCES])
    if len(days) == 1:
        return quoted
    bad, last = next(iter(errors)), days[-1]
    named = ", ".join(day.isoformat() for day in errors)
    stopped = (
        f", where it stopped (day {days.index(bad) + 1} of {len(days)})"
        if chained
        else f" ({len(errors)} of {len(days)} days)"
    )
    more = f"; and {len(errors) - SENTENCES} more, see the check '{PROOF}'" if len(errors) > SENTENCES else ""
    later = ""
    if LATER[stage] and bad > days[0]:
        make = dataset.command(LATER[stage], days[0], bad - timedelta(days=1))
        later = f"the later stages of the days before: {make}; "
    return (
        f"{stage} failed for {named}{stopped}: {quoted}{more}; all other days that it made are published; to go on, run "
        f"{later}and, once {bad} is repaired or stands in [partitions] skip, everything from it on: "
        f"{dataset.command((), bad, last)}"
    )

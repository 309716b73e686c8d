"""Binds the proofs to the assets: the check `proof` of the step that makes a day, and `proof_again` at any time."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import dagster as dg

from pipeline.config import Dataset
from pipeline.contracts import Feature, PipelineError
from pipeline.reports.pages import table_value
from pipeline.reports.proofs import DayProof, coverage, coverage_line, of_error, of_manifest, of_proof
from pipeline.resources import Lake, ProveConfig, asset_key, prefixed

if TYPE_CHECKING:
    from pipeline.store import Store

PROOF = "proof"
PROOF_AGAIN = "proof_again"
MAX_ROWS = 1_000  # of a table in the metadata of a check: a page that the UI still scrolls
SENTENCE_CHARACTERS = 1_000  # of what is wrong with a day
QUOTED = 3  # sentences of failed days in the description
CHECKED = ("events", "rejected_events", "user_vocabulary", "item_vocabulary", "user_state", "features")
DAY_COLUMNS = ("day", "right", "status", "proofs_passed", "rows", "one_by_one", "could_be_missed")
FAILURE_COLUMNS = ("day", "wrong")
FINDING_COLUMNS = ("day", "status", "passed", "proof", "expected", "found")
DIFFERENCE_COLUMNS = ("day", "proof", "user_id", "row_id", "file", "line", "column", "expected", "found")


def check_result(dataset: Dataset, asset: str, check: str, days: Sequence[DayProof]) -> dg.AssetCheckResult:
    """The result of a check over some days; the UI sorts its metadata by name.

    Args:
        dataset: The declarations.
        asset: Name of the asset.
        check: `proof` or `proof_again`.
        days: What is known of each; with none the check warns.
    """
    if not days:
        return dg.AssetCheckResult(
            asset_key=asset_key(dataset, asset),
            check_name=check,
            passed=False,
            severity=dg.AssetCheckSeverity.WARN,
            description=f"no day of {asset} is published in {dataset.root}",
        )
    failed = [day for day in days if not day.passed]
    ordered = failed + [day for day in days if day.passed]
    rows = [{"day": str(day.day), "status": day.status, **row} for day in ordered for row in day.findings]
    rows.sort(key=lambda row: row["passed"])
    differences = [{"day": str(day.day), **row} for day in failed for row in day.differences]
    metadata: dict[str, Any] = {
        "days": len(days),
        "days_failed": len(failed),
        "per_day": _table(DAY_COLUMNS, [_day_line(day) for day in ordered]),
        "per_day_and_proof": _table(FINDING_COLUMNS, rows),
        "proofs": sum(day.proofs for day in days),
        "proofs_failed": sum(day.proofs - day.proofs_passed for day in days),
    }
    if failed:
        wrong = [{"day": str(day.day), "wrong": day.problem} for day in failed]
        metadata["failures"] = _table(FAILURE_COLUMNS, wrong)
    if differences:
        metadata["first_rows_that_differ"] = _table(DIFFERENCE_COLUMNS, differences)
    return dg.AssetCheckResult(
        asset_key=asset_key(dataset, asset),
        check_name=check,
        passed=not failed,
        metadata=metadata,
        description=_description(days, failed),
    )


def _description(days: Sequence[DayProof], failed: Sequence[DayProof]) -> str:
    """What the UI shows first."""
    if failed:
        quoted = "; ".join(day.problem for day in failed[:QUOTED])
        more = f"; and {len(failed) - QUOTED} more, see failures" if len(failed) > QUOTED else ""
        return quoted if len(days) == 1 else f"{len(failed)} of {len(days)} days failed: {quoted}{more}"
    proofs, statuses = sum(day.proofs for day in days), Counter(day.status for day in days)
    if len(days) == 1:
        return f"{days[0].day} is right: all {proofs} proofs passed ({days[0].status}). {coverage(days[0].figures)}"
    how = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    return f"All {len(days)} days, {days[0].day} to {days[-1].day}, are right: all {proofs:,} proofs passed ({how})."


def _day_line(day: DayProof) -> dict[str, Any]:
    return {
        "day": str(day.day),
        "right": day.passed,
        "status": day.status,
        "proofs_passed": f"{day.proofs_passed} of {day.proofs}",
        **coverage_line(day.figures),
    }


def _table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> dg.TableMetadataValue:
    """A table; one that is cut says so in its last line."""
    if len(rows) > MAX_ROWS:
        note = f"... and {len(rows) - MAX_ROWS:,} more lines; every day's own page has its own"
        rows = [*rows[:MAX_ROWS], {columns[0]: note}]
    return table_value(rows, columns, longest=SENTENCE_CHARACTERS)


def proof_spec(dataset: Dataset, asset: str) -> dg.AssetCheckSpec:
    """The check that the step of an asset reports itself, before anything is published."""
    description = (
        "What was written is read back from disk and proven, among others against a plain loop over the events. A day that "
        "fails is not published: its step ends, and readers see what was there before. (To Dagster this check is "
        "non-blocking, since the step itself does the blocking.)"
    )
    return dg.AssetCheckSpec(PROOF, asset=asset_key(dataset, asset), description=description)


def build_checks(*, dataset: Dataset, features: Sequence[Feature]) -> list[dg.AssetChecksDefinition]:
    """`proof_again` of every asset, one step each."""
    return [_proof_again(asset, dataset, features) for asset in CHECKED]


def _proof_again(asset: str, dataset: Dataset, features: Sequence[Feature]) -> dg.AssetChecksDefinition:
    description = "Proves what lies on disk now; a day that the same run has just made is only reported."
    spec = dg.AssetCheckSpec(PROOF_AGAIN, asset=asset_key(dataset, asset), description=description)

    @dg.multi_asset_check(name=prefixed(dataset, f"prove_{asset}_again"), specs=[spec])
    def prove(context: dg.AssetCheckExecutionContext, config: ProveConfig, lake: Lake) -> Iterator[dg.AssetCheckResult]:
        store = lake.reading()
        days = run_days(context) or store.days(asset)[-config.newest_days :]
        proofs = proofs_again(
            asset, days, dataset=dataset, features=features, store=store, run=context.run.run_id, deep=config.deep
        )
        result = check_result(dataset, asset, PROOF_AGAIN, proofs)
        context.log.info(f"{asset}: {result.description}")
        yield result

    return prove


def run_days(context: dg.AssetCheckExecutionContext | dg.AssetExecutionContext) -> list[date]:
    """The days of a run; none when it has no partition, as with "Execute" in the UI."""
    if not (context.has_partition_key or context.has_partition_key_range):
        return []
    return [date.fromisoformat(key) for key in context.partition_keys]


def proofs_again(
    asset: str,
    days: Sequence[date],
    *,
    dataset: Dataset,
    features: Sequence[Feature],
    store: "Store",
    run: str,
    deep: bool,
) -> list[DayProof]:
    """Proves published days, but reports the proof of those that this run has just made.

    Args:
        asset: Name of the asset.
        days: UTC days.
        dataset: The declarations.
        features: The features in use.
        store: Where they lie.
        run: Name of the run.
        deep: From the first day on.
    """
    from pipeline.checks import prove_days_again
    from pipeline.store import safe_run

    proofs: dict[date, DayProof] = {}
    for day in days:
        try:
            manifest = store.manifest(asset, day)
        except PipelineError as error:
            proofs[day] = of_error(day, error)
            continue
        if manifest is not None and not deep and manifest.proof.get("run") == safe_run(run):
            proofs[day] = of_manifest(manifest, status="made by this run")
    others = [day for day in days if day not in proofs]
    for day, proof in prove_days_again(asset, others, dataset=dataset, features=features, store=store, deep=deep):
        failed = isinstance(proof, PipelineError)
        proofs[day] = of_error(day, proof) if failed else of_proof(proof, status="proven again")
    return [proofs[day] for day in days]

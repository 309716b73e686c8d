"""Binds the proofs to the assets: the check `proof` of the step that makes a day, and `proof_again` at any time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import dagster as dg

from pipeline.config import Dataset
from pipeline.contracts import Feature, PipelineError
from pipeline.day_metadata import table_value
from pipeline.resources import Lake, ProveConfig, asset_key, prefixed

if TYPE_CHECKING:
    from pipeline.checks import Proof
    from pipeline.store import Manifest, Store

PROOF = "proof"
PROOF_AGAIN = "proof_again"
MAX_ROWS = 5_000  # of a table in the metadata of a check: an event that the UI still shows
CHECKED = ("events", "rejected_events", "user_vocabulary", "item_vocabulary", "user_state", "features")
FINDING_COLUMNS = {
    "day": "string", "status": "string", "proof": "string", "passed": "bool", "blocking": "bool",
    "expected": "string", "found": "string",
}  # fmt: skip
DIFFERENCE_COLUMNS = {
    "day": "string", "proof": "string", "user_id": "string", "row_id": "string", "column": "string",
    "expected": "string", "found": "string",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DayProof:
    """What is known of one day: rows for the tables of a check.

    Attributes:
        day: UTC day.
        status: made, reused, failed, or proven again.
        passed: Whether the day is right.
        findings: A row for each proof.
        differences: The first rows that differ.
        figures: What was covered.
        problem: A sentence when it did not pass.
    """

    day: date
    status: str
    passed: bool
    findings: Sequence[Mapping[str, Any]]
    differences: Sequence[Mapping[str, Any]] = ()
    figures: Mapping[str, Any] | None = None
    problem: str = ""


def of_proof(proof: "Proof", *, status: str) -> DayProof:
    """A proof that was made now."""
    findings = [
        {"proof": f.name, "passed": f.passed, "blocking": f.blocking, "expected": f.expected, "found": f.found}
        for f in proof.findings
    ]
    differences = [
        {"proof": f.name, **{name: str(value) for name, value in row.items() if value is not None}}
        for f in proof.findings
        for row in f.rows
    ]
    problem = "" if proof.passed else f"{proof.asset} of {proof.day}: {proof.sentence()}"
    return DayProof(proof.day, status, proof.passed, findings, differences, proof.figures, problem)


def of_manifest(manifest: "Manifest", *, status: str) -> DayProof:
    """The proof that let a published day out, as its manifest records it."""
    findings = [
        {"proof": f["name"], "passed": True, "blocking": True, "expected": f["expected"], "found": f["found"]}
        for f in manifest.proof["findings"]
    ]
    return DayProof(manifest.day, status, True, findings, figures=manifest.proof["figures"])


def of_error(day: date, error: PipelineError) -> DayProof:
    """A day that could not be made, or was made wrong."""
    from pipeline.checks import ProofFailed

    if isinstance(error, ProofFailed):
        return of_proof(error.proof, status="failed")
    row = {"proof": "the day can be made", "passed": False, "blocking": True, "expected": "yes", "found": str(error)}
    return DayProof(day, "failed", False, [row], problem=str(error))


def check_result(dataset: Dataset, asset: str, check: str, days: Sequence[DayProof]) -> dg.AssetCheckResult:
    """The result of a check over some days, with a row per day and per proof.

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
    rows = [{"day": str(day.day), "status": day.status, **row} for day in days for row in day.findings]
    rows.sort(key=lambda row: row["passed"])  # what failed comes first
    differences = [{"day": str(day.day), **row} for day in days for row in day.differences]
    figures = [{"day": str(day.day), **(day.figures or {})} for day in days]
    covered = {name: "string" for row in figures for name in row}
    metadata: dict[str, Any] = {
        "days": len(days),
        "days_failed": len(failed),
        "proofs": len(rows),
        "per_day_and_proof": table_value(FINDING_COLUMNS, rows[:MAX_ROWS]),
        "covered": table_value(covered, [{n: str(v) for n, v in row.items()} for row in figures[:MAX_ROWS]]),
    }
    if differences:
        metadata["first_rows_that_differ"] = table_value(DIFFERENCE_COLUMNS, differences[:MAX_ROWS])
    statuses = sorted({day.status for day in days})
    passed = f"{len(days)} day{'s' if len(days) != 1 else ''}, {len(rows)} proofs passed ({', '.join(statuses)})"
    return dg.AssetCheckResult(
        asset_key=asset_key(dataset, asset),
        check_name=check,
        passed=not failed,
        metadata=metadata,
        description="; ".join(day.problem for day in failed[:3]) if failed else passed,
    )


def proof_spec(dataset: Dataset, asset: str) -> dg.AssetCheckSpec:
    """The check that the step of an asset reports itself, before anything is published."""
    description = "What was written is read back and proven against a plain loop before it is published."
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
        proofs = [
            day_proof_again(
                asset, day, dataset=dataset, features=features, store=store, run=context.run.run_id, deep=config.deep
            )
            for day in days
        ]
        result = check_result(dataset, asset, PROOF_AGAIN, proofs)
        context.log.info(f"{asset}: {result.description}")
        yield result

    return prove


def run_days(context: dg.AssetCheckExecutionContext | dg.AssetExecutionContext) -> list[date]:
    """The days of a run; none when it has no partition, as with "Execute" in the UI."""
    if not (context.has_partition_key or context.has_partition_key_range):
        return []
    return [date.fromisoformat(key) for key in context.partition_keys]


def day_proof_again(
    asset: str,
    day: date,
    *,
    dataset: Dataset,
    features: Sequence[Feature],
    store: "Store",
    run: str,
    deep: bool,
) -> DayProof:
    """Proves a published day, or reports the proof when this run has just made it.

    Args:
        asset: Name of the asset.
        day: UTC day.
        dataset: The declarations.
        features: The features in use.
        store: Where it lies.
        run: Name of the run.
        deep: From the first day on.
    """
    from pipeline.checks import prove_again
    from pipeline.store import safe_run

    try:
        manifest = store.manifest(asset, day)
        if manifest is not None and not deep and manifest.proof.get("run") == safe_run(run):
            return of_manifest(manifest, status="made by this run")
        return of_proof(
            prove_again(asset, day, dataset=dataset, features=features, store=store, deep=deep), status="proven again"
        )
    except PipelineError as error:
        return of_error(day, error)

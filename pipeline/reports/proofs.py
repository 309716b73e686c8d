"""What is known of the proof of a day, and how it reads: as a sentence, as a line among other days, row by row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from pipeline.contracts import PipelineError

if TYPE_CHECKING:
    from pipeline.checks import Proof
    from pipeline.store import Manifest

KINDS = {
    "at_chunk_borders": "at the borders of chunks",
    "heaviest": "with the most events",
    "tied": "with several events at one instant",
    "seen_before": "seen on earlier days",
    "seen_first": "never seen before",
}


@dataclass(frozen=True, slots=True)
class DayProof:
    """What is known of one day: rows for the tables of a check.

    Attributes:
        day: UTC day.
        status: made, reused, failed, proven again, or made by this run.
        passed: Whether the day is right.
        findings: A row for each proof.
        figures: What was covered.
        differences: The first rows that differ.
        problem: A sentence when it did not pass.
    """

    day: date
    status: str
    passed: bool
    findings: Sequence[Mapping[str, Any]]
    figures: Mapping[str, Any]
    differences: Sequence[Mapping[str, Any]] = ()
    problem: str = ""

    @property
    def proofs(self) -> int:
        """How many findings could have kept the day back."""
        return sum(row["blocking"] for row in self.findings)

    @property
    def proofs_passed(self) -> int:
        """How many of them did not."""
        return sum(row["blocking"] and row["passed"] for row in self.findings)


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
    return DayProof(proof.day, status, proof.passed, findings, proof.figures, differences, problem)


def of_manifest(manifest: "Manifest", *, status: str) -> DayProof:
    """The proof that let a published day out, as its manifest records it."""
    findings = [
        {
            "proof": f["name"],
            "passed": f.get("passed", True),
            "blocking": f.get("blocking", True),
            "expected": f["expected"],
            "found": f["found"],
        }
        for f in manifest.proof["findings"]
    ]
    return DayProof(manifest.day, status, True, findings, manifest.proof["figures"])


def of_error(day: date, error: PipelineError) -> DayProof:
    """A day that could not be made, or was made wrong."""
    from pipeline.checks import ProofFailed

    if isinstance(error, ProofFailed):
        return of_proof(error.proof, status="failed")
    row = {"proof": "the day can be made", "passed": False, "blocking": True, "expected": "yes", "found": str(error)}
    return DayProof(day, "failed", False, [row], {}, problem=str(error))


def coverage(figures: Mapping[str, Any]) -> str:
    """In sentences: what was looked at one by one, and what could have been missed.

    Args:
        figures: Of a proof of any asset; a proof that stopped early has none.
    """
    if "users_proven" in figures:
        return _users_covered(figures)
    if "raw_records_counted" in figures:
        judged = (
            f"All {figures['raw_records_counted']:,} records were counted from the bytes of the raw files; "
            f"{figures['raw_records_proven']:,} of them were read again by plain Python and compared. All "
            f"{figures['rows_covered']:,} accepted and {figures['rejected_covered']:,} refused rows were looked at."
        )
        columns = figures["raw_columns_not_judged"]
        return judged + (f" Not read again (SQL): {', '.join(columns)}." if columns else "")
    if "ids_covered" in figures:
        return f"All {figures['ids_covered']:,} ids of the day were looked up in the log of {figures['log_covered']:,} ids."
    return ""


def coverage_line(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The same in a few columns, for a line among other days."""
    if "users_proven" in figures:
        return {
            "rows": figures.get("rows_covered"),
            "one_by_one": f"{figures['users_proven']:,} of {figures['users']:,} users",
            "could_be_missed": share(figures["share_missed_at_5_percent"]),
        }
    if "raw_records_counted" in figures:
        sample = f"{figures['raw_records_proven']:,} of {figures['raw_records_counted']:,} raw records"
        return {"rows": figures["rows_covered"], "one_by_one": sample}
    if "ids_covered" in figures:
        return {
            "rows": figures["ids_covered"],
            "one_by_one": f"{figures['ids_covered']:,} of {figures['ids_covered']:,} ids",
        }
    return {}


def share(value: float) -> str:
    """A share of users that a sample could miss.

    >>> share(0.0), share(0.014867)
    ('none', '1.49 % of users')
    """
    return "none" if not value else f"{value * 100:.3g} % of users"


def _users_covered(figures: Mapping[str, Any]) -> str:
    users, proven = figures["users"], figures["users_proven"]
    if not users:
        text = "The day has no users."
    elif figures["users_at_random"] >= users:
        text = f"The plain loop went through all {users:,} users and their {figures['rows_proven']:,} events: no user could be missed."
    else:
        kinds = ", ".join(f"{count} {KINDS.get(kind, kind)}" for kind, count in figures["kinds"].items() if count)
        missed = share(figures["share_missed_at_5_percent"])
        text = (
            f"The plain loop went through {proven:,} of {users:,} users and their {figures['rows_proven']:,} events: "
            f"{figures['users_at_random']:,} drawn at random, and on purpose {kinds}. Were {missed} or more wrong, "
            "it would have been seen with a probability of 95 %."
        )
    if "rows_covered" in figures:
        text += f" The other proofs looked at all {figures['rows_covered']:,} rows."
    if figures.get("absent_users_proven"):
        text += f" {figures['absent_users_proven']:,} users who were absent that day were compared with the day before."
    return text

"""What a proof found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from pipeline.contracts import PipelineError

FIRST_DIFFERENCES = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one proof.

    Attributes:
        name: Which proof.
        passed: Whether found is what was expected.
        expected: In words or figures.
        found: In words or figures.
        blocking: Whether a failure keeps the day from being published.
        rows: The first rows that differ: user_id, row_id, column, expected, found.
    """

    name: str
    passed: bool
    expected: str
    found: str
    blocking: bool = True
    rows: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """All findings about one day of one asset.

    Attributes:
        asset: Name of the asset.
        day: UTC day.
        findings: In the order in which they were looked for.
        figures: Sample size, rows covered, users by kind, and what the sample can miss.
        seconds: How long it took.
    """

    asset: str
    day: date
    findings: tuple[Finding, ...]
    figures: Mapping[str, Any]
    seconds: float

    @property
    def failed(self) -> list[Finding]:
        """The blocking findings that did not pass."""
        return [finding for finding in self.findings if finding.blocking and not finding.passed]

    @property
    def passed(self) -> bool:
        """Whether the day may be published."""
        return not self.failed

    def sentence(self) -> str:
        """The first thing that is wrong."""
        first = self.failed[0]
        where = ""
        if first.rows:
            row = first.rows[0]
            where = ", first at " + ", ".join(f"{key} {value}" for key, value in row.items() if value is not None)
        return f"{first.name}: expected {first.expected}, found {first.found}{where}"


class ProofFailed(PipelineError):
    """A day was made, and is wrong; nothing of it was published."""

    def __init__(self, proof: Proof, message: str) -> None:
        super().__init__(message)
        self.proof = proof


@dataclass
class Findings:
    """Collects findings."""

    found: list[Finding] = field(default_factory=list)

    def expect(
        self,
        name: str,
        *,
        expected: object,
        found: object,
        rows: Sequence[Mapping[str, Any]] = (),
        blocking: bool = True,
    ) -> None:
        """Notes whether two values are equal."""
        shown = tuple(rows[:FIRST_DIFFERENCES])
        self.found.append(Finding(name, expected == found, _show(expected), _show(found), blocking, shown))

    def note(self, name: str, found: object) -> None:
        """Notes something that never blocks."""
        self.found.append(Finding(name, True, "for information", _show(found), blocking=False))


def _show(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)

"""What a proof found."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from itertools import zip_longest
from typing import Any, TypeVar

from pipeline.contracts import PipelineError

T = TypeVar("T")
FIRST_DIFFERENCES = 20
NOTHING = "none that differ"
HASH_CHARACTERS = 32
SHOWN_CHARACTERS = 12  # of a hash
SHOWN_VALUES = 3  # of a long list that is as expected: the new ids of a day may be millions


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
        if not first.rows:
            return f"{first.name}: expected {first.expected}, found {first.found}"
        row = dict(first.rows[0])
        column, right, wrong = (row.pop(name, None) for name in ("column", "expected", "found"))
        where = ", ".join(f"{name} {value}" for name, value in row.items() if value is not None)
        return f"{first.name}: {first.found}, first {where or 'one'}: {column} is {wrong}, expected {right}"


class ProofFailed(PipelineError):
    """A day was made, and is wrong; nothing of it was published."""

    def __init__(self, proof: Proof, message: str) -> None:
        super().__init__(message)
        self.proof = proof


@dataclass
class Findings:
    """Collects findings."""

    found: list[Finding] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Notes how long a part of the proof takes."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] = self.seconds.get(part, 0.0) + time.perf_counter() - began

    def waiting(self, part: str, items: Iterator[T]) -> Iterator[T]:
        """The same items; notes how long they are waited for."""
        while True:
            with self.timed(part):
                item = next(items, None)
            if item is None:
                return
            yield item

    def expect(
        self,
        name: str,
        *,
        expected: object,
        found: object,
        blocking: bool = True,
    ) -> None:
        """Notes whether two values are equal."""
        shown = show_both(expected, found)
        self.found.append(Finding(name, expected == found, *shown, blocking))

    def expect_none(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Notes that nothing differs.

        Args:
            name: Which proof.
            rows: What differs: all of it, or as much as was looked for.
        """
        found = f"{len(rows):,} or more that differ" if rows else NOTHING
        self.found.append(Finding(name, not rows, NOTHING, found, rows=tuple(rows[:FIRST_DIFFERENCES])))

    def note(self, name: str, found: object) -> None:
        """Notes something that never blocks."""
        self.found.append(Finding(name, True, "for information", _show(found), blocking=False))


def show_both(expected: object, found: object) -> tuple[str, str]:
    """Both values as users read them; of long lists only where they differ.

    >>> show_both([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])
    ('1, 2, 3, ... (5 in all)', '1, 2, 3, ... (5 in all)')
    >>> show_both([1, 2, 3, 4, 5], [1, 2, 3, 4])
    ('5 at place 5 of 5', 'nothing at place 5 of 4')
    >>> show_both([], ["a.parquet"])
    ('none', 'a.parquet')
    >>> show_both("a1a731d2fee423d0fb6fb9308296cfd8", "a1a731d2fee423d0fb6fb9308296cfd8")
    ('a1a731d2fee4...', 'a1a731d2fee4...')
    """
    if isinstance(expected, str) and isinstance(found, str) and len(expected) == len(found) == HASH_CHARACTERS:
        expected, found = f"{expected[:SHOWN_CHARACTERS]}...", f"{found[:SHOWN_CHARACTERS]}..."
    if not isinstance(expected, list) or not isinstance(found, list) or max(len(expected), len(found)) <= SHOWN_VALUES:
        return _show(expected), _show(found)
    if expected == found:
        both = f"{_show(expected[:SHOWN_VALUES])}, ... ({len(expected):,} in all)"
        return both, both
    pairs = zip_longest(expected, found, fillvalue="nothing")
    place, pair = next((n, pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    return f"{pair[0]} at place {place:,} of {len(expected):,}", f"{pair[1]} at place {place:,} of {len(found):,}"


def _show(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(str(one) for one in value) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)

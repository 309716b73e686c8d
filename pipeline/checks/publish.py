"""Written, then proven, then published: the only way to a new version of a day."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from pipeline.checks.events import prove_events
from pipeline.checks.features import prove_features
from pipeline.checks.findings import Findings, Proof, ProofFailed
from pipeline.checks.reading import Subject
from pipeline.checks.state import prove_state
from pipeline.checks.vocabularies import prove_vocabulary
from pipeline.config import Dataset
from pipeline.contracts import Feature, PipelineError
from pipeline.store import Manifest, Staged, Store
from pipeline.vocabularies import Segment


@dataclass(frozen=True, slots=True)
class Published:
    """A version that is out.

    Attributes:
        manifest: Of the day.
        companion: For `events`, of `rejected_events`.
        proof: What let it out.
    """

    manifest: Manifest
    companion: Manifest | None
    proof: Proof


def publish(
    staged: Staged,
    *,
    dataset: Dataset,
    features: Sequence[Feature],
    store: Store,
    companion: Staged | None = None,
    segment: Segment | None = None,
) -> Published | None:
    """Reads a staged version back from disk, proves it, and replaces the manifest.

    Args:
        staged: The version.
        dataset: The declarations.
        features: The features in use.
        store: Where it lies.
        companion: `rejected_events`, when `events` are published.
        segment: What a vocabulary is about to add to its log.

    Returns:
        What is out now; None when another run added to the log first and the day has to be made again.

    Raises:
        ProofFailed: It is wrong; the former version stays, and the files lie in `_failed/<run>/`.
    """
    others = () if companion is None else (companion,)
    try:
        if segment is not None and segment.late():
            return None
        proof = _prove(staged.manifest, _manifest(companion), segment, dataset, features, store, deep=False)
        if not proof.passed:
            asides = [store.move_aside(version) for version in (staged, *others)]
            message = (
                f"{staged.manifest.asset} of {staged.manifest.day} was proven wrong and is not published: {proof.sentence()}; "
                f"its files lie in {asides[0]}, and readers see what was published before"
            )
            raise ProofFailed(proof, message)
        if segment is not None and not segment.link():
            return None
    finally:
        if segment is not None:
            segment.path.unlink(missing_ok=True)
    record = _record(proof, staged.run)
    published = None if companion is None else store.commit(companion, proof=record)
    return Published(store.commit(staged, proof=record), published, proof)


def prove_again(
    asset: str, day: date, *, dataset: Dataset, features: Sequence[Feature], store: Store, deep: bool = False
) -> Proof:
    """Proves what lies on disk.

    Args:
        asset: Name of the asset.
        day: A published day.
        dataset: The declarations.
        features: The features in use.
        store: Where it lies.
        deep: For `user_state`, from the first day on.

    Raises:
        PipelineError: The day, or one of its inputs, is missing or not current.
    """
    if asset == "rejected_events":
        asset = "events"
    manifest = store.manifest(asset, day)
    if manifest is None:
        raise PipelineError(f"{asset} of {day} is missing; run: {dataset.command([asset], day, day)}")
    companion = store.manifest("rejected_events", day) if asset == "events" else None
    return _prove(manifest, companion, None, dataset, features, store, deep=deep)


def _prove(
    manifest: Manifest,
    companion: Manifest | None,
    segment: Segment | None,
    dataset: Dataset,
    features: Sequence[Feature],
    store: Store,
    *,
    deep: bool,
) -> Proof:
    began, findings = time.perf_counter(), Findings()
    subject = Subject(manifest, store, dataset, features)
    figures: dict[str, Any]
    if manifest.asset == "events":
        assert companion is not None
        figures = prove_events(subject, Subject(companion, store, dataset, features), findings)
    elif manifest.asset == "user_state":
        figures = prove_state(subject, findings, deep=deep)
    elif manifest.asset == "features":
        figures = prove_features(subject, findings)
    else:
        figures = prove_vocabulary(subject, segment, findings)
    seconds = {part: round(spent, 3) for part, spent in findings.seconds.items()}
    return Proof(
        manifest.asset,
        manifest.day,
        tuple(findings.found),
        {**figures, "seconds_a_part": seconds},
        time.perf_counter() - began,
    )


def _manifest(staged: Staged | None) -> Manifest | None:
    return None if staged is None else staged.manifest


def _record(proof: Proof, run: str) -> dict[str, Any]:
    """The proof as it stands in the manifest."""
    return {
        "run": run,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(proof.seconds, 3),
        "figures": dict(proof.figures),
        "findings": [
            {"name": f.name, "expected": f.expected, "found": f.found}
            | ({} if f.blocking else {"blocking": False, "passed": f.passed})
            for f in proof.findings
        ],
    }

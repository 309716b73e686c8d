"""Written, then proven, then published: the only way to a new version of a day."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from pipeline.checks.events import prove_events
from pipeline.checks.features import prove_features
from pipeline.checks.findings import Finding, Findings, Proof, ProofFailed
from pipeline.checks.raw_oracle import days_at_once, sample_raw
from pipeline.checks.raw_sample import RawSample
from pipeline.checks.reading import Subject
from pipeline.checks.state import prove_state
from pipeline.checks.vocabularies import prove_vocabulary
from pipeline.config import Dataset
from pipeline.contracts import Feature, PipelineError
from pipeline.sources import remove_copies
from pipeline.store import Manifest, Staged, Store
from pipeline.vocabularies import Segment

EVENTS = ("events", "rejected_events")


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
    sample: RawSample | None = None,
) -> Published | None:
    """Reads a staged version back from disk, proves it, and replaces the manifest.

    Args:
        staged: The version.
        dataset: The declarations.
        features: The features in use.
        store: Where it lies.
        companion: `rejected_events`, when `events` are published.
        segment: What a vocabulary is about to add to its log.
        sample: What `sample_of_days` read in the raw files; they are read now when there is none.

    Returns:
        What is out now; None when another run added to the log first and the day has to be made again.

    Raises:
        ProofFailed: It is wrong; the former version stays, and the files lie in `_failed/<run>/`.
    """
    others = () if companion is None else (companion,)
    try:
        if segment is not None and segment.late():
            return None
        try:
            proof = _prove(staged.manifest, _manifest(companion), segment, dataset, features, store, sample, deep=False)
        except PipelineError:
            raise
        except Exception as error:  # what was written is so wrong that a proof stumbles over it
            proof = _stumbled(staged.manifest, error)
        if segment is not None and segment.late():  # during the proof, which then met another log
            return None
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


def sample_of_days(
    staged: Sequence[tuple[Staged, Staged]], *, dataset: Dataset, features: Sequence[Feature], store: Store
) -> list[RawSample]:
    """Reads the raw files of some days of `events` a second time, each file once, for `publish` to prove them with.

    Args:
        staged: `events` and `rejected_events` of each day.
        dataset: The declarations.
        features: The features in use.
        store: Where they lie.

    Returns:
        One sample a day.
    """
    return _samples([(one.manifest, other.manifest) for one, other in staged], dataset, features, store)


def prove_days_again(
    asset: str, days: Sequence[date], *, dataset: Dataset, features: Sequence[Feature], store: Store, deep: bool = False
) -> Iterator[tuple[date, Proof | PipelineError]]:
    """Proves what lies on disk of some days; raw files that hold rows of all of them are read once.

    Args:
        asset: Name of the asset.
        days: Published days.
        dataset: The declarations.
        features: The features in use.
        store: Where they lie.
        deep: Also what costs as much as all of history: `user_state` from the first day on, a vocabulary's whole log.

    Yields:
        Each day with its proof, or with why there is none: see `prove_again`.
    """
    shared = asset in EVENTS and not dataset.source.dated
    manifests = [found for day in days if (found := store.manifest("events", day)) is not None] if shared else []
    at_once = days_at_once(max(len(manifest.raw_files) for manifest in manifests)) if manifests else 1
    try:
        for first in range(0, len(days), at_once):
            batch = days[first : first + at_once]
            try:
                samples = _samples_again(batch, dataset, features, store) if manifests else {}
            except PipelineError as error:
                yield from ((day, error) for day in batch)
                continue
            for day in batch:
                proof: Proof | PipelineError
                try:
                    proof = prove_again(
                        asset, day, dataset=dataset, features=features, store=store, deep=deep, sample=samples.get(day)
                    )
                except PipelineError as error:
                    proof = error
                yield day, proof
    finally:
        remove_copies(dataset.root)


def prove_again(
    asset: str,
    day: date,
    *,
    dataset: Dataset,
    features: Sequence[Feature],
    store: Store,
    deep: bool = False,
    sample: RawSample | None = None,
) -> Proof:
    """Proves what lies on disk.

    Args:
        asset: Name of the asset.
        day: A published day.
        dataset: The declarations.
        features: The features in use.
        store: Where it lies.
        deep: Also what costs as much as all of history: `user_state` from the first day on, a vocabulary's whole log.
        sample: For `events`, what was read in the raw files; they are read now when there is none.

    Raises:
        PipelineError: The day, or one of its inputs, is missing or not current.
    """
    if asset == "rejected_events":
        asset = "events"
    manifest = store.manifest(asset, day)
    if manifest is None:
        raise PipelineError(f"{asset} of {day} is missing; run: {dataset.command([asset], day, day)}")
    companion = store.manifest("rejected_events", day) if asset == "events" else None
    return _prove(manifest, companion, None, dataset, features, store, sample, deep=deep)


def _samples_again(
    days: Sequence[date], dataset: Dataset, features: Sequence[Feature], store: Store
) -> dict[date, RawSample]:
    """Of those days of `events` that are published."""
    versions: dict[date, tuple[Manifest, Manifest]] = {}
    for day in days:
        events, rejected = store.manifest("events", day), store.manifest("rejected_events", day)
        if events is not None and rejected is not None:
            versions[day] = (events, rejected)
    return dict(zip(versions, _samples(list(versions.values()), dataset, features, store), strict=True))


def _samples(
    versions: Sequence[tuple[Manifest, Manifest]], dataset: Dataset, features: Sequence[Feature], store: Store
) -> list[RawSample]:
    return sample_raw(
        [(Subject(one, store, dataset, features), Subject(other, store, dataset, features)) for one, other in versions]
    )


def _prove(
    manifest: Manifest,
    companion: Manifest | None,
    segment: Segment | None,
    dataset: Dataset,
    features: Sequence[Feature],
    store: Store,
    sample: RawSample | None,
    *,
    deep: bool,
) -> Proof:
    began, findings = time.perf_counter(), Findings()
    subject = Subject(manifest, store, dataset, features)
    figures: dict[str, Any]
    if manifest.asset == "events":
        assert companion is not None
        figures = prove_events(subject, Subject(companion, store, dataset, features), findings, sample=sample)
    elif manifest.asset == "user_state":
        figures = prove_state(subject, findings, deep=deep)
    elif manifest.asset == "features":
        figures = prove_features(subject, findings)
    else:
        figures = prove_vocabulary(subject, segment, findings, deep=deep)
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


def _stumbled(manifest: Manifest, error: Exception) -> Proof:
    """The proof that could not be carried out."""
    finding = Finding("the proof can be carried out", False, "no error", f"{type(error).__name__}: {error}")
    return Proof(manifest.asset, manifest.day, (finding,), {}, 0.0)


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

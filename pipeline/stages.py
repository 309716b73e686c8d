"""One day of one asset, from its inputs to its publication: reuse it, or make, prove and publish it.

Knows nothing of Dagster: call `run_day` from a notebook or a test as the assets do.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from pipeline.checks import Proof, publish
from pipeline.config import Dataset
from pipeline.contracts import Feature, PipelineError
from pipeline.events import events_recipe, make_events
from pipeline.outputs import features_recipe, make_features
from pipeline.state import make_user_state, state_recipe
from pipeline.store import Currency, Manifest, Recipe, Staged, Store, previous
from pipeline.vocabularies import Segment, make_vocabulary, vocabulary_recipe

if TYPE_CHECKING:
    import torch

CHAIN = ("user_vocabulary", "item_vocabulary", "user_state")
STAGES = ("events", *CHAIN, "features")


@dataclass(frozen=True, slots=True)
class Work:
    """What a run works with.

    Attributes:
        dataset: The dataset file.
        features: The features in use.
        store: The store of the dataset.
        run: Name of the run.
        device: Where `features` are computed.
        chunk_rows: About how many events a chunk holds.
        force: Makes days again although nothing that they are made of has changed.
        report: Gets lines of progress.
    """

    dataset: Dataset
    features: Sequence[Feature]
    store: Store
    run: str
    device: "torch.device"
    chunk_rows: int
    force: bool
    report: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a day.

    Attributes:
        asset: Name of the asset.
        day: UTC day.
        reused: It was current and made of the same things, and was left as it is.
        manifest: The published version.
        companion: For `events`, the published version of `rejected_events`.
        proof: The proof that let it out; None when it was reused (the manifest holds the figures).
        make_s: Seconds to make it.
        prove_s: Seconds to prove and publish it.
        facts: What the stage learnt on the way.
    """

    asset: str
    day: date
    reused: bool
    manifest: Manifest
    companion: Manifest | None = None
    proof: Proof | None = None
    make_s: float = 0.0
    prove_s: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)


def run_day(asset: str, day: date, work: Work) -> Outcome:
    """Makes, proves and publishes a day of an asset, unless it can be reused.

    Args:
        asset: One of `STAGES`; `events` makes `rejected_events` as well.
        day: UTC day.
        work: What the run works with.

    Raises:
        PipelineError: The day cannot be made; nothing of it is published.
        ProofFailed: It was made, and is wrong; nothing of it is published and its files lie in `_failed/<run>/`.
    """
    _require_chain(asset, day, work)
    former = work.store.manifest(asset, day)
    if former is not None and not work.force and _unchanged(asset, former, work):
        companion = work.store.manifest("rejected_events", day) if asset == "events" else None
        return Outcome(asset, day, reused=True, manifest=former, companion=companion)
    outcome = _make_and_publish(asset, day, work)
    for table in ("events", "rejected_events") if asset == "events" else (asset,):
        work.store.sweep(table, day, keep_hours=work.dataset.store.keep_hours)
    return outcome


def present_recipe(asset: str, former: Manifest, work: Work) -> Recipe:
    """What a published day would be made of now.

    Raises:
        PipelineError: An input is missing or not current.
    """
    day, dataset, store = former.day, work.dataset, work.store
    if asset == "events":
        return events_recipe(day=day, dataset=dataset, former=former)
    if asset == "user_state":
        return state_recipe(day=day, dataset=dataset, features=work.features, store=store)
    if asset == "features":
        return features_recipe(day=day, dataset=dataset, features=work.features, store=store)
    return vocabulary_recipe(vocabulary=asset, day=day, dataset=dataset, store=store)


def _unchanged(asset: str, former: Manifest, work: Work) -> bool:
    return (
        present_recipe(asset, former, work).matches(former) and Currency(work.store).problem(asset, former.day) is None
    )


def _make_and_publish(asset: str, day: date, work: Work) -> Outcome:
    while True:
        began = time.perf_counter()
        staged, companion, segment = _make(asset, day, work)
        made = time.perf_counter()
        published = publish(
            staged,
            companion=companion,
            segment=segment,
            dataset=work.dataset,
            features=work.features,
            store=work.store,
        )
        if published is not None:
            break
        work.report(f"{asset} {day}: another run added to the vocabulary first; numbering the new ids again")
    return Outcome(
        asset,
        day,
        reused=False,
        manifest=published.manifest,
        companion=published.companion,
        proof=published.proof,
        make_s=made - began,
        prove_s=time.perf_counter() - made,
        facts=staged.facts,
    )


def _make(asset: str, day: date, work: Work) -> tuple[Staged, Staged | None, Segment | None]:
    """The staged day, with `rejected_events` beside `events` and the segment that a vocabulary adds."""
    dataset, store, run, report = work.dataset, work.store, work.run, work.report
    if asset == "events":
        staged, companion = make_events(day=day, dataset=dataset, store=store, run=run, report=report)
        return staged, companion, None
    if asset == "user_state":
        staged = make_user_state(day=day, dataset=dataset, features=work.features, store=store, run=run, report=report)
        return staged, None, None
    if asset == "features":
        staged = make_features(
            day=day,
            dataset=dataset,
            features=work.features,
            store=store,
            run=run,
            device=work.device,
            chunk_rows=work.chunk_rows,
            report=report,
        )
        return staged, None, None
    staged, segment = make_vocabulary(vocabulary=asset, day=day, dataset=dataset, store=store, run=run)
    return staged, None, segment


def _require_chain(asset: str, day: date, work: Work) -> None:
    """A vocabulary day needs the day before, so that a first build numbers ids in day order."""
    if not asset.endswith("_vocabulary") or day == work.dataset.partitions.start:
        return
    if work.store.manifest(asset, previous(day)) is None:
        raise PipelineError(
            f"{asset} of {previous(day)} is missing, and {day} builds on it; "
            + "run: "
            + work.dataset.command([asset], work.dataset.partitions.start, day)
        )

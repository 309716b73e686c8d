"""Days of one asset, from their inputs to their publication: reuse each, or make, prove and publish it.

Knows nothing of Dagster: call `run_day` or `run_days` from a notebook or a test as the assets do.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from pipeline.checks import Proof, Published, RawSample, days_at_once, publish, sample_of_days
from pipeline.chunks import device_of_day
from pipeline.config import Dataset
from pipeline.contracts import Feature, PipelineError
from pipeline.events import events_recipe, make_events, make_events_of_days
from pipeline.memory import give_back, keep_freed
from pipeline.outputs import features_recipe, make_features
from pipeline.sources import remove_copies
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
        device: Where `features` are computed; None for the other stages.
        chunk_rows: The most events that a chunk holds; None plans it from `[compute] memory`.
        force: Makes days again although nothing that they are made of has changed.
        report: Gets lines of progress.
    """

    dataset: Dataset
    features: Sequence[Feature]
    store: Store
    run: str
    device: "torch.device | None"
    chunk_rows: int | None
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
    keep_freed()
    _require_chain(asset, day, work)
    return _reused(asset, day, work) or _make_and_publish(asset, day, work)


def run_days(asset: str, days: Sequence[date], work: Work) -> Iterator[tuple[date, Outcome | PipelineError]]:
    """Makes, proves and publishes some days of an asset; what is wrong with one of them leaves the others as they are.

    Raw files that hold rows of all days are read once to make them and once to prove them, and not for every day.

    Args:
        asset: One of `STAGES`.
        days: UTC days, ascending.
        work: What the run works with.

    Yields:
        Each day with what became of it, or what is wrong with it; in order, except that days which are read together come
        after those that are reused.
    """
    keep_freed()
    source = work.dataset.source
    together = asset == "events" and not source.dated
    to_make: list[date] = []
    try:
        for day in days:
            outcome: Outcome | PipelineError | None
            try:
                outcome = _reused(asset, day, work) if together else run_day(asset, day, work)
            except PipelineError as error:
                outcome = error
            if source.dated and source.neighbours == (0, 0):  # no other day reads the same objects
                remove_copies(work.dataset.root)
            if outcome is None:
                to_make.append(day)
            else:
                yield day, outcome
        if to_make:
            yield from _events_together(to_make, work)
    finally:
        remove_copies(work.dataset.root)


def present_recipe(asset: str, former: Manifest, work: Work) -> Recipe:
    """What a published day would be made of now.

    Raises:
        PipelineError: An input is missing or not current.
    """
    day, dataset, store = former.day, work.dataset, work.store
    if asset == "events":
        return events_recipe(day=day, dataset=dataset, former=former, remembered=store.remembered)
    if asset == "user_state":
        return state_recipe(day=day, dataset=dataset, features=work.features, store=store)
    if asset == "features":
        return features_recipe(day=day, dataset=dataset, features=work.features, store=store)
    return vocabulary_recipe(vocabulary=asset, day=day, dataset=dataset, store=store)


def _reused(asset: str, day: date, work: Work) -> Outcome | None:
    """A published day that is current and would be made of the same things; None when it has to be made."""
    former = work.store.manifest(asset, day)
    if former is None or work.force or not present_recipe(asset, former, work).matches(former):
        return None
    if Currency(work.store).problem(asset, day) is not None:
        return None
    companion = work.store.manifest("rejected_events", day) if asset == "events" else None
    return Outcome(asset, day, reused=True, manifest=former, companion=companion)


def _make_and_publish(asset: str, day: date, work: Work) -> Outcome:
    while True:
        began = time.perf_counter()
        staged, companion, segment = _make(asset, day, work)
        made = time.perf_counter()
        published = _publish(staged, companion, segment, None, work)
        if published is not None:
            return _outcome(staged, published, make_s=made - began, prove_s=time.perf_counter() - made)
        work.report(f"{asset} {day}: another run added to the vocabulary first; numbering the new ids again")


def _events_together(days: Sequence[date], work: Work) -> Iterator[tuple[date, Outcome | PipelineError]]:
    """Days of events whose raw files hold rows of all of them."""
    began = time.perf_counter()
    made = make_events_of_days(days=days, dataset=work.dataset, store=work.store, run=work.run, report=work.report)
    make_s = (time.perf_counter() - began) / len(days)
    waiting = {day: one for day, one in made.items() if not isinstance(one, PipelineError)}
    try:
        for day, one in made.items():
            if isinstance(one, PipelineError):
                yield day, one
        while waiting:
            files = len(next(iter(waiting.values()))[0].manifest.raw_files)
            batch = list(waiting)[: days_at_once(files)]
            yield from _prove_together(batch, waiting, make_s, work)
    finally:
        for versions in waiting.values():
            _discard(versions)


def _prove_together(
    days: Sequence[date], waiting: dict[date, tuple[Staged, Staged]], make_s: float, work: Work
) -> Iterator[tuple[date, Outcome | PipelineError]]:
    """Takes days out of those that wait for their proof, and proves and publishes each."""
    began = time.perf_counter()
    work.report(f"events of {len(days)} days: reading the raw files a second time, for the proof")
    try:
        samples = sample_of_days(
            [waiting[day] for day in days], dataset=work.dataset, features=work.features, store=work.store
        )
    except PipelineError as error:
        for day in days:
            _discard(waiting.pop(day))
            yield day, error
        return
    read_s = (time.perf_counter() - began) / len(days)
    for day, sample in zip(days, samples, strict=True):
        began = time.perf_counter()
        events, rejected = waiting.pop(day)
        outcome: Outcome | PipelineError
        try:
            published = _publish(events, rejected, None, sample, work)
            assert published is not None
            outcome = _outcome(events, published, make_s=make_s, prove_s=read_s + time.perf_counter() - began)
        except PipelineError as error:
            outcome = error
        yield day, outcome


def _discard(versions: tuple[Staged, Staged]) -> None:
    """Removes the files of a day that is not going to be published."""
    for staged in versions:
        for file in staged.manifest.files:
            (staged.directory / file.path).unlink(missing_ok=True)


def _publish(
    staged: Staged, companion: Staged | None, segment: Segment | None, sample: RawSample | None, work: Work
) -> Published | None:
    """Proves and publishes a version, and sweeps what no manifest names any more."""
    published = publish(
        staged,
        companion=companion,
        segment=segment,
        sample=sample,
        dataset=work.dataset,
        features=work.features,
        store=work.store,
    )
    if published is not None:
        for version in (staged,) if companion is None else (staged, companion):
            work.store.sweep(version.manifest.asset, staged.manifest.day, keep_hours=work.dataset.store.keep_hours)
    give_back()
    return published


def _outcome(staged: Staged, published: Published, *, make_s: float, prove_s: float) -> Outcome:
    return Outcome(
        staged.manifest.asset,
        staged.manifest.day,
        reused=False,
        manifest=published.manifest,
        companion=published.companion,
        proof=published.proof,
        make_s=make_s,
        prove_s=prove_s,
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
        assert work.device is not None
        staged = make_features(
            day=day,
            dataset=dataset,
            features=work.features,
            store=store,
            run=run,
            device=device_of_day(work.device, day),
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

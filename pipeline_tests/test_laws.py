"""The laws that every feature obeys, over every feature that is found: a new file is under them by being there."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import example, given

from pipeline.contracts import Chunk, Event, Feature
from pipeline.features import load_features
from pipeline_tests.loops import (
    as_tensors,
    assert_declared,
    assert_same_bits,
    combined,
    expected_of,
    opening_of,
    rows_by_user,
    rows_of,
    states_after,
    summary,
)
from pipeline_tests.strategies import (
    EARLIEST_US,
    Declaration,
    Log,
    chunk_of_events,
    cut_logs,
    large_cut_log,
    logs,
)

FEATURES = load_features(None, {})
LARGE = large_cut_log()
every_feature = pytest.mark.parametrize("feature", FEATURES, ids=[feature.name for feature in FEATURES])


@pytest.fixture(autouse=True, scope="module")
def _poisoned_memory() -> Iterator[None]:
    """Memory that `torch.empty` hands out holds NaN and the largest integers, so that an unwritten element shows."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@contextmanager
def foreign_defaults() -> Iterator[None]:
    """A tensor made without `device` lands on the meta device, one made without `dtype` is float64."""
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            yield
    finally:
        torch.set_default_dtype(torch.float32)


@every_feature
@given(log=logs())
def test_law_01_equals_its_loop(feature: Feature, log: Log) -> None:
    """Law 1: a feature equals its loop exactly, bit for bit."""
    assert_same_bits(feature.compute(log.chunk(), opening_of(feature, log)), expected_of(feature, log))


@every_feature
@pytest.mark.parametrize("threads", [1, 4])
def test_law_01_equals_its_loop_at_size(feature: Feature, threads: int) -> None:
    """Law 1, on a chunk that is large enough for torch to split it among threads."""
    log, _ = LARGE
    former = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = feature.compute(log.chunk(), opening_of(feature, log))
    finally:
        torch.set_num_threads(former)
    assert_same_bits(found, expected_of(feature, log))


@every_feature
@given(log=logs())
def test_law_02_declared_dtype_length_device(feature: Feature, log: Log) -> None:
    """Law 2: dtype, length and device of every tensor are the declared ones, and owe nothing to torch's defaults."""
    chunk, opening, cpu = log.chunk(), opening_of(feature, log), torch.device("cpu")
    E, U = sum(map(len, log.present)), len(log.present)
    columns = feature.columns(log.declared)

    plain = feature.compute(chunk, opening)
    assert_declared(plain, columns, length=E, device=cpu)
    carried = summary(feature, chunk)
    assert_declared(carried, feature.state, length=U, device=cpu)
    closing = combined(feature, opening, carried)
    assert_declared(closing, feature.state, length=U, device=cpu)

    with foreign_defaults():
        computed = feature.compute(chunk, opening)
        summarised = summary(feature, chunk)
        carried_on = combined(feature, opening, summarised)
    assert_same_bits(computed, plain)
    assert_same_bits(summarised, carried)
    assert_same_bits(carried_on, closing)


@every_feature
@given(log=logs())
def test_law_03_values_in_range(feature: Feature, log: Log) -> None:
    """Law 3: every value lies in its declared range, carried state too unless it is the initial value; no NaN, no infinity."""
    chunk, opening = log.chunk(), opening_of(feature, log)
    computed = feature.compute(chunk, opening)
    closing = combined(feature, opening, summary(feature, chunk))
    for columns, tensors in ((feature.columns(log.declared), computed), (feature.state, closing)):
        for column in columns:
            for value in tensors[column.name].tolist():
                assert np.isfinite(value), column.name
                inside = (column.minimum is None or value >= column.minimum) and (
                    column.maximum is None or value <= column.maximum
                )
                assert inside or (column.initial is not None and value == column.initial), f"{column.name}: {value}"


@every_feature
@given(case=cut_logs())
@example(case=LARGE)
def test_law_04_the_past_does_not_depend_on_the_future(feature: Feature, case: tuple[Log, tuple[int, ...]]) -> None:
    """Law 4: with every user cut short, the events that are left keep their values."""
    log, cuts = case
    whole = feature.compute(log.chunk(), opening_of(feature, log))
    left = [u for u, cut in enumerate(cuts) if cut]
    short = chunk_of_events([log.present[u][: cuts[u]] for u in left], log.declared)
    found = feature.compute(short, rows_of(opening_of(feature, log), left))
    rows = rows_by_user(log.present)
    assert_same_bits(found, rows_of(whole, [row for u in left for row in rows[u][: cuts[u]]]))


@every_feature
@given(log=logs())
def test_law_05_users_do_not_see_each_other(feature: Feature, log: Log) -> None:
    """Law 5: together or alone, a user's values and carried state are the same."""
    opening = opening_of(feature, log)
    together, carried = feature.compute(log.chunk(), opening), summary(feature, log.chunk())
    for u, rows in enumerate(rows_by_user(log.present)):
        alone = chunk_of_events([log.present[u]], log.declared)
        assert_same_bits(feature.compute(alone, rows_of(opening, [u])), rows_of(together, rows))
        assert_same_bits(summary(feature, alone), rows_of(carried, [u]))


@every_feature
@given(case=cut_logs())
@example(case=LARGE)
def test_law_06_cut_and_carried_equals_uncut(feature: Feature, case: tuple[Log, tuple[int, ...]]) -> None:
    """Law 6: cut at any event and carried across gives the values and the state of the uncut log; `combine` is associative."""
    log, cuts = case
    opening = opening_of(feature, log)
    whole = feature.compute(log.chunk(), opening)
    rows = rows_by_user(log.present)
    early = [u for u, cut in enumerate(cuts) if cut]
    late = [u for u, cut in enumerate(cuts) if cut < len(log.present[u])]
    both = [u for u in early if u in late]

    def parts(users: Sequence[int], *, before: bool) -> Chunk:
        events = [log.present[u][: cuts[u]] if before else log.present[u][cuts[u] :] for u in users]
        return chunk_of_events(events, log.declared)

    first = summary(feature, parts(early, before=True))
    after_first = combined(feature, rows_of(opening, early), first)
    carried = {name: tensor.clone() for name, tensor in opening.items()}
    for name, tensor in after_first.items():
        carried[name][early] = tensor
    head = feature.compute(parts(early, before=True), rows_of(opening, early))
    tail = feature.compute(parts(late, before=False), rows_of(carried, late))
    assert_same_bits(head, rows_of(whole, [row for u in early for row in rows[u][: cuts[u]]]))
    assert_same_bits(tail, rows_of(whole, [row for u in late for row in rows[u][cuts[u] :]]))

    a, b, c = (
        rows_of(opening, both),
        summary(feature, parts(both, before=True)),
        summary(feature, parts(both, before=False)),
    )
    one_by_one = combined(feature, combined(feature, a, b), c)
    assert_same_bits(one_by_one, combined(feature, a, combined(feature, b, c)))
    uncut = chunk_of_events([log.present[u] for u in both], log.declared)
    assert_same_bits(combined(feature, b, c), summary(feature, uncut))

    closing = combined(feature, opening, summary(feature, log.chunk()))
    everything = [past + present for past, present in zip(log.past, log.present, strict=True)]
    assert_same_bits(closing, as_tensors(feature.state, states_after(feature, everything)))


@every_feature
@given(log=logs())
def test_law_06_no_past_changes_nothing(feature: Feature, log: Log) -> None:
    """Law 6, at its edge: carried from the declared initial state, a summary stays what it is."""
    carried = summary(feature, log.chunk())
    initial = as_tensors(feature.state, [{c.name: c.initial for c in feature.state}] * len(log.present))
    assert_same_bits(combined(feature, initial, carried), carried)


@every_feature
@given(log=logs())
def test_law_07_inputs_are_not_modified(feature: Feature, log: Log) -> None:
    """Law 7: inputs are only read; not even the same value is written to them."""
    chunk, opening = log.chunk(), opening_of(feature, log)
    carried = summary(feature, log.chunk())
    inputs = {"offsets_U1": chunk.offsets_U1, "user_E": chunk.user_E, **chunk.columns}
    inputs |= {f"extra.{name}": tensor for name, tensor in chunk.extra.items()}
    inputs |= {f"opening.{name}": tensor for name, tensor in opening.items()}
    inputs |= {f"later.{name}": tensor for name, tensor in carried.items()}
    before = {name: (tensor._version, tensor.clone()) for name, tensor in inputs.items()}
    names = (set(chunk.extra), set(opening), set(carried))

    feature.compute(chunk, opening)
    summary(feature, chunk)
    combined(feature, opening, carried)

    assert (set(chunk.extra), set(opening), set(carried)) == names
    assert_same_bits(inputs, {name: copy for name, (_, copy) in before.items()})
    written = [name for name, tensor in inputs.items() if tensor._version != before[name][0]]
    assert not written, f"written to: {written}"


@every_feature
@given(log=logs())
def test_law_08_twice_gives_the_same_bits(feature: Feature, log: Log) -> None:
    """Law 8: twice gives the same bits, whatever fresh memory holds."""
    chunk, opening = log.chunk(), opening_of(feature, log)

    def all_of_it() -> list[dict[str, torch.Tensor]]:
        carried = summary(feature, chunk)
        return [feature.compute(chunk, opening), carried, combined(feature, opening, carried)]

    first = all_of_it()
    torch.use_deterministic_algorithms(False)
    try:
        second = all_of_it()
    finally:
        torch.use_deterministic_algorithms(True)
    for one, other in zip(first, second, strict=True):
        assert_same_bits(other, one)


@every_feature
@pytest.mark.parametrize("past", [0, 2], ids=["new", "seen before"])
@pytest.mark.parametrize(
    "lengths", [[], [1], [1, 1, 1], [5], [5, 1, 5]], ids=["empty", "one event", "one each", "one user", "mixed"]
)
def test_law_09_edges(feature: Feature, lengths: list[int], past: int) -> None:
    """Law 9: the empty chunk, one event, and events that are all tied, with the past too, are nothing special."""
    declared = Declaration(("view", "purchase"))

    def tied(count: int, first_row: int) -> tuple[Event, ...]:
        extra = {"price": 1.0, "quantity": 1, "promoted": False}
        return tuple(
            Event(first_row + n, 7, "item", EARLIEST_US, declared.action_names[n % 2], declared.action_names, extra)
            for n in range(count)
        )

    log = Log(declared, tuple(tied(past, 0) for _ in lengths), tuple(tied(n, 10 * u) for u, n in enumerate(lengths)))
    opening = opening_of(feature, log)
    found = feature.compute(log.chunk(), opening)
    assert_declared(found, feature.columns(declared), length=sum(lengths), device=torch.device("cpu"))
    assert_same_bits(found, expected_of(feature, log))
    closing = combined(feature, opening, summary(feature, log.chunk()))
    everything = [past_events + events for past_events, events in zip(log.past, log.present, strict=True)]
    assert_same_bits(closing, as_tensors(feature.state, states_after(feature, everything)))


@pytest.mark.cuda
@every_feature
@given(log=logs())
def test_law_10_cpu_equals_cuda(feature: Feature, log: Log) -> None:
    """Law 10: cpu and cuda give the same bits, on the device that was asked for."""
    opening, device = opening_of(feature, log), torch.device("cuda", 0)
    chunk, there = log.chunk("cuda:0"), {name: tensor.to(device) for name, tensor in opening.items()}
    computed, carried = feature.compute(chunk, there), summary(feature, chunk)
    closing = combined(feature, there, carried)
    for tensors in (computed, carried, closing):
        assert all(tensor.device == device for tensor in tensors.values())
    on_cpu = summary(feature, log.chunk())
    assert_same_bits(computed, feature.compute(log.chunk(), opening))
    assert_same_bits(carried, on_cpu)
    assert_same_bits(closing, combined(feature, opening, on_cpu))


@every_feature
def test_a_feature_declares_what_it_carries(feature: Feature) -> None:
    """State, `summarise` and `combine` come together, and the loop begins with the declared initial values."""
    assert bool(feature.state) == (feature.summarise is not None) == (feature.combine is not None)
    if feature.state:
        assert feature.initial() == {column.name: column.initial for column in feature.state}
    assert type(feature.version) is int

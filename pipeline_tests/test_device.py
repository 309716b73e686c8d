"""The engine: in whatever chunks, over whatever device and with however little memory there, the values of the loop."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.chunks import EventChunk, Transfer, transfer_to
from pipeline.chunks.transfer import DirectTransfer, StagedTransfer
from pipeline.contracts import Chunk, Feature, PipelineError, State
from pipeline.features import load_features
from pipeline.outputs.engine import Engine
from pipeline.store import POLARS_DTYPES
from pipeline_tests.bench import device as benchmark
from pipeline_tests.loops import assert_same_bits, expected_of, opening_of
from pipeline_tests.strategies import Log, large_log, logs

CPU = torch.device("cpu")
FEATURES = load_features(None, {})
IDENTITY = {
    name: POLARS_DTYPES[dtype] for name, dtype in (("row_id", "int64"), ("user_id", "int64"), ("item_id", "string"))
}
INDICES = {"user_index": pl.Int32(), "item_index": pl.Int32()}


@dataclass(frozen=True)
class Numbered:
    """A vocabulary that numbers ids as they are given to it."""

    known: dict[Any, int]

    def index_of(self, ids: pl.Series) -> pl.Series:
        return pl.Series("index", [self.known.setdefault(one, 2 + len(self.known)) for one in ids], dtype=pl.Int32)


def events_of(log: Log) -> pl.DataFrame:
    """The chunk as it lies in `events`."""
    events = [event for user in log.present for event in user]
    return pl.DataFrame(
        {
            "row_id": pl.Series([event.row_id for event in events], dtype=pl.Int64),
            "user_id": pl.Series([event.user_id for event in events], dtype=pl.Int64),
            "item_id": pl.Series([event.item_id for event in events], dtype=pl.String),
            "timestamp": pl.Series([event.timestamp_us for event in events], dtype=pl.Datetime("us", "UTC")),
            "action": pl.Series([event.action for event in events], dtype=pl.Enum(log.declared.action_names)),
            **{name: pl.Series([event.extra[name] for event in events]) for name in ("price", "quantity", "promoted")},
        }
    )


def opening_frame(log: Log, features: Sequence[Feature] = FEATURES) -> pl.DataFrame:
    """`opening`: one row for every user with a past."""
    users = [user[0].user_id for user in log.present]
    columns = {
        f"{feature.name}.{name}": pl.Series(tensor.numpy())
        for feature in features
        for name, tensor in opening_of(feature, log).items()
    }
    seen = pl.Series([bool(past) for past in log.past], dtype=pl.Boolean)
    return pl.DataFrame({"user_id": pl.Series(users, dtype=pl.Int64), **columns}).filter(seen)


def cut_at(frame: pl.DataFrame, cuts: Sequence[int]) -> Iterator[EventChunk]:
    """The rows in chunks that end anywhere, also in the middle of a user who is not alone in the chunk."""
    users = frame["user_id"].to_list()
    for low, high in pairwise(sorted({0, *(cut for cut in cuts if cut < len(users)), len(users)})):
        lengths = [len(list(rows)) for _, rows in groupby(users[low:high])]
        yield EventChunk(
            frame[low:high].rechunk(),
            np.array([0, *accumulate(lengths)], dtype=np.int64),
            continues=low > 0 and users[low - 1] == users[low],
            goes_on=high < len(users) and users[high - 1] == users[high],
        )


def computed(
    log: Log,
    cuts: Sequence[int],
    transfer: Transfer,
    *,
    features: Sequence[Feature] = FEATURES,
    report: Callable[[str], None] = lambda _line: None,
) -> pl.DataFrame:
    """What the engine makes of a log; the tables are looked at when all of them are there."""
    declared = [column for feature in features for column in feature.columns(log.declared)]
    engine = Engine(
        features=features,
        dataset=log.declared,  # type: ignore[arg-type] - has what is asked for
        users=Numbered({}),  # type: ignore[arg-type]
        items=Numbered({}),  # type: ignore[arg-type]
        schema={**IDENTITY, **INDICES, **{column.name: POLARS_DTYPES[column.dtype] for column in declared}},
        transfer=transfer,
        report=report,
    )
    opening = opening_frame(log, features)
    return pl.concat([table for _, table in engine.tables((chunk, opening) for chunk in cut_at(events_of(log), cuts))])


def assert_values(found: pl.DataFrame, log: Log) -> None:
    events = events_of(log)
    assert found.select(list(IDENTITY)).equals(events.select(list(IDENTITY)))
    for feature in FEATURES:
        columns = feature.columns(log.declared)
        assert_same_bits({c.name: torch.tensor(found[c.name].to_numpy()) for c in columns}, expected_of(feature, log))
    for column, ids in (("user_index", "user_id"), ("item_index", "item_id")):
        numbered = Numbered({}).index_of(events[ids])
        assert found[column].equals(numbered.alias(column))


def limited(features: Sequence[Feature], most: int) -> list[Feature]:
    """The same features on a device that has memory for so many events."""

    def compute_of(feature: Feature) -> Callable[[Chunk, State], dict[str, torch.Tensor]]:
        def compute(chunk: Chunk, opening: State) -> dict[str, torch.Tensor]:
            if chunk.events > most:
                raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {chunk.events} bytes")
            return feature.compute(chunk, opening)

        return compute

    return [replace(feature, compute=compute_of(feature)) for feature in features]


devices = pytest.mark.parametrize(
    "device", [CPU, pytest.param(torch.device("cuda", 0), marks=pytest.mark.cuda)], ids=str
)
LARGE = large_log()


@devices
@pytest.mark.parametrize("staged", [False, True], ids=["direct", "staged"])
@given(log=logs(min_users=1), cuts=st.lists(st.integers(1, 60), max_size=6), most=st.sampled_from([10**6, 7, 2, 1]))
def test_any_chunks_on_any_way_give_the_values_of_the_loop(
    device: torch.device, staged: bool, log: Log, cuts: list[int], most: int
) -> None:
    """However users are cut, and halved on a device with too little memory: the law of splitting, inside a day."""
    found = computed(log, cuts, transfer_to(device, staged=staged), features=limited(FEATURES, most))
    assert_values(found, log)


@devices
@pytest.mark.parametrize("staged", [False, True], ids=["direct", "staged"])
def test_chunks_that_are_large_enough_to_be_under_way_together(device: torch.device, staged: bool) -> None:
    rows = sum(map(len, LARGE.present))
    assert_values(computed(LARGE, range(0, rows, 9_001), transfer_to(device, staged=staged)), LARGE)


def test_the_cpu_needs_no_buffers_unless_told() -> None:
    assert isinstance(transfer_to(CPU), DirectTransfer)
    assert isinstance(transfer_to(CPU, staged=True), StagedTransfer)
    assert isinstance(transfer_to(torch.device("mps")), StagedTransfer)


def test_what_goes_through_the_buffers_is_counted() -> None:
    (log, rows), transfer = (LARGE, sum(map(len, LARGE.present))), transfer_to(CPU, staged=True)
    (core,) = load_features(["core"], {})
    computed(log, [], transfer, features=[core])
    users = len(log.present)
    assert transfer.bytes_to == rows * (8 + 1) + 8 * (users + 1) + 8 * users  # time and action, offsets, the last time
    assert transfer.bytes_from == rows * (4 + 1 + 2)  # time_diff, is_first, two actions
    assert (transfer_to(CPU).bytes_to, transfer_to(CPU).bytes_from) == (0, 0)


def test_buffers_are_used_again_and_never_handed_out() -> None:
    """Else a chunk would change while it is computed, or a table while it is written."""
    transfer = StagedTransfer(CPU)
    transfer.start()
    first = transfer.put("x", torch.arange(5))
    results = transfer.fetch({"y": first + 1})()
    kept = {name: values.copy() for name, values in results.items()}
    places = set()
    for n in range(4):
        transfer.start()
        transfer.put("x", torch.full((5,), n))
        transfer.fetch({"y": torch.full((5,), -n)})()
        places |= {buffer.data_ptr() for slot in transfer._slots for buffer in slot.values()}
    assert first.tolist() == [0, 1, 2, 3, 4]
    assert results["y"].tolist() == kept["y"].tolist() == [1, 2, 3, 4, 5]
    assert len(places) == 4  # two names, two chunks under way
    for device_tensor in (first, torch.from_numpy(results["y"])):
        assert device_tensor.data_ptr() not in places


def test_a_buffer_grows_and_keeps_kinds_apart() -> None:
    transfer = StagedTransfer(CPU)
    transfer.start()
    assert transfer.put("x", torch.tensor([True, False])).tolist() == [True, False]
    for _ in range(2):
        transfer.start()
    assert transfer.put("x", torch.tensor([0.1, 2.5, 3.0], dtype=torch.float64)).tolist() == [0.1, 2.5, 3.0]
    assert transfer.put("y", torch.empty(0, dtype=torch.int64)).tolist() == []


def test_metal_says_what_it_lacks() -> None:
    transfer = StagedTransfer(torch.device("mps"))
    with pytest.raises(
        PipelineError, match=r'device = "mps": a feature in use asks for price as float64, which Metal does'
    ):
        transfer.put("price", torch.tensor([1.5], dtype=torch.float64))


def test_memory_that_is_used_up_is_told_and_remembered() -> None:
    """Halved until it fits; later chunks are not tried at full size again."""
    told: list[str] = []
    tried: list[int] = []
    rows = sum(map(len, LARGE.present))
    (core,) = load_features(["core"], {})
    (limits,) = limited([core], rows // 5)
    seen = replace(limits, compute=lambda chunk, opening: tried.append(chunk.events) or limits.compute(chunk, opening))
    computed(LARGE, [rows // 2], transfer_to(CPU), features=[seen], report=told.append)
    first, second = rows // 2, rows // 4
    assert told[0] == f"cpu has no memory for {first:,} events at once; going on with at most {(first + 1) // 2:,}"
    assert len(told) == 2
    assert tried[0] == first
    assert [size for size in tried if size > second + 1] == [first]


@pytest.mark.parametrize("staged", [False, True], ids=["direct", "staged"])
def test_a_failed_try_leaves_no_trace(staged: bool) -> None:
    """Memory may be used up at the last step of a piece, when its state is carried on already."""
    log, calls = LARGE, [0]
    transfer = transfer_to(CPU, staged=staged)
    fetch = transfer.fetch

    def sometimes(results: dict[str, torch.Tensor]) -> Any:
        calls[0] += 1
        if calls[0] in (2, 3, 6):
            raise RuntimeError("CUDA error: out of memory")
        return fetch(results)

    transfer.fetch = sometimes  # type: ignore[method-assign]
    heavy = max(range(len(log.present)), key=lambda u: len(log.present[u]))
    start = sum(len(user) for user in log.present[:heavy])
    cuts = [start + n for n in range(0, len(log.present[heavy]), 25)]
    assert_values(computed(log, cuts, transfer), log)
    assert calls[0] > 6


def test_a_device_without_memory_for_one_event() -> None:
    with pytest.raises(
        PipelineError, match=r"^cpu has no memory for a single event \(CUDA out of memory.*\); end what else"
    ):
        computed(LARGE, [], transfer_to(CPU), features=limited(FEATURES, 0))


def test_other_errors_are_not_taken_for_memory() -> None:
    def compute(_chunk: Chunk, _opening: State) -> dict[str, torch.Tensor]:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    broken = [replace(feature, compute=compute) for feature in FEATURES]
    with pytest.raises(RuntimeError, match="illegal memory access"):
        computed(LARGE, [], transfer_to(CPU), features=broken)


def test_a_feature_that_breaks_its_declaration_is_told() -> None:
    (core,) = load_features(["core"], {})
    wrong = replace(core, compute=lambda chunk, opening: core.compute(chunk, opening) | {"is_first": chunk.time_us_E})
    with pytest.raises(PipelineError, match="feature column 'is_first' was computed as Int64, declared is Boolean"):
        computed(LARGE, [], transfer_to(CPU), features=[wrong])


@pytest.mark.cuda
def test_a_gpu_that_runs_out_of_memory_goes_on_with_halves() -> None:
    """On a real device: what a share of its memory cannot hold comes out all the same."""
    device, told = torch.device("cuda", 0), []
    hungry = [replace(f, compute=lambda c, o, f=f: _with_scratch(f, c, o)) for f in FEATURES]
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction(2**28 / total, device)
    try:
        found = computed(LARGE, [], transfer_to(device), features=hungry, report=told.append)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, device)
    assert told
    assert_values(found, LARGE)


def _with_scratch(feature: Feature, chunk: Chunk, opening: State) -> dict[str, torch.Tensor]:
    scratch = torch.empty(chunk.events * 2**13, dtype=torch.uint8, device=chunk.offsets_U1.device)
    result = feature.compute(chunk, opening)
    del scratch
    return result


def test_the_benchmark_of_a_device_runs_without_one(capsys: pytest.CaptureFixture[str]) -> None:
    """All stages through the buffers, and what only a GPU can say is named."""
    benchmark.main("cpu", 4_000)
    tests, title, head, *lines = capsys.readouterr().out.splitlines()
    assert tests == "tests with the cuda marker: need a GPU, not run"
    assert title == "device cpu, 4,000 events in 4 chunks, medians of 5"
    assert head.split() == ["stage", "ms", "M", "events/s", "MB", "GB/s", "of", "most"]
    kernels = [f"compute {feature.name}" for feature in FEATURES]
    stages = ["to the device", *kernels, "back from the device", "engine, chunk after chunk"]
    assert [line[:28].strip() for line in lines[:-1]] == stages
    assert all(float(figure) > 0 for line in lines[:-1] for figure in line[28:].replace(",", "").split()[:2])
    assert lines[-1].startswith("Needs a GPU: pinned buffers, copies that overlap kernels")

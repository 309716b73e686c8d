"""A device beside what it could do at most: all `cuda` tests, then a table of what is copied, computed and reached.

`python -m pipeline_tests.bench.device [auto|cpu|cuda|cuda:N|mps] [EVENTS]`. On the cpu the same chunks go through the same
buffers, so that the path is exercised where no GPU can be had; what only a GPU can say is named.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.chunks import EventChunk, Transfer, opening_tensors, resolve_device, to_tensors, transfer_to
from pipeline.contracts import Column, Feature
from pipeline.features import load_features
from pipeline.outputs.engine import Engine
from pipeline.state import carried_columns
from pipeline.store import POLARS_DTYPES
from pipeline_tests.bench.logs import ACTIONS

if TYPE_CHECKING:
    import torch

EVENTS = 4_000_000
CHUNKS = 4
REPEATS = 5
EVENTS_A_USER = 20
COPIED_BYTES = 2**28  # of the copies that say what a device reaches at most
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Declared:
    """What features, and the way to the device, ask of a dataset."""

    action_names: tuple[str, ...] = tuple(ACTIONS)
    extra_columns: tuple[Column, ...] = ()


@dataclass(frozen=True)
class Same:
    """Stands for a vocabulary: looking ids up is no work of the device."""

    known: dict[int, int] = field(default_factory=dict)

    def index_of(self, ids: pl.Series) -> pl.Series:
        """1 for every id."""
        return pl.Series("index", np.ones(len(ids), dtype=np.int32))


@dataclass(frozen=True)
class Line:
    """A row of the table.

    Attributes:
        stage: What was done.
        seconds: How long it took.
        events: To how many events.
        moved: Bytes read and written, or copied.
        most: Bytes a second that the device reaches at most at that.
    """

    stage: str
    seconds: float
    events: int
    moved: int
    most: float

    def __str__(self) -> str:
        reached = self.moved / self.seconds
        return (
            f"{self.stage:<28} {1000 * self.seconds:>9.2f} {self.events / self.seconds / 1e6:>12,.1f} "
            f"{self.moved / 1e6:>10,.1f} {reached / 1e9:>8.2f} {100 * reached / self.most:>6.0f} %"
        )


def main(setting: str = "auto", events: int = EVENTS) -> None:
    """Prints everything about a device."""
    device = resolve_device(setting)
    _print(_tests(device))
    _print(f"{_name(device)}, {events:,} events in {CHUNKS} chunks, medians of {REPEATS}")
    _print(f"{'stage':<28} {'ms':>9} {'M events/s':>12} {'MB':>10} {'GB/s':>8} {'of most':>8}")
    for line in measure(device, events):
        _print(str(line))
    if device.type != "cuda":
        _print(
            "Needs a GPU: pinned buffers, copies that overlap kernels on streams of their own, the share of the bus and of the "
            "device's memory; here buffers, halving and results are the same code, and copies are copies within this memory."
        )


def measure(device: "torch.device", events: int) -> Iterator[Line]:
    """Copies, kernels, and the whole engine, each beside the most that the device reaches."""
    import torch

    features, declared = load_features(None, {}), Declared()
    chunks = [_chunk(events // CHUNKS, start) for start in range(CHUNKS)]
    rows, users = chunks[0].frame.height, chunks[0].users
    to_most, from_most, memory_most = _most(device)
    transfer = transfer_to(device, staged=True)

    def put() -> None:
        transfer.start()
        tensors = to_tensors(chunks[0], dataset=declared, device=device, put=transfer.put)  # type: ignore[arg-type]
        _ = tensors.time_us_E, tensors.action_code_E

    seconds, moved = _timed(put, device), transfer.bytes_to // (REPEATS + 1)
    yield Line("to the device", seconds, rows, moved, to_most)
    there = to_tensors(chunks[0], dataset=declared, device=device)  # type: ignore[arg-type]
    results: dict[str, torch.Tensor] = {}
    for feature in features:
        empty = pl.DataFrame(schema={"user_id": pl.Int64, **dict.fromkeys(carried_columns(feature), pl.Int64)})
        tensors = opening_tensors(empty, users, carried_columns(feature), device=device)
        opening = {name.removeprefix(f"{feature.name}."): tensor for name, tensor in tensors.items()}
        results |= (computed := feature.compute(there, opening))
        seconds = _timed(lambda feature=feature, opening=opening: feature.compute(there, opening), device)
        moved = 9 * rows + _bytes(opening) + _bytes(computed)
        yield Line(f"compute {feature.name}", seconds, rows, moved, memory_most)

    def fetch() -> None:
        transfer.start()
        transfer.fetch(results)()

    seconds = _timed(fetch, device)
    yield Line("back from the device", seconds, rows, _bytes(results), from_most)

    def everything() -> None:
        engine = _engine(features, declared, transfer)
        for _ in engine.tables((chunk, pl.DataFrame(schema=_opening_schema(features))) for chunk in chunks):
            pass

    before = transfer.bytes_to + transfer.bytes_from
    seconds = _timed(everything, device)
    moved = (transfer.bytes_to + transfer.bytes_from - before) // (REPEATS + 1)
    yield Line("engine, chunk after chunk", seconds, CHUNKS * rows, moved, min(to_most, from_most))


def _engine(features: Sequence[Feature], declared: Declared, transfer: Transfer) -> Engine:
    columns = [column for feature in features for column in feature.columns(declared)]
    identity = {
        "row_id": pl.Int64(),
        "user_id": pl.Int64(),
        "item_id": pl.Int64(),
        "timestamp": POLARS_DTYPES["timestamp"],
    }
    indices = {"user_index": pl.Int32(), "item_index": pl.Int32()}
    return Engine(
        features=features,
        dataset=declared,  # type: ignore[arg-type] - has what is asked for
        users=Same(),  # type: ignore[arg-type]
        items=Same(),  # type: ignore[arg-type]
        schema={**identity, **indices, **{column.name: POLARS_DTYPES[column.dtype] for column in columns}},
        transfer=transfer,
        report=_print,
    )


def _opening_schema(features: Sequence[Feature]) -> dict[str, pl.DataType]:
    carried = {
        name: POLARS_DTYPES[column.dtype] for feature in features for name, column in carried_columns(feature).items()
    }
    return {"user_id": pl.Int64(), **carried}


def _chunk(rows: int, number: int) -> EventChunk:
    """Users of like many events, later ones in later chunks."""
    users = np.arange(rows, dtype=np.int64) // EVENTS_A_USER + number * rows
    times = np.arange(rows, dtype=np.int64) * 1_000_003
    codes = pl.Series(np.arange(rows) % len(ACTIONS), dtype=pl.UInt32)
    frame = pl.DataFrame(
        {
            "row_id": np.arange(rows, dtype=np.int64),
            "user_id": users,
            "item_id": times % 1_000,
            "timestamp": pl.Series(times).cast(pl.Datetime("us", "UTC")),
            "action": pl.Series(ACTIONS, dtype=pl.Enum(ACTIONS)).gather(codes),
        }
    )
    return EventChunk(frame, np.append(np.arange(0, rows, EVENTS_A_USER), rows))


def _most(device: "torch.device") -> tuple[float, float, float]:
    """Bytes a second: to the device, back from it, and read and written in its own memory."""
    import torch

    host = torch.zeros(COPIED_BYTES, dtype=torch.uint8, pin_memory=device.type == "cuda")
    there, other = (torch.zeros(COPIED_BYTES, dtype=torch.uint8, device=device) for _ in range(2))
    to_s = _timed(lambda: there.copy_(host, non_blocking=True), device)
    from_s = _timed(lambda: host.copy_(there, non_blocking=True), device)
    within_s = _timed(lambda: other.copy_(there), device)
    return COPIED_BYTES / to_s, COPIED_BYTES / from_s, 2 * COPIED_BYTES / within_s


def _timed(work: Callable[[], object], device: "torch.device") -> float:
    """The median of some runs, after one that does not count."""
    times = []
    for _ in range(REPEATS + 1):
        _wait_for(device)
        began = time.perf_counter()
        work()
        _wait_for(device)
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


def _wait_for(device: "torch.device") -> None:
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def _bytes(tensors: "Mapping[str, torch.Tensor]") -> int:
    return sum(tensor.nbytes for tensor in tensors.values())


def _tests(device: "torch.device") -> str:
    """Runs all tests with the `cuda` marker, and says what came of them."""
    if device.type != "cuda":
        return "tests with the cuda marker: need a GPU, not run"
    argv = [sys.executable, "-m", "pytest", "-m", "cuda", "-q", "--no-header", "pipeline_tests"]
    finished = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    return "tests with the cuda marker: " + (finished.stdout.strip().splitlines() or [finished.stderr.strip()])[-1]


def _name(device: "torch.device") -> str:
    import torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"device {device}"


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "auto", int(sys.argv[2]) if len(sys.argv) > 2 else EVENTS)

"""The kernels on a sorted chunk in memory, against each feature's own loop oracle on the same rows."""

import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.checks.reading import events_of, rows_by_user
from pipeline.chunks import EventChunk, iter_chunks, resolve_device, to_tensors
from pipeline.config import Dataset
from pipeline.contracts import Chunk, Event, Feature
from pipeline.features import load_features
from pipeline.stages import run_day
from pipeline_tests.bench.logs import DAY
from pipeline_tests.bench.ours import prepare
from pipeline_tests.bench.protocol import run

CHUNK_ROWS = 1_000_000
REPEATS = 5


def convert(raw: Path, out: Path) -> Mapping[str, Any]:
    """Times every feature on the first chunk of the day of `raw`."""
    work = prepare(raw, out)
    manifest = run_day("events", DAY, work).manifest
    directory = work.store.directory("events", DAY)
    chunk = next(iter_chunks(directory, manifest, chunk_rows=min(CHUNK_ROWS, manifest.rows)))
    tensors = to_tensors(chunk, dataset=work.dataset, device=resolve_device("cpu"))
    events = _events(chunk, work.dataset)
    kernels = {
        feature.name: {"kernel_s": _kernel_seconds(feature, tensors), "oracle_s": _oracle_seconds(feature, events)}
        for feature in load_features(None, {})
    }
    return {"rows": chunk.frame.height, "kernels": kernels}


def _events(chunk: EventChunk, dataset: Dataset) -> list[list[Event]]:
    """The same rows as the loop sees them, user by user."""
    return [
        [event for rows in pieces for event in events_of(user, rows, rows["action"].to_list(), dataset)]
        for user, pieces in rows_by_user(chunk.frame.lazy(), chunk.users)
    ]


def _kernel_seconds(feature: Feature, chunk: Chunk) -> float:
    import torch

    users = chunk.offsets_U1.numel() - 1
    opening = {column.name: torch.full((users,), column.initial, dtype=torch.int64) for column in feature.state}
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        feature.compute(chunk, opening)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _oracle_seconds(feature: Feature, users: list[list[Event]]) -> float:
    began = time.perf_counter()
    for events in users:
        state = feature.initial()
        for event in events:
            state, _ = feature.step(state, event)
    return time.perf_counter() - began


if __name__ == "__main__":
    run("kernels", convert)

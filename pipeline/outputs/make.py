"""Makes a day of `features`: a chunk is read ahead, one is computed, and those before it are written."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.chunks import EventChunk, Plan, Transfer, iter_chunks, plan_chunks, row_bytes, tensor_extras, transfer_to
from pipeline.config import Dataset
from pipeline.contracts import Column, Feature
from pipeline.events import event_columns
from pipeline.memory import peak_bytes
from pipeline.outputs.columns import feature_columns, features_recipe
from pipeline.outputs.engine import Engine
from pipeline.outputs.opening import OpeningReader
from pipeline.state import carried_columns
from pipeline.store import POLARS_DTYPES, ContentHash, Staged, Store, require_current
from pipeline.store.staging import WRITERS
from pipeline.threads import ahead
from pipeline.vocabularies import DayVocabulary

if TYPE_CHECKING:
    import torch

READ = 3  # chunks of events that are held: the one that is read, what it is made of, and the one that is computed
KERNEL_BYTES = 24  # of a row, while a kernel computes
SLACK = 1.25  # what allocators keep for later
GIB = 2**30


def make_features(
    *,
    day: date,
    dataset: Dataset,
    features: Sequence[Feature],
    store: Store,
    run: str,
    device: "torch.device",
    chunk_rows: int | None,
    report: Callable[[str], None],
    staged: bool = False,
) -> Staged:
    """Computes a day chunk by chunk and stages one Parquet file a chunk.

    Args:
        day: UTC day.
        dataset: The declarations.
        features: The features in use.
        store: Where to read and stage.
        run: Name of the run.
        device: Where the features are computed.
        chunk_rows: The most events that a chunk holds; None plans it from `[compute] memory`.
        report: Gets the plan, a line of progress a chunk, and what it took.
        staged: Sends chunks through the buffers of a device on the cpu too.

    Raises:
        PipelineError: An input is missing or not current.
    """
    began = time.perf_counter()
    recipe = features_recipe(day=day, dataset=dataset, features=features, store=store)
    events = require_current(store, "events", day, dataset)
    state = require_current(store, "user_state", day, dataset)
    columns = feature_columns(features, dataset)
    read = _event_columns(dataset)
    transfer = transfer_to(device, staged=staged)
    engine = Engine(
        features=features,
        dataset=dataset,
        users=DayVocabulary.read(store, "user_vocabulary", day, dataset),
        items=DayVocabulary.read(store, "item_vocabulary", day, dataset),
        schema={column.name: POLARS_DTYPES[column.dtype] for column in columns},
        transfer=transfer,
        report=lambda line: report(f"features {day}: {line}"),
    )
    directory = store.directory("events", day)
    plan = plan_chunks(
        directory,
        events,
        held_row_bytes=_held_row_bytes(read, columns, transfer),
        budget_bytes=dataset.compute.memory,
        chunk_rows=chunk_rows,
    )
    report(f"features {day}: {plan}")
    opening = OpeningReader(
        store.directory("user_state", day), state, [name for feature in features for name in carried_columns(feature)]
    )
    chunks = iter_chunks(
        directory,
        events,
        chunk_rows=plan.chunk_rows,
        columns=[column.name for column in read],
        actions=dataset.action_names,
    )
    content, rows, chunk_count, user_count = ContentHash(), 0, 0, 0
    with store.stage("features", day, run=run) as staging, _threads_beside(WRITERS + 1):
        for chunk, table in engine.tables(_with_opening(ahead(chunks), opening)):
            staging.write(table)
            content.update(table)
            rows += table.height
            chunk_count += 1
            user_count += len(chunk.offsets_U1) - 1 - chunk.continues
            report(_progress(day, rows, events.rows, time.perf_counter() - began))
            if chunk.goes_on and not chunk.continues:
                report(
                    f"features {day}: user {chunk.users[0]!r} has more events than a chunk and is computed in pieces"
                )
        staged_day = staging.finish(
            rows=rows,
            columns=columns,
            recipe=recipe,
            content_version=content.hexdigest(),
            counts={"chunks": chunk_count, "users": user_count},
            facts=_facts(plan, transfer, time.perf_counter() - began),
        )
    report(_effort(day, plan, staged_day.facts))
    return staged_day


def _held_row_bytes(read: Sequence[Column], written: Sequence[Column], transfer: Transfer) -> int:
    """Bytes that are held at the same time for each row of a chunk."""
    tables = WRITERS + 1 + transfer.behind
    return round(SLACK * ((READ + transfer.behind) * row_bytes(read) + tables * row_bytes(written) + KERNEL_BYTES))


@contextmanager
def _threads_beside(others: int) -> Iterator[None]:
    """Leaves cores to the threads that read and write: torch's wait for each other by spinning, and take theirs away."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, threads - others))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _event_columns(dataset: Dataset) -> list[Column]:
    """The columns of `events` that are read: identity, the action, and the extra columns that are kept or may be asked for."""
    asked = tensor_extras(dataset.extra_columns)
    return [
        *(column for column in event_columns(dataset) if column.name not in dataset.extra),
        *(column for column in dataset.extra_columns if dataset.extra[column.name].keep or column.name in asked),
    ]


def _with_opening(chunks: Iterator[EventChunk], opening: OpeningReader) -> Iterator[tuple[EventChunk, pl.DataFrame]]:
    for chunk in chunks:
        yield chunk, opening.up_to(chunk.frame["user_id"][-1])


def _facts(plan: Plan, transfer: Transfer, seconds: float) -> dict[str, Any]:
    return {
        "seconds": seconds,
        "device": str(transfer.device),
        "events_per_second": round(plan.rows / max(seconds, 1e-9)),
        "expected_peak_bytes": plan.expected_bytes,
        "peak_bytes": peak_bytes(),
        "bytes_to_device": transfer.bytes_to,
        "bytes_from_device": transfer.bytes_from,
    }


def _progress(day: date, done: int, total: int, seconds: float) -> str:
    rate = done / max(seconds, 1e-9)
    return f"features {day}: {done:,} of {total:,} events, {rate:,.0f} events/s, {(total - done) / max(rate, 1e-9):,.0f} s left"


def _effort(day: date, plan: Plan, facts: Mapping[str, Any]) -> str:
    return (
        f"features {day}: {plan.rows:,} events in {facts['seconds']:.2f} s on {facts['device']}; the process held at most "
        f"{facts['peak_bytes'] / GIB:.2f} GiB so far, expected were {plan.expected_bytes / GIB:.2f} GiB"
    )

"""Chunks and feature tensors to Parquet with the declared schema; and the tensor for older in-memory scripts."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pipeline.chunks import EventChunk, iter_chunks, to_tensors
from pipeline.config import Dataset
from pipeline.contracts import Column, Feature, PipelineError
from pipeline.features import output_columns
from pipeline.state import carried_tensors, feature_config, read_state
from pipeline.store import (
    POLARS_DTYPES,
    ContentHash,
    Recipe,
    Staged,
    Store,
    as_day,
    require_current,
    scan,
)
from pipeline.vocabularies import Vocabulary, read_vocabulary, require_whole_log

if TYPE_CHECKING:
    import torch

VERSION = 2
EXACT_FLOAT32 = 2**24


def feature_columns(features: Sequence[Feature], dataset: Dataset) -> list[Column]:
    """The columns of `features`: identity, indices, features, kept extra columns."""
    columns = dataset.columns
    return [
        Column("row_id", "int64", meaning="the event's row_id; with day it joins back to events", minimum=0),
        Column("user_id", columns.user_id.type, meaning="raw id of the user"),
        Column("item_id", columns.item_id.type, meaning="raw id of the item", nullable=columns.item_id.optional),
        Column("timestamp", "timestamp", unit="us", meaning="when it happened, UTC"),
        Column("user_index", "int32", meaning="index in user_vocabulary; 1 is unknown", minimum=1),
        Column("item_index", "int32", meaning="index in item_vocabulary; 1 is unknown, 0 a missing item", minimum=0),
        *output_columns(features, dataset),
        *(column for column in dataset.extra_columns if dataset.extra[column.name].keep),
    ]


def features_recipe(*, day: date, dataset: Dataset, features: Sequence[Feature], store: Store) -> Recipe:
    """What a day of features would be made of now.

    Raises:
        PipelineError: An input is missing or not current.
    """
    inputs = {
        "events": require_current(store, "events", day, dataset).version(),
        "user_vocabulary": require_current(store, "user_vocabulary", day, dataset).version(),
        "item_vocabulary": require_current(store, "item_vocabulary", day, dataset).version(),
        "user_state.opening": require_current(store, "user_state", day, dataset).version("opening"),
    }
    config = {
        "features": feature_config(features, dataset),
        "actions": list(dataset.action_names),
        "extra": {
            column.name: {"type": column.dtype, "optional": column.nullable}
            for column in dataset.extra_columns
            if dataset.extra[column.name].keep
        },
    }
    code = {"outputs": VERSION, **{feature.name: feature.version for feature in features}}
    return Recipe(config=config, code=code, inputs=inputs)


@dataclass(frozen=True, slots=True)
class _DayVocabulary:
    """A vocabulary as a day looks its ids up: only what the log held when the day was made."""

    vocabulary: Vocabulary
    size: int

    @classmethod
    def read(cls, name: str, day: date, dataset: Dataset, store: Store) -> "_DayVocabulary":
        manifest = require_current(store, name, day, dataset)
        assert manifest.size is not None
        log = read_vocabulary(store, name, dataset)
        require_whole_log(store, name, log, size=manifest.size)
        return cls(log, manifest.size)

    def index_of(self, ids: pl.Series) -> pl.Series:
        return self.vocabulary.index_of(ids, size=self.size)


@dataclass(frozen=True, slots=True)
class _Inputs:
    """All that a chunk needs besides its events."""

    users: _DayVocabulary
    items: _DayVocabulary
    opening: pl.DataFrame
    features: Sequence[Feature]
    dataset: Dataset
    schema: dict[str, pl.DataType]
    device: "torch.device"


def make_features(
    *,
    day: date,
    dataset: Dataset,
    features: Sequence[Feature],
    store: Store,
    run: str,
    device: "torch.device",
    chunk_rows: int,
    report: Callable[[str], None],
) -> Staged:
    """Computes a day chunk by chunk and stages one Parquet file a chunk.

    Args:
        day: UTC day.
        dataset: The declarations.
        features: The features in use.
        store: Where to read and stage.
        run: Name of the run.
        device: Where the features are computed.
        chunk_rows: About how many events a chunk holds.
        report: Gets a line of progress a chunk.

    Raises:
        PipelineError: An input is missing or not current.
    """
    recipe = features_recipe(day=day, dataset=dataset, features=features, store=store)
    events = require_current(store, "events", day, dataset)
    columns = feature_columns(features, dataset)
    state = require_current(store, "user_state", day, dataset)
    inputs = _Inputs(
        users=_DayVocabulary.read("user_vocabulary", day, dataset, store),
        items=_DayVocabulary.read("item_vocabulary", day, dataset, store),
        opening=read_state(store, state, "opening"),
        features=features,
        dataset=dataset,
        schema={column.name: POLARS_DTYPES[column.dtype] for column in columns},
        device=device,
    )
    content, began, done, chunk_count, user_count = ContentHash(), time.perf_counter(), 0, 0, 0
    with store.stage("features", day, run=run) as staging:
        for chunk in iter_chunks(store.directory("events", day), events, chunk_rows=chunk_rows):
            table = _compute_chunk(chunk, inputs)
            staging.write(table)
            content.update(table)
            done += table.height
            chunk_count += 1
            user_count += len(chunk.offsets_U1) - 1
            report(_progress(day, done, events.rows, time.perf_counter() - began))
            if chunk.heaviest > chunk_rows:
                report(
                    f"features {day}: user {chunk.users[0]!r} has {chunk.heaviest:,} events, more than chunk_rows, and is one chunk"
                )
        return staging.finish(
            rows=done,
            columns=columns,
            recipe=recipe,
            content_version=content.hexdigest(),
            counts={"chunks": chunk_count, "users": user_count},
            facts={"seconds": time.perf_counter() - began, "device": str(device)},
        )


def _compute_chunk(chunk: EventChunk, inputs: _Inputs) -> pl.DataFrame:
    tensors = to_tensors(chunk, dataset=inputs.dataset, device=inputs.device)
    users = chunk.users
    computed: dict[str, torch.Tensor] = {}
    for feature in inputs.features:
        opening = carried_tensors(feature, inputs.opening, users, device=inputs.device)
        computed |= feature.compute(tensors, opening)
    user_index_U = inputs.users.index_of(users)
    user_index = user_index_U.gather(pl.Series(tensors.user_E.cpu().numpy()))
    item_index = inputs.items.index_of(chunk.frame["item_id"])
    ready = {
        "user_index": user_index,
        "item_index": item_index,
        **{name: pl.Series(name, tensor.cpu().numpy()) for name, tensor in computed.items()},
    }
    series = [ready[name].alias(name) if name in ready else chunk.frame[name] for name in inputs.schema]
    table = pl.DataFrame(series)
    if dict(table.schema) != inputs.schema:
        wrong = next(name for name in inputs.schema if table.schema[name] != inputs.schema[name])
        raise PipelineError(
            f"feature column '{wrong}' was computed as {table.schema[wrong]}, declared is {inputs.schema[wrong]}"
        )
    return table


def _progress(day: date, done: int, total: int, seconds: float) -> str:
    rate = done / max(seconds, 1e-9)
    return f"features {day}: {done:,} of {total:,} events, {rate:,.0f} events/s, {(total - done) / max(rate, 1e-9):,.0f} s left"


def matrix(root: str | Path, start: date | str, end: date | str) -> "torch.Tensor":
    """The dense tensor that in-memory scripts build, in input order.

    Args:
        root: Root of the store.
        start: First day, inclusive.
        end: Last day, inclusive.

    Returns:
        float32 [N, 3 + actions]: user_index, item_index, time_diff in s, one-hot; sorted by (day, row_id).

    Raises:
        PipelineError: Days are missing or not current, or an index is above 2^24, where float32 merges integers.
    """
    import torch

    days = scan(root, "features", start, end)
    last = Store(Path(root)).manifest("features", as_day(end))
    assert last is not None  # or scan had refused
    names = ["user_index", "item_index", "time_diff", *(f"action_{name}" for name in last.config["actions"])]
    rows = days.sort("day", "row_id").select(names).collect()
    for name in ("user_index", "item_index"):
        largest = rows[name].max()
        if largest is not None and int(largest) > EXACT_FLOAT32:  # type: ignore[arg-type]
            raise PipelineError(
                f"{name} reaches {largest:,}, and float32 holds integers exactly only up to {EXACT_FLOAT32:,}; "
                "read the int32 columns with pipeline.store.scan instead"
            )
    columns = [torch.from_numpy(rows[name].cast(pl.Float32).to_numpy().copy()) for name in names]
    return torch.stack(columns, dim=1)

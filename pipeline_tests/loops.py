"""What a feature's loop makes of a log, as tensors, and bit for bit comparisons with it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from pipeline.contracts import Chunk, Column, Event, Feature
from pipeline_tests.strategies import Log

TORCH_DTYPES = {
    "int64": torch.int64,
    "int32": torch.int32,
    "uint8": torch.uint8,
    "float32": torch.float32,
    "float64": torch.float64,
    "bool": torch.bool,
}
PYTHON_TYPES = {"int64": int, "int32": int, "uint8": int, "float32": float, "float64": float, "bool": bool}

Tensors = Mapping[str, torch.Tensor]


def loop(feature: Feature, events: Sequence[Event], state: Any) -> tuple[Any, list[dict[str, Any]]]:
    """The oracle over some events of one user: the state after them, and a row an event."""
    rows = []
    for event in events:
        state, row = feature.step(state, event)
        rows.append(row)
    return state, rows


def states_after(feature: Feature, users: Sequence[Sequence[Event]]) -> list[Any]:
    return [loop(feature, events, feature.initial())[0] for events in users]


def as_tensors(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
    """Rows of the oracle as columns; a float becomes a float32 by one cast, here."""
    for column in columns:
        for row in rows:
            assert type(row[column.name]) is PYTHON_TYPES[column.dtype], f"oracle: {column.name} = {row[column.name]!r}"
    return {
        column.name: torch.from_numpy(np.array([row[column.name] for row in rows], dtype=np.dtype(column.dtype)))
        for column in columns
    }


def opening_of(feature: Feature, log: Log) -> dict[str, torch.Tensor]:
    """The carried state of the log's users before the chunk, as the loop leaves it after their past."""
    return as_tensors(feature.state, states_after(feature, log.past))


def expected_of(feature: Feature, log: Log) -> dict[str, torch.Tensor]:
    """What the loop makes of the chunk."""
    rows: list[dict[str, Any]] = []
    for past, present in zip(log.past, log.present, strict=True):
        state, _ = loop(feature, past, feature.initial())
        rows += loop(feature, present, state)[1]
    return as_tensors(feature.columns(log.declared), rows)


def assert_same_bits(found: Tensors, expected: Tensors) -> None:
    assert sorted(found) == sorted(expected)
    for name, tensor in expected.items():
        got, want = found[name].cpu().numpy(), tensor.cpu().numpy()
        assert (got.dtype, got.shape) == (want.dtype, want.shape), name
        differing = [row for row in range(len(want)) if got[row].tobytes() != want[row].tobytes()]
        assert not differing, f"{name}[{differing[0]}] is {got[differing[0]]!r}, expected {want[differing[0]]!r}"


def assert_declared(tensors: Tensors, columns: Sequence[Column], *, length: int, device: torch.device) -> None:
    assert list(tensors) == [column.name for column in columns]
    for column in columns:
        tensor = tensors[column.name]
        assert (tensor.dtype, tuple(tensor.shape)) == (TORCH_DTYPES[column.dtype], (length,)), column.name
        assert tensor.device == device, column.name


def rows_of(tensors: Tensors, rows: Sequence[int]) -> dict[str, torch.Tensor]:
    index = torch.tensor(rows, dtype=torch.int64)
    return {name: tensor.cpu()[index] for name, tensor in tensors.items()}


def rows_by_user(users: Sequence[Sequence[Event]]) -> list[list[int]]:
    """Which rows of the chunk each user owns."""
    starts = np.cumsum([0, *(len(user) for user in users)]).tolist()
    return [list(range(starts[u], starts[u + 1])) for u in range(len(users))]


def summary(feature: Feature, chunk: Chunk) -> dict[str, torch.Tensor]:
    return feature.summarise(chunk) if feature.summarise else {}


def combined(feature: Feature, earlier: Tensors, later: Tensors) -> dict[str, torch.Tensor]:
    return feature.combine(earlier, later) if feature.combine else {}

"""Columns of a chunk as tensors, without a copy where the device is the cpu."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.chunks.cut import EventChunk
from pipeline.config import Dataset
from pipeline.contracts import Chunk, Column, Feature, PipelineError, chunk_of

if TYPE_CHECKING:
    import torch

NUMERIC = {"int64": pl.Int64, "float64": pl.Float64, "bool": pl.Boolean}


class LazyTensors(Mapping[str, "torch.Tensor"]):
    """Tensors by name, each made when it is first asked for."""

    def __init__(self, names: Sequence[str], make: Callable[[str], "torch.Tensor"]) -> None:
        self._names = tuple(names)
        self._make = make
        self._made: dict[str, torch.Tensor] = {}

    def __getitem__(self, name: str) -> "torch.Tensor":
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def as_tensor(series: pl.Series) -> "torch.Tensor":
    """Hands a column to torch on the column's own buffer; the tensor is only for reading.

    Args:
        series: A numeric, boolean or temporal column in one piece; booleans are unpacked, all others not copied.

    Raises:
        PipelineError: The column holds nulls: they would become NaN, and large integers would change.
    """
    if series.null_count():
        raise PipelineError(f"column '{series.name}' holds {series.null_count():,} nulls and cannot become a tensor")
    return from_array(series.to_physical().to_numpy())


def from_array(array: np.ndarray) -> "torch.Tensor":
    """A tensor on the memory of an array, which may be read-only: it is only for reading."""
    import torch

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        return torch.from_numpy(array)


def to_tensors(
    chunk: EventChunk,
    *,
    dataset: Dataset,
    device: "torch.device",
    put: "Callable[[str, torch.Tensor], torch.Tensor] | None" = None,
) -> Chunk:
    """A chunk as features see it.

    Args:
        chunk: Rows of users.
        dataset: For the actions and the extra columns.
        device: Where the tensors go.
        put: Takes a column there, if not by a plain copy: (name, tensor on the cpu) -> tensor on the device.

    Raises:
        PipelineError: The offsets do not fit the rows, or an action is not declared: as an index such a value could read
            or write anything on a device.
    """
    _require_offsets(chunk)
    send = put or (lambda _name, tensor: tensor.to(device))

    def made(name: str) -> "torch.Tensor":
        series = chunk.column(name)
        return send(name, action_codes(series, dataset) if name == "action" else as_tensor(series))

    return Chunk(
        events=chunk.frame.height,
        offsets_U1=send("offsets", from_array(chunk.offsets_U1)),
        columns=LazyTensors(("row_id", "timestamp", "action"), made),
        extra=LazyTensors(tensor_extras(dataset.extra_columns), made),
        action_names=dataset.action_names,
    )


def action_codes(action: pl.Series, dataset: Dataset) -> "torch.Tensor":
    """The position of each action in the declared names, uint8 [E].

    Raises:
        PipelineError: An action is not declared.
    """
    names = pl.Enum(dataset.action_names)
    codes = action if action.dtype == names else action.cast(names, strict=False)
    if codes.null_count():
        raise PipelineError(
            f"events holds {codes.null_count():,} rows with an action that [actions] names does not declare; make the day again"
        )
    return as_tensor(codes.to_physical().cast(pl.UInt8))


def tensor_extras(columns: Sequence[Column]) -> list[str]:
    """The extra columns that features get as tensors: numeric and never missing."""
    return [column.name for column in columns if column.dtype in NUMERIC and not column.nullable]


def columns_to_summarise(features: Sequence[Feature], dataset: Dataset) -> list[str]:
    """The columns of `events` that `summarise` of some features asks for, found by letting it summarise one event.

    It is what to read ahead of time and no promise: a column that is asked for later is read then.

    Args:
        features: The features in use.
        dataset: For the actions and the extra columns.
    """
    import torch

    asked: list[str] = []

    def made(name: str) -> "torch.Tensor":
        asked.append(name)
        return example.columns.get(name, torch.zeros(1, dtype=kinds.get(name)))

    example = chunk_of([[(0, dataset.action_names[0])]], action_names=dataset.action_names)
    kinds = {
        column.name: {"int64": torch.int64, "float64": torch.float64, "bool": torch.bool}[column.dtype]
        for column in dataset.extra_columns
        if column.dtype in NUMERIC
    }
    for feature in features:
        if feature.summarise is not None:
            feature.summarise(
                Chunk(
                    events=1,
                    offsets_U1=example.offsets_U1,
                    columns=LazyTensors(tuple(example.columns), made),
                    extra=LazyTensors(tensor_extras(dataset.extra_columns), made),
                    action_names=dataset.action_names,
                )
            )
    return list(dict.fromkeys(asked))


def opening_tensors(
    opening: pl.DataFrame, users: pl.Series, columns: Mapping[str, Column], *, device: "torch.device"
) -> dict[str, "torch.Tensor"]:
    """The carried state of a chunk's users, with the initial value for users without a past.

    Args:
        opening: user_id, ascending and distinct, and the columns of `columns`.
        users: user_id [U], ascending and distinct.
        columns: Column of `opening` -> its declaration.
        device: Where the tensors go.

    Returns:
        Column of `opening` -> tensor [U], of its own memory.
    """
    import torch

    seen, at = _positions(opening["user_id"], users)
    tensors = {}
    for name, column in columns.items():
        values = opening[name].to_physical().to_numpy()
        carried_U = np.full(len(users), column.initial, dtype=values.dtype)
        carried_U[seen] = values[at]
        tensors[name] = torch.from_numpy(carried_U).to(device)
    return tensors


def _positions(ids: pl.Series, users: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Which users are among some ids, bool [U], and where each of them stands, int64."""
    if ids.is_empty() or users.is_empty():
        return np.zeros(len(users), dtype=np.bool_), np.empty(0, dtype=np.int64)
    at = ids.search_sorted(users, side="left").to_numpy().astype(np.int64)
    np.minimum(at, len(ids) - 1, out=at)
    seen = (ids.gather(at) == users).to_numpy()
    return seen, at[seen]


def _require_offsets(chunk: EventChunk) -> None:
    offsets = chunk.offsets_U1
    if offsets[0] != 0 or offsets[-1] != chunk.frame.height or not (offsets[1:] > offsets[:-1]).all():
        raise PipelineError(
            f"the users of a chunk of {chunk.frame.height:,} events do not ascend from 0 to {chunk.frame.height:,}; "
            "this is a mistake of the pipeline, please report it"
        )

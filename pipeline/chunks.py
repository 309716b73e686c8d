"""Events to chunks of whole users, handed to torch without a copy, on a device."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import Chunk, Column, PipelineError
from pipeline.store import Manifest, manifest_schema, read_files

if TYPE_CHECKING:
    import torch

NUMERIC = {"int64": pl.Int64, "float64": pl.Float64, "bool": pl.Boolean}


@dataclass(frozen=True, slots=True)
class EventChunk:
    """A contiguous range of rows of `events` that holds whole users.

    Attributes:
        frame: The rows [E], in stored order.
        offsets_U1: int64 [U+1], where the users begin and the last one ends.
    """

    frame: pl.DataFrame
    offsets_U1: np.ndarray

    @property
    def users(self) -> pl.Series:
        """The user_id of every user [U], ascending."""
        return self.frame["user_id"].gather(self.offsets_U1[:-1])

    @property
    def heaviest(self) -> int:
        """Events of the user who has most of them."""
        return int(np.diff(self.offsets_U1).max(initial=0))


def iter_chunks(directory: Path, manifest: Manifest, *, chunk_rows: int) -> Iterator[EventChunk]:
    """Cuts a day of events into contiguous ranges of whole users.

    Args:
        directory: Where the day's files lie.
        manifest: The day of `events`.
        chunk_rows: About how many events a chunk holds; a user with more is a chunk of their own.

    Yields:
        The chunks, in stored order, without gap or overlap; none for a day without rows.
    """
    rows = read_files(directory, manifest.of_role(None), manifest_schema(manifest))
    unfinished: list[pl.DataFrame] = []  # of one user, who may go on in the next block
    for start in range(0, manifest.rows, chunk_rows):
        block = rows.slice(start, chunk_rows).collect()
        at_end = start + chunk_rows >= manifest.rows
        if unfinished and not at_end and _one_user(unfinished[-1], block):
            unfinished.append(block)
            continue
        whole = pl.concat([*unfinished, block]).rechunk()
        borders = _user_starts(whole["user_id"])
        if at_end:
            borders = np.append(borders, whole.height)
        if len(borders) > 2 and borders[1] > chunk_rows:  # a giant in front of others is a chunk of their own
            yield EventChunk(whole[: borders[1]], borders[:2])
            whole, borders = whole[borders[1] :], borders[1:] - borders[1]
        if len(borders) > 1:
            yield EventChunk(whole[: borders[-1]], borders)
        unfinished = [whole[borders[-1] :]]


def _one_user(before: pl.DataFrame, block: pl.DataFrame) -> bool:
    return before["user_id"][-1] == block["user_id"][0] == block["user_id"][-1]


def _user_starts(user_id: pl.Series) -> np.ndarray:
    if user_id.dtype == pl.Int64:
        values = user_id.to_numpy()
        changes = np.flatnonzero(values[1:] != values[:-1])
    else:
        changes = (user_id != user_id.shift(1)).arg_true().to_numpy().astype(np.int64) - 1
    starts = np.zeros(len(changes) + 1, dtype=np.int64)
    np.add(changes, 1, out=starts[1:])
    return starts


def as_tensor(series: pl.Series) -> "torch.Tensor":
    """Hands a column to torch on the column's own buffer; the tensor is only for reading.

    Args:
        series: A numeric, boolean or temporal column in one piece; booleans are unpacked, all others not copied.

    Raises:
        PipelineError: The column holds nulls: they would become NaN, and large integers would change.
    """
    import torch

    if series.null_count():
        raise PipelineError(f"column '{series.name}' holds {series.null_count():,} nulls and cannot become a tensor")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        return torch.from_numpy(series.to_physical().to_numpy())


def to_tensors(chunk: EventChunk, *, dataset: Dataset, device: "torch.device") -> Chunk:
    """A chunk as features see it.

    Args:
        chunk: Rows of whole users.
        dataset: For the actions and the extra columns.
        device: Where the tensors go.
    """
    import torch

    codes = chunk.frame["action"].cast(pl.Enum(dataset.action_names)).to_physical().cast(pl.UInt8)
    offsets_U1 = torch.from_numpy(chunk.offsets_U1).to(device)
    lengths_U = offsets_U1[1:] - offsets_U1[:-1]
    users_U = torch.arange(lengths_U.numel(), dtype=torch.int64, device=device)
    return Chunk(
        row_id_E=as_tensor(chunk.frame["row_id"]).to(device),
        time_us_E=as_tensor(chunk.frame["timestamp"]).to(device),
        action_code_E=as_tensor(codes).to(device),
        offsets_U1=offsets_U1,
        user_E=torch.repeat_interleave(users_U, lengths_U, output_size=chunk.frame.height),
        extra={name: as_tensor(chunk.frame[name]).to(device) for name in tensor_extras(dataset.extra_columns)},
        action_names=dataset.action_names,
    )


def tensor_extras(columns: Sequence[Column]) -> list[str]:
    """The extra columns that features get as tensors: numeric and never missing."""
    return [column.name for column in columns if column.dtype in NUMERIC and not column.nullable]


def resolve_device(setting: str) -> "torch.device":
    """The device that `[compute] device` means on this machine.

    Args:
        setting: auto, cpu, cuda, cuda:N or mps.

    Raises:
        PipelineError: This machine lacks it.
    """
    import torch

    if setting == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("cpu")
    device = torch.device(setting)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise PipelineError(
            f'[compute] device = "{setting}": this machine has {torch.cuda.device_count()} CUDA devices that torch can use; '
            'write "auto" or "cpu", or install a torch build with CUDA'
        )
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise PipelineError(f'[compute] device = "{setting}": torch finds no Metal device here; write "auto" or "cpu"')
    return device


def opening_tensors(
    opening: pl.DataFrame, users: pl.Series, columns: Mapping[str, Column], *, device: "torch.device"
) -> dict[str, "torch.Tensor"]:
    """The carried state of a chunk's users, with the initial value for users without a past.

    Args:
        opening: user_id and the columns of `columns`, at most one row a user.
        users: user_id [U], ascending.
        columns: Column of `opening` -> its declaration.
        device: Where the tensors go.

    Returns:
        Column of `opening` -> tensor [U].
    """
    joined = users.alias("user_id").to_frame().join(opening, on="user_id", how="left", maintain_order="left")
    return {
        name: as_tensor(joined[name].fill_null(column.initial).rechunk()).to(device) for name, column in columns.items()
    }

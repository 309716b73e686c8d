"""A chunk: whole users, back to back, as tensors on one device.

Legend of the shape letters in tensor names, for the whole project: E events of the chunk, U users of the chunk,
U1 = U + 1, C columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    State = Mapping[str, Tensor]
    """State column name -> tensor [U]: one row a user of the chunk."""
else:
    State = Mapping


@dataclass(frozen=True, slots=True)
class Chunk:
    """The events of whole users, sorted by (user_id, timestamp, row_id). Features only read it.

    Attributes:
        row_id_E: int64 [E], position of the row in its day's input.
        time_us_E: int64 [E], microseconds since 1970-01-01 UTC.
        action_code_E: uint8 [E], position of the action in `action_names`.
        offsets_U1: int64 [U+1], user u owns the events offsets[u] .. offsets[u+1]-1; every user has at least one.
        user_E: int64 [E], which user of the chunk (0 .. U-1) an event belongs to.
        extra: Further declared numeric columns, name -> tensor [E].
        action_names: The declared actions, in declared order.
    """

    row_id_E: Tensor
    time_us_E: Tensor
    action_code_E: Tensor
    offsets_U1: Tensor
    user_E: Tensor
    extra: Mapping[str, Tensor]
    action_names: tuple[str, ...]


def chunk_of(users: Sequence[Sequence[tuple[int, str]]], *, action_names: tuple[str, ...]) -> Chunk:
    """A small chunk written by hand, on the cpu: for worked examples, tests and notebooks.

    Args:
        users: For each user the events as (time in microseconds, action), sorted by time.
        action_names: The declared actions.

    >>> chunk_of([[(0, "view")], [(5, "buy"), (7, "view")]], action_names=("view", "buy")).offsets_U1.tolist()
    [0, 1, 3]
    """
    import torch

    events = [event for user in users for event in user]
    lengths_U = torch.tensor([len(user) for user in users], dtype=torch.int64)
    offsets_U1 = torch.zeros(len(users) + 1, dtype=torch.int64)
    offsets_U1[1:] = torch.cumsum(lengths_U, 0)
    return Chunk(
        row_id_E=torch.arange(len(events), dtype=torch.int64),
        time_us_E=torch.tensor([time_us for time_us, _ in events], dtype=torch.int64),
        action_code_E=torch.tensor([action_names.index(action) for _, action in events], dtype=torch.uint8),
        offsets_U1=offsets_U1,
        user_E=torch.repeat_interleave(torch.arange(len(users), dtype=torch.int64), lengths_U),
        extra={},
        action_names=action_names,
    )

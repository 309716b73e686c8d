"""A chunk: users back to back, as tensors on one device.

Legend of the shape letters in tensor names, for the whole project: E events of the chunk, U users of the chunk,
U1 = U + 1, C columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    State = Mapping[str, Tensor]
    """State column name -> tensor [U]: one row a user of the chunk."""
else:
    State = Mapping


class Chunk:
    """The events of some users, sorted by (user_id, timestamp, row_id). Features only read it.

    Tensors are made when they are first asked for: what no feature in use asks for costs nothing.

    Attributes:
        events: E, without asking the device.
        offsets_U1: int64 [U+1], user u owns the events offsets[u] .. offsets[u+1]-1; every user has at least one.
        columns: `row_id`, `timestamp` and `action` -> tensor [E], as the properties below.
        extra: Further declared numeric columns, name -> tensor [E].
        action_names: The declared actions, in declared order.
    """

    def __init__(
        self,
        *,
        events: int,
        offsets_U1: Tensor,
        columns: Mapping[str, Tensor],
        extra: Mapping[str, Tensor],
        action_names: tuple[str, ...],
    ) -> None:
        self.events = events
        self.offsets_U1 = offsets_U1
        self.columns = columns
        self.extra = extra
        self.action_names = action_names

    @property
    def row_id_E(self) -> Tensor:  # noqa: N802 - the shape letter
        """int64 [E], position of the row in its day's input."""
        return self.columns["row_id"]

    @property
    def time_us_E(self) -> Tensor:  # noqa: N802 - the shape letter
        """int64 [E], microseconds since 1970-01-01 UTC."""
        return self.columns["timestamp"]

    @property
    def action_code_E(self) -> Tensor:  # noqa: N802 - the shape letter
        """uint8 [E], position of the action in `action_names`."""
        return self.columns["action"]

    @cached_property
    def user_E(self) -> Tensor:  # noqa: N802 - the shape letter
        """int64 [E], which user of the chunk (0 .. U-1) an event belongs to."""
        import torch

        lengths_U = self.offsets_U1[1:] - self.offsets_U1[:-1]
        users_U = torch.arange(lengths_U.numel(), dtype=torch.int64, device=lengths_U.device)
        return torch.repeat_interleave(users_U, lengths_U, output_size=self.events)


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
    offsets_U1 = torch.zeros(len(users) + 1, dtype=torch.int64)
    offsets_U1[1:] = torch.cumsum(torch.tensor([len(user) for user in users], dtype=torch.int64), 0)
    return Chunk(
        events=len(events),
        offsets_U1=offsets_U1,
        columns={
            "row_id": torch.arange(len(events), dtype=torch.int64),
            "timestamp": torch.tensor([time_us for time_us, _ in events], dtype=torch.int64),
            "action": torch.tensor([action_names.index(action) for _, action in events], dtype=torch.uint8),
        },
        extra={},
        action_names=action_names,
    )

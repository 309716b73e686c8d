"""A chunk: whole users, back to back, as tensors on one device.

Legend of the shape letters in tensor names, for the whole project: E events of the chunk, U users of the chunk,
U1 = U + 1, C columns.
"""

from __future__ import annotations

from collections.abc import Mapping
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

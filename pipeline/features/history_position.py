"""How many earlier events the user has, on all days.

Definition. With the events of one user in the order (timestamp, row_id) over all days, the i-th event (from 0) gets i.

Source: the absolute position of self-attentive sequential recommenders (SASRec, Kang and McAuley 2018).

Example: a user with two events and no past, and one with one event after 7 earlier ones.

>>> import torch
>>> from pipeline.contracts import chunk_of
>>> chunk = chunk_of([[(0, "view"), (1, "view")], [(9, "view")]], action_names=("view",))
>>> compute(chunk, {"events": torch.tensor([0, 7])})["history_position"].tolist()
[0, 1, 7]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.contracts import Chunk, Column, Declared, Event, State

if TYPE_CHECKING:
    from torch import Tensor

VERSION = 1

STATE = (Column("events", "int64", meaning="how many events the user has so far", minimum=1, initial=0),)


def columns(_dataset: Declared) -> list[Column]:
    """The output column history_position."""
    return [
        Column("history_position", "int64", unit="events", meaning="earlier events of the user, on all days", minimum=0)
    ]


def compute(chunk: Chunk, opening: State) -> dict[str, Tensor]:
    """Counts on from the opening state; `events` int64 [U] -> history_position int64 [E]."""
    import torch

    base_U = opening["events"] - chunk.offsets_U1[:-1]
    position_E = torch.arange(chunk.events, dtype=torch.int64, device=base_U.device)
    return {"history_position": position_E.add_(base_U.index_select(0, chunk.user_E))}


def summarise(chunk: Chunk) -> dict[str, Tensor]:
    """Events of each user in the chunk, int64 [U]."""
    return {"events": chunk.offsets_U1[1:] - chunk.offsets_U1[:-1]}


def combine(earlier: State, later: State) -> dict[str, Tensor]:
    """The sum."""
    return {"events": earlier["events"] + later["events"]}


def initial() -> dict[str, int]:
    """The oracle's state of a user without past."""
    return {"events": 0}


def step(state: dict[str, int], _event: Event) -> tuple[dict[str, int], dict[str, object]]:
    """The oracle: one event at a time, in plain Python."""
    return {"events": state["events"] + 1}, {"history_position": state["events"]}

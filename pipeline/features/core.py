"""Time since the user's previous event, first-event flag and the action one-hot.

Definition. With t the timestamps of one user in the order (timestamp, row_id), over all days:
`time_diff[i] = t[i] - t[i-1]` in seconds and 0 for the first; `is_first[i]` says that there is no `i-1`;
`action_<name>[i]` is 1 for the declared action of event i and 0 for the others.

Source: the inter-event gap is the usual recency input of session and sequential recommenders.

Example: a user views at 0 s and 1.5 s, another buys at 9 s; nobody has a past.

>>> import torch
>>> from pipeline.contracts import chunk_of
>>> chunk = chunk_of([[(0, "view"), (1_500_000, "view")], [(9_000_000, "buy")]], action_names=("view", "buy"))
>>> row = compute(chunk, {"last_timestamp_us": torch.tensor([NEVER, NEVER])})
>>> row["time_diff"].tolist(), row["is_first"].tolist()
([0.0, 1.5, 0.0], [True, False, True])
>>> row["action_view"].tolist(), row["action_buy"].tolist()
([1, 1, 0], [0, 0, 1])

The same second user, who was last seen at 4 s on an earlier day:

>>> opening = {"last_timestamp_us": torch.tensor([NEVER, 4_000_000])}
>>> compute(chunk, opening)["time_diff"].tolist()
[0.0, 1.5, 5.0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.contracts import Chunk, Column, Declared, Event, State

if TYPE_CHECKING:
    from torch import Tensor

VERSION = 1
NEVER = -(2**63)

STATE = (
    Column(
        "last_timestamp_us",
        "int64",
        unit="us",
        meaning="time of the user's latest event; -2^63 when there is none",
        initial=NEVER,
    ),
)


def columns(dataset: Declared) -> list[Column]:
    """The output columns: time_diff, is_first and one action column a declared action."""
    return [
        Column(
            "time_diff",
            "float32",
            unit="s",
            meaning="time since the same user's previous event; 0 with is_first when there is none",
            minimum=0,
        ),
        Column("is_first", "bool", meaning="the user has no earlier event on any day"),
        *(
            Column(f"action_{name}", "uint8", meaning=f"1 when the action is {name}", minimum=0, maximum=1)
            for name in dataset.action_names
        ),
    ]


def compute(chunk: Chunk, opening: State) -> dict[str, Tensor]:
    """Computes the columns of a chunk.

    Args:
        chunk: Events of whole users.
        opening: `last_timestamp_us` int64 [U], from before the chunk.

    Returns:
        time_diff float32 [E] in s, is_first bool [E], action_<name> uint8 [E].
    """
    import torch

    first_U = chunk.offsets_U1[:-1]
    last_us_U = opening["last_timestamp_us"]
    is_new_U = last_us_U == NEVER
    start_us_U = chunk.time_us_E[first_U]

    diff_us_E = torch.empty_like(chunk.time_us_E)
    torch.sub(chunk.time_us_E[1:], chunk.time_us_E[:-1], out=diff_us_E[1:])
    diff_us_E[first_U] = start_us_U - torch.where(is_new_U, start_us_U, last_us_U)

    is_first_E = torch.zeros_like(chunk.time_us_E, dtype=torch.bool)
    is_first_E[first_U] = is_new_U
    one_hot = {
        f"action_{name}": (chunk.action_code_E == code).view(torch.uint8)
        for code, name in enumerate(chunk.action_names)
    }
    return {"time_diff": _seconds(diff_us_E), "is_first": is_first_E, **one_hot}


def summarise(chunk: Chunk) -> dict[str, Tensor]:
    """The time of each user's last event in the chunk, int64 [U] in us."""
    return {"last_timestamp_us": chunk.time_us_E[chunk.offsets_U1[1:] - 1]}


def combine(earlier: State, later: State) -> dict[str, Tensor]:
    """The later time where there is one."""
    import torch

    later_us_U = later["last_timestamp_us"]
    return {"last_timestamp_us": torch.where(later_us_U == NEVER, earlier["last_timestamp_us"], later_us_U)}


def _seconds(diff_us_E: Tensor) -> Tensor:
    """Divides in float64 and casts once, so that every device rounds alike."""
    import torch

    device = diff_us_E.device
    if device.type == "mps":  # no float64 there
        return _seconds(diff_us_E.cpu()).to(device)
    # A Python scalar would become a multiplication by the reciprocal on CUDA.
    us_per_s = torch.tensor(1e6, dtype=torch.float64, device=device)
    return diff_us_E.to(torch.float64).div_(us_per_s).to(torch.float32)


def initial() -> dict[str, int]:
    """The oracle's state of a user without past."""
    return {"last_timestamp_us": -9_223_372_036_854_775_808}


def step(state: dict[str, int], event: Event) -> tuple[dict[str, int], dict[str, object]]:
    """The oracle: one event at a time, in plain Python."""
    seen_before = state["last_timestamp_us"] != -9_223_372_036_854_775_808
    gap_us = event.timestamp_us - state["last_timestamp_us"] if seen_before else 0
    row: dict[str, object] = {"time_diff": gap_us / 1_000_000, "is_first": not seen_before}
    for name in event.action_names:
        row["action_" + name] = 1 if event.action == name else 0
    return {"last_timestamp_us": event.timestamp_us}, row

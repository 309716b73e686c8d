"""Logs for the property tests: what can legally happen, with the rare cases made common.

A log holds a few users; each has events on earlier days (`past`, maybe none) and in the chunk (`present`, at least one).
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import torch
from hypothesis import strategies as st

from pipeline.contracts import Chunk, Column, Event

SECOND_US, MINUTE_US, DAY_US = 1_000_000, 60_000_000, 86_400_000_000
EARLIEST_US = 631_152_000_000_000  # 1990-01-01, the first plausible instant
LATEST_US = 4_102_444_799_999_999  # the last of 2099: no clock that runs these tests is beyond it
HEAVY = 40  # events in the chunk that make a heavy user
MANY = 20  # users that no failure report should print

GAPS_US = (
    *(0, 0, 0, 1, 999_999, SECOND_US, 1_500_000),
    *(30 * MINUTE_US - 1, 30 * MINUTE_US, 30 * MINUTE_US + 1),
    *(DAY_US - 1, DAY_US, 30 * DAY_US, 3653 * DAY_US),
    *(2**24 * SECOND_US, (2**24 + 1) * SECOND_US),  # float32 holds the first number of seconds, and not the second
)
ACTIONS = (("view",), ("view", "purchase"), ("purchase", "view", "return"), ("add to cart", "a.b", "Ünï", "view"))
EXTRA = (
    Column("price", "float64", meaning="finite"),
    Column("quantity", "int64", meaning="any integer"),
    Column("promoted", "bool", meaning="yes or no"),
)
EXTRA_DTYPES = {"price": torch.float64, "quantity": torch.int64, "promoted": torch.bool}


@dataclass(frozen=True)
class Declaration:
    """What a feature may ask of a dataset."""

    action_names: tuple[str, ...]
    extra_columns: tuple[Column, ...] = EXTRA


@dataclass(frozen=True)
class Log:
    """Users with their events, oldest first."""

    declared: Declaration
    past: tuple[tuple[Event, ...], ...]
    present: tuple[tuple[Event, ...], ...]

    def __repr__(self) -> str:
        if len(self.present) > MANY:
            return f"Log({len(self.present)} users)"
        users = [f"{_short(past)} | {_short(present)}" for past, present in zip(self.past, self.present, strict=True)]
        return f"Log(actions={self.declared.action_names}, users (past | present): {users})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis prints it; left to itself it prints every field of every event."""
        printer.text(repr(self))

    def chunk(self, device: str = "cpu") -> Chunk:
        return chunk_of_events(self.present, self.declared, device)


@dataclass(frozen=True)
class Draft:
    """An event before it has a time and a row."""

    gap_us: int
    action: str
    extra: dict[str, Any] = field(hash=False)


def chunk_of_events(users: Sequence[Sequence[Event]], declared: Declaration, device: str = "cpu") -> Chunk:
    """A chunk with all tensors, from users that have at least one event each."""
    assert all(users)
    events = [event for user in users for event in user]

    def tensor(values: list, dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor(values, dtype=dtype, device=device)

    return Chunk(
        events=len(events),
        offsets_U1=tensor(list(accumulate((len(user) for user in users), initial=0)), torch.int64),
        columns={
            "row_id": tensor([event.row_id for event in events], torch.int64),
            "timestamp": tensor([event.timestamp_us for event in events], torch.int64),
            "action": tensor([declared.action_names.index(event.action) for event in events], torch.uint8),
        },
        extra={name: tensor([event.extra[name] for event in events], EXTRA_DTYPES[name]) for name in EXTRA_DTYPES},
        action_names=declared.action_names,
    )


def _short(events: Sequence[Event]) -> str:
    """The first time in us, then the gaps, each with its action: `631152000000000 view, +5 view`."""
    times = [0, *(event.timestamp_us for event in events)]
    steps = [f"{now - before:+d} {event.action}" for before, now, event in zip(times, times[1:], events, strict=False)]
    return ", ".join(steps).removeprefix("+")


def _drafts(action_names: tuple[str, ...]) -> st.SearchStrategy[Draft]:
    return st.builds(
        Draft,
        gap_us=st.sampled_from(GAPS_US) | st.sampled_from(GAPS_US) | st.integers(0, 400 * DAY_US),
        action=st.sampled_from(action_names),
        extra=st.fixed_dictionaries(
            {
                "price": st.sampled_from((0.0, 0.1, -2.5, 1e300, 16_777_217.0)),
                "quantity": st.sampled_from((0, 1, -3, 2**53 + 1)),
                "promoted": st.booleans(),
            }
        ),
    )


@st.composite
def logs(draw: st.DrawFn, *, min_users: int = 0, max_users: int = 4) -> Log:
    """Logs with ties, heavy users, users of one event, long pauses, and times at both ends of what is plausible."""
    declared = Declaration(draw(st.sampled_from(ACTIONS)))
    users: list[list[tuple[int, Draft]]] = []
    cuts: list[int] = []
    for _ in range(draw(st.integers(min_users, max_users))):
        drafts = draw(st.lists(_drafts(declared.action_names), min_size=1, max_size=6))
        drafts *= draw(st.sampled_from((1, 1, 1, 1, 2, 30)))
        start_us = draw(st.sampled_from((EARLIEST_US, LATEST_US - DAY_US)) | st.integers(EARLIEST_US, LATEST_US))
        times_us = [min(start_us + us, LATEST_US) for us in accumulate(draft.gap_us for draft in drafts)]
        users.append(list(zip(times_us, drafts, strict=True)))
        cuts.append(draw(st.sampled_from((0, len(drafts) - 1)) | st.integers(0, len(drafts) - 1)))
    past = _events([user[:cut] for user, cut in zip(users, cuts, strict=True)], declared)
    return Log(declared, past, _events([user[cut:] for user, cut in zip(users, cuts, strict=True)], declared))


@st.composite
def cut_logs(draw: st.DrawFn) -> tuple[Log, tuple[int, ...]]:
    """A log, and for every user a number from 0 to all of the events in the chunk: where to cut."""
    log = draw(logs())
    return log, tuple(draw(st.sampled_from((0, 1, len(user))) | st.integers(0, len(user))) for user in log.present)


def large_log() -> Log:
    """80,000 events of 1,200 users, half of them seen before: every gap of `GAPS_US` at many borders; always the same."""
    dice, declared = random.Random(7), Declaration(("view", "purchase"))
    users, cuts = [], []
    for _ in range(1_200):
        time_us, user = EARLIEST_US, []
        for n in range(dice.choice((1, 2, 3, 20, 276))):
            time_us = min(time_us + dice.choice((*GAPS_US, dice.randrange(DAY_US))), LATEST_US)
            extra = {"price": 0.5 * n, "quantity": n, "promoted": n % 2 == 0}
            user.append((time_us, Draft(0, dice.choice(declared.action_names), extra)))
        users.append(user)
        cuts.append(dice.choice((0, dice.randrange(len(user)))))
    past = _events([user[:cut] for user, cut in zip(users, cuts, strict=True)], declared)
    return Log(declared, past, _events([user[cut:] for user, cut in zip(users, cuts, strict=True)], declared))


def large_cut_log() -> tuple[Log, tuple[int, ...]]:
    """The large log, cut in the middle of every user."""
    log = large_log()
    return log, tuple(len(user) // 2 for user in log.present)


def _events(users: Sequence[Sequence[tuple[int, Draft]]], declared: Declaration) -> tuple[tuple[Event, ...], ...]:
    """Gives rows their numbers as one log of all users would: by time, and in a user's order where times are equal."""
    places = sorted((time_us, n, u) for u, user in enumerate(users) for n, (time_us, _) in enumerate(user))
    row_ids = {(u, n): row_id for row_id, (_, n, u) in enumerate(places)}
    return tuple(
        tuple(
            Event(
                row_id=row_ids[u, n],
                user_id=2**53 + u,
                item_id=f"item {n % 3}",
                timestamp_us=time_us,
                action=draft.action,
                action_names=declared.action_names,
                extra=draft.extra,
            )
            for n, (time_us, draft) in enumerate(user)
        )
        for u, user in enumerate(users)
    )

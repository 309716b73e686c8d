"""The generated logs reach what the laws are afraid of; a strategy that stopped reaching it would leave them idle."""

import random
from itertools import pairwise

import pytest
from hypothesis import Phase, find, settings

from pipeline.contracts import Event
from pipeline_tests.strategies import DAY_US, EARLIEST_US, HEAVY, LATEST_US, Log, logs


def _all_events(log: Log) -> list[Event]:
    return [event for users in (log.past, log.present) for user in users for event in user]


REACHED = {
    "no users": lambda log: not log.present,
    "several users": lambda log: len(log.present) >= 3,
    "one event": lambda log: any(len(user) == 1 for user in log.present),
    "heavy user": lambda log: any(len(user) >= HEAVY for user in log.present),
    "tie": lambda log: any(a.timestamp_us == b.timestamp_us for user in log.present for a, b in pairwise(user)),
    "tie with the past": lambda log: any(
        past and past[-1].timestamp_us == present[0].timestamp_us
        for past, present in zip(log.past, log.present, strict=True)
    ),
    "new and returning users": lambda log: len({bool(past) for past in log.past}) == 2,
    "first instant": lambda log: any(event.timestamp_us == EARLIEST_US for event in _all_events(log)),
    "last instant": lambda log: any(event.timestamp_us == LATEST_US for event in _all_events(log)),
    "pause of years": lambda log: any(
        b.timestamp_us - a.timestamp_us > 3000 * DAY_US for user in log.present for a, b in pairwise(user)
    ),
    "interleaved rows": lambda log: any(b.row_id != a.row_id + 1 for user in log.present for a, b in pairwise(user)),
}


@pytest.mark.parametrize("name", REACHED)
def test_the_logs_reach(name: str) -> None:
    only_look = settings(max_examples=1_000, phases=[Phase.generate], database=None, deadline=None)
    assert find(logs(), REACHED[name], settings=only_look, random=random.Random(1)) is not None

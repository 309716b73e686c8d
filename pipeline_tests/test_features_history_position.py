"""The position in a user's history, in numbers that can be checked by hand."""

from collections.abc import Sequence

import torch

from pipeline.contracts import Event, chunk_of
from pipeline.features import history_position
from pipeline_tests.strategies import Declaration


def positions(lengths: Sequence[int], *events_before: int) -> list[int]:
    """history_position of users with so many events in the chunk and so many before it."""
    users = [[(time_us, "view") for time_us in range(length)] for length in lengths]
    opening = {"events": torch.tensor(events_before, dtype=torch.int64)}
    return history_position.compute(chunk_of(users, action_names=("view",)), opening)["history_position"].tolist()


def test_counts_from_zero() -> None:
    assert positions([4], 0) == [0, 1, 2, 3]


def test_begins_anew_for_every_user() -> None:
    assert positions([2, 1, 3], 0, 0, 0) == [0, 1, 0, 0, 1, 2]


def test_counts_on_from_earlier_days() -> None:
    assert positions([2, 2, 1], 10, 0, 1) == [10, 11, 0, 1, 1]


def test_ties_count_one_by_one() -> None:
    chunk = chunk_of([[(7, "view"), (7, "view"), (7, "view")]], action_names=("view",))
    found = history_position.compute(chunk, {"events": torch.tensor([0])})
    assert found["history_position"].tolist() == [0, 1, 2]


def test_beyond_int32() -> None:
    assert positions([2], 2**31 - 1) == [2_147_483_647, 2_147_483_648]


def test_the_state_is_a_count_and_adds_up() -> None:
    chunk = chunk_of([[(0, "view"), (1, "view")], [(5, "view")]], action_names=("view",))
    counted = history_position.summarise(chunk)
    assert counted["events"].tolist() == [2, 1]
    assert history_position.combine({"events": torch.tensor([10, 0])}, counted)["events"].tolist() == [12, 1]


def test_the_declared_column() -> None:
    (column,) = history_position.columns(Declaration(("view",)))
    assert (column.name, column.dtype, column.unit, column.minimum) == ("history_position", "int64", "events", 0)


def test_the_loop_by_hand() -> None:
    event = Event(0, 1, "item", 0, "view", ("view",), {})
    state, row = history_position.step(history_position.initial(), event)
    assert (state, row) == ({"events": 1}, {"history_position": 0})
    state, row = history_position.step(state, event)
    assert (state, row) == ({"events": 2}, {"history_position": 1})

"""The core columns, in numbers that can be checked by hand. What holds for every feature stands in test_laws.py."""

from collections.abc import Sequence

import pytest
import torch

from pipeline.contracts import Event, chunk_of
from pipeline.features import core
from pipeline_tests.strategies import Declaration

NEVER = -9_223_372_036_854_775_808
SECOND = 1_000_000
HOUR = 3600 * SECOND
SHOP = ("view", "cart", "purchase")
NOON = 1_741_348_800_000_000  # 2025-03-07 12:00:00 UTC


def opening(*last_us: int) -> dict[str, torch.Tensor]:
    return {"last_timestamp_us": torch.tensor(last_us, dtype=torch.int64)}


def row(users: Sequence[Sequence[tuple[int, str]]], *last_us: int) -> dict[str, list]:
    """The columns as lists."""
    computed = core.compute(chunk_of(users, action_names=SHOP), opening(*last_us))
    return {name: tensor.tolist() for name, tensor in computed.items()}


def test_one_user_one_morning() -> None:
    visits = [(NOON, "view"), (NOON + 90 * SECOND, "cart"), (NOON + 2 * HOUR, "purchase")]
    assert row([visits], NEVER) == {
        "time_diff": [0.0, 90.0, 7110.0],  # 2 h less the 90 s
        "is_first": [True, False, False],
        "action_view": [1, 0, 0],
        "action_cart": [0, 1, 0],
        "action_purchase": [0, 0, 1],
    }


def test_a_user_begins_anew_after_the_one_before() -> None:
    users = [[(10 * SECOND, "view"), (11 * SECOND, "view")], [(500 * SECOND, "view")], [(3 * SECOND, "view")]]
    found = row(users, NEVER, NEVER, NEVER)
    assert found["time_diff"] == [0.0, 1.0, 0.0, 0.0]
    assert found["is_first"] == [True, False, True, True]


def test_a_returning_user_counts_from_the_last_visit() -> None:
    found = row([[(NOON, "view")], [(NOON, "view")]], NOON - 26 * HOUR, NEVER)
    assert found["time_diff"] == [93_600.0, 0.0]
    assert found["is_first"] == [False, True]


def test_zero_with_is_first_false_is_the_same_instant() -> None:
    found = row([[(NOON, "view"), (NOON, "cart")], [(NOON, "view")]], NEVER, NOON)
    assert found["time_diff"] == [0.0, 0.0, 0.0]
    assert found["is_first"] == [True, False, False]


def test_a_user_last_seen_in_1970_is_not_new() -> None:
    """0 us, and the smallest time that is not NEVER, are times like others."""
    found = row([[(5 * SECOND, "view")], [(-(2**62), "view")]], 0, -(2**62) - SECOND)
    assert found["time_diff"] == [5.0, 1.0]
    assert found["is_first"] == [False, False]


@pytest.mark.parametrize(
    ("gap_us", "seconds"),
    [
        (1, 9.999999974752427e-07),  # the float32 nearest to 0.000001
        (100_000, 0.10000000149011612),  # nearest to 0.1
        (1_500_000, 1.5),
        (16_777_216 * SECOND, 16_777_216.0),
        (16_777_217 * SECOND, 16_777_216.0),  # half way between two float32: to the even one
        (16_777_217 * SECOND + 1, 16_777_218.0),  # a microsecond more, and the upper one is nearer
        (16_777_219 * SECOND, 16_777_220.0),  # half way again, and even is above
        (1_150_000_000 * SECOND + 1, 1_150_000_000.0),  # 36 years
    ],
)
def test_seconds_are_rounded_once(gap_us: int, seconds: float) -> None:
    assert row([[(NOON, "view"), (NOON + gap_us, "view")]], NEVER)["time_diff"] == [0.0, seconds]
    assert row([[(NOON + gap_us, "view")]], NOON)["time_diff"] == [seconds]


def test_subtraction_comes_before_float32() -> None:
    """A unix time in float32 moves in steps of 128 s; the gap of 64 s and 1 us is there all the same."""
    found = row([[(NOON, "view"), (NOON + 64 * SECOND + 1, "view")]], NEVER)
    assert found["time_diff"][1] == pytest.approx(64.000001, abs=4e-6)


def test_columns_in_declared_order() -> None:
    declared = core.columns(Declaration(("purchase", "return")))
    assert [(column.name, column.dtype, column.unit) for column in declared] == [
        ("time_diff", "float32", "s"),
        ("is_first", "bool", ""),
        ("action_purchase", "uint8", ""),
        ("action_return", "uint8", ""),
    ]


def test_255_actions() -> None:
    """As many as a dataset file may declare; the last one has code 254."""
    names = tuple(f"a{n}" for n in range(255))
    computed = core.compute(chunk_of([[(0, "a254"), (1, "a0")]], action_names=names), opening(NEVER))
    one_hot = torch.stack([computed[f"action_{name}"] for name in names], dim=1)
    assert one_hot.sum(dim=1).tolist() == [1, 1]
    assert one_hot.argmax(dim=1).tolist() == [254, 0]


def test_the_state_is_the_last_time() -> None:
    users = [[(3, "view"), (8, "view")], [(5, "view")]]
    assert core.summarise(chunk_of(users, action_names=SHOP))["last_timestamp_us"].tolist() == [8, 5]


def test_the_later_state_wins_where_there_is_one() -> None:
    combined = core.combine(opening(3, 3, NEVER, NEVER), opening(8, NEVER, 8, NEVER))
    assert combined["last_timestamp_us"].tolist() == [8, 3, 8, NEVER]


def test_the_loop_by_hand() -> None:
    def event(timestamp_us: int, action: str) -> Event:
        return Event(0, 1, "item", timestamp_us, action, ("view", "cart"), {})

    state, first = core.step(core.initial(), event(NOON, "view"))
    assert first == {"time_diff": 0, "is_first": True, "action_view": 1, "action_cart": 0}
    state, second = core.step(state, event(NOON + 250_000, "cart"))
    assert second == {"time_diff": 0.25, "is_first": False, "action_view": 0, "action_cart": 1}
    assert state == {"last_timestamp_us": NOON + 250_000}

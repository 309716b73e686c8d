"""The passes of the proofs over blocks of rows: how rows are cut into blocks changes nothing, and every wrong value is seen."""

import itertools
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.checks.blocks import Runs, places_in, run_starts, side_by_side
from pipeline.checks.event_rows import EventRows
from pipeline.checks.feature_rows import ACTION_CODE, FeatureRows, Past
from pipeline.checks.invariants import codes_of_one_hots
from pipeline.checks.oracle import Loop, compare, compare_columns
from pipeline.checks.picked import PickedRows
from pipeline.checks.reverse import ReverseLookUp
from pipeline.checks.sampled_rows import SampledRows
from pipeline.checks.sampling import Draw, choose_users
from pipeline.contracts import Column, Event
from pipeline.features import load_features
from pipeline.store import POLARS_DTYPES, ContentHash
from pipeline.vocabularies import DayIds

ACTIONS = ("view", "buy", "cart")
DAY = date(2024, 3, 1)
MIDNIGHT_US = int(datetime(2024, 3, 1, tzinfo=UTC).timestamp()) * 1_000_000
CORE = load_features(["core"], {})
COLUMNS = [
    Column("row_id", "int64", minimum=0),
    Column("user_id", "int64"),
    Column("item_id", "int64"),
    Column("timestamp", "timestamp"),
    Column("action", "string"),
]
USERS = st.one_of(st.integers(0, 3), st.sampled_from([-(2**63), 2**63 - 1]))
EVENTS = st.lists(
    st.tuples(
        USERS, st.sampled_from([0, 0, 1, 999_999, 3_600_000_000, 86_399_999_999]), st.integers(0, 4), st.integers(0, 2)
    ),
    min_size=1,
    max_size=25,
)


def events_of(drawn: list[tuple[int, int, int, int]], *, text: bool = False) -> pl.DataFrame:
    """Events as they are read back: sorted, and the action as Enum."""
    frame = pl.DataFrame(
        {
            "row_id": range(len(drawn)),
            "user_id": [user for user, _, _, _ in drawn],
            "item_id": [item for _, _, item, _ in drawn],
            "timestamp": [MIDNIGHT_US + us for _, us, _, _ in drawn],
            "action": [ACTIONS[code] for _, _, _, code in drawn],
        },
        schema_overrides={"row_id": pl.Int64, "user_id": pl.Int64, "item_id": pl.Int64},
    ).with_columns(pl.col("timestamp").cast(pl.Datetime("us", "UTC")), pl.col("action").cast(pl.Enum(ACTIONS)))
    if text:
        frame = frame.with_columns(pl.format("u{}", "user_id").alias("user_id"))
    return frame.sort("user_id", "timestamp", "row_id")


def cut(frame: pl.DataFrame, places: list[int]) -> list[pl.DataFrame]:
    borders = sorted({0, frame.height, *(place % frame.height for place in places)})
    return [frame[first:behind] for first, behind in itertools.pairwise(borders)]


def look_at_events(blocks: list[pl.DataFrame], rows_in: int, picked: PickedRows | None = None) -> EventRows:
    text = blocks[0]["user_id"].dtype == pl.String
    columns = [replace(column, dtype="string") if text and column.name == "user_id" else column for column in COLUMNS]
    rows = EventRows(DAY, columns=columns, action_names=ACTIONS, rows_in=rows_in, picked=picked)
    for block in blocks:
        rows.add(block)
    return rows


@pytest.mark.parametrize("text", [False, True])
@given(drawn=EVENTS, places=st.lists(st.integers(0, 99), max_size=6), order=st.randoms(use_true_random=False))
def test_events_are_judged_as_by_hand(
    text: bool, drawn: list[tuple[int, int, int, int]], places: list[int], order
) -> None:
    frame = events_of(drawn, text=text)
    shuffled = list(range(frame.height))
    if order.random() < 0.5:
        order.shuffle(shuffled)
    frame = frame[shuffled]
    rows = look_at_events(cut(frame, places), frame.height)
    keys = list(frame.select("user_id", "timestamp", "row_id").iter_rows())
    assert rows.unordered == sum(later <= earlier for earlier, later in itertools.pairwise(keys))
    assert rows.by_action.tolist() == [Counter(frame["action"].to_list())[name] for name in ACTIONS]
    assert rows.hours.tolist() == [Counter(t.hour for t in frame["timestamp"])[hour] for hour in range(24)]
    assert rows.outside == 0
    assert rows.problems == []
    assert rows.row_ids.complete()
    whole = ContentHash()
    whole.update(frame)
    assert rows.content.hexdigest() == whole.hexdigest()


@given(
    drawn=EVENTS,
    places=st.lists(st.integers(0, 99), max_size=6),
    row=st.integers(0, 99),
    wrong=st.integers(-2, 40),
    bytes_at_most=st.sampled_from([0, 1 << 26]),
)
def test_row_ids_are_complete_only_when_each_is_there_once(
    drawn: list[tuple[int, int, int, int]], places: list[int], row: int, wrong: int, bytes_at_most: int
) -> None:
    frame = events_of(drawn)
    row %= frame.height
    row_ids = frame["row_id"].to_list()
    row_ids[row] = wrong
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.checks.row_ids.BYTES", bytes_at_most)
        rows = look_at_events(cut(frame.with_columns(pl.Series("row_id", row_ids)), places), frame.height)
    assert rows.row_ids.complete() == (sorted(row_ids) == list(range(frame.height)))


@given(drawn=EVENTS, places=st.lists(st.integers(0, 99), max_size=6), us=st.sampled_from([-1, 86_400_000_000]))
def test_times_outside_the_day_are_counted(drawn: list[tuple[int, int, int, int]], places: list[int], us: int) -> None:
    frame = events_of([*drawn, (1, us, 0, 0)])
    rows = look_at_events(cut(frame, places), frame.height)
    assert rows.outside == 1
    assert rows.hours.sum() == frame.height - 1


@pytest.mark.parametrize("column", ["row_id", "user_id", "timestamp"])
@pytest.mark.parametrize("text", [False, True])
@given(drawn=EVENTS, places=st.lists(st.integers(0, 99), max_size=6), chosen=st.lists(st.integers(0, 99), max_size=4))
def test_rows_are_picked_by_a_value(
    column: str, text: bool, drawn: list[tuple[int, int, int, int]], places: list[int], chosen: list[int]
) -> None:
    frame = events_of(drawn, text=text)
    values = (
        frame[column].to_physical()[[place % frame.height for place in chosen]]
        if chosen
        else frame[column].to_physical()[:0]
    )
    picked = PickedRows(column, values)
    look_at_events(cut(frame, places), frame.height, picked)
    expected = frame.filter(frame[column].to_physical().is_in(values.implode()))
    assert picked.rows(dict(frame.schema)).collect().equals(expected)


def features_of(frame: pl.DataFrame, past: dict[object, int]) -> tuple[pl.DataFrame, dict[str, DayIds]]:
    """The features of some events, by the loop, and the ids behind their indices."""
    rows = []
    for (user,), part in frame.group_by("user_id", maintain_order=True):
        events = [
            Event(row_id, user, item, time_us, action, ACTIONS, {})
            for row_id, item, time_us, action in part.select(
                "row_id", "item_id", pl.col("timestamp").to_physical(), "action"
            ).iter_rows()
        ]
        state = {"core.last_timestamp_us": past[user]} if user in past else None
        rows += Loop(CORE, state).step(events)
    look_up, indices = {}, {}
    for name in ("user", "item"):
        ids = frame[f"{name}_id"].unique().sort()
        numbers = pl.int_range(2, 2 + ids.len(), dtype=pl.Int32, eager=True).reverse()
        look_up[name] = DayIds(numbers.sort(), ids.reverse(), ids.clear())
        indices[f"{name}_index"] = frame[f"{name}_id"].replace_strict(ids, numbers, return_dtype=pl.Int32)
    types = {"time_diff": pl.Float32, "is_first": pl.Boolean, **{f"action_{name}": pl.UInt8 for name in ACTIONS}}
    values = {name: pl.Series(name, [row[name] for row in rows], dtype=dtype) for name, dtype in types.items()}
    return frame.drop("action").with_columns(**indices, **values), look_up


def feature_columns(frame: pl.DataFrame) -> list[Column]:
    names = {dtype: name for name, dtype in POLARS_DTYPES.items()}
    limits = {"time_diff": (0, None), "user_index": (1, None), "item_index": (0, None), "row_id": (0, None)}
    limits |= {f"action_{name}": (0, 1) for name in ACTIONS}
    columns = []
    for name, dtype in frame.schema.items():
        low, high = limits.get(name, (None, None))
        columns.append(Column(name, names[dtype], minimum=low, maximum=high))  # type: ignore[arg-type]
    return columns


def look_at_features(
    blocks: list[pl.DataFrame], past: dict, look_up: dict[str, DayIds]
) -> tuple[FeatureRows, SampledRows]:
    users = pl.concat([block["user_id"] for block in blocks])
    sampled = SampledRows(Draw(seed="day", population=users.n_unique()))
    known = pl.DataFrame({"user": list(past), "us": list(past.values())}, schema={"user": users.dtype, "us": pl.Int64})
    known = known.sort("user")
    rows = FeatureRows(
        columns=feature_columns(blocks[0]),
        action_names=ACTIONS,
        past=Past(known["user"], known["us"].to_numpy()),
        look_up={name: ReverseLookUp(ids) for name, ids in look_up.items()},
        borders=np.array([0, users.len() - 1]),
        sampled=sampled,
    )
    for block in blocks:
        rows.add(block, pl.DataFrame())
    rows.finish()
    return rows, sampled


def wrong_values(rows: FeatureRows) -> set[tuple[object, object, str]]:
    found = [*rows.problems, *rows.wrong_times, *rows.totals.wrong, *rows.wrong_indices]
    return {(entry["user_id"], entry["row_id"], entry["column"]) for entry in found}


def past_of(frame: pl.DataFrame, seen: int) -> dict[object, int]:
    """Every other user, or so, has a past."""
    users = frame["user_id"].unique().sort()
    return {user: MIDNIGHT_US - 7_000_001 * (n + 1) for n, user in enumerate(users) if seen >> n & 1}


@pytest.mark.parametrize("text", [False, True])
@given(drawn=EVENTS, places=st.lists(st.integers(0, 99), max_size=6), seen=st.integers(0, 63), alone=st.integers(0, 3))
def test_right_features_pass_however_they_are_cut(
    text: bool, drawn: list[tuple[int, int, int, int]], places: list[int], seen: int, alone: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.checks.sampled_rows.ALONE_ROWS", alone)
        pass_however_they_are_cut(events_of(drawn, text=text), places, seen)


def pass_however_they_are_cut(events: pl.DataFrame, places: list[int], seen: int) -> None:
    past = past_of(events, seen)
    features, look_up = features_of(events, past)
    rows, sampled = look_at_features(cut(features, places), past, look_up)
    assert wrong_values(rows) == set()
    assert rows.one_hots
    whole = ContentHash()
    whole.update(events.select("action"))
    assert rows.actions.columns() == whole.columns()
    assert rows.hot.tolist() == [Counter(events["action"].to_list())[name] for name in ACTIONS]
    assert rows.users == events["user_id"].n_unique()
    assert rows.firsts == rows.users - len(past)
    assert rows.gaps.sum() == events.height
    users = events["user_id"].unique().sort()
    kept = {user: pl.concat(pieces) for user, pieces in sampled.of_users(users)}
    for user in users:
        right = features.filter(pl.col("user_id") == user)
        assert kept[user].drop(ACTION_CODE).rows() == right.rows()
        assert [ACTIONS[code] for code in kept[user][ACTION_CODE]] == events.filter(pl.col("user_id") == user)[
            "action"
        ].to_list()


WRONG = st.sampled_from(
    ["time_diff", "minus zero", "ulp", "is_first", "user_index", "item_index", "unknown", "NaN", "one-hot"]
)


@given(
    drawn=EVENTS,
    places=st.lists(st.integers(0, 99), max_size=6),
    seen=st.integers(0, 63),
    row=st.integers(0, 99),
    wrong=WRONG,
)
def test_one_wrong_value_is_seen_wherever_blocks_end(
    drawn: list[tuple[int, int, int, int]], places: list[int], seen: int, row: int, wrong: str
) -> None:
    events = events_of(drawn)
    features, look_up = features_of(events, past_of(events, seen))
    row %= events.height
    right = features.row(row, named=True)
    column, value = {
        "time_diff": ("time_diff", right["time_diff"] + 1),
        "minus zero": ("time_diff", -0.0 if right["time_diff"] == 0 else 0.0),
        "ulp": ("time_diff", float(np.nextafter(np.float32(right["time_diff"]), np.float32(np.inf)))),
        "is_first": ("is_first", not right["is_first"]),
        "user_index": ("user_index", right["user_index"] + 1),
        "item_index": ("item_index", right["item_index"] + 1),
        "unknown": ("item_index", 1),
        "NaN": ("time_diff", float("nan")),
        "one-hot": ("action_view", 1 - right["action_view"]),
    }[wrong]
    here = pl.int_range(pl.len()) == row
    changed = features.with_columns(
        pl.when(here).then(pl.lit(value, dtype=features.schema[column])).otherwise(column).alias(column)
    )
    rows, _ = look_at_features(cut(changed, places), past_of(events, seen), look_up)
    if wrong == "one-hot":
        assert not rows.one_hots
    else:
        place = (right["user_id"], right["row_id"], column)
        assert {entry for entry in wrong_values(rows) if entry[1] is not None} == {place}


def test_every_index_is_judged() -> None:
    ids = DayIds(pl.Series([2, 5, 7], dtype=pl.Int32), pl.Series([30, 10, 20]), pl.Series([40, 50]))
    rows = [(30, 2), (10, 5), (20, 7), (40, 1), (50, 1), (None, 0)]
    wrong = [(30, 5), (30, 1), (40, 2), (40, 0), (None, 1), (None, 2), (20, 6), (20, 8), (20, -1), (60, 1), (31, 2)]
    for table in (True, False):
        look_up = ReverseLookUp(ids if table else DayIds(ids.indices, ids.ids, ids.unknown))
        if not table:
            look_up._id_N = None
        for chosen, expected in (
            (rows, []),
            (rows[:3], []),
            (wrong, list(range(len(wrong)))),
            ([*rows, wrong[0]], [6]),
        ):
            id_E = pl.Series([one for one, _ in chosen], dtype=pl.Int64)
            index_E = pl.Series([index for _, index in chosen], dtype=pl.Int32)
            assert look_up.wrong(id_E, index_E).tolist() == expected
            texts = DayIds(ids.indices, ids.ids.cast(pl.String), ids.unknown.cast(pl.String))
            assert ReverseLookUp(texts).wrong(id_E.cast(pl.String), index_E).tolist() == expected
        for one, index in [*rows, *wrong]:
            judged = look_up.wrong(pl.Series([one], dtype=pl.Int64), pl.Series([index], dtype=pl.Int32))
            assert judged.tolist() == ([0] if (one, index) in wrong else [])


@given(users=st.lists(st.integers(1, 9), min_size=1, max_size=400), places=st.lists(st.integers(0, 999), max_size=5))
def test_a_draw_does_not_depend_on_how_users_pass_by(users: list[int], places: list[int]) -> None:
    counts = pl.DataFrame(
        {"user_id": range(len(users)), "events": users}, schema={"user_id": pl.Int64, "events": pl.Int64}
    )
    marked = counts["user_id"].filter(counts["events"] > 4)
    at_once = choose_users(counts, seed="day", tied=marked, at_borders=marked, seen_before=marked)
    draw, held = Draw(seed="day", population=len(users)), set()
    for part in cut(counts, places):
        heavy = (part["events"] > 4).to_numpy()
        marks = {"tied": heavy, "at_chunk_borders": heavy, "seen_before": heavy, "seen_first": ~heavy}
        held |= {part["user_id"][place] for place in draw.offer(part["user_id"], part["events"].to_numpy(), marks)}
        held &= draw.chosen()
    assert draw.sample(marked).users.equals(at_once.users)
    assert set(at_once.users) <= held
    assert at_once.random == min(len(users), 200)
    heaviest = sorted(users, reverse=True)[:20]
    assert Counter(counts["events"].filter(counts["user_id"].is_in(at_once.users.implode()))) >= Counter(heaviest)
    kinds = {
        "tied": marked.len(),
        "at_chunk_borders": marked.len(),
        "seen_before": marked.len(),
        "heaviest": len(users),
    }
    assert all(at_once.kinds[kind] == min(20, number) for kind, number in kinds.items())


@pytest.mark.parametrize("order", list(permutations([150_000, 100_000, 40_000])))
@pytest.mark.parametrize("users_a_call", [1, 100, 1000])
def test_the_heaviest_are_proven_up_to_a_limit_of_events(order: tuple[int, ...], users_a_call: int) -> None:
    """150,000 and 100,000 are more than 200,000; the third must not come in because the second was left out."""
    events = np.ones(1000, dtype=np.int64)
    events[[100, 500, 900]] = order
    draw = Draw(seed="day", population=1000)
    for start in range(0, 1000, users_a_call):
        some = slice(start, start + users_a_call)
        draw.offer(pl.Series(range(1000))[some], events[some], {})
    assert draw.sample(pl.Series([0])).kinds["heaviest"] == 1
    assert len(draw.chosen()) in (200, 201)


def test_two_tables_are_cut_at_the_same_rows() -> None:
    left, right = pl.DataFrame({"a": range(10)}), pl.DataFrame({"b": range(10)})
    pairs = list(side_by_side(iter([left[:3], left[3:9], left[9:]]), iter([right[:5], right[5:6], right[6:]])))
    assert [(one["a"].to_list(), other["b"].to_list()) for one, other in pairs] == [
        (rows, rows) for rows in ([0, 1, 2], [3, 4], [5], [6, 7, 8], [9])
    ]


def test_runs_go_on_in_the_next_block() -> None:
    runs = Runs.of(pl.Series(["a", "a", "b", "c", "c"]), before="a")
    assert runs.goes_on
    assert runs.starts.tolist() == [0, 2, 3]
    assert runs.new.tolist() == [2, 3]
    assert runs.lengths.tolist() == [2, 1, 2]
    assert runs.of_rows(np.array([0, 2, 4])).tolist() == [0, 1, 2]
    assert run_starts(pl.Series([7])).tolist() == [0]


@pytest.mark.parametrize("dtype", [pl.Int64, pl.String])
def test_values_are_found_among_ascending_ones(dtype: pl.DataType) -> None:
    found, places = places_in(pl.Series([1, 3, 5]).cast(dtype), pl.Series([0, 1, 2, 5, 6]).cast(dtype))
    assert found.tolist() == [False, True, False, True, False]
    assert places[found].tolist() == [0, 2]
    assert not places_in(pl.Series([], dtype=dtype), pl.Series([1]).cast(dtype))[0].any()


def test_one_hots_are_read_back_only_when_each_row_has_one() -> None:
    names = [f"n{number}" for number in range(300)]
    right = pl.DataFrame({f"action_{name}": [int(n == k) for k in (0, 299, 7)] for n, name in enumerate(names)})
    right = right.cast(pl.UInt8)
    codes = codes_of_one_hots(right, names)
    assert codes is not None
    assert codes.tolist() == [0, 299, 7]
    for column, value in (("action_n5", 1), ("action_n0", 0), ("action_n0", 2), ("action_n0", None)):
        wrong = right.with_columns(
            pl.when(pl.int_range(3) == 0).then(pl.lit(value, dtype=pl.UInt8)).otherwise(column).alias(column)
        )
        assert codes_of_one_hots(wrong, names) is None


@pytest.mark.parametrize(
    ("dtype", "right", "wrong"),
    [
        ("float32", 0.0, -0.0), ("float64", 0.0, -0.0), ("float32", 0.5, 0.5000000596046448), ("float64", 1.0, 1), ("int64", 1, True),
        ("bool", True, 1), ("uint8", 0, 1), ("string", "a", "b"), ("float64", 1.0, float("nan")),
    ],
)  # fmt: skip
def test_columns_are_compared_as_rows_are(dtype: str, right: object, wrong: object) -> None:
    columns = [Column("value", dtype)]  # type: ignore[arg-type]
    expected = [{"value": right}, {"value": right}]
    by_rows = compare(expected, [{"value": wrong}, {"value": wrong}], columns, user_id=1, row_ids=[4, 5])
    by_columns = compare_columns(expected, {"value": [wrong, wrong]}, columns, user_id=1, row_ids=[4, 5])
    assert [entry["row_id"] for entry in by_columns] == [4, 5]
    assert repr(by_columns) == repr(by_rows)
    assert compare_columns(expected, {"value": [right, right]}, columns, user_id=1, row_ids=[4, 5]) == []


def test_a_later_file_of_another_type_is_told() -> None:
    events = events_of([(1, 0, 0, 0), (2, 0, 0, 1)])
    wrong = {"column": "item_id", "expected": "Int64", "found": "Int32"}
    assert look_at_events([events[:1], events[1:].cast({"item_id": pl.Int32})], 2).problems == [wrong]
    features, look_up = features_of(events, {})
    rows, _ = look_at_features([features[:1], features[1:].cast({"user_index": pl.Float32})], {}, look_up)
    assert rows.problems[0] == {"column": "user_index", "expected": "Int32", "found": "Float32"}


def test_a_giant_is_looped_through_in_pieces() -> None:
    """What the oracle knows goes on from piece to piece; a feature that carries nothing from day to day included."""
    features = load_features(None, {})
    events = [Event(n, 1, "i", MIDNIGHT_US + n // 2, "view", ACTIONS, {}) for n in range(10)]
    at_once, loop = Loop(features, None), Loop(features, None)
    rows = at_once.step(events)
    assert [*loop.step(events[:3]), *loop.step(events[3:4]), *loop.step(events[4:][::-1])] == rows
    assert loop.state() == at_once.state()

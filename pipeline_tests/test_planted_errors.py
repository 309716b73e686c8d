"""Errors planted where a sample of users may miss them, and between the raw bytes and `events`."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pipeline import stages
from pipeline.checks import ProofFailed, prove_again, publish
from pipeline.checks.sampling import choose_users
from pipeline.config import load_dataset
from pipeline.events import convert, reading
from pipeline.sources import RawBlock
from pipeline.stages import STAGES, Work, run_day
from pipeline_tests.test_publish import at, plant
from pipeline_tests.works import work_of

DAY = date(2024, 3, 1)
MIDNIGHT = 1_709_251_200
USERS = 3_000
BLOCK_ROWS = 1_000
TOML = """
name = "population"
[partitions]
start = "2024-03-01"
end = "2024-03-01"
[source]
path = "raw.csv"
[columns]
user_id = { from = "u", type = "int64" }
item_id = { from = "i", type = "int64" }
timestamp = { from = "t", unit = "s" }
action = { from = "a" }
[actions]
names = ["view", "buy"]
[store]
root = "store"
"""


def make_work(folder: Path, *, more: str = "") -> Work:
    draw = random.Random(3)
    lines = [
        f"{10_000 + user},{draw.randrange(500)},{MIDNIGHT + 3_600 + draw.randrange(70_000)},{draw.choice(['view', 'buy'])}\n"
        for user in range(USERS)
        for _ in range(3)
    ]
    draw.shuffle(lines)
    (folder / "raw.csv").write_text("u,i,t,a\n" + "".join(lines))
    file = folder / "dataset.toml"
    file.write_text(TOML + more)
    dataset = load_dataset(file)
    return work_of(dataset, run="plant", chunk_rows=4_000, force=True)


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    """Files of several row groups, so that proofs read them in several blocks; most blocks end in the middle of a user, and so do pieces of the loop."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("store.parquet.ROW_GROUP_ROWS", "checks.reading.BLOCK_ROWS"):
            patch.setattr(f"pipeline.{name}", BLOCK_ROWS)
        for place in ("features", "reading", "state_loop"):
            patch.setattr(f"pipeline.checks.{place}.LOOP_ROWS", 2)
        yield


@pytest.fixture(scope="module")
def work(small_blocks: None, tmp_path_factory: pytest.TempPathFactory) -> Work:
    made = make_work(tmp_path_factory.mktemp("population"))
    for asset in STAGES:
        run_day(asset, DAY, made)
    return made


@pytest.fixture(scope="module")
def unsampled(work: Work) -> dict[str, int]:
    """Positions, in the first file, of rows of users whom no sample of the day holds.

    `row` is the second of a user's three events, `last` is the last row of a block and the second event too, `first` is
    the first row of a block and a later event of a user who began in the block before.
    """
    manifest = work.store.manifest("features", DAY)
    assert manifest is not None
    files = [pl.read_parquet(work.store.directory("features", DAY) / file.path) for file in manifest.files]
    whole, frame = pl.concat(files), files[0]
    users = whole["user_id"]
    counts = users.value_counts(name="events").sort("user_id").with_columns(pl.col("events").cast(pl.Int64))
    sample = choose_users(
        counts,
        seed=str(DAY),
        tied=users.filter(whole.select("user_id", "timestamp").is_duplicated()),
        at_borders=pl.concat([pl.concat([one["user_id"].head(1), one["user_id"].tail(1)]) for one in files]),
        seen_before=users.clear(),
    )
    assert sample.users.len() < USERS / 8
    free = (~frame["user_id"].is_in(sample.users.implode())).to_list()
    first_event = frame["is_first"].to_list()
    ends = range(BLOCK_ROWS - 1, frame.height - 1, BLOCK_ROWS)
    return {
        "row": next(n for n in range(900, frame.height) if free[n] and first_event[n - 1]),
        "last": next(n for n in ends if free[n] and first_event[n - 1]),
        "first": next(n + 1 for n in ends if free[n] and not first_event[n + 1]),
    }


def flip_one_hot(row: int) -> Callable[[pl.DataFrame], pl.DataFrame]:
    def change(frame: pl.DataFrame) -> pl.DataFrame:
        return at(row, action_view=frame["action_buy"][row], action_buy=frame["action_view"][row])(frame)

    return change


def swap_identity(row: int) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda frame: at(row, user_id=frame["item_id"][row], item_id=frame["user_id"][row])(frame)


def take_from(column: str, row: int, other: int) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda frame: at(row, **{column: frame[column][other]})(frame)


def one_ulp_more(row: int) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda frame: at(row, time_diff=float(np.nextafter(np.float32(frame["time_diff"][row]), np.float32(1e9))))(
        frame
    )


def index_of_another(rows: range) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """A wrong user_index in some rows."""

    def change(frame: pl.DataFrame) -> pl.DataFrame:
        for row in rows:
            frame = at(row, user_index=3)(frame)
        return frame

    return change


SAME = "same rows as events, in the same order"
TIMES = "every time_diff and is_first = shifted timestamps"
HOTS = "the one-hot marks the action and nothing else"
INDICES = "indices are those of the vocabularies"
RANGES = "values are within their declared ranges"
UNSAMPLED: dict[str, tuple[str, Callable[[int], Callable[[pl.DataFrame], pl.DataFrame]], str]] = {
    "one time_diff": ("row", lambda row: at(row, time_diff=7.0), TIMES),
    "a time_diff off by one ulp": ("row", one_ulp_more, TIMES),
    "minus zero": ("row", lambda row: at(row - 1, time_diff=-0.0), TIMES),
    "NaN": ("row", lambda row: at(row, time_diff=float("nan")), RANGES),
    "infinity": ("row", lambda row: at(row, time_diff=float("inf")), RANGES),
    "a null": ("row", lambda row: at(row, time_diff=None), RANGES),
    "one is_first": ("row", lambda row: at(row, is_first=True), TIMES),
    "a lost is_first": ("row", lambda row: at(row - 1, is_first=False), TIMES),
    "a swapped user": ("row", lambda row: at(row, user_id=99_999), SAME),
    "two columns swapped": ("row", swap_identity, SAME),
    "a row_id a second time": ("row", lambda row: take_from("row_id", row, row + 2_000), SAME),
    "a time of another row": ("row", lambda row: take_from("timestamp", row, row + 1), SAME),
    "a missing row": (
        "row",
        lambda row: lambda frame: pl.concat([frame[:row], frame[row + 1 :]]),
        "as many rows as events",
    ),
    "a doubled row": (
        "row",
        lambda row: lambda frame: pl.concat([frame[: row + 1], frame[row:]]),
        "as many rows as events",
    ),
    "a row for another": (
        "row",
        lambda row: lambda frame: pl.concat([frame[:row], frame[row - 1 : row], frame[row + 1 :]]),
        SAME,
    ),
    "a shifted one-hot": ("row", flip_one_hot, HOTS),
    "no hot": ("row", lambda row: at(row, action_view=0, action_buy=0), HOTS),
    "both hot": ("row", lambda row: at(row, action_view=1, action_buy=1), HOTS),
    "hot with a two": ("row", lambda row: at(row, action_view=2), RANGES),
    "an index in the middle of a user": ("row", lambda row: index_of_another(range(row, row + 1)), INDICES),
    "an index in the last row of a user": ("row", lambda row: index_of_another(range(row + 1, row + 2)), INDICES),
    "an index right in a user's first row only": ("row", lambda row: index_of_another(range(row, row + 2)), INDICES),
    "an index wrong in all rows of a user": ("row", lambda row: index_of_another(range(row - 1, row + 2)), INDICES),
    "an index of another item": ("row", lambda row: at(row, item_index=501), INDICES),
    "an index that nobody was given": ("row", lambda row: at(row, item_index=10_000), INDICES),
    "a known item that is said to be unknown": ("row", lambda row: at(row, item_index=1), INDICES),
    "a known user that is said to be unknown": ("row", lambda row: at(row - 1, user_index=1), INDICES),
    "padding for an item that is there": ("row", lambda row: at(row, item_index=0), INDICES),
    "time_diff in the last row of a block": ("last", lambda row: at(row, time_diff=7.0), TIMES),
    "a user in the last row of a block": ("last", lambda row: at(row, user_id=99_999), SAME),
    "an index in the last row of a block": ("last", lambda row: index_of_another(range(row, row + 1)), INDICES),
    "time_diff in the first row of a block": ("first", lambda row: at(row, time_diff=7.0), TIMES),
    "is_first in the first row of a block": ("first", lambda row: at(row, is_first=True), TIMES),
    "an index in the first row of a block": ("first", lambda row: index_of_another(range(row, row + 1)), INDICES),
    "a one-hot in the first row of a block": ("first", flip_one_hot, HOTS),
}


@pytest.mark.parametrize("error", UNSAMPLED)
def test_errors_outside_the_sample_are_blocked(work: Work, unsampled: dict[str, int], error: str) -> None:
    where, change, finding = UNSAMPLED[error]
    staged, _, _ = stages._make("features", DAY, work)
    changed = plant(staged, change(unsampled[where]))
    with pytest.raises(ProofFailed) as failure:
        publish(changed, dataset=work.dataset, features=work.features, store=work.store)
    failed = [found.name for found in failure.value.proof.failed]
    assert finding in failed
    assert "content version is that of the rows on disk" not in failed
    assert "values of sampled users = the loop" not in failed


def test_a_difference_from_events_is_told_with_its_row(work: Work, unsampled: dict[str, int]) -> None:
    row = unsampled["first"]
    staged, _, _ = stages._make("features", DAY, work)
    right = pl.read_parquet(staged.directory / staged.manifest.files[0].path)
    changed = plant(staged, at(row, item_id=-7, action_view=1, action_buy=1))
    with pytest.raises(ProofFailed) as failure:
        publish(changed, dataset=work.dataset, features=work.features, store=work.store)
    found = {finding.name: finding.rows for finding in failure.value.proof.failed}
    place = {"user_id": right["user_id"][row], "row_id": right["row_id"][row]}
    assert found[SAME] == ({**place, "column": "item_id", "expected": right["item_id"][row], "found": -7},)
    cold = "action_buy" if right["action_view"][row] else "action_view"
    assert found[HOTS] == ({**place, "column": cold, "expected": 0, "found": 1},)


def test_events_that_changed_since_their_proof_are_noticed(tmp_path: Path) -> None:
    """`features` are compared with the events that were proven, not with what became of them on disk."""
    work = make_work(tmp_path)
    for asset in STAGES[:-1]:
        run_day(asset, DAY, work)
    events = work.store.manifest("events", DAY)
    assert events is not None
    path = work.store.directory("events", DAY) / events.files[0].path
    at(5, item_id=pl.read_parquet(path)["item_id"][6])(pl.read_parquet(path)).write_parquet(path)
    with pytest.raises(ProofFailed, match="same rows as events, in the same order"):
        run_day("features", DAY, work)


def test_columns_that_only_the_loop_needs_are_those_that_were_proven(tmp_path: Path) -> None:
    work = make_work(tmp_path, more='[extra]\nweight = { from = "t", type = "int64" }\n')
    for asset in STAGES:
        run_day(asset, DAY, work)  # which reads `weight` of events beside features
    events = work.store.manifest("events", DAY)
    assert events is not None
    path = work.store.directory("events", DAY) / events.files[0].path
    at(5, weight=-1)(pl.read_parquet(path)).write_parquet(path)
    proof = prove_again("features", DAY, dataset=work.dataset, features=work.features, store=work.store)
    assert [found.name for found in proof.failed] == [SAME]
    assert proof.failed[0].rows[0]["column"] == "weight"


def test_without_recorded_hashes_events_are_compared_row_by_row(tmp_path: Path) -> None:
    """Such as in days that were published before hashes of columns were recorded."""
    work = make_work(tmp_path)
    for asset in STAGES[:-1]:
        run_day(asset, DAY, work)
    path = work.store.directory("events", DAY) / "_manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["proof"]["figures"]["column_hashes"]
    path.write_text(json.dumps(manifest))
    staged, _, _ = stages._make("features", DAY, work)
    changed = plant(staged, swap_identity(2_500))
    with pytest.raises(ProofFailed) as failure:
        publish(changed, dataset=work.dataset, features=work.features, store=work.store)
    row = failure.value.proof.failed[0].rows[0]
    assert failure.value.proof.failed[0].name == SAME
    assert row["column"] == "user_id"
    assert run_day("features", DAY, work).proof is not None


EVENT_ROWS: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = {
    "a row_id a second time, far away": (
        take_from("row_id", 10, 5_000),
        "row_ids are 0, 1, ... without gap or repetition",
    ),
    "a row_id beyond the input": (at(10, row_id=10**12), "row_ids are 0, 1, ... without gap or repetition"),
    "a negative row_id": (at(10, row_id=-1), RANGES),
    "the last row of a block out of order": (
        at(BLOCK_ROWS - 1, user_id=99_999),
        "rows ascend by (user_id, timestamp, row_id)",
    ),
    "the first row of a block out of order": (at(BLOCK_ROWS, user_id=1), "rows ascend by (user_id, timestamp, row_id)"),
    "two rows swapped": (
        lambda frame: frame[[*range(10), 11, 10, *range(12, frame.height)]],
        "rows ascend by (user_id, timestamp, row_id)",
    ),
    "a tie in the wrong order": (
        lambda frame: take_from("timestamp", 4, 3)(at(4, row_id=-1)(frame)),
        "rows ascend by (user_id, timestamp, row_id)",
    ),
    "one row of the day before": (
        lambda frame: at(0, timestamp=frame["timestamp"][0] - timedelta(days=1))(frame),
        "timestamps lie within the day",
    ),
    "an undeclared action in one row": (at(4_321, action="cart"), "actions are declared ones"),
    "an action of another event": (
        lambda frame: at(4_321, action="buy")(at(4_322, action="buy")(frame)),
        "events an action as recorded",
    ),
}


@pytest.mark.parametrize("error", EVENT_ROWS)
def test_errors_in_single_events_are_blocked(work: Work, error: str) -> None:
    change, finding = EVENT_ROWS[error]
    staged, aside, _ = stages._make("events", DAY, work)
    with pytest.raises(ProofFailed) as failure:
        publish(plant(staged, change), companion=aside, dataset=work.dataset, features=work.features, store=work.store)
    assert finding in [found.name for found in failure.value.proof.failed]


def test_what_only_a_sample_proves_is_missed_as_often_as_stated() -> None:
    """A feature besides `core` is proven for sampled users only: 1 - 200 / 3,000 of single wrong users are missed.

    400 days draw 400 samples; a given user lies in each with probability 1/15, so in 26.7 of them, with a standard
    deviation of 5.0. The bounds are four of those away.
    """
    counts = pl.DataFrame({"user_id": range(USERS), "events": [1] * USERS})
    none = counts["user_id"].head(0)
    hits, share = 0, 0.0
    for day in range(400):
        sample = choose_users(counts, seed=str(day), tied=none, at_borders=none, seen_before=counts["user_id"])
        assert sample.random == 200
        share = sample.figures(1)["share_missed_at_5_percent"]
        hits += 1_500 in sample.users
    assert 6 < hits < 67
    assert share == pytest.approx(1 - 0.05 ** (1 / 200), abs=1e-6)


def drop_a_row(block: RawBlock) -> RawBlock:
    keep = pl.Series([row != 5 for row in range(block.frame.height)])
    return replace(
        block, frame=block.frame.filter(keep), line=block.line.filter(keep), malformed=block.malformed.filter(keep)
    )


def read_twice(block: RawBlock) -> RawBlock:
    rows = [0, *range(block.frame.height)]
    return replace(block, frame=block.frame[rows], line=block.line[rows], malformed=block.malformed[rows])


def swap_columns(block: RawBlock) -> RawBlock:
    return replace(block, frame=block.frame.rename({"u": "i", "i": "u"}).select(block.frame.columns))


class _Tampered:
    """A reader that is wrong."""

    def __init__(self, reader: object, change: Callable[[RawBlock], RawBlock]) -> None:
        self._reader, self._change = reader, change

    def __iter__(self) -> Iterator[RawBlock]:
        return (self._change(block) for block in self._reader)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> object:
        return getattr(self._reader, name)


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (drop_a_row, "records counted from the bytes = rows read"),
        (read_twice, "records counted from the bytes = rows read"),
        (swap_columns, "sampled raw records read in plain Python = what was written"),
    ],
)
def test_a_wrong_reader_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[RawBlock], RawBlock], finding: str
) -> None:
    work = make_work(tmp_path)
    right = reading.read_blocks
    monkeypatch.setattr(reading, "read_blocks", lambda *given, **named: _Tampered(right(*given, **named), change))
    with pytest.raises(ProofFailed) as failure:
        run_day("events", DAY, work)
    assert finding in [found.name for found in failure.value.proof.failed]
    assert work.store.manifest("events", DAY) is None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda us: us + 3_600_000_000,  # an hour's shift
        lambda us: (us - MIDNIGHT * 1_000_000) // 1_000 + MIDNIGHT * 1_000_000,  # a wrong unit that stays plausible
        lambda us: us // 60_000_000 * 60_000_000,
    ],
)
def test_wrong_times_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: Callable[[pl.Series], pl.Series]
) -> None:
    work = make_work(tmp_path)
    right = convert.convert_times

    def shifted(*given: object) -> object:
        times = right(*given)  # type: ignore[arg-type]
        return replace(times, us=wrong(times.us))

    monkeypatch.setattr(convert, "convert_times", shifted)
    with pytest.raises(ProofFailed, match="sampled raw records read in plain Python = what was written"):
        run_day("events", DAY, work)

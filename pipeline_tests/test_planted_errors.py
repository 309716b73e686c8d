"""Errors planted where a sample of users may miss them, and between the raw bytes and `events`."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from pipeline import stages
from pipeline.checks import ProofFailed, publish
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


def make_work(folder: Path) -> Work:
    draw = random.Random(3)
    lines = [
        f"{10_000 + user},{draw.randrange(500)},{MIDNIGHT + 3_600 + draw.randrange(70_000)},{draw.choice(['view', 'buy'])}\n"
        for user in range(USERS)
        for _ in range(3)
    ]
    draw.shuffle(lines)
    (folder / "raw.csv").write_text("u,i,t,a\n" + "".join(lines))
    file = folder / "dataset.toml"
    file.write_text(TOML)
    dataset = load_dataset(file)
    return work_of(dataset, run="plant", chunk_rows=4_000, force=True)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    made = make_work(tmp_path_factory.mktemp("population"))
    for asset in STAGES:
        run_day(asset, DAY, made)
    return made


@pytest.fixture(scope="module")
def unsampled_row(work: Work) -> int:
    """The position, in the first file, of the second event of a user whom no sample of the day holds."""
    counts = pl.DataFrame({"user_id": range(10_000, 10_000 + USERS), "events": [3] * USERS})
    none = counts["user_id"].head(0)
    sample = choose_users(counts, seed=str(DAY), tied=none, at_borders=none, seen_before=none)
    manifest = work.store.manifest("features", DAY)
    assert manifest is not None
    first = pl.read_parquet(work.store.directory("features", DAY) / manifest.files[0].path)
    row = next(
        row
        for row in range(900, first.height)
        if first["user_id"][row] not in sample.users and not first["is_first"][row]
    )
    assert sample.users.len() < USERS / 10
    return row


def flip_one_hot(row: int) -> Callable[[pl.DataFrame], pl.DataFrame]:
    def change(frame: pl.DataFrame) -> pl.DataFrame:
        return at(row, action_view=frame["action_buy"][row], action_buy=frame["action_view"][row])(frame)

    return change


UNSAMPLED: dict[str, tuple[Callable[[int], Callable[[pl.DataFrame], pl.DataFrame]], str]] = {
    "one time_diff": (lambda row: at(row, time_diff=7.0), "every time_diff and is_first = shifted timestamps"),
    "one is_first": (lambda row: at(row, is_first=True), "every time_diff and is_first = shifted timestamps"),
    "a swapped user": (lambda row: at(row, user_id=99_999), "same rows as events, in the same order"),
    "a missing row": (lambda row: lambda frame: pl.concat([frame[:row], frame[row + 1 :]]), "as many rows as events"),
    "a doubled row": (lambda row: lambda frame: pl.concat([frame[: row + 1], frame[row:]]), "as many rows as events"),
    "a row for another": (
        lambda row: lambda frame: pl.concat([frame[:row], frame[row - 1 : row], frame[row + 1 :]]),
        "same rows as events, in the same order",
    ),
    "a shifted one-hot": (flip_one_hot, "the one-hot marks the action and nothing else"),
    "an index of another user": (lambda row: at(row, user_index=3), "indices are those of the vocabularies"),
    "an index of another item": (lambda row: at(row, item_index=501), "indices are those of the vocabularies"),
}


@pytest.mark.parametrize("error", UNSAMPLED)
def test_errors_outside_the_sample_are_blocked(work: Work, unsampled_row: int, error: str) -> None:
    change, finding = UNSAMPLED[error]
    staged, _, _ = stages._make("features", DAY, work)
    with pytest.raises(ProofFailed) as failure:
        publish(plant(staged, change(unsampled_row)), dataset=work.dataset, features=work.features, store=work.store)
    failed = [found.name for found in failure.value.proof.failed]
    assert finding in failed
    assert "values of sampled users = the loop" not in failed


def test_what_only_a_sample_proves_is_missed_as_often_as_stated() -> None:
    """A feature besides `core` is proven for sampled users only: 1 - 200 / 3,000 of single wrong users are missed.

    400 days draw 400 samples; a given user lies in each with probability 1/15, so in 26.7 of them, with a standard
    deviation of 5.0. The bounds are four of those away.
    """
    counts = pl.DataFrame({"user_id": range(USERS), "events": [1] * USERS})
    none = counts["user_id"].head(0)
    hits = 0
    for day in range(400):
        sample = choose_users(counts, seed=str(day), tied=none, at_borders=none, seen_before=counts["user_id"])
        assert sample.random == 200
        hits += 1_500 in sample.users
    assert 6 < hits < 67
    assert sample.figures(1)["share_missed_at_5_percent"] == pytest.approx(1 - 0.05 ** (1 / 200), abs=1e-6)


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

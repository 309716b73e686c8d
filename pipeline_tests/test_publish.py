"""Wrong numbers planted between write and proof: each is found, nothing is published, the former version stays."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest

import pipeline
from pipeline import stages
from pipeline.checks import ProofFailed, prove_again, publish
from pipeline.config import load_dataset
from pipeline.stages import STAGES, Work, run_day
from pipeline.store import ContentHash, Staged, file_sha256, row_hash_sum, scan
from pipeline.store.parquet import write_file
from pipeline_tests.works import work_of

START = date(2024, 3, 1)
LAST = date(2024, 3, 3)
TOML = """
name = "planted"
[partitions]
start = "2024-03-01"
end = "2024-03-03"
[source]
path = "raw/{date}.csv"
[columns]
user_id = { from = "u", type = "int64" }
item_id = { from = "i", type = "string" }
timestamp = { from = "t", unit = "s" }
action = { from = "a" }
[actions]
names = ["view", "buy"]
[store]
root = "store"
"""
Change = Callable[[pl.DataFrame], pl.DataFrame]


def make_work(tmp_path: Path) -> Work:
    """Three days: 40 users on the first two, of whom 10 come back on the third beside 5 new ones."""
    (tmp_path / "raw").mkdir()
    for number, users in enumerate([range(40), range(40), [*range(10), *range(100, 105)]]):
        midnight = 1_709_251_200 + 86_400 * number
        lines = [
            f"{user},item{(user + k) % 7},{midnight + 100 * k + user},{'buy' if k == 2 else 'view'}\n"
            for k in range(4)
            for user in users
        ]
        (tmp_path / "raw" / f"{START + timedelta(days=number)}.csv").write_text("u,i,t,a\n" + "".join(lines))
    file = tmp_path / "dataset.toml"
    file.write_text(TOML)
    dataset = load_dataset(file)
    return work_of(dataset, run="first", chunk_rows=30)


@pytest.fixture
def work(tmp_path: Path) -> Work:
    """All three days, made."""
    made = make_work(tmp_path)
    for asset in STAGES:
        for number in range(3):
            run_day(asset, START + timedelta(days=number), made)
    return replace(made, run="second", force=True)


def plant(staged: Staged, change: Change, *, role: str | None = None, place: int = 0) -> Staged:
    """Rewrites a file of a staged version, with all recorded hashes as if the error had been computed."""
    manifest = staged.manifest
    file = manifest.of_role(role)[place]
    path = staged.directory / file.path
    wrong = change(pl.read_parquet(path))
    path.unlink()  # it may be a file of the day before as well
    write_file(wrong, path)
    changed = replace(file, rows=wrong.height, bytes=path.stat().st_size, sha256=file_sha256(path))
    files = [changed if entry is file else entry for entry in manifest.files]
    frames = [pl.read_parquet(staged.directory / entry.path) for entry in files if entry.role == role]
    whole = ContentHash()
    for frame in frames:
        whole.update(frame)
    version: object = whole.hexdigest()
    rows, counts = sum(entry.rows for entry in files if entry.role == role), manifest.counts
    if role is not None:
        assert not isinstance(manifest.content_version, str)
        value = whole.hexdigest()
        if role == "closing":
            latest = pl.concat(frames).unique("user_id", keep="last", maintain_order=True)
            value, counts = f"{row_hash_sum(latest):032x}", {**counts, "closing_rows": latest.height}
        version, rows = {**manifest.content_version, role: value}, manifest.rows
    return replace(staged, manifest=replace(manifest, files=files, rows=rows, content_version=version, counts=counts))


def at(row: int, **values: object) -> Change:
    """Changes some values of one row."""

    def change(frame: pl.DataFrame) -> pl.DataFrame:
        here = pl.int_range(pl.len()) == row
        return frame.with_columns(
            pl.when(here).then(pl.lit(value, dtype=frame.schema[name])).otherwise(name).alias(name)
            for name, value in values.items()
        )

    return change


def swap_users(frame: pl.DataFrame) -> pl.DataFrame:
    users = frame["user_id"].unique().sort()[:2].to_list()
    return frame.with_columns(pl.col("user_id").replace({users[0]: users[1], users[1]: users[0]}))


def shift_one_hot(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.rename({"action_view": "action_buy", "action_buy": "action_view"}).select(frame.columns)


FEATURE_ERRORS: dict[str, tuple[Change, str]] = {
    "one time_diff": (at(7, time_diff=1.5), "values of sampled users = the loop"),
    "a time_diff one float off": (
        lambda frame: at(5, time_diff=float(frame["time_diff"][5]) * (1 + 2**-23))(frame),
        "values of sampled users = the loop",
    ),
    "two users swapped": (swap_users, "same rows as events, in the same order"),
    "a missing row": (lambda frame: frame[1:], "as many rows as events"),
    "a doubled row": (lambda frame: pl.concat([frame[:1], frame]), "as many rows as events"),
    "two rows swapped": (
        lambda frame: frame[[1, 0, *range(2, frame.height)]],
        "same rows as events, in the same order",
    ),
    "one-hot shifted": (shift_one_hot, "the one-hot marks the action and nothing else"),
    "two hot": (at(3, action_view=1, action_buy=1), "the one-hot marks the action and nothing else"),
    "index of another user": (at(7, user_index=2), "indices are those of the vocabularies"),
    "index of another item": (
        lambda f: at(3, item_index=2 + f["item_index"][3] % 7)(f),
        "indices are those of the vocabularies",
    ),
    "is_first turned round": (
        lambda frame: frame.with_columns(is_first=~pl.col("is_first")),
        "is_first = users without opening",
    ),
    "NaN": (at(4, time_diff=float("nan")), "values are within their declared ranges"),
    "negative": (at(4, time_diff=-1.0), "values are within their declared ranges"),
    "a column of another type": (
        lambda frame: frame.with_columns(pl.col("user_index").cast(pl.Float32)),
        "columns are as declared",
    ),
    "an undeclared column": (lambda frame: frame.with_columns(x=pl.lit(1)), "columns are as declared"),
    "a column that is gone": (lambda frame: frame.drop("time_diff"), "columns are as declared"),
}


def published(work: Work, asset: str) -> pl.DataFrame:
    return scan(work.store.root, asset, START, LAST).collect()


@pytest.mark.parametrize("error", FEATURE_ERRORS)
def test_wrong_features_are_not_published(work: Work, error: str) -> None:
    change, finding = FEATURE_ERRORS[error]
    before = published(work, "features")
    staged, _, _ = stages._make("features", LAST, work)
    with pytest.raises(ProofFailed) as failure:
        publish(plant(staged, change), dataset=work.dataset, features=work.features, store=work.store)
    assert finding in [found.name for found in failure.value.proof.failed]
    assert "features of 2024-03-03 was proven wrong and is not published" in str(failure.value)
    assert published(work, "features").equals(before)
    assert (work.store.root / "_failed" / "second" / "features" / "day=2024-03-03").is_dir()
    left = {path.name for path in staged.directory.iterdir()}
    assert not {file.path for file in staged.manifest.files} & left


def test_a_proof_that_stumbles_publishes_nothing(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*_: object) -> None:
        raise KeyError("row")

    staged, _, _ = stages._make("features", LAST, work)
    monkeypatch.setattr(import_module("pipeline.checks.publish"), "prove_features", stumble)
    with pytest.raises(ProofFailed, match="the proof can be carried out: expected no error, found KeyError: 'row'"):
        publish(staged, dataset=work.dataset, features=work.features, store=work.store)
    assert (work.store.root / "_failed" / "second" / "features" / "day=2024-03-03").is_dir()


def test_the_first_rows_that_differ_are_told(work: Work) -> None:
    staged, _, _ = stages._make("features", LAST, work)
    with pytest.raises(ProofFailed) as failure:
        publish(plant(staged, at(7, time_diff=1.5)), dataset=work.dataset, features=work.features, store=work.store)
    rows = failure.value.proof.failed[0].rows
    assert rows[0] == {"user_id": 1, "row_id": 46, "column": "time_diff", "expected": 100.0, "found": 1.5}


STATE_ERRORS: dict[str, tuple[str, int, Change, str]] = {
    "absent users forgotten": (
        "closing",
        1,
        lambda frame: frame.head(12),
        "version of closing = yesterday's, without the rows that left, with those that came",
    ),
    "an absent user changed": (
        "closing",
        1,
        at(20, **{"history_position.events": 9}),
        "closing of users absent today is unchanged",
    ),
    "a present user not carried on": (
        "closing",
        2,
        at(0, **{"history_position.events": 8}),
        "closing = the loop from opening over the day",
    ),
    "a present user forgotten": (
        "closing",
        2,
        lambda frame: frame[:-1],
        "closing has a row for every user of the day",
    ),
    "a user invented": (
        "closing",
        2,
        lambda frame: pl.concat([frame, frame[-1:].with_columns(user_id=pl.lit(999, dtype=pl.Int64))]),
        "rows of closing = yesterday's + users without opening",
    ),
    "an opening invented": (
        "opening",
        0,
        at(0, **{"history_position.events": 7}),
        "opening = yesterday's closing of the day's users",
    ),
    "an opening lost": ("opening", 0, lambda frame: frame[1:], "opening = yesterday's closing of the day's users"),
    "a user twice": (
        "closing",
        0,
        lambda frame: pl.concat([frame[:1], frame]),
        "closing ascends by user_id, one row a user",
    ),
}


@pytest.mark.parametrize("error", STATE_ERRORS)
def test_wrong_state_is_not_published(work: Work, error: str) -> None:
    role, place, change, finding = STATE_ERRORS[error]
    before = work.store.manifest("user_state", LAST)
    staged, _, _ = stages._make("user_state", LAST, work)
    wrong = plant(staged, change, role=role, place=place)
    with pytest.raises(ProofFailed) as failure:
        publish(wrong, dataset=work.dataset, features=work.features, store=work.store)
    assert finding in [found.name for found in failure.value.proof.failed]
    assert work.store.manifest("user_state", LAST) == before


EVENT_ERRORS: dict[str, tuple[Change, str]] = {
    "a lost row": (lambda frame: frame[1:], "rows in = accepted + rejected"),
    "a row twice": (lambda frame: pl.concat([frame[:1], frame]), "row_ids are 0, 1, ... without gap or repetition"),
    "rows out of order": (lambda frame: frame.reverse(), "rows ascend by (user_id, timestamp, row_id)"),
    "a row of tomorrow": (
        lambda frame: frame.with_columns(pl.col("timestamp") + timedelta(days=1)),
        "timestamps lie within the day",
    ),
    "an undeclared action": (lambda frame: frame.with_columns(action=pl.lit("cart")), "actions are declared ones"),
    "a null": (at(0, item_id=None), "values are within their declared ranges"),
}


@pytest.mark.parametrize("error", EVENT_ERRORS)
def test_wrong_events_are_not_published(work: Work, error: str) -> None:
    change, finding = EVENT_ERRORS[error]
    former = [work.store.manifest(asset, LAST) for asset in ("events", "rejected_events")]
    staged, companion, _ = stages._make("events", LAST, work)
    with pytest.raises(ProofFailed) as failure:
        publish(
            plant(staged, change), companion=companion, dataset=work.dataset, features=work.features, store=work.store
        )
    assert finding in [found.name for found in failure.value.proof.failed]
    assert [work.store.manifest(asset, LAST) for asset in ("events", "rejected_events")] == former


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("values", "finding"),
    [
        ({"file": f"raw/{START}.csv"}, "refused rows name the file in which they stand"),
        ({"reason": "view"}, "reasons are those of the closed list"),
    ],
)
def test_wrong_refused_rows_are_not_published(
    work: Work, shared: bool, values: dict[str, object], finding: str
) -> None:
    log = work.dataset.directory / "raw" / f"{LAST}.csv"
    log.write_text(log.read_text() + "7,item1,never,view\n" + log.read_text().splitlines()[1] + "\n")
    quality = work.dataset.quality.model_copy(update={"max_rejected_share": 1.0})
    source = work.dataset.source.model_copy(update={"path": "raw/*.csv"} if shared else {})
    dataset = work.dataset.model_copy(update={"quality": quality, "source": source})
    work = replace(work, dataset=dataset)
    staged, companion, _ = stages._make("events", LAST, work)
    assert companion is not None
    wrong = plant(companion, at(0, **values))
    inputs = {**staged.manifest.inputs, "rejected_events": wrong.manifest.version()}
    staged = replace(staged, manifest=replace(staged.manifest, inputs=inputs))
    with pytest.raises(ProofFailed) as failure:
        publish(staged, companion=wrong, dataset=dataset, features=work.features, store=work.store)
    assert finding in [found.name for found in failure.value.proof.failed]
    assert run_day("events", LAST, work).manifest.counts["rejected"] == {"malformed_timestamp": 1}


def test_a_wrong_segment_never_enters_the_log(work: Work) -> None:
    vocabulary = "user_vocabulary"
    log = work.store.root / vocabulary / "_log"
    shutil.rmtree(work.store.directory(vocabulary, LAST))
    (log / "00000001.parquet").unlink()  # so that the third day finds new ids again
    shutil.rmtree(work.store.root / vocabulary / "_index")  # which knows how long the log was
    segments = sorted(path.name for path in log.iterdir())
    work.store.remembered.clear()
    staged, _, segment = stages._make(vocabulary, LAST, work)
    assert segment is not None
    pl.read_parquet(segment.path).with_columns(pl.col("index") + 1).write_parquet(segment.path)
    with pytest.raises(ProofFailed, match="new indices go on where the log ends"):
        publish(staged, segment=segment, dataset=work.dataset, features=work.features, store=work.store)
    assert sorted(path.name for path in log.iterdir()) == segments


def test_a_file_damaged_on_disk_is_found_again(work: Work) -> None:
    manifest = work.store.manifest("features", LAST)
    assert manifest is not None
    path = work.store.directory("features", LAST) / manifest.files[0].path
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    proof = prove_again("features", LAST, dataset=work.dataset, features=work.features, store=work.store)
    assert [found.name for found in proof.failed] == ["files of features have their recorded checksums"]
    os.utime(path)


@pytest.mark.parametrize("asset", STAGES)
def test_what_was_published_is_proven_again(work: Work, asset: str) -> None:
    for deep in (False, True):
        proof = prove_again(asset, LAST, dataset=work.dataset, features=work.features, store=work.store, deep=deep)
        assert proof.passed
        assert len(proof.findings) >= 6


def test_only_publish_commits() -> None:
    """`store.commit` has one caller in the whole package."""
    package = Path(pipeline.__file__).parent
    callers = [path for path in package.rglob("*.py") if ".commit(" in path.read_text(encoding="utf-8")]
    assert [path.relative_to(package).as_posix() for path in callers] == ["checks/publish.py"]

"""`user_state` over many days: made day by day, made again, wiped and killed, it is what the whole history gives."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from unittest import mock

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeline.checks import ProofFailed, prove_again, publish
from pipeline.contracts import PipelineError
from pipeline.stages import Work, _make, run_day
from pipeline.state import closing, make
from pipeline.store import Currency, Store, latest_rows, manifest_schema, row_hash_sum, scan
from pipeline_tests.datasets import make_dataset
from pipeline_tests.test_publish import at, plant
from pipeline_tests.works import work_of

START = date(2024, 1, 1)
MEMORY_DISK = Path("/dev/shm")
Day = list[tuple[int, int]]  # user, second


def day_of(number: int) -> date:
    return START + timedelta(days=number)


def write_raw(folder: Path, number: int, day: Day) -> None:
    midnight = int(datetime.combine(day_of(number), datetime.min.time(), tzinfo=UTC).timestamp())
    lines = [f"{user},item,{midnight + second},view\n" for user, second in day]
    (folder / "raw").mkdir(exist_ok=True)
    (folder / "raw" / f"{day_of(number)}.csv").write_text("user,item,time,event\n" + "".join(lines))


def work_in(folder: Path, days: list[Day], *, user_type: str = "int64") -> Work:
    """Raw files of some days, and a run over them."""
    for number, day in enumerate(days):
        write_raw(folder, number, day)
    dataset = make_dataset(
        folder,
        partitions={"start": START.isoformat(), "end": day_of(len(days) - 1).isoformat()},
        columns={"user_id": {"from": "user", "type": user_type}},
    )
    return work_of(dataset, run="first")


def make_days(work: Work, numbers: range) -> None:
    for asset in ("events", "user_state"):
        for number in numbers:
            run_day(asset, day_of(number), work)


def by_hand(days: list[Day], user_type: str) -> dict[object, tuple[int, int]]:
    """user -> (latest time in us, events), by a loop over everything."""
    found: dict[object, tuple[int, int]] = {}
    for number, day in enumerate(days):
        midnight = int(datetime.combine(day_of(number), datetime.min.time(), tzinfo=UTC).timestamp())
        for user, second in sorted(day, key=lambda event: event[1]):
            key = str(user) if user_type == "string" else user
            _, events = found.get(key, (0, 0))
            found[key] = ((midnight + second) * 1_000_000, events + 1)
    return found


def closing_of(work: Work, number: int) -> pl.DataFrame:
    manifest = work.store.manifest("user_state", day_of(number))
    assert manifest is not None
    folder = work.store.directory("user_state", day_of(number))
    return latest_rows(folder, manifest.of_role("closing"), manifest_schema(manifest)).collect()


def agrees(work: Work, days: list[Day], user_type: str) -> None:
    """`closing` of the last day holds what the loop gives, its version is that of its rows, and its proofs pass."""
    last = day_of(len(days) - 1)
    found = closing_of(work, len(days) - 1)
    rows = {user: (us, events) for user, us, events in found.iter_rows()}
    assert found.columns == ["user_id", "core.last_timestamp_us", "history_position.events"]
    assert rows == by_hand(days, user_type)
    assert found["user_id"].to_list() == sorted(
        rows, key=lambda user: str(user).encode() if user_type == "string" else user
    )
    manifest = work.store.manifest("user_state", last)
    assert manifest is not None
    assert manifest.version("closing") == f"{row_hash_sum(found):032x}"
    assert manifest.counts["closing_rows"] == found.height
    assert scan(work.store.root, "user_state", last, last, role="closing").drop("day").collect().equals(found)
    for deep in (False, True):
        proof = prove_again(
            "user_state", last, dataset=work.dataset, features=work.features, store=work.store, deep=deep
        )
        assert proof.passed, proof.sentence()


few = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 86_399)), max_size=4)
histories = st.lists(few, min_size=2, max_size=9)
BUSY = [[(user, 60 * user + day) for user in range(1 + day % 3, 12, 1 + day % 2)] for day in range(9)]


@example(days=BUSY, other=[(3, 5), (40, 6)], again=0, wiped=None, user_type="int64", file_users=1 << 22)
@example(days=BUSY, other=[(3, 5), (40, 6)], again=3, wiped=5, user_type="string", file_users=2)
@example(days=[*BUSY[:4], [], [], *BUSY[6:]], other=[], again=4, wiped=4, user_type="int64", file_users=3)
@given(
    days=histories,
    other=few,
    again=st.integers(0, 8),
    wiped=st.none() | st.integers(0, 8),
    user_type=st.sampled_from(["int64", "string"]),
    file_users=st.sampled_from([1, 3, 1 << 22]),
)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_days_made_again_or_wiped_give_what_the_whole_history_gives(
    days: list[Day], other: Day, again: int, wiped: int | None, user_type: str, file_users: int
) -> None:
    """First with other rows on one day, then with the right ones; one partition is deleted in between."""
    again %= len(days)
    with (
        tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as name,
        mock.patch.object(closing, "LIKE_FILES", 2),
        mock.patch.object(closing, "GROUPS_AT_ONCE", 1),
        mock.patch.object(make, "GROUP_ROWS", 2),
        mock.patch.object(make, "FILE_USERS", file_users),
    ):
        work = work_in(
            Path(name), [other if number == again else day for number, day in enumerate(days)], user_type=user_type
        )
        make_days(work, range(len(days)))
        agrees(work, [other if number == again else day for number, day in enumerate(days)], user_type)
        write_raw(Path(name), again, days[again])
        if wiped is not None:
            shutil.rmtree(work.store.directory("user_state", day_of(wiped % len(days))))
        make_days(replace(work, run="second", store=Store(work.store.root)), range(len(days)))
        agrees(work, days, user_type)


@pytest.fixture
def work(tmp_path: Path) -> Work:
    """Six days: 30 users on the first, then 10 a day, of whom some are new, and a day without rows."""
    days = [
        [(user, user) for user in range(30)],
        *([(user, 9) for user in range(5 * day, 5 * day + 10)] for day in range(1, 5)),
        [],
    ]
    made = work_in(tmp_path, days)
    make_days(made, range(6))
    return made


def files_of(work: Work, number: int) -> list[int]:
    manifest = work.store.manifest("user_state", day_of(number))
    assert manifest is not None
    return [file.rows for file in manifest.of_role("closing")]


def test_a_day_writes_its_own_users_and_takes_the_rest_over(work: Work) -> None:
    assert [files_of(work, number) for number in range(6)] == [
        [30],
        [30, 10],
        [30, 10, 10],
        [30, 10, 10, 10],
        [30, 10, 10, 10, 10],
        [30, 10, 10, 10, 10],  # a day without rows merges nothing
    ]
    inodes = set()
    for number in range(6):
        folder = work.store.directory("user_state", day_of(number))
        manifest = work.store.manifest("user_state", day_of(number))
        assert manifest is not None
        inodes |= {(folder / file.path).stat().st_ino for file in manifest.of_role("closing")}
    assert len(inodes) == 5  # what is taken over takes no room


def test_files_of_like_size_become_one(work: Work) -> None:
    write_raw(work.dataset.root.parent, 5, [(1, 1)])
    again = replace(work, run="again", store=Store(work.store.root))
    outcome = [run_day(asset, day_of(5), again) for asset in ("events", "user_state")][1]
    assert files_of(again, 5) == [30, 25, 1]
    assert outcome.proof is not None
    names = [finding.name for finding in outcome.proof.findings]
    assert "a merged file holds the latest rows of those that it replaces" in names
    assert "version of closing is the sum over its rows" not in names  # that takes all of history


def test_a_wrong_merge_is_not_published(work: Work) -> None:
    write_raw(work.dataset.root.parent, 5, [(1, 1)])
    again = replace(work, run="again", store=Store(work.store.root))
    run_day("events", day_of(5), again)
    staged, _, _ = _make("user_state", day_of(5), again)
    wrong = plant(staged, at(4, **{"history_position.events": 77}), role="closing", place=1)
    wrong = replace(wrong, manifest=replace(wrong.manifest, content_version=staged.manifest.content_version))
    with pytest.raises(ProofFailed, match="a merged file holds the latest rows of those that it replaces: expected"):
        publish(wrong, dataset=again.dataset, features=again.features, store=again.store)


def test_a_deleted_day_takes_nothing_from_later_ones(work: Work) -> None:
    before = closing_of(work, 5)
    shutil.rmtree(work.store.directory("user_state", START))
    assert closing_of(work, 5).equals(before)
    assert Currency(work.store).problem("user_state", day_of(5)) == f"user_state of {START} is missing"
    again = replace(work, store=Store(work.store.root), run="again")
    run_day("user_state", START, again)
    assert Currency(again.store).problem("user_state", day_of(5)) is None
    assert run_day("user_state", day_of(5), again).reused
    assert closing_of(again, 5).equals(before)


def test_a_file_that_is_gone_is_named(work: Work) -> None:
    manifest = work.store.manifest("user_state", day_of(3))
    assert manifest is not None
    gone = work.store.directory("user_state", day_of(3)) / manifest.of_role("closing")[0].path
    gone.unlink()
    with pytest.raises(PipelineError, match=f"{gone.name}: the file is missing; make this day again"):
        run_day("user_state", day_of(4), replace(work, force=True))
    run_day("user_state", day_of(3), replace(work, force=True, run="again"))
    assert run_day("user_state", day_of(4), replace(work, force=True, run="again")).proof is not None


def test_a_footer_that_changed_on_disk_publishes_nothing(work: Work) -> None:
    """What a row group says of its users has no checksum of its own: user 25 would be taken for new."""
    manifest = work.store.manifest("user_state", day_of(4))
    assert manifest is not None
    shared = work.store.directory("user_state", day_of(4)) / manifest.of_role("closing")[0].path
    highest, lower = ((29).to_bytes(8, "little"), (20).to_bytes(8, "little"))
    stored = shared.read_bytes()
    assert stored.count(highest) > 0
    with shared.open("r+b") as file:  # in place: the days before have the same file
        file.write(stored.replace(highest, lower))
    write_raw(work.dataset.root.parent, 5, [(25, 1)])
    again = replace(work, run="again", store=Store(work.store.root))
    run_day("events", day_of(5), again)
    with pytest.raises(ProofFailed, match="files of yesterday's closing have their recorded checksums"):
        run_day("user_state", day_of(5), again)


def test_where_there_are_no_links_files_are_copied(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    before = closing_of(work, 4)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patched:
        patched.setattr("pipeline.store.staging.os.link", refuse)
        run_day("user_state", day_of(4), replace(work, force=True, run="copies"))
    assert closing_of(work, 4).equals(before)
    assert files_of(work, 4) == [30, 10, 10, 10, 10]


def test_a_version_in_use_is_not_swept_and_an_old_one_is(work: Work) -> None:
    """The day is made again; what was taken over from its former version stays with the days that took it."""
    folder = work.store.directory("user_state", day_of(1))
    former = {path.name for path in folder.glob("*.parquet")}
    run_day("user_state", day_of(1), replace(work, force=True, run="again"))
    assert former <= {path.name for path in folder.iterdir()}  # young until readers are done with it
    long_ago = time.time() - 25 * 3600
    for path in folder.glob("*.parquet"):
        os.utime(path, (long_ago, long_ago))
    manifest = work.store.manifest("user_state", day_of(1))
    assert manifest is not None
    assert set(work.store.sweep("user_state", day_of(1), keep_hours=24)) == former
    assert {path.name for path in folder.glob("*.parquet")} == {file.path for file in manifest.files}
    for number in range(6):
        proof = prove_again(
            "user_state", day_of(number), dataset=work.dataset, features=work.features, store=work.store
        )
        assert proof.passed, proof.sentence()


def test_a_link_is_young_while_its_day_is_on_its_way(work: Work) -> None:
    """Another run that publishes the same day must not sweep what this one is about to name."""
    long_ago = time.time() - 25 * 3600
    for path in work.store.root.glob("user_state/day=*/*.parquet"):
        os.utime(path, (long_ago, long_ago))
    staged, _, _ = _make("user_state", day_of(4), replace(work, run="slow"))
    run_day("user_state", day_of(4), replace(work, force=True, run="fast"))
    published = publish(staged, dataset=work.dataset, features=work.features, store=work.store)
    assert published is not None
    folder = work.store.directory("user_state", day_of(4))
    assert all((folder / file.path).exists() for file in published.manifest.files)


KILLED = """
import sys, time
from datetime import date
from pathlib import Path
from pipeline.config import load_dataset
from pipeline.stages import run_day
from pipeline.store import Store, staging
from pipeline_tests.works import work_of

point = sys.argv[2]

def stop(*_, **__):
    print("here", flush=True)
    time.sleep(60)

if point == "links":
    staging.Staging.write_blocks = stop
elif point == "files":
    staging.Staging.finish = stop
elif point == "manifest":
    Store.commit = stop
work = work_of(load_dataset(Path(sys.argv[1]) / "dataset.toml"), run="killed", force=True)
run_day("user_state", date(2024, 1, 5), work)
"""


@pytest.mark.parametrize("point", ["links", "files", "manifest"])
def test_kill_minus_nine(work: Work, point: str) -> None:
    """Whenever it dies, readers see the former version; the day is then made as ever, and what was left is swept."""
    before, manifest = closing_of(work, 5), work.store.manifest("user_state", day_of(4))
    command = [sys.executable, "-c", KILLED, str(work.dataset.root.parent), point]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.kill()
    folder = work.store.directory("user_state", day_of(4))
    left = {path.name for path in folder.glob("killed-*.parquet")}
    assert left
    fresh = replace(work, store=Store(work.store.root), run="then")
    assert fresh.store.manifest("user_state", day_of(4)) == manifest
    assert closing_of(fresh, 5).equals(before)
    run_day("user_state", day_of(4), replace(fresh, force=True))
    long_ago = time.time() - 25 * 3600
    for name in left:
        os.utime(folder / name, (long_ago, long_ago))
    assert left <= set(fresh.store.sweep("user_state", day_of(4), keep_hours=24))
    assert closing_of(fresh, 5).equals(before)
    proof = prove_again("user_state", day_of(5), dataset=work.dataset, features=work.features, store=fresh.store)
    assert proof.passed

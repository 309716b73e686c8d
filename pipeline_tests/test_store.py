"""The store: the public layout to the letter, atomic commits, and what readers refuse."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.config import Dataset
from pipeline.contracts import Column, PipelineError
from pipeline.store import ContentHash, Currency, Recipe, Staged, Store, require_current, safe_run, scan
from pipeline_tests.datasets import at, make_dataset, make_events_of, make_store, make_vocabulary_of, row, table

FIRST, SECOND, THIRD = date(2020, 1, 1), date(2020, 1, 2), date(2020, 1, 3)
COLUMN = [Column("x", "int64", unit="s", meaning="a number")]


def staged_day(
    store: Store,
    values: list[int],
    *,
    asset: str = "events",
    day: date = FIRST,
    run: str = "run",
    inputs: Mapping[str, str] | None = None,
    code: Mapping[str, int] | None = None,
    columns: list[Column] | None = None,
) -> Staged:
    """A small version of a day with one column x; its content version is that of the values."""
    frame = pl.DataFrame({"x": values}, schema={"x": pl.Int64})
    content = ContentHash()
    content.update(frame)
    with store.stage(asset, day, run=run) as staging:
        if values:
            staging.write(frame)
        return staging.finish(
            rows=len(values),
            columns=columns or COLUMN,
            recipe=Recipe(config={"a": 1}, code=code or {asset: 1}, inputs=inputs or {}),
            content_version=content.hexdigest(),
            counts={},
            facts={},
        )


def publish(store: Store, values: list[int], **options: Any) -> str:
    """Commits `staged_day` and gives its version."""
    return store.commit(staged_day(store, values, **options), proof={}).version()


def values(store: Store, asset: str = "events", day: date = FIRST) -> list[int]:
    return table(store, asset, day.isoformat())["x"].to_list()


def tiny(folder: Path, **overrides: Any) -> Dataset:
    return make_dataset(
        folder, days={"2020-01-01": [row(1, "a", at("2020-01-01")), row(2, "b", at("2020-01-01"))]}, **overrides
    )


# --- the public layout -------------------------------------------------------------------------------------------


def test_the_manifest_is_laid_out_as_the_contract_says(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    staged = staged_day(store, [1, 2], run="run-7", inputs={"raw_logs/a.csv": "0abc"}, code={"events": 3})
    assert not (tmp_path / "out/events/day=2020-01-01/_manifest.json").exists()
    store.commit(staged, proof={"run": "run-7", "time": "2020-01-02T00:00:00+00:00", "figures": {"rows": 2}})
    folder = tmp_path / "out" / "events" / "day=2020-01-01"
    content = (folder / "run7-0.parquet").read_bytes()
    assert json.loads((folder / "_manifest.json").read_text()) == {
        "format": 1,
        "asset": "events",
        "day": "2020-01-01",
        "rows": 2,
        "files": [
            {"path": "run7-0.parquet", "rows": 2, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        ],
        "columns": [{"name": "x", "type": "int64", "unit": "s", "meaning": "a number"}],
        "config": {"a": 1},
        "code": {"events": 3},
        "inputs": {"raw_logs/a.csv": "0abc"},
        "content_version": staged.manifest.version(),
        "counts": {},
        "proof": {"run": "run-7", "time": "2020-01-02T00:00:00+00:00", "figures": {"rows": 2}},
    }
    assert sorted(path.name for path in folder.iterdir()) == ["_manifest.json", "run7-0.parquet"]
    assert pl.read_parquet(folder / "run7-0.parquet")["x"].to_list() == [1, 2]


def test_the_manifests_of_a_real_day(tmp_path: Path) -> None:
    dataset = tiny(tmp_path)
    store = make_store(dataset)
    make_events_of(dataset, store, "2020-01-01")
    events, rejected = (
        json.loads((tmp_path / "out" / asset / "day=2020-01-01" / "_manifest.json").read_text())
        for asset in ("events", "rejected_events")
    )
    raw = (tmp_path / "raw" / "2020-01-01.csv").read_bytes()
    assert events["raw_files"] == [
        {
            "path": "raw/2020-01-01.csv",
            "bytes": len(raw),
            "mtime_ns": (tmp_path / "raw" / "2020-01-01.csv").stat().st_mtime_ns,
            "sha256": hashlib.sha256(raw).hexdigest(),
            "rows": 2,
        }
    ]
    assert events["inputs"] == {
        "raw_logs/raw/2020-01-01.csv": hashlib.sha256(raw).hexdigest(),
        "rejected_events": rejected["content_version"],
    }
    assert (rejected["rows"], rejected["files"]) == (0, [])
    assert [column["name"] for column in events["columns"]] == ["row_id", "user_id", "item_id", "timestamp", "action"]
    assert not {"compute", "store", "dagster"} & events["config"].keys(), "these cannot change a value"


def test_roles_are_written_beside_the_files(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.stage("user_state", FIRST, run="r") as staging:
        staging.write(pl.DataFrame({"x": [1]}), role="opening")
        staging.write(pl.DataFrame({"x": [1, 2]}), role="closing")
        staged = staging.finish(
            rows=1, columns=COLUMN, recipe=Recipe({}, {}, {}), content_version={"opening": "o", "closing": "c"}, counts={}, facts={}
        )  # fmt: skip
    store.commit(staged, proof={})
    manifest = store.manifest("user_state", FIRST)
    assert manifest is not None
    assert [(file.path, file.role) for file in manifest.files] == [
        ("r-0.parquet", "opening"),
        ("r-1.parquet", "closing"),
    ]
    assert (manifest.version("opening"), manifest.version("closing")) == ("o", "c")
    assert scan(tmp_path, "user_state", FIRST, FIRST, role="closing").collect()["x"].to_list() == [1, 2]
    assert scan(tmp_path, "user_state", FIRST, FIRST, role="opening").collect()["x"].to_list() == [1]


def test_the_same_rows_give_the_same_bytes_and_another_name(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first, second = (staged_day(store, list(range(5000)), run=run).manifest.files[0] for run in ("a", "b"))
    assert first.path != second.path
    assert (first.sha256, first.bytes) == (second.sha256, second.bytes)


def test_a_manifest_of_another_format_or_in_pieces_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store, [1])
    path = tmp_path / "events" / "day=2020-01-01" / "_manifest.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(
        PipelineError, match=r"_manifest.json: found manifest format 2, expected 1; use the release that wrote it$"
    ):
        store.manifest("events", FIRST)
    path.write_text("{")
    with pytest.raises(
        PipelineError, match=r"_manifest.json: the manifest cannot be read \(.*\); make this day again$"
    ):
        store.manifest("events", FIRST)


# --- what no manifest names does not exist -----------------------------------------------------------------------


def test_nothing_is_visible_before_the_commit_and_all_of_it_after(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store, [1, 2])
    staged = staged_day(store, [3], run="other")
    assert values(store) == [1, 2]
    assert store.days("events") == [FIRST]
    store.commit(staged, proof={})
    assert values(store) == [3]
    assert values(Store(tmp_path)) == [3]


def test_a_reader_who_began_before_a_commit_reads_on(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store, [1, 2])
    begun = scan(tmp_path, "events", FIRST, FIRST)
    publish(store, [3], run="other")
    store.sweep("events", FIRST, keep_hours=24)
    assert begun.collect()["x"].to_list() == [1, 2]


def test_what_was_replaced_just_now_is_not_swept_however_old_it_is(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store, [1, 2])
    begun = scan(tmp_path, "events", FIRST, FIRST)
    os.utime(tmp_path / "events/day=2020-01-01/run-0.parquet", (1, 1))
    publish(store, [3], run="other")
    assert store.sweep("events", FIRST, keep_hours=24) == []
    assert begun.collect()["x"].to_list() == [1, 2]


def test_names_are_never_used_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    names = [staged_day(store, [number], run="same").manifest.files[0].path for number in range(4)]
    assert names == ["same-0.parquet", "same-1.parquet", "same-2.parquet", "same-3.parquet"]
    # Names that look alike once the run is made safe do not overwrite each other either.
    assert staged_day(store, [9], run="sa/me").manifest.files[0].path == "same-4.parquet"
    assert [pl.read_parquet(tmp_path / "events/day=2020-01-01" / name)["x"][0] for name in names] == [0, 1, 2, 3]


def test_an_error_takes_the_files_along(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store, [1])

    def write_and_fail() -> None:
        with store.stage("events", FIRST, run="bad") as staging:
            staging.write(pl.DataFrame({"x": [2]}))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    assert sorted(path.name for path in (tmp_path / "events/day=2020-01-01").iterdir()) == [
        "_manifest.json",
        "run-0.parquet",
    ]


KILLED = """
import os, sys, time
from datetime import date
from pathlib import Path
import polars as pl
from pipeline.contracts import Column
from pipeline.store import Recipe, Store, lake

store, point = Store(Path(sys.argv[1])), sys.argv[2]

def stop(*_, **__):
    print("here", flush=True)
    time.sleep(60)

if point == "between write and commit":
    at_commit = stop
elif point == "manifest written, not renamed":
    Path.replace = stop
elif point == "in the middle of the manifest":
    def half(path, content):
        path.write_bytes(content[: len(content) // 2])
        stop()
    lake.write_synced = half
with store.stage("events", date(2020, 1, 1), run="killed") as staging:
    staging.write(pl.DataFrame({"x": [7, 8]}))
    if point == "between two files":
        stop()
    staged = staging.finish(rows=2, columns=[Column("x", "int64")], recipe=Recipe({}, {}, {}), content_version="v", counts={}, facts={})
if point == "between write and commit":
    stop()
store.commit(staged, proof={})
if point == "after the commit":
    stop()
"""


@pytest.mark.parametrize(
    ("point", "then"),
    [
        ("between two files", [1]),
        ("between write and commit", [1]),
        ("in the middle of the manifest", [1]),
        ("manifest written, not renamed", [1]),
        ("after the commit", [7, 8]),
    ],
)
def test_kill_minus_nine(tmp_path: Path, point: str, then: list[int]) -> None:
    store = Store(tmp_path)
    publish(store, [1])
    victim = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path), point], stdout=subprocess.PIPE)
    try:
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"here\n"
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.communicate(timeout=30)
    assert victim.returncode == -signal.SIGKILL
    store = Store(tmp_path)
    assert values(store) == then
    assert scan(tmp_path, "events", FIRST, FIRST).collect()["x"].to_list() == then
    publish(store, [5], run="killed")  # even under the same name the next run is not in the way of what lies there
    assert values(store) == [5]
    for path in (tmp_path / "events/day=2020-01-01").iterdir():
        os.utime(path, (1, 1))
    store.sweep("events", FIRST, keep_hours=24)
    left = sorted(path.name for path in (tmp_path / "events/day=2020-01-01").iterdir())
    assert left == ["_manifest.json", "killed-1.parquet"]


# --- sweeping and moving aside -----------------------------------------------------------------------------------


def test_sweep_takes_only_what_is_old_and_named_by_no_manifest(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store, [1])
    publish(store, [2], run="newer")
    folder = tmp_path / "events/day=2020-01-01"
    for name in ("old.parquet", "young.parquet", "_manifest.json.x.tmp", "notes.txt"):
        (folder / name).touch()
    long_ago = time.time() - 3 * 3600
    for name in ("old.parquet", "_manifest.json.x.tmp", "notes.txt", "newer-0.parquet", "_manifest.json"):
        os.utime(folder / name, (long_ago, long_ago))
    assert store.sweep("events", FIRST, keep_hours=24) == []
    assert store.sweep("events", FIRST, keep_hours=2) == ["_manifest.json.x.tmp", "old.parquet"]
    left = sorted(path.name for path in folder.iterdir())
    assert left == ["_manifest.json", "newer-0.parquet", "notes.txt", "run-0.parquet", "young.parquet"]
    assert values(store) == [2]


def test_move_aside(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store, [1])
    staged = staged_day(store, [2], run="bad/../run")
    target = store.move_aside(staged)
    assert target == tmp_path / "_failed" / "badrun" / "events" / "day=2020-01-01"
    assert pl.read_parquet(target / "badrun-0.parquet")["x"].to_list() == [2]
    assert json.loads((target / "_manifest.json").read_text())["rows"] == 1
    assert sorted(path.name for path in (tmp_path / "events/day=2020-01-01").iterdir()) == [
        "_manifest.json",
        "run-0.parquet",
    ]
    assert values(store) == [1]


# --- nothing outside the root ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "safe"),
    [
        ("../../etc/passwd", "etcpasswd"),
        ("/abs", "abs"),
        ("..", "run"),
        ("", "run"),
        ("a\x00b\nc", "abc"),
        ("Ünï", "n"),
        ("8c1f0a4e-1b2c-4d3e-9f00-112233445566", "8c1f0a4e1b2c4d3e9f00112233445566"),
        ("x" * 100, "x" * 32),
    ],
)
def test_the_name_of_a_run_cannot_leave_its_folder(tmp_path: Path, run: str, safe: str) -> None:
    assert safe_run(run) == safe
    store = Store(tmp_path / "deep" / "root")
    staged = staged_day(store, [1], run=run)
    store.move_aside(staged)
    store.commit(staged_day(store, [1], run=run), proof={})
    assert store.scratch_directory(run, "events", FIRST).parent == store.root / "_scratch"
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["root"]


def test_ids_and_file_names_cannot_leave_the_root(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    evil = "../../../evil"
    dataset = make_dataset(
        inside, days={"2020-01-01": [row(evil, evil, at("2020-01-01"))]}, columns={"user_id": {"from": "user", "type": "string"}}
    )  # fmt: skip
    (inside / "raw" / "2020-01-01.csv").rename(inside / "raw" / "..2020-01-01.csv")
    (inside / "dataset.toml").write_text(
        (inside / "dataset.toml").read_text().replace("raw/{date}.csv", "raw/..{date}.csv")
    )
    dataset = make_dataset(
        inside, columns={"user_id": {"from": "user", "type": "string"}}, source={"path": "raw/..{date}.csv"}
    )
    store = make_store(dataset)
    make_events_of(dataset, store, "2020-01-01", run=evil)
    make_vocabulary_of(dataset, store, "2020-01-01", run=evil)
    assert table(store, "events", "2020-01-01")["user_id"].to_list() == [evil]
    assert sorted(path.name for path in inside.iterdir()) == ["dataset.toml", "out", "raw"]
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


# --- the identity of the dataset ---------------------------------------------------------------------------------


def test_the_same_dataset_opens_its_store_again(tmp_path: Path) -> None:
    make_store(tiny(tmp_path))
    before = (tmp_path / "out" / "_dataset.json").read_bytes()
    make_store(tiny(tmp_path, compute={"threads": 1}, quality={"duplicates": "drop"}, dagster={"key_prefix": "x"}))
    assert (tmp_path / "out" / "_dataset.json").read_bytes() == before
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["_dataset.json"]
    assert json.loads(before) == {
        "name": "tiny", "user_id": "int64", "item_id": "string", "timestamp": {"from": "time", "unit": "s"},
        "start": "2020-01-01", "actions": ["view", "cart"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("overrides", "difference"),
    [
        ({"name": "other"}, "name = 'tiny', the dataset file says 'other'; take another [store] root"),
        ({"columns": {"user_id": {"from": "user", "type": "string"}}}, "user_id = 'int64', the dataset file says 'string'; take another [store] root"),
        ({"columns": {"item_id": {"from": "item", "type": "int64"}}}, "item_id = 'string', the dataset file says 'int64'; take another [store] root"),
        ({"columns": {"timestamp": {"from": "time", "unit": "ms"}}}, "timestamp = {'from': 'time', 'unit': 's'}, the dataset file says {'from': 'time', 'unit': 'ms'}; take another [store] root"),
        ({"partitions": {"start": "2019-12-31"}}, "start = '2020-01-01', the dataset file says '2019-12-31'; take another [store] root"),
        ({"actions": {"names": ["cart", "view"]}}, "actions = ['view', 'cart'], the dataset file says ['cart', 'view']; actions may only be appended"),
        ({"actions": {"names": ["view"]}}, "actions = ['view', 'cart'], the dataset file says ['view']; actions may only be appended"),
        ({"actions": {"names": ["view", "buy", "cart"]}}, "actions = ['view', 'cart'], the dataset file says ['view', 'buy', 'cart']; actions may only be appended"),
    ],
)  # fmt: skip
def test_another_dataset_is_refused_with_the_difference(
    tmp_path: Path, overrides: dict[str, Any], difference: str
) -> None:
    make_store(tiny(tmp_path))
    before = (tmp_path / "out" / "_dataset.json").read_bytes()
    with pytest.raises(PipelineError) as caught:
        make_store(tiny(tmp_path, **overrides))
    assert str(caught.value) == f"{tmp_path}/out: the store was made with {difference}"
    assert (tmp_path / "out" / "_dataset.json").read_bytes() == before


def test_actions_may_be_appended_and_not_taken_back(tmp_path: Path) -> None:
    make_store(tiny(tmp_path))
    make_store(tiny(tmp_path, actions={"names": ["view", "cart", "buy"]}))
    with pytest.raises(PipelineError, match="actions may only be appended"):
        make_store(tiny(tmp_path))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["_dataset.json"]


def test_a_root_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file where the folder should be")
    with pytest.raises(PipelineError) as caught:
        make_store(tiny(tmp_path))
    assert str(caught.value) == (
        f"{tmp_path}/out: the store cannot be written to (File exists); check [store] root and the rights on that folder"
    )


def test_a_folder_of_a_day_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "events").write_text("a file where the folder should be")
    with pytest.raises(PipelineError, match="cannot write to"):
        staged_day(Store(tmp_path), [1])


# --- currency ----------------------------------------------------------------------------------------------------


def chain(store: Store, days: list[date], *, run: str = "run") -> None:
    """events -> user_vocabulary, user_state (itself one day back) -> features, as far as versions go."""
    for day in days:
        events = publish(store, [day.day], day=day, run=run)
        publish(store, [1], asset="user_vocabulary", day=day, run=run, inputs={"events": events})
        inputs = {"events": events}
        if day > FIRST:
            before = store.manifest("user_state", date(2020, 1, day.day - 1))
            assert before is not None
            inputs[f"user_state@2020-01-0{day.day - 1}"] = before.version()
        state = publish(store, [day.day], asset="user_state", day=day, run=run, inputs=inputs)
        vocabulary = store.manifest("user_vocabulary", day)
        assert vocabulary is not None
        publish(
            store, [1], asset="features", day=day, run=run,
            inputs={"events": events, "user_vocabulary": vocabulary.version(), "user_state": state, "raw_logs/x": "any"},
        )  # fmt: skip


DAYS = [FIRST, SECOND, THIRD]


def test_a_chain_as_it_was_made_is_current(tmp_path: Path) -> None:
    store = Store(tmp_path)
    chain(store, DAYS)
    currency = Currency(store)
    assert [currency.problem(asset, day) for asset in ("events", "user_state", "features") for day in DAYS] == [
        None
    ] * 9


def test_a_day_made_again_with_the_same_values_makes_nothing_stale(tmp_path: Path) -> None:
    store = Store(tmp_path)
    chain(store, DAYS)
    publish(store, [1], run="again")
    assert Currency(store).problem("features", THIRD) is None


def test_an_old_day_made_again_is_felt_along_the_chain(tmp_path: Path) -> None:
    store = Store(tmp_path)
    chain(store, DAYS)
    publish(store, [99], run="again")
    currency = Currency(store)
    assert currency.problem("events", FIRST) is None
    assert currency.problem("user_vocabulary", SECOND) is None
    for asset, day in [("user_state", FIRST), ("user_state", THIRD), ("features", THIRD), ("features", SECOND)]:
        assert (
            currency.problem(asset, day)
            == "user_state of 2020-01-01 was made before events of 2020-01-01 was made again"
        )
        assert currency.cause(asset, day) == ("user_state", FIRST)
    assert currency.problem("features", FIRST) in (
        "features of 2020-01-01 was made before events of 2020-01-01 was made again",
        "user_state of 2020-01-01 was made before events of 2020-01-01 was made again",
        "user_vocabulary of 2020-01-01 was made before events of 2020-01-01 was made again",
    )


def test_made_again_and_back_is_current_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    chain(store, DAYS)
    publish(store, [99], run="again")
    publish(store, [1], run="back")
    assert Currency(store).problem("features", THIRD) is None


def test_a_deleted_day_breaks_the_chain_behind_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    chain(store, DAYS)
    (tmp_path / "user_state" / "day=2020-01-01" / "_manifest.json").unlink()
    assert Currency(store).problem("features", THIRD) == "user_state of 2020-01-01 is missing"
    assert Currency(store).problem("features", FIRST) == "user_state of 2020-01-01 is missing"


def test_require_current_gives_the_command(tmp_path: Path) -> None:
    dataset = tiny(tmp_path)
    store = make_store(dataset)
    with pytest.raises(PipelineError) as caught:
        require_current(store, "events", SECOND, dataset)
    assert str(caught.value) == (
        "events of 2020-01-02 is missing; run: dagster asset materialize -m pipeline.definitions --select 'events' --partition 2020-01-02"
    )
    chain(store, DAYS)
    assert require_current(store, "user_state", THIRD, dataset).rows == 1
    publish(store, [99], run="again")
    with pytest.raises(PipelineError) as caught:
        require_current(store, "user_state", THIRD, dataset)
    assert str(caught.value) == (
        "user_state of 2020-01-01 was made before events of 2020-01-01 was made again; run: dagster asset materialize "
        "-m pipeline.definitions --select 'user_state' --partition-range 2020-01-01...2020-01-03"
    )


def test_a_crash_between_the_two_tables_of_events_is_seen(tmp_path: Path) -> None:
    store = Store(tmp_path)
    companion = publish(store, [], asset="rejected_events")
    publish(store, [1], inputs={"rejected_events": companion})
    assert Currency(store).problem("events", FIRST) is None
    publish(store, [4], asset="rejected_events", run="crashed")  # and never came to commit events
    assert Currency(store).problem("events", FIRST) == (
        "events of 2020-01-01 was made before rejected_events of 2020-01-01 was made again"
    )


def test_a_long_chain_needs_no_deep_recursion(tmp_path: Path) -> None:
    store = Store(tmp_path)
    start = date(2010, 1, 1)
    version = ""
    for number in range(sys.getrecursionlimit() + 200):
        day = date.fromordinal(start.toordinal() + number)
        inputs = {f"user_state@{date.fromordinal(day.toordinal() - 1)}": version} if number else {}
        manifest = staged_day(store, [], asset="user_state", day=day, inputs=inputs).manifest
        version = manifest.version()
        (store.directory("user_state", day) / "_manifest.json").write_text(json.dumps(manifest.to_json()))
    assert Currency(store).problem("user_state", day) is None


# --- scan --------------------------------------------------------------------------------------------------------


def test_scan_gives_the_rows_day_by_day(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store, [2, 1])
    publish(store, [], day=SECOND)
    publish(store, [3], day=THIRD)
    rows = scan(tmp_path, "events", "2020-01-01", THIRD).collect()
    assert rows.rows() == [(FIRST, 2), (FIRST, 1), (THIRD, 3)]
    assert dict(rows.schema) == {"day": pl.Date, "x": pl.Int64}
    assert scan(str(tmp_path), "events", SECOND, SECOND).collect().rows() == []


def test_scan_refuses_missing_days_by_name(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store, [1], day=SECOND)
    with pytest.raises(PipelineError) as caught:
        scan(tmp_path, "events", FIRST, THIRD)
    assert str(caught.value) == (
        f'events is missing for 2020-01-01, 2020-01-03 in {tmp_path}; make them, or pass missing="skip" to leave them out'
    )
    assert scan(tmp_path, "events", FIRST, THIRD, missing="skip").collect()["x"].to_list() == [1]
    with pytest.raises(PipelineError, match=r"2020-01-06 and 26 more days in "):
        scan(tmp_path, "events", date(2020, 1, 1), date(2020, 2, 1))
    with pytest.raises(PipelineError) as caught:
        scan(tmp_path, "events", THIRD, THIRD, missing="skip")
    assert str(caught.value) == f"events has no day from 2020-01-03 to 2020-01-03 in {tmp_path}"


def test_scan_refuses_days_that_are_not_current(tmp_path: Path) -> None:
    store = Store(tmp_path)
    chain(store, DAYS)
    publish(store, [99], day=SECOND, run="again")
    with pytest.raises(PipelineError) as caught:
        scan(tmp_path, "user_state", FIRST, THIRD)
    assert str(caught.value) == (
        f"user_state is not current for 2020-01-02, 2020-01-03 in {tmp_path} (user_state of 2020-01-02 was made before "
        "events of 2020-01-02 was made again); make them again, or pass allow_stale=True"
    )
    assert scan(tmp_path, "user_state", FIRST, FIRST).collect()["x"].to_list() == [1]
    assert scan(tmp_path, "user_state", FIRST, THIRD, allow_stale=True).collect()["x"].to_list() == [1, 2, 3]


def test_scan_does_not_mix_columns_or_versions(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store, [1], code={"events": 1, "core": 1})
    publish(store, [2], day=SECOND, code={"events": 1, "core": 2})
    publish(store, [3], day=THIRD, code={"events": 1, "core": 2}, columns=[Column("x", "int64", unit="ms")])
    with pytest.raises(PipelineError) as caught:
        scan(tmp_path, "events", FIRST, SECOND)
    assert str(caught.value) == (
        "events of 2020-01-01 has other columns or code versions than 2020-01-02; make those days again"
    )
    with pytest.raises(PipelineError, match="events of 2020-01-01, 2020-01-02 has other columns"):
        scan(tmp_path, "events", FIRST, THIRD)


def test_scan_mixes_days_with_and_without_files(tmp_path: Path) -> None:
    # A day without files names no source format in its code versions.
    dataset = tiny(tmp_path, source={"missing_day": "empty"})
    store = make_store(dataset)
    for day in ("2020-01-01", "2020-01-02"):
        make_events_of(dataset, store, day)
    assert scan(dataset.root, "events", FIRST, SECOND).collect().height == 2


@pytest.mark.parametrize(("asset", "role"), [("user_state", None), ("events", "closing")])
def test_scan_wants_a_role_where_there_are_roles_and_only_there(tmp_path: Path, asset: str, role: Any) -> None:
    store = Store(tmp_path)
    with store.stage(asset, FIRST, run="r") as staging:
        staging.write(pl.DataFrame({"x": [1]}), role="closing" if asset == "user_state" else None)
        version = {"opening": "o", "closing": "c"} if asset == "user_state" else "v"
        staged = staging.finish(
            rows=0, columns=COLUMN, recipe=Recipe({}, {}, {}), content_version=version, counts={}, facts={}
        )
    store.commit(staged, proof={})
    with pytest.raises(PipelineError):
        scan(tmp_path, asset, FIRST, FIRST, role=role)


def test_what_a_writer_could_not_write_is_told_when_the_day_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pipeline.store.staging.write_file", full)
    staging = Store(tmp_path).stage("events", FIRST, run="bad")

    def write() -> None:
        with staging:
            staging.write(pl.DataFrame({"x": [2]}))

    with pytest.raises(PipelineError, match="No space left on device"):
        write()
    assert list(staging.directory.iterdir()) == []

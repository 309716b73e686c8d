"""What a store remembers of its chain: never another answer than that of somebody who reads all of it again."""

import json
import tempfile
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts import Column, PipelineError
from pipeline.store import Currency, Recipe, Store, manifest

START = date(2020, 1, 1)
DAYS = [START + timedelta(days=number) for number in range(4)]
NODES = [(asset, day) for asset in ("events", "user_state", "features") for day in DAYS]
MEMORY_DISK = Path("/dev/shm")


def commit(store: Store, asset: str, day: date, version: str, inputs: dict[str, str]) -> None:
    with store.stage(asset, day, run="run") as staging:
        staging.write(pl.DataFrame({"x": [1]}))
        made = Recipe({}, {}, {**inputs, "raw_logs/x": "any"})
        parts = {"opening": version, "closing": version} if asset == "user_state" else version
        staged = staging.finish(
            rows=1, columns=[Column("x", "int64")], recipe=made, content_version=parts, counts={"in": 1}, facts={}
        )
    store.commit(staged, proof={"note": 'a line\nbreak and ,\n "counts": {} in a value'})


def make(store: Store, asset: str, day: date, version: str) -> None:
    """Makes a day from what its inputs are now; an input that is missing is recorded as such."""

    def now(asset: str, day: date, role: str | None = None) -> str:
        found = store.manifest(asset, day)
        return "none" if found is None else found.version(role)

    if asset == "events":
        commit(store, asset, day, version, {})
    elif asset == "user_state":
        before = day - timedelta(days=1)
        chained = {} if day == START else {f"user_state.closing@{before}": now("user_state", before, "closing")}
        commit(store, asset, day, version, {"events": now("events", day), **chained})
    else:
        commit(store, asset, day, version, {"user_state.opening": now("user_state", day, "opening")})


changes = st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(["a", "b", "deleted"])), max_size=12)


@given(changes=changes, asked=st.lists(st.sampled_from(NODES), min_size=1))
def test_what_is_remembered_is_what_a_fresh_look_finds(
    changes: list[tuple[tuple[str, date], str]], asked: list[tuple[str, date]]
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as name:
        ours, other = Store(Path(name)), Store(Path(name))  # the other one belongs to another process
        for node in NODES:
            make(other, *node, "a")
        for (asset, day), change in changes:
            if change == "deleted":
                (other.directory(asset, day) / "_manifest.json").unlink(missing_ok=True)
            else:
                make(other, asset, day, change)
            currency = Currency(ours)
            found = [(currency.problem(*node), currency.problem(*node) and currency.cause(*node)) for node in asked]
            fresh = Currency(Store(Path(name)))
            assert found == [(fresh.problem(*node), fresh.problem(*node) and fresh.cause(*node)) for node in asked]


def test_only_what_was_replaced_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    for node in NODES:
        make(Store(tmp_path), *node, "a")
    read: list[str] = []
    original = manifest.read_lineage
    monkeypatch.setattr(
        "pipeline.store.lake.read_lineage", lambda path: (read.append(path.parts[-3]), original(path))[1]
    )
    assert Currency(store).problem("features", DAYS[3]) is None
    assert sorted(read) == ["events"] * 4 + ["features"] + ["user_state"] * 4
    assert Currency(store).problem("features", DAYS[3]) is None
    assert len(read) == 9
    make(Store(tmp_path), "events", DAYS[1], "b")
    assert Currency(store).problem("features", DAYS[3]) == (
        f"user_state of {DAYS[1]} was made before events of {DAYS[1]} was made again"
    )
    assert read[9:] == ["events"]


def test_the_lineage_is_that_of_the_manifest(tmp_path: Path) -> None:
    store = Store(tmp_path)
    make(store, "user_state", DAYS[0], 'quoted "version",\n "counts": {')
    path = store.directory("user_state", DAYS[0]) / "_manifest.json"
    whole = store.manifest("user_state", DAYS[0])
    assert whole is not None
    expected = manifest.Lineage(whole.inputs, whole.content_version)
    assert manifest.read_lineage(path) == expected
    path.write_text(json.dumps(whole.to_json()))  # in one line, as somebody else may have written it
    assert manifest.read_lineage(path) == expected
    assert manifest.read_lineage(tmp_path / "none.json") is None


@pytest.mark.parametrize("damage", [('"format": 1', '"format": 2'), ('"inputs": {', '"inputs": {{'), ("}", "")])
def test_a_damaged_manifest_has_no_lineage(tmp_path: Path, damage: tuple[str, str]) -> None:
    store = Store(tmp_path)
    make(store, "events", DAYS[0], "a")
    path = store.directory("events", DAYS[0]) / "_manifest.json"
    path.write_text(path.read_text().replace(*damage))
    with pytest.raises(PipelineError, match=r"_manifest.json: (the manifest cannot be read|found manifest format 2)"):
        Currency(store).problem("events", DAYS[0])


def test_a_damaged_manifest_can_be_replaced(tmp_path: Path) -> None:
    store = Store(tmp_path)
    make(store, "events", DAYS[0], "a")
    (store.directory("events", DAYS[0]) / "_manifest.json").write_text("{")
    commit(store, "events", DAYS[0], "b", {})
    assert Currency(store).problem("events", DAYS[0]) is None


def test_a_day_that_rests_on_itself_is_damaged(tmp_path: Path) -> None:
    store = Store(tmp_path)
    commit(store, "user_state", START, "a", {f"user_state.closing@{START}": "a"})
    commit(store, "features", START, "a", {"user_state.opening": "a"})
    said = f"user_state of {START} rests on itself: its manifest is damaged"
    assert Currency(store).problem("features", START) == said
    assert Currency(store).cause("features", START) == ("user_state", START)


def test_a_manifest_without_a_key_or_that_is_no_file_is_a_sentence(tmp_path: Path) -> None:
    store = Store(tmp_path)
    commit(store, "events", START, "a", {})
    path = store.directory("events", START) / "_manifest.json"
    path.write_text(path.read_text().replace('"content_version"', '"content_versioo"'))
    with pytest.raises(PipelineError, match=r"the manifest is damaged .*content_version.*; make this day again"):
        Currency(Store(tmp_path)).problem("events", START)
    path.unlink()
    path.mkdir()
    with pytest.raises(PipelineError, match=r"the manifest cannot be read .*; make this day again"):
        Currency(Store(tmp_path)).problem("events", START)

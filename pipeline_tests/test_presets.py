"""Every preset reads rows in the published layout of its log; what a dataset file says itself comes first."""

import re
import tomllib
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.config import PRESETS, Dataset, load_dataset, presets
from pipeline.contracts import PipelineError
from pipeline.events import make_events_of_days
from pipeline.stages import STAGES, run_day
from pipeline.store import Store, scan
from pipeline_tests.conftest import REPOSITORY
from pipeline_tests.datasets import DECLARED, make_dataset, make_events_of, make_store, silent, table
from pipeline_tests.preset_logs import LOGS
from pipeline_tests.works import work_of

FOLDER = REPOSITORY / "pipeline" / "config" / "presets"
PAGE = REPOSITORY / "docs" / "presets.md"


def declare(folder: Path, preset: str, file: str, text: str, *, day: str, **tables: Any) -> Dataset:
    """A dataset file with a preset and no more than it needs, and the raw file that it names."""
    (folder / "raw").mkdir(exist_ok=True)
    (folder / "raw" / file).write_text(text, encoding="utf-8")
    tables["source"] = {"path": f"raw/{file}", **tables.get("source", {})}
    # What the tests of other things declare is not wanted here, unless it is declared anew.
    tables["columns"] = {**dict.fromkeys(DECLARED["columns"]), **tables.get("columns", {})}
    tables["actions"] = {**dict.fromkeys(DECLARED["actions"]), **tables.get("actions", {})}
    return make_dataset(folder, preset=preset, **{"partitions": {"start": day, "end": day}, **tables})


def made(dataset: Dataset, day: str) -> tuple[list[tuple], list[tuple]]:
    """A day of events as user, item, time, action and the extra columns, in input order; and its refused rows."""
    store = make_store(dataset)
    make_events_of(dataset, store, day)
    names = ["user_id", "item_id", "timestamp", "action", *dataset.extra]
    rows = table(store, "events", day).sort("row_id").select(names).rows()
    refused = table(store, "rejected_events", day).select("line", "reason").rows()
    return [(*row[:2], row[2].replace(tzinfo=None).isoformat(), *row[3:]) for row in rows], refused


@pytest.mark.parametrize("preset", sorted(LOGS))
def test_rows_in_the_published_layout(tmp_path: Path, preset: str) -> None:
    log = LOGS[preset]
    dataset = declare(tmp_path, preset, log.file, log.text, day=log.day)
    assert made(dataset, log.day) == (log.events, log.rejected)


@pytest.mark.parametrize("preset", sorted(LOGS))
def test_every_stage_of_such_a_day_passes_its_proof(tmp_path: Path, preset: str) -> None:
    log = LOGS[preset]
    dataset = declare(tmp_path, preset, log.file, log.text, day=log.day)
    for stage in STAGES:
        run_day(stage, date.fromisoformat(log.day), work_of(dataset, run="run"))
    manifest = Store(dataset.root).manifest("features", date.fromisoformat(log.day))
    assert manifest is not None
    assert manifest.rows == len(log.events)


def test_every_preset_has_such_rows() -> None:
    assert sorted(LOGS) == list(PRESETS)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_says_what_all_copies_of_a_log_have_in_common(preset: str) -> None:
    text = (FOLDER / f"{preset}.toml").read_text(encoding="utf-8")
    says = tomllib.loads(text)
    assert set(says) <= {"source", "columns", "actions", "extra"}
    assert set(says["source"]) <= {"format", "csv", "explode"}  # not where a copy lies
    assert says["source"]["format"]  # since .dat, .data and .inter tell nothing
    head = re.split(r"\n\n", text)[0]
    assert all(line.startswith("#") for line in head.splitlines())
    assert "https://" in head or "http://" in head


def test_every_preset_is_explained_and_no_other() -> None:
    page = PAGE.read_text(encoding="utf-8")
    named = re.findall(r"^\| \[`([a-z0-9_]+)`\]\((.*?)\)", page, re.MULTILINE)
    assert named == [(preset, f"../pipeline/config/presets/{preset}.toml") for preset in PRESETS]
    links = {
        link for preset in PRESETS for link in re.findall(r"https?://[^\s,;]+", (FOLDER / f"{preset}.toml").read_text())
    }
    assert {link.rstrip(":.") for link in links} <= set(re.findall(r"\]\((http[^)]+)\)", page))


def test_the_example_of_the_page_is_a_whole_dataset_file(tmp_path: Path) -> None:
    whole, part = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for text in (whole, f"{whole}\n{part}"):
        (tmp_path / "dataset.toml").write_text(text, encoding="utf-8")
        dataset = load_dataset(tmp_path / "dataset.toml")
        assert (dataset.columns.user_id.from_, dataset.columns.item_id.from_) == ("visitorid", "itemid")
    assert dataset.columns.item_id.type == "string"
    assert list(dataset.extra) == ["transaction_id", "is_sale"]


# -- what the dataset file says itself comes first ------------------------------------------------


def taobao(folder: Path, **tables: Any) -> Dataset:
    return declare(folder, "taobao", LOGS["taobao"].file, LOGS["taobao"].text, day=LOGS["taobao"].day, **tables)


def test_sql_takes_the_place_of_from_and_the_type_stays(tmp_path: Path) -> None:
    dataset = taobao(tmp_path, columns={"user_id": {"sql": "CAST(user_id AS BIGINT) * 100 + 7"}})
    user = dataset.columns.user_id
    assert (user.from_, user.sql, user.type) == (None, "CAST(user_id AS BIGINT) * 100 + 7", "int64")
    assert dataset.columns.item_id.from_ == "item_id"
    events, _ = made(dataset, LOGS["taobao"].day)
    assert [event[0] for event in events] == [1107, 1107, 1207, 1207]


def test_value_takes_the_place_of_from_and_of_its_new_names(tmp_path: Path) -> None:
    log = LOGS["kuairand"]
    dataset = declare(tmp_path, "kuairand", log.file, log.text, day=log.day, columns={"action": {"value": "click"}})
    assert (dataset.columns.action.from_, dataset.columns.action.rename) == (None, {})
    events, _ = made(dataset, log.day)
    assert [event[3] for event in events] == ["click", "click"]


def test_unit_takes_the_place_of_format_and_zone(tmp_path: Path) -> None:
    text = LOGS["rees46"].text.splitlines()[0] + "\n1569888000,view,61,5,,,1.5,31,s\n"
    dataset = declare(
        tmp_path, "rees46", "2019-Oct.csv", text, day="2019-10-01", columns={"timestamp": {"unit": "s"}}
    )  # fmt: skip
    time = dataset.columns.timestamp
    assert (time.from_, time.unit, time.format, time.timezone) == ("event_time", "s", None, None)
    assert made(dataset, "2019-10-01") == ([(31, 61, "2019-10-01T00:00:00", "view", 5, None, None, 1.5, "s")], [])


def test_a_column_and_its_format_take_the_place_of_sql_and_unit(tmp_path: Path) -> None:
    log = LOGS["diginetica"]
    days = {"from": "eventdate", "format": "%Y-%m-%d", "timezone": "UTC"}
    dataset = declare(tmp_path, "diginetica", log.file, log.text, day=log.day, columns={"timestamp": days})
    assert (dataset.columns.timestamp.sql, dataset.columns.timestamp.unit) == (None, None)
    events, _ = made(dataset, log.day)
    assert [event[2] for event in events] == ["2016-05-09T00:00:00"] * 3


def test_another_format_of_time_has_to_say_its_own_zone(tmp_path: Path) -> None:
    log = LOGS["rees46"]
    with pytest.raises(PipelineError, match="the format holds no offset"):
        declare(tmp_path, "rees46", log.file, log.text, day=log.day, columns={"timestamp": {"format": "%F %T"}})
    same = {"format": "%Y-%m-%d %H:%M:%S UTC"}
    dataset = declare(tmp_path, "rees46", log.file, log.text, day=log.day, columns={"timestamp": same})
    assert dataset.columns.timestamp.timezone == "UTC"


def test_tables_are_merged_and_lists_are_not(tmp_path: Path) -> None:
    dataset = taobao(
        tmp_path,
        source={"csv": {"null_values": ["302"]}, "missing_day": "empty"},
        actions={"names": ["buy", "pv"]},
        extra={"category_id": {"optional": True, "keep": True}, "kind": {"from": "behavior", "type": "string"}},
    )
    csv = dataset.source.csv
    assert (csv.has_header, len(csv.columns or ()), csv.null_values) == (False, 5, ("302",))
    assert (dataset.source.format, dataset.source.missing_day) == ("csv", "empty")
    assert made(dataset, LOGS["taobao"].day) == (
        [
            (11, 5001, "2017-11-25T00:00:00", "pv", 301, "pv"),
            (12, 5002, "2017-11-25T23:59:59", "buy", None, "buy"),
        ],
        [(2, "unknown_action"), (3, "unknown_action")],
    )


def test_another_format_of_file_leaves_the_csv_settings_behind(tmp_path: Path) -> None:
    text = '{"user_id":"a","item_id":"b","timestamp":978307200}\n'
    dataset = declare(
        tmp_path, "recbole", "log.inter", text, day="2001-01-01", source={"format": "ndjson"}
    )  # fmt: skip
    assert (dataset.source.format, dataset.source.csv.typed_header) == ("ndjson", False)
    assert made(dataset, "2001-01-01") == ([("a", "b", "2001-01-01T00:00:00", "interaction")], [])


def test_an_extra_column_replaces_no_other_for_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd.toml").write_text('[extra]\nformat = { from = "a", type = "string" }\n')
    monkeypatch.setattr(presets, "FOLDER", tmp_path)
    monkeypatch.setattr(presets, "PRESETS", ("odd",))
    says = {"preset": "odd", "extra": {"unit": {"sql": "b", "type": "int64"}}}
    assert presets.with_preset(says)["extra"] == {
        "format": {"from": "a", "type": "string"},
        "unit": {"sql": "b", "type": "int64"},
    }


def test_a_preset_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as caught:
        declare(tmp_path, "taobo", "a.csv", "", day="2020-01-01")
    assert str(caught.value) == f"{tmp_path / 'dataset.toml'}: there is no preset 'taobo'; did you mean 'taobao'?"


def test_a_preset_leaves_the_path_to_the_dataset_file(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"'source\.path' is missing"):
        taobao(tmp_path, source={"path": None, "missing_day": "empty"})


# -- real logs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "file", "days", "accepted", "users", "items", "actions", "differences"),
    [
        ("rees46", "rees46_2019-Oct-01.csv", ("2019-10-01", "2019-10-01"), 5_019, 1_755, 2_312,
         {"view": 4_915, "cart": 50, "purchase": 54}, (213_605_000, 8_175_000)),
        ("otto", "otto_sessions.jsonl", ("2022-07-31", "2022-08-29"), 862, 20, 510,
         {"clicks": 800, "carts": 52, "orders": 10}, (16_152_393_515, 1_856_711_517)),
    ],
)  # fmt: skip
def test_a_real_log_adds_up(
    tmp_path: Path,
    shared_data: Path,
    preset: str,
    file: str,
    days: tuple[str, str],
    accepted: int,
    users: int,
    items: int,
    actions: dict[str, int],
    differences: tuple[int, int],
) -> None:
    """`differences`: sum and largest of the time differences within users, in milliseconds."""
    first, last = (date.fromisoformat(day) for day in days)
    text = (shared_data / file).read_text(encoding="utf-8")
    dataset = declare(tmp_path, preset, file, text, day=days[0], partitions={"start": days[0], "end": days[1]})
    store = make_store(dataset)
    every = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    outcome = make_events_of_days(days=every, dataset=dataset, store=store, run="run", report=silent)
    for staged in outcome.values():
        assert not isinstance(staged, PipelineError), staged
        rejected = store.commit(staged[1], proof={})
        assert rejected.rows == 0
        store.commit(staged[0], proof={})
    events = scan(dataset.root, "events", first, last).collect()
    assert (events.height, events["user_id"].n_unique(), events["item_id"].n_unique()) == (accepted, users, items)
    assert dict(events["action"].cast(pl.String).value_counts().rows()) == actions
    in_order = events.sort("user_id", "timestamp")
    steps = in_order.select(pl.col("timestamp").diff().over("user_id").dt.total_milliseconds()).to_series()
    assert (steps.sum(), steps.max()) == differences

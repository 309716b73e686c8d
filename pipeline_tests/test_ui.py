"""What a user does and sees in the UI: `dagster dev` on a tiny dataset, asked through GraphQL and looked at in Chromium.

The tests run in the order of this file, on one server: a day is made, proven again, made from a bad file, found damaged.
"""

import json
from collections.abc import Iterator
from datetime import date
from typing import Any

import polars as pl
import pytest

from pipeline.config import Dataset
from pipeline.store import Store, file_sha256
from pipeline_tests.browser import CHROMIUM, Page, Server, browser, wait_for, webserver
from pipeline_tests.datasets import at, make_dataset, row

pytestmark = pytest.mark.slow

GOOD, BAD, DAMAGED = "2020-01-01", "2020-01-02", "2020-01-01"
MADE = ("events", "rejected_events", "user_vocabulary", "item_vocabulary", "user_state", "features")
PLACE = {"repositoryName": "__repository__", "repositoryLocationName": "pipeline.definitions"}
LAUNCH = """mutation($run: ExecutionParams!) { launchRun(executionParams: $run) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  ... on RunConfigValidationInvalid { errors { message } } } }"""
RUN = """query($run: ID!) { runOrError(runId: $run) { ... on Run { status eventConnection { events {
  ... on ExecutionStepFailureEvent { stepKey failureMetadata { description } } } } } } }"""
ENTRIES = """metadataEntries { label ... on TextMetadataEntry { text } ... on MarkdownMetadataEntry { mdStr }
  ... on IntMetadataEntry { intValue } ... on FloatMetadataEntry { floatValue }
  ... on TableMetadataEntry { table { records } } }"""
CHECKS = f"""query($key: AssetKeyInput!) {{ assetNodeOrError(assetKey: $key) {{ ... on AssetNode {{
  assetChecksOrError {{ ... on AssetChecks {{ checks {{ name executionForLatestMaterialization {{
  status evaluation {{ success description {ENTRIES} }} }} }} }} }} }} }} }}"""
MATERIALISED = f"""query($key: AssetKeyInput!, $days: [String!]) {{ assetNodeOrError(assetKey: $key) {{ ... on AssetNode {{
  latestMaterializationByPartition(partitions: $days) {{ partition {ENTRIES} }} }} }} }}"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """300 users a day, so that the loop proves a sample; rows without a user; on the second day a file of other columns."""
    rows = [row(user, f"i{user % 7}", at(GOOD, f"{user % 24:02}:00:00")) for user in range(1, 301) for _ in range(2)]
    refused = [row(None, "![i](http://x.test/i.png)", at(GOOD, "11:00:00"))] * 3
    folder = tmp_path_factory.mktemp("ui")
    return make_dataset(folder, days={GOOD: [*rows, *refused], BAD: "no such column\n1\n"})


@pytest.fixture(scope="module")
def server(dataset: Dataset) -> Iterator[Server]:
    with webserver(dataset.file, dataset.directory / "home") as running:
        yield running


@pytest.fixture(scope="module")
def page(dataset: Dataset) -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine; .ci/run installs it where it may (apt-get install chromium)")
    with browser(dataset.directory) as tab:
        yield tab


def run(server: Server, *, day: str | None = None, job: str = "make_days", check: str | None = None) -> dict[str, Any]:
    """Launches a run as the UI does and waits for its end: all assets of a day, or one check."""
    selector: dict[str, Any] = {**PLACE, "pipelineName": job}
    if check is not None:
        asset, name = check.split(".")
        selector |= {"assetSelection": [], "assetCheckSelection": [{"assetKey": {"path": [asset]}, "name": name}]}
    tags = [] if day is None else [{"key": "dagster/partition", "value": day}]
    wanted = {"selector": selector, "mode": "default", "runConfigData": {}, "executionMetadata": {"tags": tags}}
    launched = server.ask(LAUNCH, run=wanted)["launchRun"]
    assert launched["__typename"] == "LaunchRunSuccess", launched

    def ended() -> dict[str, Any] | None:
        found = server.ask(RUN, run=launched["run"]["runId"])["runOrError"]
        return found if found["status"] in ("SUCCESS", "FAILURE", "CANCELED") else None

    return wait_for(ended, f"{check or job} ends", seconds=180)


def failures(ended: dict[str, Any]) -> dict[str, str]:
    """Step -> the description of its Failure."""
    events = [event for event in ended["eventConnection"]["events"] if event.get("failureMetadata")]
    return {event["stepKey"]: event["failureMetadata"]["description"] for event in events}


def entries(event: dict[str, Any]) -> dict[str, Any]:
    """Label -> value of the metadata of an event."""
    found = {}
    for entry in event["metadataEntries"]:
        values = [value for name, value in entry.items() if name not in ("label", "__typename")]
        found[entry["label"]] = values[0] if values else None
        if "table" in entry:
            found[entry["label"]] = [json.loads(record) for record in entry["table"]["records"]]
    return found


def checks(server: Server, asset: str) -> dict[str, Any]:
    """Name of the check -> its latest evaluation."""
    found = server.ask(CHECKS, key={"path": [asset]})["assetNodeOrError"]["assetChecksOrError"]["checks"]
    latest = {check["name"]: check["executionForLatestMaterialization"] for check in found}
    return {name: execution and execution["evaluation"] for name, execution in latest.items()}


def test_the_repository_lists_what_the_contract_names(server: Server) -> None:
    found = server.ask(
        """query($place: RepositorySelector!) { repositoryOrError(repositorySelector: $place) { ... on Repository {
        assetNodes { assetKey { path } groupName } jobs { name } schedules { name } } } }""",
        place=PLACE,
    )["repositoryOrError"]
    assert {node["assetKey"]["path"][0] for node in found["assetNodes"]} == {"raw_logs", *MADE}
    assert {node["groupName"] for node in found["assetNodes"]} == {"pipeline"}  # one group: the lineage stays unfolded
    assert {"make_days", "all_checks", "deep_checks"} <= {job["name"] for job in found["jobs"]}
    assert {schedule["name"] for schedule in found["schedules"]} >= {"daily"}
    assert all(set(checks(server, asset)) == {"proof", "proof_again"} for asset in MADE)


def test_a_day_is_made_and_its_page_says_that_it_is_right(server: Server) -> None:
    assert run(server, day=GOOD)["status"] == "SUCCESS"
    for asset in MADE:
        assert all(evaluation["success"] for evaluation in checks(server, asset).values()), asset
    shown = {asset: entries(materialised(server, asset)) for asset in MADE}
    features, events = shown["features"], shown["events"]
    assert (features["rows_in"], features["rows_out"], features["users"]) == (600, 600, 300)
    answer = " ".join(features["is_it_right"].split())
    assert answer.startswith("**Yes: all ")
    assert "of 300 users" in answer
    assert "200 drawn at random" in answer
    assert "Were 1.49 % of users or more wrong, it would have been seen with a probability of 95 %" in answer
    assert {line["asset"] for line in features["is_the_whole_day_right"]} == {*MADE} - {"rejected_events"}
    assert {line["expected"] == line["found"] for line in features["proofs"]} == {True}
    assert "first event    ████████████████████ 300 (50.0 %)" in features["plot_time_diff"]
    assert "same instant   ████████████████████ 300 (50.0 %)" in features["plot_time_diff"]
    assert "07 ████████████████████ 26\n" in events["plot_events_by_hour_utc"]
    assert events["refused_percent"] == pytest.approx(100 * 3 / 603, abs=1e-3)
    first = events["refused_rows"][0]
    assert (first["reason"], first["rows"], first["line"]) == ("missing_user_id", 3, 602)
    assert "![i](http://x.test/i.png)" in first["raw"]  # in a table, where nothing is fetched


def test_what_the_ui_shows_at_once_is_short_enough(server: Server) -> None:
    limit = 1_000  # the UI hides Markdown from here on behind a click
    for asset in MADE:
        for entry in materialised(server, asset)["metadataEntries"]:
            assert len(entry.get("mdStr") or "") < limit, (asset, entry["label"])


def materialised(server: Server, asset: str) -> dict[str, Any]:
    found = server.ask(MATERIALISED, key={"path": [asset]}, days=[GOOD])["assetNodeOrError"]
    return found["latestMaterializationByPartition"][0]


@pytest.mark.parametrize("check", ["proof", "proof_again"])
def test_execute_without_a_partition_proves_what_lies_on_disk(server: Server, check: str) -> None:
    assert run(server, job="__ASSET_JOB", check=f"features.{check}")["status"] == "SUCCESS"
    evaluation = checks(server, "features")[check]
    assert evaluation["success"]
    assert evaluation["description"].startswith(f"{GOOD} is right: all ")
    (line,) = entries(evaluation)["per_day"]
    assert (line["day"], line["right"], line["status"], line["rows"]) == (GOOD, True, "proven again", 600)
    assert line["could_be_missed"] == "1.49 % of users"


def test_a_bad_raw_file_fails_the_run_with_a_sentence(server: Server) -> None:
    ended = run(server, day=BAD)
    assert ended["status"] == "FAILURE"
    ((step, sentence),) = failures(ended).items()
    assert step == "events"
    assert "'user'" in sentence
    assert "Traceback" not in sentence
    evaluation = checks(server, "events")["proof"]
    assert (evaluation["success"], evaluation["description"]) == (False, sentence)


def test_the_pages_of_a_right_day(server: Server, page: Page, dataset: Dataset) -> None:
    page.text_of(f"{server.url}/asset-groups", "% filled")
    page.screenshot(dataset.directory / "lineage.png")
    text = page.text_of(
        f"{server.url}/assets/features?view=partitions&partition={GOOD}", r"(?s)Yes: all .*plot_time_diff"
    )
    page.screenshot(dataset.directory / "day.png")
    assert "[Show Markdown]" not in text
    assert "**" not in text  # rendered: the stars are gone
    assert text.index("is_it_right") < text.index("is_the_whole_day_right") < text.index("plot_time_diff")


def test_a_failed_proof_shows_the_first_rows_that_differ(server: Server, page: Page, dataset: Dataset) -> None:
    damage(dataset, DAMAGED, row_id=5)
    ended = run(server, job="__ASSET_JOB", check="features.proof_again")
    assert ended["status"] == "SUCCESS"  # a check that reports; no step waits for it
    evaluation = checks(server, "features")["proof_again"]
    assert not evaluation["success"]
    said = "every time_diff and is_first = shifted timestamps: 1 or more that differ, first user_id 3, row_id 5"
    assert evaluation["description"] == f"features of {DAMAGED}: {said}: time_diff is 77.0, expected 0.0"
    shown = entries(evaluation)
    assert (shown["days_failed"], shown["per_day"][0]["right"]) == (1, False)
    assert shown["failures"] == [{"day": DAMAGED, "wrong": evaluation["description"]}]
    assert not shown["per_day_and_proof"][0]["passed"]
    differing = shown["first_rows_that_differ"]
    assert {(line["row_id"], line["column"], line["expected"], line["found"]) for line in differing} >= {
        ("5", "time_diff", "0.0", "77.0")
    }
    text = page.text_of(f"{server.url}/assets/features?view=checks&checkDetail=proof_again", "first_rows_that_differ")
    page.screenshot(dataset.directory / "failed_proof.png")
    assert evaluation["description"] in text
    assert "77.0" in text


def damage(dataset: Dataset, day: str, *, row_id: int) -> None:
    """Changes one time_diff on disk, and the checksum with it, as a broken kernel would have written it."""
    folder = Store(dataset.root).directory("features", date.fromisoformat(day))
    (file,) = folder.glob("*.parquet")
    changed = pl.col("time_diff").is_not_null() & (pl.col("row_id") == row_id)
    wrong = pl.when(changed).then(77.0).otherwise(pl.col("time_diff")).cast(pl.Float32)
    pl.read_parquet(file).with_columns(wrong.alias("time_diff")).write_parquet(file)
    manifest = json.loads((folder / "_manifest.json").read_text())
    manifest["files"][0] |= {"sha256": file_sha256(file), "bytes": file.stat().st_size}
    (folder / "_manifest.json").write_text(json.dumps(manifest))

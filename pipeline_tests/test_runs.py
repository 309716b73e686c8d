"""Runs end to end on a tiny dataset: what is published, recorded, reused, refused, and what the sentences say."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

import pipeline.features.core
from pipeline.config import Dataset
from pipeline.definitions import Environment, build
from pipeline.resources import cap_threads
from pipeline.store import Store, scan
from pipeline_tests.conftest import REPOSITORY
from pipeline_tests.datasets import at, make_dataset, row, write_csv

DAYS = ("2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04", "2020-01-05")
MADE = ("events", "rejected_events", "user_vocabulary", "item_vocabulary", "user_state", "features")
BAD = "no such column\n1\n"


def raw_day(day: str) -> list[dict[str, Any]]:
    """Users 1..3 at 10:00:00 and 10:00:05, and a row without a user."""
    rows = [row(user, f"i{user}", at(day, f"10:00:0{second}")) for user in (1, 2, 3) for second in (0, 5)]
    return [*rows, row(None, "i1", at(day, "11:00:00"))]


def tiny(folder: Path, **overrides: Any) -> Dataset:
    return make_dataset(folder, days={day: raw_day(day) for day in DAYS}, **overrides)


@dataclass
class Runner:
    """Runs jobs of a dataset in process, on one instance."""

    dataset: Dataset
    instance: dg.DagsterInstance

    def run(
        self, first: str, last: str | None = None, *, select: Sequence[str] | None = None, config: Any = None
    ) -> dg.ExecuteInProcessResult:
        """A run over first..last of all assets, or of some."""
        job = self.definitions().resolve_job_def("make_days")
        keys = None if select is None else [dg.AssetKey(name) for name in select]
        common = {"instance": self.instance, "raise_on_error": False, "run_config": config or {}}
        if last is None:
            return job.execute_in_process(partition_key=first, asset_selection=keys, **common)
        tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
        return job.execute_in_process(tags=tags, asset_selection=keys, **common)

    def checks(self, job: str = "all_checks", config: Any = None) -> dg.ExecuteInProcessResult:
        """A run of a job of checks, without a partition."""
        return (
            self.definitions()
            .resolve_job_def(job)
            .execute_in_process(instance=self.instance, raise_on_error=False, run_config=config)
        )

    def definitions(self) -> dg.Definitions:
        return build(Environment(dataset=self.dataset.file, executor="in_process", days_per_run=None))

    def recorded(self, asset: str) -> list[str]:
        """The days that Dagster counts as materialised."""
        return sorted(self.instance.get_materialized_partitions(dg.AssetKey(asset)))

    def published(self, asset: str) -> list[str]:
        return [day.isoformat() for day in Store(self.dataset.root).days(asset)]

    def metadata(self, asset: str, day: str) -> dict[str, Any]:
        """What the UI shows of the newest materialisation of a day."""
        found = self.instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=dg.AssetKey(asset), asset_partitions=[day]), limit=1
        )
        return {name: value.value for name, value in found.records[0].asset_materialization.metadata.items()}


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Runner(tiny(tmp_path), instance)


def sentence(result: dg.ExecuteInProcessResult) -> str:
    """The description of the only Failure of a run."""
    failures = [event for event in result.all_events if event.event_type is dg.DagsterEventType.STEP_FAILURE]
    assert len(failures) == 1, [event.step_key for event in failures]
    reported = failures[0].step_failure_data.user_failure_data
    assert reported is not None, failures[0].step_failure_data.error
    return reported.description


def evaluations(result: dg.ExecuteInProcessResult) -> dict[tuple[str, str], dg.AssetCheckEvaluation]:
    return {(e.asset_key.to_user_string(), e.check_name): e for e in result.get_asset_check_evaluations()}


def table(evaluation: Any, name: str) -> list[dict[str, Any]]:
    return [dict(record.data) for record in evaluation.metadata[name].records]


def test_a_range_makes_every_day_in_one_run(runner: Runner) -> None:
    result = runner.run(DAYS[0], DAYS[-1])
    assert result.success
    for asset in MADE:
        assert runner.recorded(asset) == runner.published(asset) == list(DAYS)
    found = scan(runner.dataset.root, "features", DAYS[0], DAYS[-1]).filter(pl.col("user_id") == 2).collect()
    assert found["time_diff"].to_list() == [0.0, 5.0, 86395.0, 5.0, 86395.0, 5.0, 86395.0, 5.0, 86395.0, 5.0]
    assert found["history_position"].to_list() == list(range(10))


def test_the_metadata_of_a_day_is_its_own(runner: Runner) -> None:
    write_csv(runner.dataset.directory / "raw" / "2020-01-02.csv", [row(7, "i9", at("2020-01-02"), "cart")])
    assert runner.run(DAYS[0], DAYS[1]).success
    first, second = runner.metadata("events", DAYS[0]), runner.metadata("events", DAYS[1])
    assert (first["rows_in"], first["rows_out"], first["rows_refused"]) == (7, 6, 1)
    assert first["refused_by_reason"] == {"missing_user_id": 1}
    assert (second["rows_in"], second["rows_out"], second["rows_refused"]) == (1, 1, 0)
    assert second["dagster/row_count"] == 1
    (previewed,) = [record.data for record in second["preview"].records]
    assert (previewed["user_id"], previewed["item_id"]) == (7, "i9")
    assert second["manifest"].endswith("/events/day=2020-01-02/_manifest.json")
    assert first["status"] == second["status"] == "made"
    assert runner.metadata("rejected_events", DAYS[0])["rows_out"] == 1
    users = runner.metadata("user_vocabulary", DAYS[1])
    assert (users["users"], users["new_ids"], users["size"]) == (1, 1, 4)
    features = runner.metadata("features", DAYS[1])
    assert (features["users"], features["items"], features["chunks"], features["device"]) == (1, 1, 1, "cpu")
    assert features["events_per_second"] > 0
    state = runner.metadata("user_state", DAYS[0])
    assert state["rows_out"] == 0  # nobody was seen before
    assert state["events_per_second"] > 0
    assert features["peak_memory_gib"] > 0
    columns = {column.name: column for column in features["dagster/column_schema"].columns}
    assert columns["time_diff"].type == "float32"
    assert "[s]" in columns["time_diff"].description


def test_the_check_has_a_row_per_day_and_proof(runner: Runner) -> None:
    found = evaluations(runner.run(DAYS[0], DAYS[1]))
    assert set(found) == {(asset, check) for asset in MADE for check in ("proof", "proof_again")}
    assert all(evaluation.passed for evaluation in found.values())
    proof = table(found["features", "proof"], "per_day_and_proof")
    assert {line["day"] for line in proof} == set(DAYS[:2])
    assert {line["status"] for line in proof} == {"made"}
    again = table(found["features", "proof_again"], "per_day_and_proof")
    assert {line["status"] for line in again} == {"made by this run"}  # reported, not proven a second time
    assert [line["proof"] for line in again] == [line["proof"] for line in proof]


def test_a_second_run_reuses_and_force_does_not(runner: Runner) -> None:
    assert runner.run(DAYS[0], DAYS[1]).success
    versions = [Store(runner.dataset.root).manifest("features", date.fromisoformat(day)) for day in DAYS[:2]]
    again = runner.run(DAYS[0], DAYS[1])
    assert again.success
    assert [Store(runner.dataset.root).manifest("features", date.fromisoformat(day)) for day in DAYS[:2]] == versions
    assert runner.metadata("features", DAYS[0])["status"] == "reused"
    proof = evaluations(again)["features", "proof"]
    assert proof.passed
    assert {line["status"] for line in table(proof, "per_day_and_proof")} == {"reused"}
    forced = runner.run(DAYS[0], DAYS[1], config={"ops": {"features": {"config": {"force": True}}}})
    assert forced.success
    assert runner.metadata("features", DAYS[0])["status"] == "made"
    assert runner.metadata("events", DAYS[0])["status"] == "reused"


def test_a_bad_day_in_the_middle_stops_no_other_day_of_the_fan_out(runner: Runner) -> None:
    write_csv(runner.dataset.directory / "raw" / "2020-01-03.csv", BAD)
    result = runner.run(DAYS[0], DAYS[-1])
    assert not result.success
    good = [day for day in DAYS if day != "2020-01-03"]
    for asset in ("events", "rejected_events"):
        assert runner.recorded(asset) == runner.published(asset) == good
        evaluation = evaluations(result)[asset, "proof"]
        assert not evaluation.passed
        first = table(evaluation, "per_day_and_proof")[0]
        assert (first["day"], first["passed"], first["proof"]) == ("2020-01-03", False, "the day can be made")
    assert runner.metadata("events", "2020-01-05")["rows_out"] == 6  # also where the step raised
    assert runner.published("user_vocabulary") == []
    said = sentence(result)
    assert said.startswith("events failed for 2020-01-03 (1 of 5 days): ")
    assert "\n" not in said
    later, rest = commands(said)
    assert later == ("user_vocabulary,item_vocabulary,user_state,features", "2020-01-01...2020-01-02")
    assert rest == ("*", "2020-01-03...2020-01-05")

    assert runner.run(DAYS[0], DAYS[1], select=later[0].split(",")).success
    assert runner.published("features") == list(DAYS[:2])
    write_csv(runner.dataset.directory / "raw" / "2020-01-03.csv", raw_day("2020-01-03"))
    assert runner.run(DAYS[2], DAYS[-1]).success
    assert runner.published("features") == list(DAYS)


def test_a_range_over_one_file_of_all_days_records_every_good_day(tmp_path: Path) -> None:
    rows = [one for day in DAYS for one in raw_day(day)]
    bad = [row(None, "i1", at("2020-01-03", f"12:00:0{second}")) for second in range(9)]
    dataset = make_dataset(
        tmp_path, days={"all": [*rows, *bad]}, source={"path": "raw/*.csv"}, quality={"max_rejected_share": 0.5}
    )
    with dg.DagsterInstance.ephemeral() as instance:
        runner = Runner(dataset, instance)
        result = runner.run(DAYS[0], DAYS[-1])
        good = [day for day in DAYS if day != "2020-01-03"]
        for asset in ("events", "rejected_events"):
            assert runner.recorded(asset) == runner.published(asset) == good
        assert sentence(result).startswith(
            "events failed for 2020-01-03 (1 of 5 days): events of 2020-01-03: 10 of 16 rows (62.5%) are refused"
        )
        assert commands(sentence(result))[-1] == ("*", "2020-01-03...2020-01-05")
        per_day = table(evaluations(result)["events", "proof"], "per_day_and_proof")
        assert {(line["day"], line["status"]) for line in per_day if line["passed"]} == {(day, "made") for day in good}
        counted = runner.metadata("events", "2020-01-04")
        assert (counted["rows_in"], counted["rows_out"], counted["rows_refused"]) == (7, 6, 1)

        write_csv(tmp_path / "raw" / "all.csv", rows)
        assert runner.run(DAYS[0], DAYS[-1]).success
        assert runner.recorded("features") == list(DAYS)
        assert runner.run(DAYS[0], DAYS[-1]).success
        assert {runner.metadata("events", day)["status"] for day in DAYS} == {"reused"}


def commands(said: str) -> list[tuple[str, str]]:
    """(selection, days) of each command in a sentence."""
    pattern = r"dagster asset materialize -m pipeline\.definitions --select '([^']+)' --partition(?:-range)? (\S+?)(?=[;,]? |;|$)"
    return re.findall(pattern, said)


def test_the_chain_stops_at_its_first_bad_day(runner: Runner) -> None:
    assert runner.run(DAYS[0], DAYS[1], select=["events", "rejected_events"]).success
    assert runner.run(DAYS[3], DAYS[4], select=["events", "rejected_events"]).success
    result = runner.run(DAYS[0], DAYS[-1], select=["user_state"])
    said = sentence(result)
    assert said.startswith(
        "user_state failed for 2020-01-03, where it stopped (day 3 of 5): events of 2020-01-03 is missing"
    )
    assert runner.recorded("user_state") == runner.published("user_state") == list(DAYS[:2])
    assert commands(said)[-2:] == [("features", "2020-01-01...2020-01-02"), ("*", "2020-01-03...2020-01-05")]


def test_a_single_day_says_only_what_is_wrong_with_it(runner: Runner) -> None:
    write_csv(runner.dataset.directory / "raw" / "2020-01-01.csv", BAD)
    said = sentence(runner.run(DAYS[0]))
    assert "'user'" in said
    assert not commands(said)


@pytest.mark.parametrize("asset", ["user_vocabulary", "user_state"])
def test_a_day_before_its_predecessor_is_refused_with_the_command(runner: Runner, asset: str) -> None:
    assert runner.run(DAYS[1], select=["events", "rejected_events"]).success
    said = sentence(runner.run(DAYS[1], select=[asset]))
    assert f"{asset} of 2020-01-01 is missing" in said
    assert commands(said)[0][0] == asset


def test_a_wrong_number_is_blocked_recorded_and_leaves_the_former_version(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert runner.run(DAYS[0]).success
    former = Store(runner.dataset.root).manifest("features", date(2020, 1, 1))
    right = pipeline.features.core.compute

    def planted(chunk: Any, opening: Any) -> Any:
        computed = dict(right(chunk, opening))
        computed["time_diff"] = computed["time_diff"] + 1
        return computed

    monkeypatch.setattr(pipeline.features.core, "compute", planted)
    forced = {"ops": {"features": {"config": {"force": True}}}}
    result = runner.run(DAYS[0], config=forced)
    assert not result.success
    assert "features of 2020-01-01 was proven wrong and is not published" in sentence(result)
    evaluation = evaluations(result)["features", "proof"]
    assert not evaluation.passed
    differing = table(evaluation, "first_rows_that_differ")[0]
    assert (differing["column"], differing["found"]) == ("time_diff", "1.0")
    assert Store(runner.dataset.root).manifest("features", date(2020, 1, 1)) == former
    assert list((runner.dataset.root / "_failed").rglob("*.parquet"))


def test_all_checks_proves_the_newest_days_without_a_partition(runner: Runner) -> None:
    assert runner.run(DAYS[0], DAYS[2]).success
    found = evaluations(runner.checks())
    assert set(found) == {(asset, "proof_again") for asset in MADE}
    assert all(evaluation.passed for evaluation in found.values())
    lines = table(found["features", "proof_again"], "per_day_and_proof")
    assert {line["day"] for line in lines} == set(DAYS[:3])
    assert {line["status"] for line in lines} == {"proven again"}
    newest = {"ops": {f"prove_{asset}_again": {"config": {"newest_days": 1}} for asset in MADE}}
    lines = table(evaluations(runner.checks(config=newest))["features", "proof_again"], "per_day_and_proof")
    assert {line["day"] for line in lines} == {DAYS[2]}


def test_all_checks_sees_damage_on_disk(runner: Runner) -> None:
    assert runner.run(DAYS[0], DAYS[1]).success
    (file,) = (runner.dataset.root / "features" / "day=2020-01-02").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    found = evaluations(runner.checks())
    assert [name for name, evaluation in found.items() if not evaluation.passed] == [("features", "proof_again")]
    wrong = [line for line in table(found["features", "proof_again"], "per_day_and_proof") if not line["passed"]]
    assert {line["day"] for line in wrong} == {"2020-01-02"}


def test_without_a_published_day_the_check_warns(runner: Runner) -> None:
    found = evaluations(runner.checks())
    assert {(e.passed, e.severity) for e in found.values()} == {(False, dg.AssetCheckSeverity.WARN)}


def test_the_deep_job_proves_from_the_first_day_on(runner: Runner) -> None:
    assert runner.run(DAYS[0], DAYS[2]).success
    found = evaluations(runner.checks("deep_checks"))
    assert all(evaluation.passed for evaluation in found.values())
    deep = {line["proof"] for line in table(found["user_state", "proof_again"], "per_day_and_proof")}
    plain = evaluations(runner.checks())["user_state", "proof_again"]
    assert deep - {line["proof"] for line in table(plain, "per_day_and_proof")}, "the deep form looks at nothing more"


def test_a_check_alone_makes_nothing(runner: Runner) -> None:
    assert runner.run(DAYS[0]).success
    manifest = Store(runner.dataset.root).manifest("events", date(2020, 1, 1))
    selection = dg.AssetSelection.checks(dg.AssetCheckKey(dg.AssetKey("events"), "proof"))
    defs = dg.Definitions.merge(
        runner.definitions(), dg.Definitions(jobs=[dg.define_asset_job("proof_only", selection)])
    )
    result = defs.resolve_job_def("proof_only").execute_in_process(instance=runner.instance)
    assert set(evaluations(result)) == {("events", "proof")}
    assert not result.get_asset_materialization_events()
    assert Store(runner.dataset.root).manifest("events", date(2020, 1, 1)) == manifest


def test_a_run_may_override_chunks_and_device(runner: Runner) -> None:
    assert runner.run(DAYS[0], config={"resources": {"compute": {"config": {"chunk_rows": 2}}}}).success
    assert runner.metadata("features", DAYS[0])["chunks"] == 3
    absent = {"resources": {"compute": {"config": {"device": "cuda:77"}}}}
    said = sentence(runner.run(DAYS[0], select=["features"], config=absent))
    assert said.startswith('[compute] device = "cuda:77"')
    wrong = {"resources": {"compute": {"config": {"device": "gpu"}}}}
    said = sentence(runner.run(DAYS[0], select=["features"], config=wrong))
    assert said == "run config of the compute resource: device: expected auto, cpu, cuda, cuda:N or mps (found 'gpu')"


def test_a_run_without_a_day_makes_nothing_and_says_so(runner: Runner) -> None:
    job = runner.definitions().resolve_job_def("make_days")
    result = job.execute_in_process(instance=runner.instance, raise_on_error=False)
    assert "events is made day by day, and this run names no day" in sentence(result)
    assert runner.published("events") == runner.recorded("events") == []


def test_threads_reach_torch_and_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa
    import torch

    monkeypatch.setenv("POLARS_MAX_THREADS", "2")  # so that it is put back
    before = (torch.get_num_threads(), pa.cpu_count(), pa.io_thread_count())
    try:
        cap_threads(2)
        with dg.DagsterInstance.ephemeral() as instance:
            assert Runner(tiny(tmp_path, compute={"threads": 1}), instance).run(DAYS[0], select=["events"]).success
        assert (torch.get_num_threads(), pa.cpu_count(), pa.io_thread_count()) == (1, 1, 1)
    finally:
        torch.set_num_threads(before[0])
        pa.set_cpu_count(before[1])
        pa.set_io_thread_count(before[2])


def test_a_bug_still_records_what_is_published_and_shows_itself(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pipeline.stages

    right = pipeline.stages.run_day

    def breaks_on_the_third(stage: str, day: date, work: Any) -> Any:
        if day == date(2020, 1, 3):
            raise ZeroDivisionError("a bug")
        return right(stage, day, work)

    monkeypatch.setattr(pipeline.stages, "run_day", breaks_on_the_third)
    result = runner.run(DAYS[0], DAYS[-1])
    (failure,) = [event for event in result.all_events if event.event_type is dg.DagsterEventType.STEP_FAILURE]
    assert "ZeroDivisionError: a bug" in failure.step_failure_data.error.to_string()
    assert runner.recorded("events") == runner.published("events") == list(DAYS[:2])


def test_misspelt_run_config_is_refused(runner: Runner) -> None:
    with pytest.raises(dg.DagsterInvalidConfigError, match="forse"):
        runner.run(DAYS[0], config={"ops": {"events": {"config": {"forse": True}}}})


def test_a_store_of_another_dataset_is_refused(runner: Runner) -> None:
    assert runner.run(DAYS[0]).success
    tiny(runner.dataset.directory, name="other")
    said = sentence(runner.run(DAYS[0], select=["events", "rejected_events"]))
    assert "the store was made with name = 'tiny', the dataset file says 'other'" in said


def dagster(*arguments: str, dataset: Path, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The dagster command as users call it, from the repository root."""
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text((REPOSITORY / "dagster_instance.yaml").read_text())
    return subprocess.run(
        [Path(sys.executable).parent / "dagster", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PIPELINE_DATASET": str(dataset), "DAGSTER_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def materialize(dataset: Dataset, home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ("asset", "materialize", "-m", "pipeline.definitions", *arguments)
    return dagster(*command, dataset=dataset.file, home=home, **environment)


def test_the_commands_of_a_sentence_work_as_they_stand(tmp_path: Path) -> None:
    dataset = tiny(tmp_path)
    write_csv(tmp_path / "raw" / "2020-01-02.csv", BAD)
    failed = materialize(dataset, tmp_path / "home", "--select", "*", "--partition-range", "2020-01-01...2020-01-03")
    assert failed.returncode == 1
    reason = pipeline_command("failure", dataset=dataset, home=tmp_path / "home")
    assert reason.returncode == 1
    assert reason.stdout == ""
    assert reason.stderr.startswith("events failed for 2020-01-02 (1 of 3 days): ")
    later, rest = re.findall(r"dagster (asset materialize [^;,]*?'[^']*' \S+ [^\s;,]+)", reason.stderr)
    write_csv(tmp_path / "raw" / "2020-01-02.csv", raw_day("2020-01-02"))
    for command in (later, rest):
        done = dagster(*shlex.split(command), dataset=dataset.file, home=tmp_path / "home")
        assert done.returncode == 0, done.stderr
    assert [day.isoformat() for day in Store(dataset.root).days("features")] == list(DAYS[:3])
    shown = pipeline_command("show", dataset=dataset, home=tmp_path / "home")
    assert "Features: 18 rows in 3 days" in shown.stdout
    assert re.search(r"features +3 +2 +0 +\d+ +passed +passed", shown.stdout)


def pipeline_command(*arguments: str, dataset: Dataset, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pipeline", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PIPELINE_DATASET": str(dataset.file), "DAGSTER_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_broken_dataset_file_is_one_sentence_on_the_command_line(tmp_path: Path) -> None:
    dataset = tiny(tmp_path)
    dataset.file.write_text(dataset.file.read_text().replace('"partitions"', '"partition"'))
    done = materialize(dataset, tmp_path / "home", "--select", "*", "--partition", "2020-01-01")
    assert done.returncode == 1
    expected = f"{dataset.file}: unknown key 'partition': did you mean 'partitions'?"
    assert done.stderr.splitlines()[-1] == f"Error: {expected}"
    assert "Traceback" not in done.stderr
    checked = pipeline_command("check", dataset=dataset, home=tmp_path / "home")
    assert (checked.returncode, checked.stdout, checked.stderr) == (1, "", f"{expected}\n")


def test_check_prints_one_sentence(tmp_path: Path) -> None:
    dataset = tiny(tmp_path)
    done = pipeline_command("check", dataset=dataset, home=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{dataset.file} is valid: dataset 'tiny', days 2020-01-01..2020-01-05, ")
    assert done.stdout.count("\n") == 1


def test_doctor_names_what_is_there(tmp_path: Path) -> None:
    done = pipeline_command("doctor", dataset=tiny(tmp_path), home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^features +0 +5 +0 ", done.stdout, re.MULTILINE)
    assert "device    auto -> " in done.stdout
    assert not (tmp_path / "out").exists()  # it only looks


def test_with_days_per_run_a_range_on_the_command_line_is_refused(tmp_path: Path) -> None:
    dataset = tiny(tmp_path)
    arguments = ("--select", "*", "--partition-range", "2020-01-01...2020-01-02")
    done = materialize(dataset, tmp_path / "home", *arguments, PIPELINE_DAYS_PER_RUN="1")
    assert done.returncode != 0
    assert "Error: PIPELINE_DAYS_PER_RUN is 1, which cuts a range of days into several runs" in done.stderr
    assert "Traceback" not in done.stderr
    assert not dataset.root.exists()
    chain = ("--select", "events,rejected_events", "--partition", "2020-01-01")
    assert materialize(dataset, tmp_path / "home", *chain, PIPELINE_DAYS_PER_RUN="1").returncode == 0


@pytest.mark.slow
def test_the_multiprocess_executor_gives_the_same_features(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    one, many = tiny(tmp_path / "one"), tiny(tmp_path / "many")
    arguments = ("--select", "*", "--partition-range", "2020-01-01...2020-01-03")
    assert materialize(one, tmp_path / "home", *arguments).returncode == 0
    done = materialize(many, tmp_path / "home", *arguments, PIPELINE_EXECUTOR="multiprocess")
    assert done.returncode == 0, done.stderr
    frames = [scan(dataset.root, "features", DAYS[0], DAYS[2]).collect() for dataset in (one, many)]
    assert frames[0].equals(frames[1])

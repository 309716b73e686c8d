"""The graph as Dagster sees it: keys, edges, policies, names, and what loading it costs and refuses."""

import os
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.partitions.context import partition_loading_context

from pipeline.contracts import PipelineError
from pipeline.definitions import SAMPLE, Environment, build, read_environment
from pipeline_tests.conftest import REPOSITORY
from pipeline_tests.datasets import at, make_dataset, row, write_dataset_file

CHAIN = ("user_vocabulary", "item_vocabulary", "user_state")
MADE = ("events", "rejected_events", *CHAIN, "features")


def graph_of(folder: Path, *, days_per_run: int | None = None, **overrides: object) -> dg.Definitions:
    dataset = make_dataset(folder, **overrides)  # type: ignore[arg-type]
    return build(Environment(dataset=dataset.file, executor="in_process", days_per_run=days_per_run))


def key(name: str) -> dg.AssetKey:
    return dg.AssetKey(name.split("/"))


def test_the_edges_are_those_of_the_contract(tmp_path: Path) -> None:
    graph = graph_of(tmp_path).resolve_asset_graph()
    parents = {
        node.key.to_user_string(): sorted(k.to_user_string() for k in node.parent_keys) for node in graph.asset_nodes
    }
    assert parents == {
        "raw_logs": [],
        "events": ["raw_logs"],
        "rejected_events": ["raw_logs"],
        "user_vocabulary": ["events", "user_vocabulary"],
        "item_vocabulary": ["events", "item_vocabulary"],
        "user_state": ["events", "user_state"],
        "features": ["events", "item_vocabulary", "user_state", "user_vocabulary"],
    }


def test_only_an_asset_of_the_chain_looks_a_day_back_and_only_at_itself(tmp_path: Path) -> None:
    graph = graph_of(tmp_path).resolve_asset_graph()
    for node in graph.asset_nodes:
        for parent in node.parent_keys:
            mapped = graph.get_partition_mapping(node.key, parent)
            needed = mapped.get_upstream_mapped_partitions_result_for_partitions(
                downstream_partitions_subset=node.partitions_def.subset_with_partition_keys(["2020-01-03"]),
                downstream_partitions_def=node.partitions_def,
                upstream_partitions_def=graph.get(parent).partitions_def,
            )
            expected = "2020-01-02" if parent == node.key else "2020-01-03"
            assert list(needed.partitions_subset.get_partition_keys()) == [expected], (node.key, parent)


def test_all_assets_share_one_object_of_days_and_one_group(tmp_path: Path) -> None:
    nodes = list(graph_of(tmp_path).resolve_asset_graph().asset_nodes)
    assert len({id(node.partitions_def) for node in nodes}) == 1
    assert {node.group_name for node in nodes} == {"pipeline"}
    assert nodes[0].partitions_def.get_partition_keys()[0] == "2020-01-01"
    assert nodes[0].partitions_def.get_partition_keys()[-1] == "2020-01-05"  # end is inclusive


def test_without_an_end_the_days_run_on_to_yesterday(tmp_path: Path) -> None:
    nodes = list(graph_of(tmp_path, partitions={"end": None}).resolve_asset_graph().asset_nodes)
    now = datetime(2020, 3, 1, 0, 30, tzinfo=UTC)
    with partition_loading_context(effective_dt=now):
        assert nodes[0].partitions_def.get_partition_keys()[-1] == "2020-02-29"


def test_a_range_is_one_run_and_on_a_cluster_the_fan_out_is_split(tmp_path: Path) -> None:
    def policies(definitions: dg.Definitions) -> dict[str, int | None]:
        graph = definitions.resolve_asset_graph()
        return {name: graph.get(key(name)).backfill_policy.max_partitions_per_run for name in MADE}

    assert policies(graph_of(tmp_path)) == dict.fromkeys(MADE)
    split = policies(graph_of(tmp_path, days_per_run=3))
    assert split == {**dict.fromkeys(CHAIN), "events": 3, "rejected_events": 3, "features": 3}


def test_every_asset_has_both_checks_and_only_features_need_the_pool(tmp_path: Path) -> None:
    definitions = graph_of(tmp_path)
    graph = definitions.resolve_asset_graph()
    checks = {(k.asset_key.to_user_string(), k.name) for k in graph.asset_check_keys}
    assert checks == {(name, check) for name in MADE for check in ("proof", "proof_again")}
    pools = {name: graph.get(key(name)).assets_def.op.pool for name in MADE}
    assert pools == {**dict.fromkeys(MADE), "features": "gpu"}


def test_the_key_prefix_is_in_every_name(tmp_path: Path) -> None:
    definitions = graph_of(tmp_path, dagster={"key_prefix": "shop"})
    graph = definitions.resolve_asset_graph()
    assert {k.to_user_string() for k in graph.get_all_asset_keys()} == {f"shop/{name}" for name in ("raw_logs", *MADE)}
    assert {node.group_name for node in graph.asset_nodes} == {"shop_pipeline"}
    assert graph.get(key("shop/features")).assets_def.op.pool == "shop_gpu"
    repository = definitions.get_repository_def()
    jobs = {name for name in repository.job_names if not name.startswith("__")}
    assert jobs == {"shop_make_days", "shop_all_checks", "shop_deep_checks"}
    assert {schedule.name for schedule in repository.schedule_defs} == {"shop_daily", "shop_deep"}


def test_all_checks_runs_the_steps_of_proof_again_and_no_other(tmp_path: Path) -> None:
    definitions = graph_of(tmp_path)
    for name in ("all_checks", "deep_checks"):
        steps = set(definitions.resolve_job_def(name).graph.node_dict)
        assert steps == {f"prove_{asset}_again" for asset in MADE}
    every = set(definitions.resolve_job_def("make_days").graph.node_dict)
    assert every == {"events", *CHAIN, "features", *(f"prove_{asset}_again" for asset in MADE)}


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_loading_costs_no_torch() -> None:
    code = (
        "import sys; from pipeline.definitions import defs; defs().get_repository_def(); print('torch' in sys.modules)"
    )
    done = python(code)
    assert done.stdout.strip() == "False", done.stderr


def test_events_cost_no_torch(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, days={"2020-01-01": [row(1, "a", at("2020-01-01"))]})
    code = f"""if True:
        import sys
        from pathlib import Path
        from pipeline.config import load_dataset
        from pipeline.stages import Work, run_day
        from pipeline.store import Store
        dataset = load_dataset(Path({str(dataset.file)!r}))
        store = Store(dataset.root)
        work = Work(dataset, (), store, run="r", device=None, chunk_rows=None, force=False, report=lambda line: None)
        print(run_day("events", dataset.partitions.start, work).manifest.rows, "torch" in sys.modules)
    """
    done = python(code)
    assert done.stdout.strip() == "1 False", done.stderr


def test_threads_reach_polars(tmp_path: Path) -> None:
    file = write_dataset_file(tmp_path / "dataset.toml", compute={"threads": 1})
    code = "from pipeline.definitions import defs; defs(); import polars; print(polars.thread_pool_size())"
    assert python(code, PIPELINE_DATASET=str(file)).stdout.strip() == "1"


def test_the_environment_is_read_strictly() -> None:
    assert read_environment({}) == Environment(dataset=SAMPLE, executor="in_process", days_per_run=None)
    said = {"PIPELINE_DATASET": "a.toml", "PIPELINE_EXECUTOR": "multiprocess", "PIPELINE_DAYS_PER_RUN": "7"}
    assert read_environment(said) == Environment(dataset=Path("a.toml"), executor="multiprocess", days_per_run=7)
    for wrong, part in (
        ({"PIPELINE_EXECUTOR": "k8s"}, "k8s is not supported yet"),
        ({"PIPELINE_EXECUTOR": "threads"}, "found 'threads', expected in_process or multiprocess"),
        ({"PIPELINE_DAYS_PER_RUN": "0"}, "found '0', expected a number of days"),
        ({"PIPELINE_DAYS_PER_RUN": "a week"}, "found 'a week', expected a number of days"),
    ):
        with pytest.raises(PipelineError, match=part):
            read_environment(wrong)


def test_the_executor_is_the_one_asked_for(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path)
    for name in ("in_process", "multiprocess"):
        definitions = build(Environment(dataset=dataset.file, executor=name, days_per_run=None))
        assert definitions.resolve_job_def("make_days").executor_def.name == name


def test_a_broken_dataset_file_fails_the_load_with_its_sentence(tmp_path: Path) -> None:
    file = write_dataset_file(tmp_path / "dataset.toml", compute={"chunk_row": 5})
    with pytest.raises(PipelineError, match="did you mean 'chunk_rows'"):
        build(Environment(dataset=file, executor="in_process", days_per_run=None))
    file = write_dataset_file(tmp_path / "dataset.toml", features={"use": ["core", "histroy_position"]})
    with pytest.raises(PipelineError, match="did you mean 'history_position'"):
        build(Environment(dataset=file, executor="in_process", days_per_run=None))


def test_the_default_dataset_is_the_sample() -> None:
    days = build(read_environment({})).resolve_asset_graph().get(key("features")).partitions_def.get_partition_keys()
    assert (days[0], days[-1]) == (date(2025, 3, 3).isoformat(), date(2025, 3, 9).isoformat())

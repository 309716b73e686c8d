"""What `workspace.yaml` loads; the only place that reads the environment.

| variable | meaning |
|---|---|
| `PIPELINE_DATASET` | path of the dataset file; default: the sample's |
| `PIPELINE_EXECUTOR` | `in_process` (default) or `multiprocess` |
| `PIPELINE_DAYS_PER_RUN` | days of `events` and `features` that one run of a backfill makes; default: all |
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import dagster as dg

from pipeline.config import Dataset, load_dataset
from pipeline.contracts import Feature, PipelineError
from pipeline.features import load_features, output_columns

SAMPLE = Path(__file__).parent.parent / "data" / "sample" / "dataset.toml"
EXECUTORS = {"in_process": dg.in_process_executor, "multiprocess": dg.multiprocess_executor}


@dataclass(frozen=True, slots=True)
class Environment:
    """What the environment says.

    Attributes:
        dataset: The dataset file.
        executor: One of `EXECUTORS`.
        days_per_run: Days of a fan-out asset that one run of a backfill makes; None: all.
    """

    dataset: Path
    executor: str
    days_per_run: int | None


def read_environment(variables: Mapping[str, str] = os.environ) -> Environment:
    """Reads the variables that the pipeline knows.

    Raises:
        PipelineError: A value that is not known.
    """
    executor = variables.get("PIPELINE_EXECUTOR") or "in_process"
    if executor == "k8s":
        raise PipelineError(
            "PIPELINE_EXECUTOR = k8s is not supported yet; use multiprocess, or leave it out to run in process"
        )
    if executor not in EXECUTORS:
        raise PipelineError(f"PIPELINE_EXECUTOR: found '{executor}', expected in_process or multiprocess")
    days = variables.get("PIPELINE_DAYS_PER_RUN") or None
    if days is not None and (not days.isascii() or not days.isdigit() or int(days) < 1):
        raise PipelineError(f"PIPELINE_DAYS_PER_RUN: found '{days}', expected a number of days, 1 or more")
    dataset = Path(variables.get("PIPELINE_DATASET") or SAMPLE)
    return Environment(dataset=dataset, executor=executor, days_per_run=None if days is None else int(days))


def prepare(dataset: Dataset) -> tuple[Feature, ...]:
    """Finds the features of a dataset, and caps polars' threads: it reads their number once, on its first import.

    Raises:
        PipelineError: A feature is not known, or two declare the same column.
    """
    if dataset.compute.threads is not None:
        os.environ["POLARS_MAX_THREADS"] = str(dataset.compute.threads)
    features = load_features(dataset.features.use, dataset.features.parameters)
    output_columns(features, dataset)
    return features


def build(environment: Environment) -> dg.Definitions:
    """All definitions of a dataset.

    Raises:
        PipelineError: The dataset file is wrong.
    """
    dataset = load_dataset(environment.dataset)
    features = prepare(dataset)

    from pipeline.asset_checks import build_checks
    from pipeline.assets import build_assets
    from pipeline.automation import build_jobs, build_partitions, build_schedules
    from pipeline.resources import Compute, Lake

    partitions = build_partitions(dataset)
    jobs = build_jobs(dataset)
    return dg.Definitions(
        assets=build_assets(
            dataset=dataset, features=features, partitions=partitions, days_per_run=environment.days_per_run
        ),
        asset_checks=build_checks(dataset=dataset, features=features),
        jobs=jobs,
        schedules=build_schedules(dataset, jobs),
        resources={
            "lake": Lake(root=str(dataset.root)),
            "compute": Compute(),
        },
        executor=EXECUTORS[environment.executor],
    )


def _refuse_range(environment: Environment, arguments: Sequence[str]) -> None:
    """Dagster refuses a range of days that is cut into runs too, but after a traceback and without naming the variable."""
    if environment.days_per_run is not None and any(word.startswith("--partition-range") for word in arguments):
        raise PipelineError(
            f"PIPELINE_DAYS_PER_RUN is {environment.days_per_run}, which cuts a range of days into several runs, and the command "
            "line makes one run only: start a backfill in the UI, or unset the variable to make the range in one run"
        )


@dg.definitions
def defs() -> dg.Definitions:
    """What Dagster loads.

    Raises:
        ClickException: The sentence of a PipelineError; the dagster command prints it alone, without a traceback.
    """
    try:
        environment = read_environment()
        _refuse_range(environment, sys.argv)
        return build(environment)
    except PipelineError as error:
        raise click.ClickException(str(error)) from None

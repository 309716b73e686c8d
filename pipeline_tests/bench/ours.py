"""Ours: the whole graph on one raw day, every stage proven before it is published, the seconds of making and proving apart."""

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch  # noqa: F401 - outside the clock, like everybody's imports; the stages import it when they need it

from pipeline.config import load_dataset
from pipeline.stages import STAGES, Work, run_day
from pipeline.store import Store
from pipeline_tests.bench.dataset import write_dataset
from pipeline_tests.bench.logs import DAY
from pipeline_tests.bench.protocol import run
from pipeline_tests.works import work_of


def prepare(raw: Path, out: Path) -> Work:
    """An empty store and a dataset file for the day of `raw`."""
    shutil.rmtree(out / "store", ignore_errors=True)
    write_dataset(out, raw=raw, start=DAY)
    return open_work(out)


def open_work(folder: Path) -> Work:
    """What a run of `folder/dataset.toml` works with."""
    dataset = load_dataset(folder / "dataset.toml")
    Store(dataset.root).open_for(dataset)
    return work_of(dataset, run="bench", force=True)


def convert(raw: Path, out: Path) -> Mapping[str, Any]:
    """Runs every stage on the day of `raw`."""
    return whole_graph(prepare(raw, out), out)


def whole_graph(work: Work, out: Path) -> Mapping[str, Any]:
    """Runs every stage on `DAY`.

    Returns:
        `rows`, `output`, and a table each of: `stages`, seconds to make; `proofs`, seconds to prove and publish; `cpu`,
        seconds of processor time for both; `parts`, what each proof consists of, part -> seconds.
    """
    outcomes, cpu = {}, {}
    for asset in STAGES:
        began = time.process_time()
        outcomes[asset] = run_day(asset, DAY, work)
        cpu[asset] = time.process_time() - began
    return {
        "rows": outcomes["features"].manifest.rows,
        "stages": {asset: outcome.make_s for asset, outcome in outcomes.items()},
        "proofs": {asset: outcome.prove_s for asset, outcome in outcomes.items()},
        "cpu": cpu,
        "parts": {asset: outcome.proof.figures.get("seconds_a_part", {}) for asset, outcome in outcomes.items()},
        "output": str(work.store.directory("features", DAY).relative_to(out.resolve())),
    }


if __name__ == "__main__":
    run("ours", convert)

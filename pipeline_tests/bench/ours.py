"""Ours: the whole graph on one raw day, stage by stage, with the seconds of making and of proving apart.

`wall_s` covers the whole graph with all proofs; `stages` says what each part takes, so that the page can put the two
steps `events` and `features` beside a competitor that proves nothing.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.config import load_dataset
from pipeline.stages import STAGES, Work, run_day
from pipeline.store import Store
from pipeline_tests.bench.logs import ACTIONS, DAY
from pipeline_tests.bench.protocol import run
from pipeline_tests.works import work_of

DATASET = """
name = "bench"
[partitions]
start = "{day}"
end = "{day}"
[source]
path = "{raw}"
[columns]
user_id = {{ from = "user_id", type = "int64" }}
item_id = {{ from = "item_id", type = "int64" }}
timestamp = {{ from = "timestamp", unit = "ms" }}
action = {{ from = "action" }}
[actions]
names = {actions}
[features]
use = ["core"]
[store]
root = "store"
"""


def prepare(raw: Path, out: Path) -> Work:
    """An empty store and a dataset file for the day of `raw`."""
    shutil.rmtree(out / "store", ignore_errors=True)
    file = out / "dataset.toml"
    file.write_text(DATASET.format(day=DAY, raw=raw.resolve(), actions=list(ACTIONS)).replace("'", '"'))
    dataset = load_dataset(file)
    store = Store(dataset.root)
    store.open_for(dataset)
    return work_of(dataset, run="bench", force=True)


def convert(raw: Path, out: Path) -> Mapping[str, Any]:
    """Runs every stage on the day of `raw`."""
    work = prepare(raw, out)
    outcomes = {asset: run_day(asset, DAY, work) for asset in STAGES}
    return {
        "rows": outcomes["features"].manifest.rows,
        "stages": {asset: outcome.make_s for asset, outcome in outcomes.items()},
        "proofs": {asset: outcome.prove_s for asset, outcome in outcomes.items()},
        "output": str(work.store.directory("features", DAY).relative_to(out.resolve())),
    }


if __name__ == "__main__":
    run("ours", convert)

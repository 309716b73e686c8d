"""Ours: the stage `events` on one CSV file of one day: read, typed, validated, sorted, written; then counted again from its bytes."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.checks.raw import Wanted, read_records
from pipeline.config import load_dataset
from pipeline.events import make_events
from pipeline.memory import keep_freed
from pipeline.store import Store
from pipeline_tests.bench.dataset import write_dataset
from pipeline_tests.bench.logs import DAY
from pipeline_tests.bench.protocol import run


def convert(raw: Path, out: Path) -> Mapping[str, Any]:
    """Makes `events` of the day of `raw`, without a proof, and counts the records of `raw` by the code that proofs use."""
    keep_freed()
    write_dataset(out, raw=raw, start=DAY)
    dataset = load_dataset(out / "dataset.toml")
    store = Store(dataset.root)
    store.open_for(dataset)
    began = time.perf_counter()
    staged, _ = make_events(day=DAY, dataset=dataset, store=store, run="bench", report=lambda _line: None)
    made = time.perf_counter()
    reading = read_records(raw, dataset=dataset, wanted=Wanted(()))
    assert reading.records == staged.manifest.rows
    return {
        "rows": staged.manifest.rows,
        "stages": {"events": made - began, "the independent count": time.perf_counter() - made},
    }


if __name__ == "__main__":
    run("ours_events", convert)

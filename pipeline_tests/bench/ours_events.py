"""Ours: the stage `events` on one CSV file of one day: read, typed, validated, sorted, written; then counted again from its bytes."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.checks.raw import Wanted, read_records
from pipeline.events import make_events
from pipeline_tests.bench.logs import DAY
from pipeline_tests.bench.ours import prepare
from pipeline_tests.bench.protocol import run


def convert(raw: Path, out: Path) -> Mapping[str, Any]:
    """Makes `events` of the day of `raw`, without a proof, and counts the records of `raw` by the code that proofs use."""
    work = prepare(raw, out)
    began = time.perf_counter()
    staged, _ = make_events(day=DAY, dataset=work.dataset, store=work.store, run="bench", report=work.report)
    made = time.perf_counter()
    reading = read_records(raw, dataset=work.dataset, wanted=Wanted(()))
    assert reading.records == staged.manifest.rows
    return {
        "rows": staged.manifest.rows,
        "stages": {"events": made - began, "the independent count": time.perf_counter() - made},
    }


if __name__ == "__main__":
    run("ours_events", convert)

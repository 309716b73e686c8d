"""What each proof costs beside the step that it judges, on a whole dataset.

`python -m pipeline_tests.bench.proofs DATASET.toml` makes all days into a temporary store and prints a Markdown table.
"""

import sys
import tempfile
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from pipeline.config import load_dataset
from pipeline.stages import STAGES, run_day
from pipeline.store import Store
from pipeline_tests.works import work_of


def measure(dataset_file: Path, root: Path) -> str:
    """Makes every day of a dataset; the seconds of all days together, as a table."""
    dataset = load_dataset(dataset_file)
    work = replace(work_of(dataset, run="cost"), store=Store(root))
    days = (dataset.last_day() - dataset.partitions.start).days + 1
    lines = [f"| {dataset.name}, {days} days | make, s | prove, s | of which |", "|---|--:|--:|---|"]
    for asset in STAGES:
        made = proved = 0.0
        parts: Counter[str] = Counter()
        for number in range(days):
            outcome = run_day(asset, dataset.partitions.start + timedelta(days=number), work)
            assert outcome.proof is not None
            made, proved = made + outcome.make_s, proved + outcome.prove_s
            parts.update(outcome.proof.figures["seconds_a_part"])
        shown = ", ".join(f"{part} {seconds:.2f}" for part, seconds in parts.most_common())
        lines.append(f"| `{asset}` | {made:.2f} | {proved:.2f} | {shown} |")
    return "\n".join(lines)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        sys.stdout.write(measure(Path(sys.argv[1]), Path(name)) + "\n")

"""Golden hashes of the sample: output that changes needs a raised VERSION.

`python -m pipeline_tests.test_golden` writes golden.json anew, after a VERSION was raised.
"""

import json
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.chunks import resolve_device
from pipeline.config import load_dataset
from pipeline.features import load_features
from pipeline.stages import STAGES, Work, run_day
from pipeline.store import Store

SAMPLE = Path(__file__).parents[1] / "data" / "sample" / "dataset.toml"
GOLDEN = Path(__file__).with_name("golden.json")


def make_sample(root: Path) -> dict[str, Any]:
    """Asset -> its code versions, and the content version of each day."""
    dataset = load_dataset(SAMPLE)
    work = Work(
        dataset=dataset,
        features=load_features(("core", "history_position"), {}),
        store=Store(root),
        run="golden",
        device=resolve_device("cpu"),
        chunk_rows=1000,
        force=False,
        report=lambda _line: None,
    )
    made: dict[str, Any] = {}
    for asset in STAGES:
        for number in range(7):
            outcome = run_day(asset, dataset.partitions.start + timedelta(days=number), work)
            for manifest in (outcome.manifest, outcome.companion):
                if manifest is not None:
                    entry = made.setdefault(manifest.asset, {"code": dict(manifest.code), "days": {}})
                    entry["days"][manifest.day.isoformat()] = manifest.content_version
    return made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return make_sample(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize(
    "asset", ["events", "rejected_events", "user_vocabulary", "item_vocabulary", "user_state", "features"]
)
def test_output_changes_only_with_a_version(made: dict[str, Any], asset: str) -> None:
    golden = json.loads(GOLDEN.read_text())[asset]
    assert made[asset]["code"] == golden["code"], (
        f"a VERSION behind {asset} was raised: run python -m pipeline_tests.test_golden and commit golden.json"
    )
    assert made[asset]["days"] == golden["days"], (
        f"the output of {asset} changed, and no VERSION was raised: raise it, or undo the change"
    )


def test_every_day_and_version_is_held() -> None:
    golden = json.loads(GOLDEN.read_text())
    assert golden["features"]["code"] == {"outputs": 2, "core": 1, "history_position": 1}
    assert golden["events"]["code"] == {"events": 3, "sources.csv": 1}
    assert {len(entry["days"]) for entry in golden.values()} == {7}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        GOLDEN.write_text(json.dumps(make_sample(Path(name)), indent=1) + "\n")
    sys.stdout.write(f"wrote {GOLDEN.name}\n")

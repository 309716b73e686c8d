"""The benchmark compares equals with equals, and would notice if it did not."""

import importlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pipeline.stages import STAGES
from pipeline.store import Store
from pipeline_tests.bench.__main__ import COMPETITORS, _summary, main
from pipeline_tests.bench.compare import CORE, OutputsDifferError, same_output
from pipeline_tests.bench.competitors import torch_scalars
from pipeline_tests.bench.logs import ACTIONS, DAY, write_logs
from pipeline_tests.bench.measure import ROOT, Command, LeftOutError, interleaved, medians, ratios, run_once
from pipeline_tests.bench.protocol import PROC_STATUS

OURS = "pipeline_tests.bench.ours"
UNPROVEN = "pipeline_tests.bench.ours_unproven"
MODULES = (OURS, UNPROVEN, *COMPETITORS)
MIDNIGHT_MS = 1_741_564_800_000  # 2025-03-10


def _convert(module: str, raw: Path, out: Path) -> tuple[Path, dict]:
    """Runs a script in this process; the folder of its features and what it returned."""
    pytest.importorskip(COMPETITORS.get(module, "torch"), reason="an optional competitor")
    out.mkdir(exist_ok=True)
    found = importlib.import_module(module).convert(raw, out)
    return out / found.get("output", "."), found


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "raw.parquet"
    write_logs(path, events=20_000, users=500, items=300, seed=3)
    return path


@pytest.fixture(scope="module")
def polars(raw: Path) -> Path:
    """What one competitor wrote."""
    folder, _ = _convert("pipeline_tests.bench.competitors.polars_window", raw, raw.parent / "polars")
    return folder


def test_generated_day_is_in_time_order_with_heavy_users_and_ties(raw: Path) -> None:
    logs = pl.read_parquet(raw)
    assert dict(logs.schema) == {
        "user_id": pl.Int64, "item_id": pl.Int64, "timestamp": pl.Int64, "action": pl.String,
    }  # fmt: skip
    assert len(logs) == 20_000
    assert logs["timestamp"].is_sorted()
    assert (logs["timestamp"] % 1000 == 0).all()
    assert {datetime.fromtimestamp(ms / 1000, UTC).date() for ms in logs["timestamp"]} == {DAY}
    assert logs["user_id"].n_unique() == 500
    assert set(logs["action"]) == set(ACTIONS)
    counts = logs["user_id"].value_counts()["count"]
    assert counts.max() > 10 * counts.median()
    assert 20_000 - len(logs.unique(["user_id", "timestamp"])) > 1_000
    assert not logs["user_id"].is_sorted()


def test_generated_day_is_reproducible(raw: Path, tmp_path: Path) -> None:
    write_logs(tmp_path / "again.parquet", events=20_000, users=500, items=300, seed=3)
    write_logs(tmp_path / "other.parquet", events=20_000, users=500, items=300, seed=4)
    logs = pl.read_parquet(raw)
    assert logs.equals(pl.read_parquet(tmp_path / "again.parquet"))
    assert not logs.equals(pl.read_parquet(tmp_path / "other.parquet"))


def test_a_day_made_in_slices_is_a_day_like_any_other(raw: Path, tmp_path: Path) -> None:
    write_logs(tmp_path / "sliced.parquet", events=20_000, users=500, items=300, seed=3, slice_rows=3_000)
    assert [path.name for path in tmp_path.iterdir()] == ["sliced.parquet"]
    logs = pl.read_parquet(tmp_path / "sliced.parquet")
    assert len(logs) == 20_000
    assert logs["timestamp"].is_sorted()
    assert logs["user_id"].n_unique() == 500
    whole = pl.read_parquet(raw)
    ties = [len(log) - log.select(pl.struct("user_id", "timestamp").n_unique()).item() for log in (logs, whole)]
    assert ties[0] == pytest.approx(ties[1], rel=0.1)
    hours = [log["timestamp"].quantile(0.5) for log in (logs, whole)]
    assert hours[0] == pytest.approx(hours[1], abs=20 * 60_000)


@pytest.mark.parametrize("module", MODULES)
def test_six_events_by_hand(module: str, tmp_path: Path) -> None:
    seconds = [10, 10, 11, 11, 11, 14]
    pl.DataFrame(
        {
            "user_id": [900, 30, 900, 900, 30, 900],
            "item_id": [7, 8, 7, 9, 7, 7],
            "timestamp": [MIDNIGHT_MS + 1000 * second for second in seconds],
            "action": ["view", "view", "cart", "purchase", "view", "favorite"],
        }
    ).write_parquet(tmp_path / "raw.parquet")
    folder, found = _convert(module, tmp_path / "raw.parquet", tmp_path / "out")
    assert found["rows"] == 6
    features = pl.concat([pl.read_parquet(file) for file in folder.glob("*.parquet")]).sort("row_id")
    assert dict(features.schema) == CORE
    assert features.drop("timestamp").to_dict(as_series=False) == {
        "row_id": [0, 1, 2, 3, 4, 5],
        "user_id": [900, 30, 900, 900, 30, 900],
        "item_id": [7, 8, 7, 9, 7, 7],
        "user_index": [3, 2, 3, 3, 2, 3],
        "item_index": [2, 3, 2, 4, 2, 2],
        "time_diff": [0.0, 0.0, 1.0, 0.0, 1.0, 3.0],
        "is_first": [True, True, False, False, False, False],
        "action_view": [1, 1, 0, 0, 1, 0],
        "action_favorite": [0, 0, 0, 0, 0, 1],
        "action_cart": [0, 0, 1, 0, 0, 0],
        "action_purchase": [0, 0, 0, 1, 0, 0],
    }
    assert features["timestamp"].to_list() == [datetime(2025, 3, 10, 0, 0, s, tzinfo=UTC) for s in seconds]


@pytest.mark.parametrize("module", MODULES)
def test_all_outputs_are_equal(module: str, raw: Path, polars: Path, tmp_path: Path) -> None:
    folder, found = _convert(module, raw, tmp_path / "out")
    assert found["rows"] == 20_000
    assert same_output(polars, folder) == 20_000


@pytest.mark.parametrize("module", [module for module in MODULES if not module.endswith("torch_scalars")])
def test_a_log_that_is_not_in_time_order_gives_equal_outputs(module: str, raw: Path, tmp_path: Path) -> None:
    pl.read_parquet(raw).sample(fraction=1, shuffle=True, seed=1).write_parquet(tmp_path / "raw.parquet")
    loop, _ = _convert("pipeline_tests.bench.competitors.plain_loop", tmp_path / "raw.parquet", tmp_path / "loop")
    folder, _ = _convert(module, tmp_path / "raw.parquet", tmp_path / "out")
    assert same_output(loop, folder) == 20_000


def test_ours_says_what_each_stage_and_each_proof_took(raw: Path, tmp_path: Path) -> None:
    _, proven = _convert(OURS, raw, tmp_path / "proven")
    _, unproven = _convert(UNPROVEN, raw, tmp_path / "unproven")
    assert set(proven["stages"]) == set(proven["proofs"]) == set(proven["cpu"]) == set(proven["parts"]) == set(STAGES)
    assert set(unproven["stages"]) == set(unproven["cpu"]) == set(STAGES)
    assert "proofs" not in unproven
    assert proven["parts"]["events"]
    for name, expected in (("proven", True), ("unproven", False)):
        store = Store(tmp_path / name / "store")
        manifests = [store.manifest(asset, DAY) for asset in STAGES]
        assert [bool(manifest.proof) for manifest in manifests] == [expected] * len(STAGES)


def test_torch_scalars_computes_a_slice_and_scales(
    raw: Path, polars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_scalars, "SLICE", 2_000)
    found = torch_scalars.convert(raw, tmp_path)
    assert (found["rows"], found["scaled_to"]) == (2_000, 20_000)
    assert same_output(polars, tmp_path, first_rows=2_000) == 2_000
    with pytest.raises(OutputsDifferError, match=r"holds 20000 rows, .* holds 2000"):
        same_output(polars, tmp_path)


def _one_float_step(value: float) -> float:
    return float(np.nextafter(np.float32(value), np.float32(np.inf)))


@pytest.mark.parametrize(
    ("column", "changed"),
    [
        ("time_diff", _one_float_step),
        ("time_diff", lambda value: -0.0),
        ("user_index", lambda value: value + 1),
        ("is_first", lambda value: not value),
        ("action_cart", lambda value: 1 - value),
        ("timestamp", lambda value: value.replace(microsecond=1)),
    ],
)
def test_one_planted_value_is_found(column: str, changed: object, polars: Path, tmp_path: Path) -> None:
    features = pl.read_parquet(polars / "features.parquet").sort("row_id")
    row = 12_345 if column != "time_diff" else int(np.flatnonzero(features["is_first"].to_numpy())[7])
    values = features[column].to_list()
    values[row] = changed(values[row])
    planted = features.with_columns(pl.Series(column, values, dtype=features.schema[column]))
    planted.sample(fraction=1, shuffle=True, seed=1).write_parquet(tmp_path / "features.parquet")
    with pytest.raises(OutputsDifferError, match=f"1 rows differ in {column}, the first at row_id {row}:"):
        same_output(polars, tmp_path)


def test_outputs_of_another_shape_are_refused(polars: Path, tmp_path: Path) -> None:
    features = pl.read_parquet(polars / "features.parquet").sort("row_id")
    target = tmp_path / "features.parquet"
    with pytest.raises(OutputsDifferError, match="no Parquet file"):
        same_output(polars, tmp_path)
    features.with_columns(pl.col("time_diff").cast(pl.Float64)).write_parquet(target)
    with pytest.raises(OutputsDifferError, match="time_diff is Float64, expected Float32"):
        same_output(polars, tmp_path)
    features.drop("is_first").write_parquet(target)
    with pytest.raises(OutputsDifferError, match="is_first is missing"):
        same_output(polars, tmp_path)
    pl.concat([features.head(-1), features.slice(5, 1)]).write_parquet(target)
    with pytest.raises(OutputsDifferError, match="row_id 5 occurs twice"):
        same_output(polars, tmp_path)


def _line(name: str, wall_s: float) -> str:
    line = {"name": name, "rows": 5, "import_s": 0.1, "wall_s": wall_s, "cpu_s": 1.0, "peak_bytes": 2**20}
    return json.dumps(line)


def test_commands_are_interleaved_and_ratios_are_taken_within_rounds(tmp_path: Path) -> None:
    order = tmp_path / "order.txt"
    script = "import sys; open(sys.argv[1], 'a').write(sys.argv[2]); print('noise'); print(sys.argv[3])"
    commands = [
        Command(name, (sys.executable, "-c", script, str(order), name, _line(name, wall)), tmp_path / name)
        for name, wall in (("a", 2.0), ("b", 3.0))
    ]
    lines = interleaved(commands, runs=3)
    assert order.read_text() == "abbaab"
    assert [line["wall_s"] for line in lines["b"]] == [3.0, 3.0, 3.0]
    rounds = {"a": [{"wall_s": 1.0}, {"wall_s": 2.0}, {"wall_s": 9.0}],
              "b": [{"wall_s": 3.0}, {"wall_s": 8.0}, {"wall_s": 9.0}]}  # fmt: skip
    assert ratios(rounds, reference="a") == {"a": 1.0, "b": 3.0}
    assert medians([{"wall_s": w, "stages": {"x": 2 * w}} for w in (1.0, 9.0, 2.0)]) == {
        "wall_s": 2.0, "stages": {"x": 4.0},
    }  # fmt: skip


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"broken ended with 1: .*no such thing"):
        run_once(Command("broken", (sys.executable, "-c", "raise SystemExit('no such thing')"), tmp_path))
    with pytest.raises(RuntimeError, match="silent printed no JSON line"):
        run_once(Command("silent", (sys.executable, "-c", ""), tmp_path))


@pytest.mark.skipif(not PROC_STATUS.exists(), reason="only Linux hands the peak down from parent to child")
def test_peak_memory_of_a_child_is_not_that_of_its_parent() -> None:
    ballast = np.ones(400 * 2**20, dtype=np.uint8)
    script = "from pipeline_tests.bench.protocol import peak_bytes; print(peak_bytes())"
    printed = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True).stdout
    assert int(printed) < 100 * 2**20 < len(ballast)


def test_a_competitor_that_cannot_do_it_is_left_out_and_says_why(tmp_path: Path) -> None:
    scripts = {
        "slow": ("import time; time.sleep(60)", "it takes more than 0.5 s"),
        "killed": (
            "import os; os.kill(os.getpid(), 9)",
            "the system ended it, since it needs more memory than there is",
        ),
        "full": (
            "raise MemoryError('no room\\nPossible solutions: ...')",
            "it needs more memory than it may have (MemoryError: no room)",
        ),
    }
    for name, (script, why) in scripts.items():
        command = Command(name, (sys.executable, "-c", script), tmp_path / name, limit_s=0.5 if name == "slow" else 60)
        with pytest.raises(LeftOutError, match=re.escape(why)):
            run_once(command)
        if name != "slow":  # ours has no limit, and has to succeed
            with pytest.raises(RuntimeError, match=f"{name} ended with"):
                run_once(replace(command, limit_s=None))
    good = Command("good", (sys.executable, "-c", f"print({_line('good', 1.0)!r})"), tmp_path / "good")
    left_out: dict[str, str] = {}
    lines = interleaved([good, command], runs=2, left_out=left_out)
    assert set(lines) == {"good"}
    assert len(lines["good"]) == 2
    assert left_out == {"full": "it needs more memory than it may have (MemoryError: no room)"}


@pytest.mark.parametrize("module", COMPETITORS)
def test_every_competitor_is_described_in_one_line(module: str) -> None:
    assert 20 < len(_summary(module)) <= 120


@pytest.mark.slow
def test_whole_benchmark_writes_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    modules = {
        module: needed for module, needed in COMPETITORS.items() if module.endswith(("polars_window", "torch_scalars"))
    }
    monkeypatch.setattr(
        "pipeline_tests.bench.__main__.COMPETITORS", modules | {"pipeline_tests.bench.competitors.x": "not_installed"}
    )
    page = tmp_path / "page.md"
    main(["--events", "3000", "2000", "--runs", "1", "1", "--out", str(page), "--workdir", str(tmp_path)])
    printed, text = capsys.readouterr().out, page.read_text()
    assert "skipped x: not_installed is not installed; pip install '.[bench]' brings it" in printed
    assert "Equal to ours, bit for bit: ours_unproven, polars_window, torch_scalars in 3,000 rows." in text
    for row in ("polars_window", "torch_scalars (scaled)", "ours: whole graph, all proofs"):
        assert text.count(f"\n| {row} | ") == 2
    titles = ["3,000 events in a day", "2,000 events in a day", "Kernels against their own oracles", "Measured on"]
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == titles
    assert "--events 3000 2000 --runs 1 1" in text
    assert str(tmp_path) not in text
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]

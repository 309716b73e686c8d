"""The benchmark compares equals with equals, and would notice if it did not."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pipeline_tests.bench import report
from pipeline_tests.bench.__main__ import COMPETITORS, main
from pipeline_tests.bench.competitors import duckdb_script, plain_loop, polars_script, torch_scalars
from pipeline_tests.bench.logs import ACTIONS, DAY, write_logs
from pipeline_tests.bench.measure import (
    CORE,
    ROOT,
    Command,
    OutputsDifferError,
    interleaved,
    medians,
    ratios,
    run_once,
    same_output,
)
from pipeline_tests.bench.protocol import PROC_STATUS

CONVERTERS = {
    "polars": polars_script.convert,
    "pyarrow": plain_loop.convert,
    "torch": torch_scalars.convert,
    "duckdb": duckdb_script.convert,
}
MIDNIGHT_MS = 1_741_564_800_000  # 2025-03-10


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "raw.parquet"
    write_logs(path, events=20_000, users=500, items=300, seed=3)
    return path


@pytest.fixture(scope="module")
def outputs(raw: Path) -> dict[str, Path]:
    folders = {}
    for package, convert in CONVERTERS.items():
        if package == "duckdb":
            try:
                import duckdb  # noqa: F401
            except ImportError:
                continue
        folders[package] = raw.parent / package
        folders[package].mkdir()
        assert convert(raw, folders[package])["rows"] == 20_000
    return folders


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


@pytest.mark.parametrize("package", CONVERTERS)
def test_six_events_by_hand(package: str, tmp_path: Path) -> None:
    if package == "duckdb":
        pytest.importorskip("duckdb", reason="duckdb is an optional competitor")
    seconds = [10, 10, 11, 11, 11, 14]
    pl.DataFrame(
        {
            "user_id": [900, 30, 900, 900, 30, 900],
            "item_id": [7, 8, 7, 9, 7, 7],
            "timestamp": [MIDNIGHT_MS + 1000 * second for second in seconds],
            "action": ["view", "view", "cart", "purchase", "view", "view"],
        }
    ).write_parquet(tmp_path / "raw.parquet")
    CONVERTERS[package](tmp_path / "raw.parquet", tmp_path)
    features = pl.read_parquet(tmp_path / "features.parquet").sort("row_id")
    assert dict(features.schema) == CORE
    assert features.drop("timestamp").to_dict(as_series=False) == {
        "row_id": [0, 1, 2, 3, 4, 5],
        "user_id": [900, 30, 900, 900, 30, 900],
        "item_id": [7, 8, 7, 9, 7, 7],
        "user_index": [3, 2, 3, 3, 2, 3],
        "item_index": [2, 3, 2, 4, 2, 2],
        "time_diff": [0.0, 0.0, 1.0, 0.0, 1.0, 3.0],
        "is_first": [True, True, False, False, False, False],
        "action_view": [1, 1, 0, 0, 1, 1],
        "action_cart": [0, 0, 1, 0, 0, 0],
        "action_purchase": [0, 0, 0, 1, 0, 0],
    }
    assert features["timestamp"].to_list() == [datetime(2025, 3, 10, 0, 0, s, tzinfo=UTC) for s in seconds]


def test_competitors_agree(outputs: dict[str, Path]) -> None:
    for folder in outputs.values():
        assert same_output(outputs["polars"], folder) == 20_000


def test_plain_loop_sorts_a_log_that_is_not_in_time_order(raw: Path, tmp_path: Path) -> None:
    pl.read_parquet(raw).sample(fraction=1, shuffle=True, seed=1).write_parquet(tmp_path / "raw.parquet")
    for name, convert in (("a", polars_script.convert), ("b", plain_loop.convert)):
        (tmp_path / name).mkdir()
        convert(tmp_path / "raw.parquet", tmp_path / name)
    assert same_output(tmp_path / "a", tmp_path / "b") == 20_000


def test_torch_scalars_computes_a_slice_and_scales(
    raw: Path, outputs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_scalars, "SLICE", 2_000)
    found = torch_scalars.convert(raw, tmp_path)
    assert (found["rows"], found["scaled_to"]) == (2_000, 20_000)
    assert same_output(outputs["polars"], tmp_path, first_rows=2_000) == 2_000
    with pytest.raises(OutputsDifferError, match=r"holds 20000 rows, .* holds 2000"):
        same_output(outputs["polars"], tmp_path)


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
def test_one_planted_value_is_found(column: str, changed: object, outputs: dict[str, Path], tmp_path: Path) -> None:
    features = pl.read_parquet(outputs["polars"] / "features.parquet")
    row = 12_345 if column != "time_diff" else int(np.flatnonzero(features["is_first"].to_numpy())[7])
    values = features[column].to_list()
    values[row] = changed(values[row])
    planted = features.with_columns(pl.Series(column, values, dtype=features.schema[column]))
    planted.sample(fraction=1, shuffle=True, seed=1).write_parquet(tmp_path / "features.parquet")
    with pytest.raises(OutputsDifferError, match=f"1 rows differ in {column}, the first at row_id {row}:"):
        same_output(outputs["polars"], tmp_path)


def test_outputs_of_another_shape_are_refused(outputs: dict[str, Path], tmp_path: Path) -> None:
    features = pl.read_parquet(outputs["polars"] / "features.parquet")
    target = tmp_path / "features.parquet"
    with pytest.raises(OutputsDifferError, match="no Parquet file"):
        same_output(outputs["polars"], tmp_path)
    features.with_columns(pl.col("time_diff").cast(pl.Float64)).write_parquet(target)
    with pytest.raises(OutputsDifferError, match="time_diff is Float64, expected Float32"):
        same_output(outputs["polars"], tmp_path)
    features.drop("is_first").write_parquet(target)
    with pytest.raises(OutputsDifferError, match="is_first is missing"):
        same_output(outputs["polars"], tmp_path)
    pl.concat([features.head(-1), features.slice(5, 1)]).write_parquet(target)
    with pytest.raises(OutputsDifferError, match="row_id 5 occurs twice"):
        same_output(outputs["polars"], tmp_path)


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


def test_whole_benchmark_writes_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    modules = {
        module: needed for module, needed in COMPETITORS.items() if module.endswith(("polars_script", "torch_scalars"))
    }
    monkeypatch.setattr("pipeline_tests.bench.__main__.COMPETITORS", modules)
    monkeypatch.setattr("pipeline_tests.bench.__main__.OURS", "pipeline_tests.bench.not_there")
    monkeypatch.setattr("pipeline_tests.bench.__main__.KERNELS", "pipeline_tests.bench.not_there")
    main(["--events", "3000", "--runs", "1", "--out", str(tmp_path / "page.md"), "--workdir", str(tmp_path)])
    printed, page = capsys.readouterr().out, (tmp_path / "page.md").read_text()
    assert "skipped pipeline_tests.bench.not_there: there is no such module yet" in printed
    assert "torch_scalars equals polars_script in all 3,000 rows that it computes" in page
    assert "| polars_script | " in page
    assert "| torch_scalars (scaled) | " in page
    assert "--events 3000 --runs 1" in page
    assert str(tmp_path) not in page


def test_stages_and_kernels_are_reported() -> None:
    line = json.loads(_line("ours", 2.0)) | {"stages": {"events": 0.5, "features": 1.5}}
    assert report.notes({"ours": [line]}) == "\n- ours, by stage: events 0.50 s, features 1.50 s.\n"
    kernels = {"name": "kernels", "rows": 1000, "kernels": {"core": {"kernel_s": 0.01, "oracle_s": 2.0}}}
    assert "| core | 0.0100 | 2.00 | 200 |" in report.kernel_table([kernels])

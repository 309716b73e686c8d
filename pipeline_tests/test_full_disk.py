"""No room left: one sentence, no half output, and what was published before stays.

A limit on the size of files stands for the full disk; it holds for a process, so each try is one of its own.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.stages import STAGES, run_day
from pipeline_tests.test_publish import START, make_work

SCRIPT = """
import resource, signal, sys
from dataclasses import replace
from pathlib import Path
from pipeline.config import load_dataset
from pipeline.contracts import PipelineError
from pipeline.stages import run_day
from pipeline_tests.test_publish import START
from pipeline_tests.works import work_of

file, asset, limit = sys.argv[1:]
work = work_of(load_dataset(file), run="full", force=True)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
try:
    run_day(asset, START, work)
except PipelineError as error:
    sentence = str(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
sys.stdout.write(sentence)
"""


@pytest.mark.parametrize("asset", STAGES)
def test_a_full_disk(tmp_path: Path, asset: str) -> None:
    work = make_work(tmp_path)
    for stage in STAGES:
        run_day(stage, START, work)
    files = {path for path in tmp_path.rglob("*") if path.is_file()}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "dataset.toml", asset, "50"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{asset} of {START}: cannot write to {work.store.directory(asset, START)} (")
    assert done.stdout.endswith(
        "make room there or check its rights, then run the day again: nothing of it was published"
    )
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == files


def test_a_full_disk_when_a_vocabulary_grows(tmp_path: Path) -> None:
    work = make_work(tmp_path)
    run_day("events", START, work)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "dataset.toml", "user_vocabulary", "50"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        f"user_vocabulary of {START}: cannot write to {work.store.root / 'user_vocabulary' / '_log'} ("
    )
    assert list((work.store.root / "user_vocabulary" / "_log").iterdir()) == []

"""Ours: the whole graph on the last day of a dataset whose earlier days are made. The first argument is its folder."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline_tests.bench.ours import open_work, whole_graph
from pipeline_tests.bench.protocol import run


def copy(folder: Path, out: Path) -> None:
    """Copies the dataset and its store by hard links: a store never changes a file that it has written."""
    shutil.copy(folder / "dataset.toml", out)
    shutil.copytree(folder / "store", out / "store", copy_function=os.link)


def convert(_: Path, out: Path) -> Mapping[str, Any]:
    """Runs every stage on the last day."""
    return whole_graph(open_work(out), out)


if __name__ == "__main__":
    run("history_day", convert, before=copy)

"""What every measured script prints: one line of JSON, about its own process."""

import json
import re
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline_tests.bench import STARTED

PROC_STATUS = Path("/proc/self/status")
KILL_FIRST = Path("/proc/self/oom_score_adj")


def run(
    name: str,
    convert: Callable[[Path, Path], Mapping[str, Any]],
    *,
    before: Callable[[Path, Path], object] | None = None,
) -> None:
    """Runs `convert(RAW.parquet, OUT_DIR)` with the two arguments of the command line and prints the line.

    Call it last: the clock starts here, after the imports.

    Args:
        name: Name of the competitor.
        convert: Does the whole job and returns at least `rows`, the events it turned into features. Further keys are
            passed on: `stages` (name -> seconds), `output` (folder of the feature files below OUT_DIR),
            `scaled_to` and `scaled_wall_s` (where only a slice was computed).
        before: Runs before the clock starts, with the same two arguments.
    """
    raw, out = map(Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    if KILL_FIRST.exists():
        KILL_FIRST.write_text("1000")  # what needs more memory than there is ends itself, and nothing else
    import_s = time.perf_counter() - STARTED
    if before is not None:
        before(raw, out)
    cpu_before, wall_before = _cpu_seconds(), time.perf_counter()
    found = dict(convert(raw, out))
    wall_s, cpu_s = time.perf_counter() - wall_before, _cpu_seconds() - cpu_before
    line = {
        "name": name,
        "rows": found.pop("rows"),
        "import_s": import_s,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "peak_bytes": peak_bytes(),
        **found,
    }
    sys.stdout.write(json.dumps(line) + "\n")


def peak_bytes() -> int:
    """The most memory that this process, or the largest of its finished children, ever held, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    if PROC_STATUS.exists():
        # Linux hands ru_maxrss down through exec: a small child of a large parent would report the parent's peak.
        match = re.search(r"VmHWM:\s*(\d+) kB", PROC_STATUS.read_text())
        if match is not None:
            return max(int(match[1]) * 1024, children)
    return max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, children)


def _cpu_seconds() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime

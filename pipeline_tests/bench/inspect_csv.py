"""`python -m pipeline inspect` on one CSV file: the verdict on a sample, or with everything counted."""

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline_tests.bench.protocol import run


def convert(raw: Path, _: Path) -> Mapping[str, Any]:
    """Runs the command twice, as a user does; imports are part of the time."""
    seconds = {}
    for name, options in (("the verdict", ["--quick"]), ("with everything counted", [])):
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "pipeline", "inspect", str(raw), *options], check=True, capture_output=True
        )
        seconds[name] = time.perf_counter() - began
    return {"rows": 0, "stages": seconds}


if __name__ == "__main__":
    run("inspect", convert)

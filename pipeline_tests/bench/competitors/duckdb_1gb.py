"""The same statement as `duckdb_lag` under a memory limit of 1 GB, spilling beside its output: the bounded form of it."""

from pathlib import Path

from pipeline_tests.bench.competitors.duckdb_lag import convert as convert_unbounded
from pipeline_tests.bench.competitors.duckdb_lag import quoted
from pipeline_tests.bench.protocol import run

SETTINGS = "SET memory_limit = '1GB'; SET preserve_insertion_order = false; SET temp_directory = {spill};"


def convert(raw: Path, out: Path) -> dict[str, int]:
    """Raw log to features; returns the number of rows."""
    return convert_unbounded(raw, out, settings=SETTINGS.format(spill=quoted(out / "spill")))


if __name__ == "__main__":
    import duckdb  # noqa: F401 - outside the clock, like everybody's imports; optional, hence not at the top

    run("duckdb_1gb", convert)

"""The same query as `polars_window`, written by `sink_parquet` while it is computed: the leaner form of it."""

from pathlib import Path

import polars as pl

from pipeline_tests.bench.competitors.polars_window import query
from pipeline_tests.bench.protocol import run


def convert(raw: Path, out: Path) -> dict[str, int]:
    """Raw log to features; returns the number of rows."""
    target = out / "features.parquet"
    query(raw).sink_parquet(target, compression="zstd", compression_level=1, maintain_order=False)
    return {"rows": pl.scan_parquet(target).select(pl.len()).collect().item()}


if __name__ == "__main__":
    run("polars_stream", convert)

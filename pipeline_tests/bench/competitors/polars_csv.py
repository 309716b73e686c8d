"""CSV to Parquet by polars alone: the four columns, typed, in streaming; nothing is checked, counted or sorted.

Packed with lz4, as our `events` are; zstd takes it a tenth longer.
"""

from pathlib import Path

import polars as pl

from pipeline_tests.bench.protocol import run

SCHEMA = {"user_id": pl.Int64, "item_id": pl.Int64, "timestamp": pl.Int64, "action": pl.String}


def convert(raw: Path, out: Path) -> dict[str, int]:
    """One CSV file to one Parquet file; returns the number of rows."""
    target = out / "events.parquet"
    pl.scan_csv(raw, schema=SCHEMA).sink_parquet(target, compression="lz4")
    return {"rows": pl.scan_parquet(target).select(pl.len()).collect().item()}


if __name__ == "__main__":
    run("polars_csv", convert)

"""The script that somebody who knows polars writes: lazy joins for the indices, a window for the time difference."""

from pathlib import Path

import polars as pl

from pipeline_tests.bench.logs import ACTIONS
from pipeline_tests.bench.measure import CORE_COLUMNS
from pipeline_tests.bench.protocol import run


def convert(raw: Path, out: Path) -> dict[str, int]:
    """Raw log to features, in input order; returns the number of rows."""
    events = pl.scan_parquet(raw).with_row_index("row_id").with_columns(
        pl.col("row_id").cast(pl.Int64),
        pl.from_epoch("timestamp", time_unit="ms").dt.cast_time_unit("us").dt.replace_time_zone("UTC"),
    )  # fmt: skip
    earlier = pl.col("timestamp").shift(1).over("user_index", order_by=["timestamp", "row_id"])
    seconds = (pl.col("timestamp") - earlier).dt.total_microseconds() / 1_000_000
    features = (
        events.join(_indices(events, "user_id"), on="user_id", how="left", maintain_order="left")
        .join(_indices(events, "item_id"), on="item_id", how="left", maintain_order="left")
        .with_columns(
            time_diff=seconds.cast(pl.Float32).fill_null(0),
            is_first=earlier.is_null(),
            **{f"action_{name}": (pl.col("action") == name).cast(pl.UInt8) for name in ACTIONS},
        )
        .select(CORE_COLUMNS)
        .collect()
    )
    features.write_parquet(out / "features.parquet", compression="zstd", compression_level=1)
    return {"rows": len(features)}


def _indices(events: pl.LazyFrame, id_column: str) -> pl.LazyFrame:
    index = id_column.replace("_id", "_index")
    ids = events.select(id_column).unique().sort(id_column)
    return ids.with_row_index(index, offset=2).with_columns(pl.col(index).cast(pl.Int32))


if __name__ == "__main__":
    run("polars_script", convert)

"""The script that somebody who knows polars writes: a window for the time difference, lazy joins for the indices."""

from pathlib import Path

import polars as pl

from pipeline_tests.bench.compare import CORE_COLUMNS
from pipeline_tests.bench.logs import ACTIONS
from pipeline_tests.bench.protocol import run


def convert(raw: Path, out: Path) -> dict[str, int]:
    """Raw log to features; returns the number of rows."""
    features = query(raw).collect()
    features.write_parquet(out / "features.parquet", compression="zstd", compression_level=1)
    return {"rows": len(features)}


def query(raw: Path) -> pl.LazyFrame:
    """The whole job as one lazy query.

    The window runs over the ids before the joins, on milliseconds, and the joins keep no order: each makes it faster.
    """
    events = pl.scan_parquet(raw).with_row_index("row_id").with_columns(pl.col("row_id").cast(pl.Int64))
    now = pl.col("timestamp")
    before = now.shift(1).over("user_id", order_by=["timestamp", "row_id"])
    return (
        events.with_columns(before_ms=before)
        .join(indices(events, "user_id"), on="user_id", how="left")
        .join(indices(events, "item_id"), on="item_id", how="left")
        .with_columns(
            timestamp=utc_us(now),
            time_diff=((now - pl.col("before_ms")) / 1000).cast(pl.Float32).fill_null(0),
            is_first=pl.col("before_ms").is_null(),
            **one_hot(),
        )
        .select(CORE_COLUMNS)
    )


def indices(events: pl.LazyFrame, id_column: str) -> pl.LazyFrame:
    """Every id with its index."""
    index = id_column.replace("_id", "_index")
    ids = events.select(id_column).unique().sort(id_column)
    return ids.with_row_index(index, offset=2).with_columns(pl.col(index).cast(pl.Int32))


def utc_us(milliseconds: pl.Expr) -> pl.Expr:
    """Milliseconds as UTC times in microseconds."""
    return pl.from_epoch(milliseconds, time_unit="ms").dt.cast_time_unit("us").dt.replace_time_zone("UTC")


def one_hot() -> dict[str, pl.Expr]:
    """Column -> 1 where the row's action is the column's, else 0."""
    return {f"action_{name}": (pl.col("action") == name).cast(pl.UInt8) for name in ACTIONS}


if __name__ == "__main__":
    run("polars_window", convert)

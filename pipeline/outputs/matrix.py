"""The tensor for older in-memory scripts."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pipeline.contracts import PipelineError
from pipeline.store import Store, as_day, scan

if TYPE_CHECKING:
    import torch

EXACT_FLOAT32 = 2**24


def matrix(root: str | Path, start: date | str, end: date | str) -> "torch.Tensor":
    """The dense tensor that in-memory scripts build, in input order.

    Args:
        root: Root of the store.
        start: First day, inclusive.
        end: Last day, inclusive.

    Returns:
        float32 [N, 3 + actions]: user_index, item_index, time_diff in s, one-hot; sorted by (day, row_id).

    Raises:
        PipelineError: Days are missing or not current, or an index is above 2^24, where float32 merges integers.
    """
    import torch

    days = scan(root, "features", start, end)
    last = Store(Path(root)).manifest("features", as_day(end))
    assert last is not None  # or scan had refused
    names = ["user_index", "item_index", "time_diff", *(f"action_{name}" for name in last.config["actions"])]
    rows = days.sort("day", "row_id").select(names).collect()
    for name in ("user_index", "item_index"):
        largest = rows[name].max()
        if largest is not None and int(largest) > EXACT_FLOAT32:  # type: ignore[arg-type]
            raise PipelineError(
                f"{name} reaches {largest:,}, and float32 holds integers exactly only up to {EXACT_FLOAT32:,}; "
                "read the int32 columns with pipeline.store.scan instead"
            )
    columns = [torch.from_numpy(rows[name].cast(pl.Float32).to_numpy().copy()) for name in names]
    return torch.stack(columns, dim=1)

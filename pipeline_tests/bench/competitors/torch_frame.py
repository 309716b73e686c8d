"""The script of somebody who knows torch: the whole day as tensors, one sort by a packed key, and the way back from it."""

from pathlib import Path

import numpy as np
import polars as pl
import torch

from pipeline_tests.bench.compare import CORE_COLUMNS
from pipeline_tests.bench.competitors.polars_window import utc_us
from pipeline_tests.bench.logs import ACTIONS
from pipeline_tests.bench.protocol import run

TIME_BITS = 27  # a day has 86,400,000 ms


def convert(raw: Path, out: Path) -> dict[str, int]:
    """Raw log to features, in input order; returns the number of rows."""
    events = pl.read_parquet(raw)
    users_E, items_E, time_ms_E = (events[name].to_torch() for name in ("user_id", "item_id", "timestamp"))
    user_index_E, item_index_E = _indices(users_E), _indices(items_E)
    key_E = (user_index_E << TIME_BITS) | (time_ms_E - time_ms_E.min())
    key_E, order_E = torch.sort(key_E, stable=True)
    same_user_E = (key_E[1:] >> TIME_BITS) == (key_E[:-1] >> TIME_BITS)
    gap_s_E = torch.where(same_user_E, key_E[1:] - key_E[:-1], 0).double() / 1000
    time_diff_E = torch.zeros(len(events), dtype=torch.float32)
    time_diff_E[order_E[1:]] = gap_s_E.float()
    is_first_E = torch.ones(len(events), dtype=torch.bool)
    is_first_E[order_E[1:]] = ~same_user_E
    codes_E = events["action"].cast(pl.Enum(ACTIONS)).to_physical().to_torch()
    pl.DataFrame(
        {
            "row_id": np.arange(len(events)),
            "user_id": events["user_id"],
            "item_id": events["item_id"],
            "timestamp": events.select(utc_us(pl.col("timestamp")))["timestamp"],
            "user_index": user_index_E.int().numpy(),
            "item_index": item_index_E.int().numpy(),
            "time_diff": time_diff_E.numpy(),
            "is_first": is_first_E.numpy(),
            **{f"action_{name}": (codes_E == code).byte().numpy() for code, name in enumerate(ACTIONS)},
        }
    ).select(CORE_COLUMNS).write_parquet(out / "features.parquet", compression="zstd", compression_level=1)
    return {"rows": len(events)}


def _indices(ids_E: torch.Tensor) -> torch.Tensor:
    """int64 [E]: 2 + the rank of every id."""
    return torch.unique(ids_E, return_inverse=True)[1] + 2


if __name__ == "__main__":
    run("torch_frame", convert)

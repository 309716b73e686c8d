"""The script that people start with: a loop over the events that takes scalars out of tensors.

It computes the first `SLICE` rows of the day only, which is enough to know its rate; reading the file and numbering
the day's ids are done for the whole day and are not scaled.
"""

import time
from pathlib import Path

import numpy as np
import polars as pl
import torch

from pipeline_tests.bench.compare import CORE_COLUMNS
from pipeline_tests.bench.logs import ACTIONS
from pipeline_tests.bench.protocol import run

SLICE = 50_000


def convert(raw: Path, out: Path) -> dict[str, float]:
    """Raw log to features of the first rows, in input order.

    Returns:
        `rows` computed, `scaled_to` the rows of the day, `scaled_wall_s` the seconds that the whole day would take.
    """
    started = time.perf_counter()
    events = pl.read_parquet(raw)
    if not events["timestamp"].is_sorted():
        raise ValueError(f"{raw}: the loop needs a log in time order")
    users, items, times_ms = (torch.from_numpy(np.array(events[name])) for name in ("user_id", "item_id", "timestamp"))
    actions = events["action"].head(SLICE).to_list()
    user_index, item_index = _indices(users), _indices(items)
    prepared_s = time.perf_counter() - started

    last: dict[int, torch.Tensor] = {}
    rows = []
    for i in range(len(actions)):
        user, item, now = users[i].item(), items[i].item(), times_ms[i]
        row = torch.zeros(4 + len(ACTIONS), dtype=torch.float32)
        row[0] = user_index[user]
        row[1] = item_index[item]
        if user in last:
            row[2] = (now - last[user]).double() / 1000
        else:
            row[3] = 1
        row[4 + ACTIONS.index(actions[i])] = 1
        last[user] = now
        rows.append(row)
    features = torch.stack(rows).numpy()

    head = events.head(len(rows))
    pl.DataFrame(
        {
            "row_id": np.arange(len(rows)),
            "user_id": head["user_id"],
            "item_id": head["item_id"],
            "timestamp": head.select(
                pl.from_epoch("timestamp", time_unit="ms").dt.cast_time_unit("us").dt.replace_time_zone("UTC")
            )["timestamp"],
            "user_index": features[:, 0].astype(np.int32),
            "item_index": features[:, 1].astype(np.int32),
            "time_diff": features[:, 2],
            "is_first": features[:, 3].astype(np.bool_),
            **{f"action_{name}": features[:, 4 + k].astype(np.uint8) for k, name in enumerate(ACTIONS)},
        }
    ).select(CORE_COLUMNS).write_parquet(out / "features.parquet", compression="zstd", compression_level=1)
    scaled_s = (time.perf_counter() - started - prepared_s) * len(events) / len(rows)
    return {"rows": len(rows), "scaled_to": len(events), "scaled_wall_s": prepared_s + scaled_s}


def _indices(ids: torch.Tensor) -> dict[int, int]:
    return {raw_id: index for index, raw_id in enumerate(torch.unique(ids).tolist(), start=2)}


if __name__ == "__main__":
    run("torch_scalars", convert)

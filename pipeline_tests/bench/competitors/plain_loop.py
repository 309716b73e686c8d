"""The fastest plain Python that we could write: dicts and lists, no arithmetic on whole columns.

Arrow reads the file and polars writes it; in between every event passes through Python dicts. The look-ups run through
`map`: with all of them in the body of one loop the whole takes about 1.3 times as long.
"""

from array import array
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from pipeline_tests.bench.compare import CORE_COLUMNS
from pipeline_tests.bench.logs import ACTIONS
from pipeline_tests.bench.protocol import run


def convert(raw: Path, out: Path) -> dict[str, int]:
    """Raw log to features, in input order; returns the number of rows."""
    table = pq.read_table(raw, read_dictionary=["action"])
    # numpy's tolist is many times faster than Arrow's to_pylist
    users, items, times_ms = (table[name].to_numpy().tolist() for name in ("user_id", "item_id", "timestamp"))
    actions = table["action"].unify_dictionaries().combine_chunks()
    rows = len(users)
    order = range(rows)
    if any(map(int.__gt__, times_ms, times_ms[1:])):
        order = sorted(order, key=times_ms.__getitem__)

    user_index = array("i", map(_indices(users).__getitem__, users))
    item_index = array("i", map(_indices(items).__getitem__, items))
    names, codes = actions.dictionary.to_pylist(), actions.indices.to_numpy().tolist()
    one_hot = {
        f"action_{action}": bytes(map([int(name == action) for name in names].__getitem__, codes)) for action in ACTIONS
    }

    time_diff, is_first = array("f", bytes(4 * rows)), bytearray(rows)
    last: list[int | None] = [None] * (max(user_index, default=0) + 1)
    for row, user, now in _in_order(order, user_index, times_ms):
        before = last[user]
        if before is None:
            is_first[row] = 1
        elif before != now:
            time_diff[row] = (now - before) / 1000
        last[user] = now

    pl.DataFrame(
        {
            "row_id": np.arange(rows),
            "user_id": pl.from_arrow(table["user_id"]),
            "item_id": pl.from_arrow(table["item_id"]),
            "timestamp": pl.from_arrow(table["timestamp"]),
            "user_index": np.frombuffer(user_index, np.int32),
            "item_index": np.frombuffer(item_index, np.int32),
            "time_diff": np.frombuffer(time_diff, np.float32),
            "is_first": np.frombuffer(is_first, np.bool_),
            **{name: np.frombuffer(column, np.uint8) for name, column in one_hot.items()},
        }
    ).select(
        pl.from_epoch("timestamp", time_unit="ms").dt.cast_time_unit("us").dt.replace_time_zone("UTC")
        if name == "timestamp"
        else name
        for name in CORE_COLUMNS
    ).write_parquet(out / "features.parquet", compression="zstd", compression_level=1)
    return {"rows": rows}


def _indices(ids: list[int]) -> dict[int, int]:
    return {raw_id: index for index, raw_id in enumerate(sorted(set(ids)), start=2)}


def _in_order(order: range | list[int], user_index: array, times_ms: list[int]) -> zip:
    if isinstance(order, range):
        return zip(order, user_index, times_ms, strict=True)
    return zip(order, map(user_index.__getitem__, order), map(times_ms.__getitem__, order), strict=True)


if __name__ == "__main__":
    run("plain_loop", convert)

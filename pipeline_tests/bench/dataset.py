"""The dataset file of a generated log."""

from pathlib import Path

from pipeline_tests.bench.logs import ACTIONS, DAY

DATASET = """
name = "bench"
[partitions]
start = "{start}"
end = "{end}"
skip = {skip}
[source]
path = "{raw}"
[columns]
user_id = {{ from = "user_id", type = "int64" }}
item_id = {{ from = "item_id", type = "int64" }}
timestamp = {{ from = "timestamp", unit = "ms" }}
action = {{ from = "action" }}
[actions]
names = {actions}
[features]
use = ["core"]
[compute]
memory = "1GB"
[store]
root = "store"
"""


def write_dataset(folder: Path, *, raw: Path, start: object, skip: tuple[object, ...] = ()) -> None:
    """Writes `folder/dataset.toml`: days from `start` to `DAY`, of `raw`, into `folder/store`."""
    text = DATASET.format(
        start=start, end=DAY, skip=[str(day) for day in skip], raw=raw.absolute(), actions=list(ACTIONS)
    )
    (folder / "dataset.toml").write_text(text.replace("'", '"'))

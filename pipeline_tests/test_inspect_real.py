"""The real logs, declared by what `inspect` proposes for them and for hostile variants, give their totals."""

import gzip
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.config import Dataset, load_dataset
from pipeline.stages import STAGES, run_day
from pipeline.store import scan
from pipeline_tests.works import work_of


@dataclass(frozen=True)
class Totals:
    """What the features of a log add up to; `sum_us` over the differences between the times of a user's events."""

    accepted: int
    users: int
    items: int
    sum_us: int


REES46 = Totals(5_019, 1_755, 2_312, 213_605_000_000)
ONLINE_RETAIL = Totals(48_762, 1_369, 2_647, 1_472_040_720_000_000)
OTTO = Totals(862, 20, 510, 16_152_393_515_000)


def declare(log: Path, folder: Path) -> Dataset:
    """The dataset file that `inspect --write` makes, as it is."""
    file = folder / "sets" / "proposed.toml"
    file.parent.mkdir()
    assert main(["inspect", str(log), "--write", str(file)]) == 0
    return load_dataset(file)


def make(dataset: Dataset) -> Totals:
    """Makes all days with all stages, each proven, and adds the features up."""
    work = work_of(dataset, run="run")
    first, last = dataset.partitions.start, dataset.last_day()
    for stage in STAGES:
        for number in range((last - first).days + 1):
            run_day(stage, first + timedelta(days=number), work)
    features = scan(dataset.root, "features", first, last).collect()
    times = features.group_by("user_id").agg(
        pl.col("timestamp").min().alias("first"), pl.col("timestamp").max().alias("last")
    )
    totals = Totals(
        accepted=features.height,
        users=features["user_id"].n_unique(),
        items=features["item_id"].n_unique(),
        sum_us=int((times["last"] - times["first"]).dt.total_microseconds().sum()),
    )
    assert int(features["is_first"].sum()) == totals.users
    assert features["time_diff"].cast(pl.Float64).sum() == pytest.approx(totals.sum_us / 1e6, rel=1e-6)
    return totals


def test_rees46(shared_data: Path, tmp_path: Path) -> None:
    assert make(declare(shared_data / "rees46_2019-Oct-01.csv", tmp_path)) == REES46


def test_otto(shared_data: Path, tmp_path: Path) -> None:
    dataset = declare(shared_data / "otto_sessions.jsonl", tmp_path)
    assert make(dataset) == OTTO
    assert (dataset.partitions.start.isoformat(), str(dataset.partitions.end)) == ("2022-07-31", "2022-08-28")


@pytest.mark.slow
def test_online_retail(shared_data: Path, tmp_path: Path) -> None:
    assert make(declare(shared_data / "online_retail", tmp_path)) == ONLINE_RETAIL


def test_what_is_proposed_for_online_retail(shared_data: Path, tmp_path: Path) -> None:
    dataset = declare(shared_data / "online_retail", tmp_path)
    text = dataset.file.read_text(encoding="utf-8")
    assert dataset.source.path.endswith("/online_retail/{date}.csv")
    assert dataset.source.missing_day == "empty"
    assert (dataset.partitions.start.isoformat(), str(dataset.partitions.end)) == ("2010-12-01", "2011-01-31")
    assert (dataset.columns.user_id.from_, dataset.columns.user_id.type) == ("CustomerID", "int64")
    assert (dataset.columns.item_id.from_, dataset.columns.item_id.type) == ("StockCode", "string")
    assert dataset.columns.action.value == "event"
    assert dataset.quality.max_rejected_share == 0.8
    assert "77,628 rows; 48,762 are accepted: 1,369 users, 2,647 items" in text.replace("\n# ", " ")
    assert "on 2010-12-17 76.5% of the rows are refused; in all: missing_user_id 28,866" in text
    assert "CASE WHEN CAST(Quantity AS BIGINT) < 0 THEN 'return' ELSE 'purchase' END" in text
    assert "UTC is assumed" in text


# Variants of REES46: text -> bytes of the file, its name, and its totals.


def shuffled_columns(text: str) -> str:
    order = [5, 8, 0, 3, 7, 1, 2, 6, 4]
    return "".join(",".join(line.split(",")[at] for at in order) + "\n" for line in text.splitlines())


def in_unit(factor: float) -> Callable[[str], str]:
    def change(text: str) -> str:
        lines = [line.split(",", 1) for line in text.splitlines()]
        times = [datetime.fromisoformat(line[0].replace(" UTC", "+00:00")).timestamp() for line in lines[1:]]
        rows = [f"{time * factor:.0f},{rest}\n" for time, (_, rest) in zip(times, lines[1:], strict=True)]
        return ",".join(lines[0]) + "\n" + "".join(rows)

    return change


def with_user(spelling: str) -> Callable[[str], str]:
    """One more row, of nobody."""
    row = f"2019-10-01 00:00:00 UTC,view,44600062,2103807459595387724,,shiseido,35.79,{spelling},s\n"
    return lambda text: text + row


def doubled_header(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:2000], lines[0], *lines[2000:]])


def cut_off(text: str) -> str:
    return text + "2019-10-01 02:15:00 UTC,vie"


@pytest.mark.parametrize(
    ("change", "encode", "name"),
    [
        (shuffled_columns, str.encode, "log.csv"),
        (lambda text: text.replace("\n", "\r\n"), str.encode, "log.csv"),
        (lambda text: "\ufeff" + text, str.encode, "log.csv"),
        (lambda text: text, lambda text: gzip.compress(text.encode()), "log.csv.gz"),
        (lambda text: text, lambda text: gzip.compress(text.encode()), "export"),
        (lambda text: text, lambda text: text.encode("utf-16"), "log.csv"),
        (lambda text: text.replace(",", "\t"), str.encode, "log.txt"),
        (in_unit(1), str.encode, "log.csv"),
        (in_unit(1000), str.encode, "log.csv"),
        (with_user(""), str.encode, "log.csv"),
        (with_user("NULL"), str.encode, "log.csv"),
        (with_user("-1"), str.encode, "log.csv"),
        (doubled_header, str.encode, "log.csv"),
        (cut_off, str.encode, "log.csv"),
    ],
    ids=[
        *("shuffled columns", "CR LF", "BOM", "gz", "gz without extension", "UTF-16", "tabs", "seconds"),
        *("milliseconds", "empty user", "NULL user", "user -1", "doubled header", "cut last line"),
    ],
)
def test_variants_of_rees46(
    shared_data: Path, tmp_path: Path, change: Callable[[str], str], encode: Callable[[str], bytes], name: str
) -> None:
    text = (shared_data / "rees46_2019-Oct-01.csv").read_text(encoding="utf-8")
    (tmp_path / name).write_bytes(encode(change(text)))
    found = make(declare(tmp_path / name, tmp_path))
    assert found == REES46


def test_tenths_of_seconds(shared_data: Path, tmp_path: Path) -> None:
    """The seconds are rounded to tens: only rows, users and items stay."""
    text = (shared_data / "rees46_2019-Oct-01.csv").read_text(encoding="utf-8")
    (tmp_path / "log.csv").write_text(in_unit(0.1)(text))
    dataset = declare(tmp_path / "log.csv", tmp_path)
    assert dataset.columns.timestamp.sql == 'CAST("event_time" AS BIGINT) * 10'
    found = make(dataset)
    assert (found.accepted, found.users, found.items) == (REES46.accepted, REES46.users, REES46.items)


def test_without_a_header_users_and_items_are_doubts(shared_data: Path, tmp_path: Path) -> None:
    text = (shared_data / "rees46_2019-Oct-01.csv").read_text(encoding="utf-8")
    (tmp_path / "log.csv").write_text(text.partition("\n")[2])
    dataset = declare(tmp_path / "log.csv", tmp_path)
    proposed = dataset.file.read_text().replace("\n#   ", " ")
    assert dataset.columns.timestamp.from_ == "column_1"
    assert dataset.columns.action.from_ == "column_2"
    assert dataset.actions.names == ("view", "purchase", "cart")
    for role in ("user_id", "item_id"):
        (doubt,) = [line for line in proposed.splitlines() if line.startswith(f"# - {role}: no name says it")]
        assert "column_8" in doubt
    assert make(dataset).accepted == REES46.accepted


def test_an_id_beyond_int64_in_the_last_row(shared_data: Path, tmp_path: Path) -> None:
    text = (shared_data / "rees46_2019-Oct-01.csv").read_text(encoding="utf-8")
    row = "2019-10-01 02:20:00 UTC,view,99999999999999999999,2103807459595387724,,x,1.5,541312140,s\n"
    (tmp_path / "log.csv").write_text(text + row)
    dataset = declare(tmp_path / "log.csv", tmp_path)
    assert (dataset.columns.user_id.type, dataset.columns.item_id.type) == ("int64", "string")
    assert make(dataset).accepted == REES46.accepted + 1


def test_shuffled_keys_of_otto(shared_data: Path, tmp_path: Path) -> None:
    """Under other names, so that no preset fits, packed, the keys of each object in another order."""
    names = {"session": "visitor", "events": "actions", "aid": "article", "ts": "at", "type": "what"}
    shuffle = random.Random(1)

    def renamed(value: object) -> object:
        if isinstance(value, list):
            return [renamed(part) for part in value]
        if isinstance(value, dict):
            keys = shuffle.sample(sorted(value), len(value))
            return {names[key]: renamed(value[key]) for key in keys}
        return value

    lines = (shared_data / "otto_sessions.jsonl").read_text(encoding="utf-8").splitlines()
    log = "".join(json.dumps(renamed(json.loads(line))) + "\r\n" for line in lines)
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress(log.encode()))
    dataset = declare(tmp_path / "log.jsonl.gz", tmp_path)
    assert dataset.preset is None
    assert dataset.actions.names == ("clicks", "carts", "orders")
    assert dataset.source.explode is not None
    assert "862 rows; all are accepted: 20 users, 510 items" in dataset.file.read_text()


def test_one_file_a_day_of_rees46_in_local_time(shared_data: Path, tmp_path: Path) -> None:
    """Cut where midnight is in Kamchatka: the second file begins within the first day of UTC."""
    header, *rows = (shared_data / "rees46_2019-Oct-01.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    raw = tmp_path / "raw"
    raw.mkdir()
    files: dict[str, list[str]] = {}
    for row in rows:
        local = datetime.strptime(row[:19], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) + timedelta(hours=22)
        files.setdefault(local.date().isoformat(), []).append(row)
    assert sorted(files) == ["2019-10-01", "2019-10-02"]
    for day, lines in files.items():
        (raw / f"{day}.csv").write_text(header + "".join(lines))
    dataset = declare(raw, tmp_path)
    assert dataset.source.path == "../raw/{date}.csv"
    assert dataset.source.neighbours == (0, 1)
    assert make(dataset) == REES46

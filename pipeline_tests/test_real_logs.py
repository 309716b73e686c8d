"""Two real logs, declared by the example files of the documents, give exactly the totals that docs/examples.md states."""

import csv
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from pipeline.config import Dataset, load_dataset
from pipeline.contracts import PipelineError
from pipeline.stages import STAGES, run_day
from pipeline.store import Manifest, Store, scan
from pipeline_tests.conftest import REPOSITORY
from pipeline_tests.works import work_of

EXAMPLES = REPOSITORY / "docs" / "examples"
FIRST, LAST = date(2010, 12, 1), date(2011, 1, 31)


def declare(name: str, raw: Path, folder: Path, *, share: str = "0.8") -> Dataset:
    """An example file with the places of the log and of the store written into it."""
    text = (EXAMPLES / f"{name}.toml").read_text(encoding="utf-8")
    text, paths = re.subn(r'^path = ".*?"', f'path = "{raw}"', text, flags=re.MULTILINE)
    text, roots = re.subn(r'^root = ".*"', 'root = "out"', text, flags=re.MULTILINE)
    assert (paths, roots) == (1, 1)
    text = text.replace("max_rejected_share = 0.8", f"max_rejected_share = {share}")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.toml"
    file.write_text(text, encoding="utf-8")
    return load_dataset(file)


def retail(shared_data: Path, folder: Path, *, share: str = "0.8") -> Dataset:
    return declare("online_retail", shared_data / "online_retail" / "{date}.csv", folder, share=share)


def days_of(dataset: Dataset) -> list[date]:
    first = dataset.partitions.start
    return [first + timedelta(days=number) for number in range((dataset.last_day() - first).days + 1)]


def make_by_stage(dataset: Dataset) -> None:
    """As one range run does: all days of a stage, then the next stage."""
    work = work_of(dataset, run="run")
    for stage in STAGES:
        for day in days_of(dataset):
            run_day(stage, day, work)


def make_by_day(dataset: Dataset, *, chunk_rows: int) -> None:
    """As one run a day does: all stages of a day, by a process that remembers nothing of the day before."""
    for day in days_of(dataset):
        work = work_of(dataset, run="run", chunk_rows=chunk_rows)
        for stage in STAGES:
            run_day(stage, day, work)


def manifests(dataset: Dataset, asset: str) -> list[Manifest]:
    store = Store(dataset.root)
    found = [store.manifest(asset, day) for day in days_of(dataset)]
    assert None not in found
    return [manifest for manifest in found if manifest is not None]


def features_of(dataset: Dataset) -> pl.DataFrame:
    return scan(dataset.root, "features", dataset.partitions.start, dataset.last_day()).collect()


@dataclass(frozen=True)
class Totals:
    """What a log adds up to. Times are microseconds."""

    accepted: int
    users: int
    items: int
    sum_us: int
    largest_us: int
    zeros: int
    firsts: int
    actions: dict[str, int]


ONLINE_RETAIL = Totals(
    accepted=48_762,
    users=1_369,
    items=2_647,
    sum_us=1_472_040_720_000_000,
    largest_us=4_843_380_000_000,
    zeros=45_840,
    firsts=1_369,
    actions={"purchase": 47_392, "return": 1_370},
)
REES46 = Totals(
    accepted=5_019,
    users=1_755,
    items=2_312,
    sum_us=213_605_000_000,
    largest_us=8_175_000_000,
    zeros=4,
    firsts=1_755,
    actions={"view": 4_915, "cart": 50, "purchase": 54},
)

Event = tuple[str, str, int, str]  # user, item, time in us, action


def count(events: Iterable[Event]) -> Totals:
    """Adds up events that are in input order, in plain Python."""
    times: dict[str, list[int]] = defaultdict(list)
    items: set[str] = set()
    actions: dict[str, int] = defaultdict(int)
    accepted = 0
    for user, item, time_us, action in events:
        times[user].append(time_us)
        items.add(item)
        actions[action] += 1
        accepted += 1
    gaps = [
        later - earlier
        for user_times in (sorted(found) for found in times.values())
        for earlier, later in pairwise(user_times)
    ]
    return Totals(
        accepted=accepted,
        users=len(times),
        items=len(items),
        sum_us=sum(gaps),
        largest_us=max(gaps),
        zeros=sum(gap == 0 for gap in gaps),
        firsts=len(times),
        actions=dict(actions),
    )


def microseconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


def records(files: Sequence[Path]) -> Iterable[dict[str, str]]:
    for path in files:
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)


def retail_files(shared_data: Path) -> list[Path]:
    return sorted((shared_data / "online_retail").glob("*.csv"))


def count_features(rows: pl.DataFrame, actions: Sequence[str]) -> Totals:
    """Adds up the output: gaps from `timestamp`, the rest from the columns that were written."""
    of_timestamps = count(
        (str(user), str(item), time_us, "any")
        for user, item, time_us in rows.select("user_id", "item_id", pl.col("timestamp").to_physical()).iter_rows()
    )
    return Totals(
        accepted=rows.height,
        users=rows["user_index"].n_unique(),
        items=rows["item_index"].n_unique(),
        sum_us=of_timestamps.sum_us,
        largest_us=of_timestamps.largest_us,
        zeros=rows.filter((pl.col("time_diff") == 0) & ~pl.col("is_first")).height,
        firsts=int(rows["is_first"].sum()),
        actions={name: int(rows[f"action_{name}"].cast(pl.Int64).sum()) for name in actions},
    )


def assert_float32_agrees(rows: pl.DataFrame, totals: Totals) -> None:
    found_s = rows["time_diff"].cast(pl.Float64)
    assert float(found_s.sum()) == pytest.approx(totals.sum_us / 1e6, rel=1e-7)
    assert float(found_s.max()) == pytest.approx(totals.largest_us / 1e6, rel=1e-7)


@pytest.fixture(scope="module")
def by_stage(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Online Retail, stage by stage."""
    dataset = retail(shared_data, tmp_path_factory.mktemp("by_stage"))
    make_by_stage(dataset)
    return dataset


# -- Online Retail --------------------------------------------------------------------------------


def test_online_retail_counted_in_plain_python(shared_data: Path) -> None:
    """The totals are the log's own: no part of the pipeline is in this."""
    rows = list(records(retail_files(shared_data)))
    named = [row for row in rows if row["CustomerID"]]
    assert (len(rows), len(rows) - len(named)) == (77_628, 28_866)
    is_return = [int(row["Quantity"]) < 0 or row["InvoiceNo"].startswith("C") for row in named]
    events = [
        (row["CustomerID"], row["StockCode"], microseconds(row["InvoiceDate"]), "return" if back else "purchase")
        for row, back in zip(named, is_return, strict=True)
    ]
    assert count(events) == ONLINE_RETAIL


def test_online_retail_in_and_out(by_stage: Dataset) -> None:
    events = manifests(by_stage, "events")
    assert sum(manifest.counts["in"] for manifest in events) == 77_628
    assert sum(manifest.rows for manifest in events) == 48_762
    refused = [manifest.counts["by_reason"] for manifest in manifests(by_stage, "rejected_events")]
    assert {reason for day in refused for reason in day} == {"missing_user_id"}
    assert sum(day.get("missing_user_id", 0) for day in refused) == 28_866
    assert sum(manifest.rows > 0 for manifest in events) == 44
    assert sum(manifest.rows == 0 for manifest in events) == 18


def test_online_retail_features(by_stage: Dataset) -> None:
    rows = features_of(by_stage)
    assert count_features(rows, ["purchase", "return"]) == ONLINE_RETAIL
    assert_float32_agrees(rows, ONLINE_RETAIL)
    assert rows["history_position"].max() == rows["user_id"].value_counts()["count"].max() - 1
    zero_row_days = set(days_of(by_stage)) - set(rows["day"].unique())
    assert len(zero_row_days) == 18


def test_the_first_day_alone(by_stage: Dataset) -> None:
    day = features_of(by_stage).filter(pl.col("day") == FIRST)
    assert (day.height, day["user_id"].n_unique(), day["item_id"].n_unique()) == (1_968, 98, 946)
    users, items = (manifests(by_stage, name)[0] for name in ("user_vocabulary", "item_vocabulary"))
    assert (users.rows, users.size, items.rows, items.size) == (98, 98, 946, 946)


def test_day_by_day_into_another_root_is_the_same(by_stage: Dataset, shared_data: Path, tmp_path: Path) -> None:
    dataset = retail(shared_data, tmp_path)
    make_by_day(dataset, chunk_rows=200)  # on 2010-12-02 one user has 213 events, more than a chunk
    assert features_of(dataset).equals(features_of(by_stage))
    for asset in ("events", "rejected_events", "user_vocabulary", "item_vocabulary", "user_state", "features"):
        versions = [[m.content_version for m in manifests(one, asset)] for one in (dataset, by_stage)]
        assert versions[0] == versions[1], asset
    chunks = [m.counts["chunks"] for m in manifests(dataset, "features")]
    assert max(chunks) > 1


def test_a_lower_share_fails_exactly_two_days(shared_data: Path, tmp_path: Path) -> None:
    dataset = retail(shared_data, tmp_path, share="0.7")
    work = work_of(dataset, run="run")
    sentences = {}
    for day in days_of(dataset):
        try:
            run_day("events", day, work)
        except PipelineError as error:
            sentences[day] = str(error)
    assert sorted(sentences) == [date(2010, 12, 17), date(2010, 12, 21)]
    for day, sentence in sentences.items():
        assert "\n" not in sentence
        assert sentence.startswith(f"events of {day}: ")
        assert "missing_user_id" in sentence
        assert "max_rejected_share = 0.7" in sentence
        assert "column CustomerID" in sentence
        assert Store(dataset.root).manifest("events", day) is None
        aside = work.store.failed_directory("run", "rejected_events", day)
        (refused,) = aside.glob("*.parquet")
        assert pl.read_parquet(refused)["reason"].unique().to_list() == ["missing_user_id"]


@pytest.mark.slow
def test_one_range_run_on_the_command_line(by_stage: Dataset, shared_data: Path, tmp_path: Path) -> None:
    dataset = retail(shared_data, tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "dagster.yaml").write_bytes((REPOSITORY / "dagster_instance.yaml").read_bytes())
    environment = {**os.environ, "DAGSTER_HOME": str(tmp_path / "home"), "PIPELINE_DATASET": str(dataset.file)}
    done = subprocess.run(
        [
            sys.executable, "-m", "dagster", "asset", "materialize", "-m", "pipeline.definitions",
            "--select", "*", "--partition-range", f"{FIRST}...{LAST}",
        ],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert features_of(dataset).equals(features_of(by_stage))


# -- REES46 ---------------------------------------------------------------------------------------


def rees46_file(shared_data: Path) -> Path:
    return shared_data / "rees46_2019-Oct-01.csv"


def test_rees46_counted_in_plain_python(shared_data: Path) -> None:
    events = (
        (row["user_id"], row["product_id"], microseconds(row["event_time"].removesuffix(" UTC")), row["event_type"])
        for row in records([rees46_file(shared_data)])
    )
    assert count(events) == REES46


def test_rees46(shared_data: Path, tmp_path: Path) -> None:
    dataset = declare("rees46", rees46_file(shared_data), tmp_path)
    make_by_stage(dataset)
    rows = features_of(dataset)
    assert count_features(rows, ["view", "cart", "purchase"]) == REES46
    assert_float32_agrees(rows, REES46)
    raw = {row["category_id"] for row in records([rees46_file(shared_data)])}
    assert {str(category) for category in rows["category_id"]} == raw  # 64 bits, none lost
    assert min(int(category) for category in raw) > 2**53
    (events,) = manifests(dataset, "events")
    assert events.counts["in"] == events.rows == 5_019
    assert rows["brand"].null_count() == sum(not row["brand"] for row in records([rees46_file(shared_data)])) > 0


# -- docs/examples.md -----------------------------------------------------------------------------


def test_the_page_states_these_totals() -> None:
    page = (REPOSITORY / "docs" / "examples.md").read_text(encoding="utf-8")
    for totals in (ONLINE_RETAIL, REES46):
        for number in (totals.accepted, totals.users, totals.items, totals.zeros):
            assert re.search(rf"(?<![\d,]){number:,}(?!,?\d)", page), number
        for time_us in (totals.sum_us, totals.largest_us):
            assert f"{time_us // 1_000_000:,} s" in page
    for number in (77_628, 28_866, *ONLINE_RETAIL.actions.values(), 1_968, 98, 946):
        assert re.search(rf"(?<![\d,]){number:,}(?!,?\d)", page), number

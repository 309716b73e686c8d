import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import DataScan, FileScanTask, Table

from pipeline.contracts import PipelineError
from pipeline.sources import find_files
from pipeline.stages import run_day
from pipeline.store import Store
from pipeline_tests.datasets import at, make_dataset, make_store, row, table
from pipeline_tests.object_store import serving, set_environment
from pipeline_tests.raw_files import dataset
from pipeline_tests.works import work_of

ROWS = [row(1, "a", at("2020-01-01")), row(2, "b", at("2020-01-02"), "cart")]
FIRST = date(2020, 1, 1)


def arrow(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table(pl.DataFrame(rows).to_arrow())


def create(folder: Path, warehouse: str, **properties: str) -> Table:
    catalog = SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", warehouse=warehouse, **properties)
    catalog.create_namespace("shop")
    created = catalog.create_table("shop.clicks", schema=arrow(ROWS).schema)
    created.append(arrow(ROWS))
    catalog.close()
    return created


@pytest.fixture
def clicks(tmp_path: Path) -> Iterator[Table]:
    created = create(tmp_path, f"file://{tmp_path}/lake")
    yield created
    created.catalog.close()  # what a test wrote has opened it again


def metadata(clicks: Table) -> str:
    return clicks.metadata_location.removeprefix("file://")


def names(folder: Path, path: str) -> list[str]:
    return [file.name for file in find_files(dataset(folder, path, table="iceberg"), None)]


def test_the_files_are_those_of_the_version(tmp_path: Path, clicks: Table) -> None:
    first = names(tmp_path, metadata(clicks))
    assert [name.rpartition("/")[0] for name in first] == ["lake/shop/clicks/data"]
    former = metadata(clicks)
    clicks.append(arrow(ROWS))
    assert len(names(tmp_path, metadata(clicks))) == 2
    assert names(tmp_path, former) == first
    clicks.delete()
    assert names(tmp_path, metadata(clicks)) == []


def test_a_folder_that_says_which_version_it_is(tmp_path: Path, clicks: Table) -> None:
    folder = Path(metadata(clicks)).parents[1]
    with pytest.raises(
        PipelineError, match=r"^lake/shop/clicks: no metadata/version-hint\.text; write the table's newest"
    ):
        names(tmp_path, "lake/shop/clicks")
    (folder / "metadata" / "version-hint.text").write_text(Path(metadata(clicks)).name.removesuffix(".metadata.json"))
    assert names(tmp_path, "lake/shop/clicks") == names(tmp_path, metadata(clicks))


def test_tables_that_cannot_be_read(tmp_path: Path, clicks: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        PipelineError, match=r"^lake/none\.metadata\.json: no such metadata file; write the table's newest"
    ):
        names(tmp_path, "lake/none.metadata.json")
    (tmp_path / "cut.metadata.json").write_text("{")
    with pytest.raises(PipelineError, match=r"^cut\.metadata\.json: the Iceberg table cannot be read \(.*EOF"):
        names(tmp_path, "cut.metadata.json")
    (file,) = names(tmp_path, metadata(clicks))
    (tmp_path / file).unlink()
    with pytest.raises(PipelineError, match=r"\.parquet: the table names this file, which is not there"):
        names(tmp_path, metadata(clicks))
    monkeypatch.setitem(sys.modules, "pyiceberg.table", None)
    with pytest.raises(PipelineError, match=r"not installed; pip install 'event-feature-pipeline\[iceberg\]'"):
        names(tmp_path, metadata(clicks))


def test_a_column_that_was_renamed(tmp_path: Path, clicks: Table) -> None:
    with clicks.update_schema() as update:
        update.add_column("country", clicks.schema().find_type("item"))
    assert len(names(tmp_path, metadata(clicks))) == 1, "a column that was added has one name"
    with clicks.update_schema() as update:
        update.rename_column("item", "thing")
    with pytest.raises(
        PipelineError, match=r"uses more than one name or meaning for item, thing, so that its files alone"
    ):
        names(tmp_path, metadata(clicks))


def test_a_column_that_was_dropped_and_added_again(tmp_path: Path, clicks: Table) -> None:
    kind = clicks.schema().find_type("event")
    with clicks.update_schema() as update:
        update.delete_column("event")
    with clicks.update_schema() as update:
        update.add_column("event", kind)
    with pytest.raises(PipelineError, match=r"uses more than one name or meaning for event, so that"):
        names(tmp_path, metadata(clicks))


def test_files_of_deleted_rows(tmp_path: Path, clicks: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = DataScan.plan_files

    def with_deleted(scan: DataScan) -> list[FileScanTask]:
        return [FileScanTask(data_file=task.file, delete_files={task.file}) for task in plan(scan)]

    monkeypatch.setattr(DataScan, "plan_files", with_deleted)
    with pytest.raises(
        PipelineError, match="the Iceberg table uses files of deleted rows, so that its files alone do not"
    ):
        names(tmp_path, metadata(clicks))


def test_a_day_of_a_table(tmp_path: Path, clicks: Table) -> None:
    declared = make_dataset(tmp_path, source={"path": metadata(clicks), "table": "iceberg"})
    store = make_store(declared)
    assert not run_day("events", FIRST, work_of(declared, run="run")).reused
    assert run_day("events", FIRST, work_of(declared, run="again")).reused
    assert table(store, "events", "2020-01-01").select("user_id", "item_id", "action").rows() == [(1, "a", "view")]


@pytest.fixture
def uploaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of the metadata file of a table in an object store."""
    with serving() as server:
        set_environment(monkeypatch, server.environment)
        bucket = server.bucket()
        reached = {"s3.endpoint": server.environment["AWS_ENDPOINT_URL"], "s3.region": "us-east-1"}
        yield create(tmp_path, f"s3://{bucket.name}/lake", **reached).metadata_location


def test_a_table_in_an_object_store(tmp_path: Path, uploaded: str) -> None:
    declared = make_dataset(tmp_path, source={"path": uploaded, "table": "iceberg"})
    make_store(declared)
    manifest = run_day("events", FIRST, work_of(declared, run="run")).manifest
    (file,) = manifest.raw_files
    assert file["path"].startswith(uploaded.partition("/metadata/")[0] + "/data/")
    assert table(Store(declared.root), "events", "2020-01-01")["user_id"].to_list() == [1]


def test_a_store_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reached = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}
    set_environment(monkeypatch, reached)
    with pytest.raises(PipelineError, match=r"^s3://bucket/x\.metadata\.json: the object store cannot be reached \("):
        names(tmp_path, "s3://bucket/x.metadata.json")

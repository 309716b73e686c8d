import json
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pipeline.config import load_dataset
from pipeline.contracts import PipelineError
from pipeline.sources import find_files
from pipeline.stages import run_day
from pipeline.store import Store
from pipeline_tests.datasets import at, make_dataset, make_store, row, table, write_dataset_file
from pipeline_tests.object_store import serving, set_environment
from pipeline_tests.raw_files import dataset, read_file
from pipeline_tests.works import work_of

ROWS = [row(1, "a", at("2020-01-01"), country="DE"), row(2, "b", at("2020-01-02"), "cart", country=None)]


def write(folder: Path, rows: list[dict[str, Any]] = ROWS, **options: Any) -> None:
    write_deltalake(str(folder), pa.table(pl.DataFrame(rows).to_arrow()), **options)


def names(folder: Path, path: str, **source: Any) -> list[str]:
    return [file.name for file in find_files(dataset(folder, path, table="delta", **source), None)]


def test_the_files_are_those_of_the_newest_version(tmp_path: Path) -> None:
    write(tmp_path / "lake/clicks")
    (first,) = names(tmp_path, "lake/clicks")
    assert first.startswith("lake/clicks/part-")
    write(tmp_path / "lake/clicks", mode="append")
    assert len(names(tmp_path, "lake/clicks")) == 2
    DeltaTable(tmp_path / "lake/clicks").delete()
    assert names(tmp_path, "lake/clicks") == []
    write(tmp_path / "lake/clicks", mode="overwrite")
    (last,) = names(tmp_path, "lake/clicks")
    assert last != first
    assert (tmp_path / first).exists(), "the former files are still there"


def test_columns_that_the_table_is_partitioned_by(tmp_path: Path) -> None:
    write(tmp_path / "lake/x=1/clicks", partition_by=["country", "user"])
    declared = dataset(tmp_path, "lake/x=1/clicks", table="delta", hive=True)
    files = find_files(declared, None)
    found = [read_file(file, declared, 1 << 20).frame.select("item", "country", "user").row(0) for file in files]
    assert found == [("a", "DE", "1"), ("b", None, "2")]


def test_folders_that_do_not_say_what_the_log_says(tmp_path: Path) -> None:
    write(tmp_path / "clicks", partition_by=["country"])
    edit_log(tmp_path / "clicks", "add", lambda add: add["partitionValues"].update(country="FR"))
    assert len(names(tmp_path, "clicks")) == 2
    with pytest.raises(
        PipelineError, match=r"^clicks: the log of the Delta table says {'country': 'FR'} of a file .*hive out"
    ):
        names(tmp_path, "clicks", hive=True)


def edit_log(folder: Path, action: str, change: Any) -> None:
    log = folder / "_delta_log" / "00000000000000000000.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if action in line:
            change(line[action])
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))


def use_features(folder: Path, *features: str, **configuration: str) -> None:
    used = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    edit_log(folder, "protocol", lambda protocol: protocol.update(used))
    edit_log(folder, "metaData", lambda described: described["configuration"].update(configuration))


def test_tables_of_which_the_files_alone_do_not_say_what_is_in_them(tmp_path: Path) -> None:
    for name, features in {"plain": ["deletionVectors", "v2Checkpoint"], "typed": ["typeWidening"]}.items():
        write(tmp_path / name)
        use_features(tmp_path / name, *features)
    assert len(names(tmp_path, "plain")) == 1
    with pytest.raises(PipelineError, match=r"^typed: the Delta table uses typeWidening, so that .* rewrite the table"):
        names(tmp_path, "typed")
    marks = {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 1,
    }
    edit_log(tmp_path / "plain", "add", lambda add: add.update(deletionVector=marks))
    with pytest.raises(PipelineError, match=r"^plain: the Delta table uses deletionVectors, so that"):
        names(tmp_path, "plain")


def test_renamed_columns(tmp_path: Path) -> None:
    write(tmp_path / "clicks")
    use_features(tmp_path / "clicks", "columnMapping", **{"delta.columnMapping.mode": "name"})

    def rename(described: dict[str, Any]) -> None:
        schema = json.loads(described["schemaString"])
        for number, column in enumerate(schema["fields"]):
            names_on_disk = {"delta.columnMapping.physicalName": f"col-{number}", "delta.columnMapping.id": number}
            column["metadata"].update(names_on_disk)
        described["schemaString"] = json.dumps(schema)

    edit_log(tmp_path / "clicks", "metaData", rename)
    with pytest.raises(PipelineError, match=r"^clicks: the Delta table uses columnMapping, so that"):
        names(tmp_path, "clicks")


def test_tables_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "none"):
        with pytest.raises(
            PipelineError, match=rf"^{name}: there is no Delta table; bring it, or correct \[source\] path"
        ):
            names(tmp_path, name)
    write(tmp_path / "odd")
    use_features(tmp_path / "odd", "rocketFeature")
    with pytest.raises(PipelineError, match=r"^odd: the Delta table cannot be read \(.*rocketFeature"):
        names(tmp_path, "odd")
    write(tmp_path / "gone")
    (file,) = (tmp_path / "gone").glob("*.parquet")
    file.unlink()
    with pytest.raises(PipelineError, match=r"\.parquet: the table names this file, which is not there"):
        names(tmp_path, "gone")
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(PipelineError, match=r"^gone: .* not installed; pip install 'event-feature-pipeline\[delta\]'"):
        names(tmp_path, "gone")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"path": "lake/{date}"}, 'table = "delta" needs one table as path, without {date}, * and ?'),
        ({"path": "lake/*"}, 'table = "delta" needs one table as path, without {date}, * and ?'),
        ({"path": "lake", "format": "csv"}, 'the files of a table = "delta" are Parquet; leave format out'),
        ({"path": "lake", "table": "hudi"}, "source.table: input should be 'delta' or 'iceberg' (found 'hudi')"),
    ],
)
def test_declarations_that_are_refused(tmp_path: Path, source: dict[str, str], expected: str) -> None:
    file = write_dataset_file(tmp_path / "dataset.toml", source={"table": "delta", **source})
    with pytest.raises(PipelineError) as caught:
        load_dataset(file)
    assert expected in str(caught.value)


FIRST, SECOND = date(2020, 1, 1), date(2020, 1, 2)
EXTRA = {"country": {"from": "country", "type": "string", "optional": True}}


def test_days_of_a_table(tmp_path: Path) -> None:
    write(tmp_path / "clicks", partition_by=["country"])
    declared = make_dataset(tmp_path, source={"path": "clicks", "table": "delta", "hive": True}, extra=EXTRA)
    store = make_store(declared)
    for day in (FIRST, SECOND):
        assert not run_day("events", day, work_of(declared, run="run")).reused
        assert run_day("events", day, work_of(declared, run="again")).reused
    for day, expected in (("2020-01-01", (1, "a", "view", "DE")), ("2020-01-02", (2, "b", "cart", None))):
        found = table(store, "events", day).select("user_id", "item_id", "action", "country")
        assert found.rows() == [expected]
    write(tmp_path / "clicks", [row(3, "c", at("2020-01-01"), country="DE")], mode="append", partition_by=["country"])
    assert not run_day("events", FIRST, work_of(declared, run="run")).reused
    assert table(store, "events", "2020-01-01")["user_id"].to_list() == [1, 3]


@pytest.fixture
def uploaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a table in an object store."""
    write(tmp_path / "clicks", partition_by=["country"])
    with serving() as server:
        set_environment(monkeypatch, server.environment | {"AWS_REGION": "us-east-1"})
        bucket = server.bucket()
        for file in (tmp_path / "clicks").rglob("*"):
            if file.is_file():
                bucket.put(f"lake/{file.relative_to(tmp_path)}", file.read_bytes())
        yield f"s3://{bucket.name}/lake/clicks"


def test_a_table_in_an_object_store(tmp_path: Path, uploaded: str) -> None:
    declared = make_dataset(tmp_path, source={"path": uploaded, "table": "delta", "hive": True}, extra=EXTRA)
    make_store(declared)
    manifest = run_day("events", FIRST, work_of(declared, run="run")).manifest
    assert [file["path"].rpartition("/")[0].removeprefix(uploaded) for file in manifest.raw_files] == [
        "/country=DE", "/country=__HIVE_DEFAULT_PARTITION__",
    ]  # fmt: skip
    assert table(Store(declared.root), "events", "2020-01-01").select("user_id", "country").rows() == [(1, "DE")]
    with pytest.raises(PipelineError, match=rf"^{uploaded}2: there is no Delta table"):
        find_files(dataset(tmp_path, f"{uploaded}2", table="delta"), None)


def test_a_store_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reached = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}
    set_environment(monkeypatch, reached)
    with pytest.raises(
        PipelineError, match=r"^s3://bucket/clicks: the object store cannot be reached \(.*127\.0\.0\.1:9"
    ):
        names(tmp_path, "s3://bucket/clicks")

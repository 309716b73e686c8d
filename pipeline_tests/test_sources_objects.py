import errno
import gzip
import io
import os
import re
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import fs

from pipeline.config import load_dataset
from pipeline.contracts import PipelineError
from pipeline.sources import RawFile, files_of_day, find_files, is_ready, require_folder
from pipeline.sources.locations import objects as objects_module
from pipeline.sources.locations.object_stores import asking
from pipeline.sources.locations.objects import matches, read_object, remove_copies
from pipeline.stages import Outcome, run_day, run_days
from pipeline.store import Store
from pipeline_tests.datasets import at, make_dataset, make_store, row, table, write_dataset_file
from pipeline_tests.object_store import NOBODY, Bucket, Server, serving, set_environment
from pipeline_tests.raw_files import dataset, read_file
from pipeline_tests.works import work_of

DAY = date(2020, 1, 2)
CONTENT = b"a,b\n1,2\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def bucket(server: Server, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    set_environment(monkeypatch, server.environment)
    return server.bucket()


def names(files: list[RawFile], bucket: Bucket) -> list[str]:
    return [file.name.removeprefix(f"s3://{bucket.name}/") for file in files]


def url(bucket: Bucket, key: str) -> str:
    return f"s3://{bucket.name}/{key}"


# Declarations


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("ftp://host/{date}.csv", "source.path: ftp:// is not read; expected s3://, gs:// or az://, or a path on this"),
        ("s3://bucket", "source.path: expected s3://bucket/folder/file, with the name of the bucket in full"),
        ("gs://{date}/log.csv", "source.path: expected gs://bucket/folder/file, with the name of the bucket in full"),
        ("az://*/log.csv", "source.path: expected az://bucket/folder/file, with the name of the bucket in full"),
        (
            "s3://bucket/a//{date}.csv",
            "source.path: a part of the URL is empty, . or ..; write the key as the store lists",
        ),
        (
            "s3://bucket/../{date}.csv",
            "source.path: a part of the URL is empty, . or ..; write the key as the store lists",
        ),
        ("s3:///{date}.csv", "source.path: a part of the URL is empty, . or ..; write the key as the store lists"),
    ],
)
def test_urls_that_are_refused(tmp_path: Path, path: str, expected: str) -> None:
    file = write_dataset_file(tmp_path / "dataset.toml", source={"path": path})
    with pytest.raises(PipelineError, match=re.escape(expected)):
        load_dataset(file)


def test_the_store_itself_stays_on_this_machine(tmp_path: Path) -> None:
    file = write_dataset_file(tmp_path / "dataset.toml", store={"root": "s3://bucket/lake"})
    with pytest.raises(
        PipelineError, match=r"store\.root: object stores are not supported yet; give a path on this machine"
    ):
        load_dataset(file)


# Listing


def test_the_objects_of_a_day(tmp_path: Path, bucket: Bucket) -> None:
    for key in ("raw/2020-01-02.csv", "raw/2020-01-03.csv", "raw/20200102/x-02.csv"):
        bucket.put(key, CONTENT)
    declared = dataset(tmp_path, url(bucket, "raw/{date}.csv"))
    (file,) = find_files(declared, DAY)
    assert (file.name, file.day, file.bytes) == (url(bucket, "raw/2020-01-02.csv"), DAY, 8)
    assert abs(file.mtime_ns / 1e9 - time.time()) < 60
    assert find_files(declared, date(2020, 1, 4)) == []
    twice = dataset(tmp_path, url(bucket, "raw/{date:%Y%m%d}/x-{date:%d}.csv"))
    assert names(find_files(twice, DAY), bucket) == ["raw/20200102/x-02.csv"]
    reaching = dataset(tmp_path, url(bucket, "raw/{date}.csv"), neighbours=[0, 1])
    assert [file.day and file.day.day for file in files_of_day(reaching, DAY)] == [2, 3]
    assert not (tmp_path / "out").exists(), "listing copies nothing"


def test_globs_find_objects_in_bytewise_order(tmp_path: Path, bucket: Bucket) -> None:
    for key in ("b.csv", "B.csv", "é.csv", "z.csv", "deep/er/a.csv", ".hidden.csv", "[x]*/a[1].csv", "x/a b%20+.csv"):
        bucket.put(f"raw/{key}", CONTENT)

    def found(pattern: str) -> list[str]:
        return names(find_files(dataset(tmp_path, url(bucket, pattern)), None), bucket)

    assert found("raw/*.csv") == ["raw/B.csv", "raw/b.csv", "raw/z.csv", "raw/é.csv"]
    assert found("raw/**/?.csv") == ["raw/B.csv", "raw/b.csv", "raw/deep/er/a.csv", "raw/z.csv", "raw/é.csv"]
    assert found("raw/[x]?/a*") == ["raw/[x]*/a[1].csv"]
    assert found("*/x/a b%20+.csv") == ["raw/x/a b%20+.csv"]
    assert found("raw/*") == found("raw/*.csv"), "a folder is no file"
    assert found("raw/deep") == []


PARTS = st.sampled_from(["a", "b", ".a", "ab", "a.b", "aa", "*", "?a"])
PATTERN_PARTS = st.sampled_from(["a", "*", "**", "?", "a*", ".*", "*b", "?.b", "**b", "ab"])


@settings(max_examples=200, deadline=None)
@given(
    keys=st.sets(st.lists(PARTS, min_size=1, max_size=3).map("/".join), min_size=1, max_size=6),
    parts=st.lists(PATTERN_PARTS, min_size=1, max_size=4),
)
def test_globs_match_the_same_as_in_folders(keys: set[str], parts: list[str]) -> None:
    pattern = "/".join(parts)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "raw")
        root.mkdir()
        store = fs.SubTreeFileSystem(folder, fs.LocalFileSystem())
        for key in keys:
            if not any(other.startswith(f"{key}/") for other in keys):
                (root / key).parent.mkdir(parents=True, exist_ok=True)
                (root / key).write_bytes(CONTENT)
        # A name that is the pattern itself is found alone in a folder; a store has no such rule.
        if (root / pattern).exists():
            return
        expected = [f"raw/{file.name}" for file in find_files(dataset(root, pattern), None)]
        found = [info.path for info in matches(store, "", ["raw", *parts]) if info.type == fs.FileType.File]
        assert sorted(found, key=os.fsencode) == expected
        assert len(set(found)) == len(found)


def test_ready(tmp_path: Path, bucket: Bucket) -> None:
    path = url(bucket, "{date}.csv")
    declared = dataset(tmp_path, path, ready=url(bucket, "{date}/_SUCCESS"))
    assert not is_ready(declared, DAY)
    bucket.put("2020-01-02/_SUCCESS", b"")
    assert is_ready(declared, DAY)
    assert not is_ready(declared, date(2020, 1, 3))
    beside = dataset(tmp_path, path, ready="{date}.done")
    assert not is_ready(beside, DAY)
    (tmp_path / "2020-01-02.done").touch()
    assert is_ready(beside, DAY)


def test_a_missing_folder_is_no_empty_one(tmp_path: Path, bucket: Bucket) -> None:
    bucket.put("logs/app=1/2020-01-02.csv", CONTENT)
    for there in ("logs/*/{date}.csv", "logs/app=1/{date}.csv", "{date}.csv", "*.csv"):
        require_folder(dataset(tmp_path, url(bucket, there)))
    with pytest.raises(
        PipelineError,
        match=rf"^s3://{bucket.name}/log: nothing lies in the folder of the raw files; bring the files, or ",
    ):
        require_folder(dataset(tmp_path, url(bucket, "log/{date}.csv")))
    with pytest.raises(
        PipelineError, match=r"^s3://no-such-bucket: there is no such bucket; .* correct \[source\] path"
    ):
        require_folder(dataset(tmp_path, "s3://no-such-bucket/log/{date}.csv"))


# Copies


def test_an_object_is_copied_once_when_it_is_read(
    tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put("day=2/log.csv.gz", gzip.compress(CONTENT))
    declared = dataset(tmp_path, url(bucket, "*/log.csv.gz"))
    (file,) = find_files(declared, None)
    assert not file.path.exists()
    assert read_file(file, declared, 9).rows == [("1", "2")]
    copies = tmp_path / "out" / "_scratch"
    assert file.path.is_relative_to(copies)
    assert file.path.parts[-2:] == ("day=2", "log.csv.gz"), "folders and extension are those of the key"
    monkeypatch.setattr(objects_module, "read_object", lambda _: pytest.fail("copied twice"))
    assert find_files(declared, None) == [file]
    assert find_files(declared, None)[0].fetch() == file.path
    remove_copies(declared.root)
    assert list(copies.iterdir()) == []


def test_a_copy_is_made_again_when_it_was_removed(tmp_path: Path, bucket: Bucket) -> None:
    bucket.put("log.csv", CONTENT)
    (file,) = find_files(dataset(tmp_path, url(bucket, "log.csv")), None)
    for _ in range(2):
        assert file.fetch().read_bytes() == CONTENT
        remove_copies(tmp_path / "out")
        assert not file.path.exists()


def test_copies_of_killed_processes_are_swept_by_age(tmp_path: Path, bucket: Bucket) -> None:
    declared = make_dataset(tmp_path, source={"path": url(bucket, "{date}.csv")})
    bucket.put("2020-01-02.csv", CONTENT)
    (file,) = find_files(declared, DAY)
    folder = file.fetch().parents[2]
    killed = folder.with_name("objects-1-00000000")
    folder.rename(killed)
    long_ago = time.time() - 100 * 3600
    os.utime(killed, (long_ago, long_ago))
    file.fetch()
    os.utime(folder, (long_ago, long_ago))
    file.fetch()
    Store(declared.root).open_for(declared)
    assert not killed.exists()
    assert file.path.exists(), "what was asked for just now is in use"


def test_an_object_that_changed_before_it_was_read_is_refused(tmp_path: Path, bucket: Bucket) -> None:
    bucket.put("log.csv", CONTENT)
    declared = dataset(tmp_path, url(bucket, "log.csv"))
    (file,) = find_files(declared, None)
    bucket.put("log.csv", CONTENT + b"3,4\n")
    with pytest.raises(
        PipelineError, match=r"log\.csv: the object changed while it was read \(8 bytes .* 12 now\); run"
    ):
        file.fetch()
    bucket.delete("log.csv")
    with pytest.raises(PipelineError, match=r"log\.csv: there is no such object any more; restore it"):
        file.fetch()
    assert not file.path.exists()


def test_an_object_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects_module, "STEP", 3)
    for change in (CONTENT + b"3,4\n", CONTENT[:4], CONTENT.replace(b"2", b"3")):
        bucket.put("log.csv", CONTENT)
        (file,) = find_files(dataset(tmp_path, url(bucket, "log.csv")), None)
        assert b"".join(read_object(file)) == CONTENT
        pieces = read_object(file)
        assert next(pieces) == CONTENT[:3]
        bucket.put("log.csv", change)
        with pytest.raises(PipelineError, match=r"log\.csv: the object changed while it was read"):
            list(pieces)


def test_a_full_disk_gives_a_sentence(tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.put("log.csv", CONTENT)
    (file,) = find_files(dataset(tmp_path, url(bucket, "log.csv")), None)
    replace = Path.replace

    def full(self: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(
        PipelineError, match=r"^the copy of s3://.*log\.csv: cannot write to .*No space.*; make room there"
    ):
        file.fetch()
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []
    monkeypatch.setattr(Path, "replace", replace)
    assert file.fetch().read_bytes() == CONTENT


# Stores that do not answer


def test_access_is_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(INITIAL_NO_AUTH_ACTION_COUNT="0") as strict:
        set_environment(monkeypatch, strict.environment)
        denied = r"^s3://bucket/logs/\S+: the object store gives no access \(.*\); give credentials .*AWS_ACCESS_KEY_ID"
        for path in ("logs/*.csv", "logs/{date}.csv"):
            declared = dataset(tmp_path, f"s3://bucket/{path}")
            with pytest.raises(PipelineError, match=denied):
                find_files(declared, DAY)
            with pytest.raises(PipelineError, match=denied):
                require_folder(declared)


def test_a_store_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = dataset(tmp_path, "s3://bucket/logs/*.csv")
    for endpoint in ("http://127.0.0.1:9", "http://no-such-host.invalid"):
        set_environment(
            monkeypatch,
            {**NOBODY, "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"},
        )
        with pytest.raises(
            PipelineError, match=r"^s3://bucket/logs/\*\.csv: the object store cannot be reached \(.*AWS_EN"
        ):
            find_files(declared, None)


def test_buckets_that_all_may_read(tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.put("log.csv", CONTENT)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    (file,) = find_files(dataset(tmp_path, url(bucket, "*.csv")), None)
    assert file.fetch().read_bytes() == CONTENT


def test_azure_needs_the_name_of_the_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch, {})
    with pytest.raises(
        PipelineError, match="az:// needs the name of the storage account; set AZURE_STORAGE_ACCOUNT_NAME"
    ):
        find_files(dataset(tmp_path, "az://container/*.csv"), None)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        # As the stores' libraries worded them on a machine without credentials and network.
        (
            "google::cloud::Status(UNAVAILABLE: Could not create a OAuth2 access token to authenticate",
            "gives no access",
        ),
        ("google::cloud::Status(PERMISSION_DENIED: does not have storage.objects.list access", "gives no access"),
        (
            "google::cloud::Status(UNAVAILABLE: Retry policy exhausted, CURL error [6]=Could not res",
            "cannot be reached",
        ),
        ("AuthenticationExceptionE: Failed to get token from DefaultAzureCredential.", "gives no access"),
        (
            "Azure Error: [] Fail to get a new connection for: https://x. Could not resolve hostname",
            "cannot be reached",
        ),
        ("AWS Error INTERNAL_FAILURE during ListObjectsV2 operation: five\nlines", "does not answer as expected"),
    ],
)
def test_what_stores_answer(answer: str, expected: str) -> None:
    for scheme in ("s3", "gs", "az"):
        with pytest.raises(PipelineError) as caught, asking(f"{scheme}://bucket/log.csv"):
            raise OSError(answer)
        assert str(caught.value).startswith(f"{scheme}://bucket/log.csv: the object store {expected} ({answer[:9]}")
        assert "\n" not in str(caught.value)


# From the objects to proven events


def csv(*rows: dict[str, object]) -> bytes:
    lines = ["user,item,time,event", *(",".join(str(value) for value in one.values()) for one in rows)]
    return "".join(f"{line}\n" for line in lines).encode()


def parquet(*rows: dict[str, object]) -> bytes:
    written = io.BytesIO()
    pl.DataFrame(rows).write_parquet(written)
    return written.getvalue()


FIRST, SECOND = date(2020, 1, 1), date(2020, 1, 2)


@pytest.mark.parametrize("extension", ["csv.gz", "parquet"])
def test_days_of_objects(tmp_path: Path, bucket: Bucket, extension: str) -> None:
    def pack(*rows: dict[str, object]) -> bytes:
        return gzip.compress(csv(*rows)) if extension == "csv.gz" else parquet(*rows)

    declared = make_dataset(tmp_path, source={"path": url(bucket, f"logs/{{date}}/*.{extension}")})
    make_store(declared)
    bucket.put(f"logs/2020-01-01/part-0.{extension}", pack(row(7, "a", at("2020-01-01", "10:00:00"))))
    bucket.put(f"logs/2020-01-01/part-1.{extension}", pack(row(7, "b", at("2020-01-01", "09:00:00"), "cart")))

    def made(day: date, run: str) -> Outcome:
        remove_copies(declared.root)
        return run_day("events", day, work_of(declared, run=run))

    outcome = made(FIRST, "one")
    assert not outcome.reused
    events = table(Store(declared.root), "events", "2020-01-01")
    assert events.select("row_id", "item_id", "action").rows() == [(1, "b", "cart"), (0, "a", "view")]
    assert [file["path"] for file in outcome.manifest.raw_files] == [
        url(bucket, f"logs/2020-01-01/part-{number}.{extension}") for number in (0, 1)
    ]
    again = made(FIRST, "two")
    assert again.reused
    assert not list((declared.root / "_scratch").glob("objects-*")), "an unchanged object is not copied"
    with pytest.raises(PipelineError, match=r"events of 2020-01-02: no file matches s3://"):
        made(SECOND, "three")
    bucket.put(
        f"logs/2020-01-01/part-1.{extension}", pack(row(8, "c", at("2020-01-01")), row(8, "d", at("2020-01-01")))
    )
    assert not made(FIRST, "four").reused
    assert table(Store(declared.root), "events", "2020-01-01")["item_id"].to_list() == ["a", "c", "d"]


def test_an_object_with_rows_of_several_days(tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = make_dataset(tmp_path, source={"path": url(bucket, "log.csv")})
    make_store(declared)
    bucket.put(
        "log.csv", csv(row(1, "a", at("2020-01-01")), row(1, "b", at("2020-01-02")), row(2, "c", at("2020-01-01")))
    )
    copied: list[str] = []

    def counted(file: RawFile) -> Iterator[bytes]:
        copied.append(file.name)
        return read_object(file)

    monkeypatch.setattr(objects_module, "read_object", counted)
    outcomes = dict(run_days("events", [FIRST, SECOND], work_of(declared, run="run")))
    assert [day for day, outcome in outcomes.items() if isinstance(outcome, Outcome)] == [FIRST, SECOND]
    store = Store(declared.root)
    assert table(store, "events", "2020-01-01")["item_id"].to_list() == ["a", "c"]
    assert table(store, "events", "2020-01-02")["item_id"].to_list() == ["b"]
    assert copied == [url(bucket, "log.csv")]


def test_an_object_that_changes_between_reading_and_proof(
    tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = make_dataset(tmp_path, source={"path": url(bucket, "{date}.csv")})
    make_store(declared)
    bucket.put("2020-01-01.csv", csv(row(1, "a", at("2020-01-01"))))
    from pipeline import stages

    publish = stages.publish

    def publish_late(*args, **kwargs):
        bucket.put("2020-01-01.csv", csv(row(1, "a", at("2020-01-01")), row(2, "b", at("2020-01-01"))))
        return publish(*args, **kwargs)

    monkeypatch.setattr(stages, "publish", publish_late)
    with pytest.raises(PipelineError, match="raw files are those that were read"):
        run_day("events", FIRST, work_of(declared, run="run"))
    assert Store(declared.root).manifest("events", FIRST) is None

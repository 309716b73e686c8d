import bz2
import gzip
import lzma
import os
from datetime import date
from pathlib import Path
from typing import get_args

import polars as pl
import pyarrow as pa
import pytest

from pipeline import sources
from pipeline.config.source import Format
from pipeline.contracts import PipelineError
from pipeline.sources import RawFile, file_format, files_of_day, find_files, is_ready, read_blocks
from pipeline_tests.raw_files import dataset, read, read_file

DAY = date(2020, 1, 2)


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"a,b\n1,2\n")


def names(files: list[RawFile]) -> list[str]:
    return [file.name for file in files]


def test_the_files_of_a_day(tmp_path: Path) -> None:
    touch(tmp_path, "raw/2020-01-02.csv", "raw/2020-01-03.csv", "raw/20200102/x-02.csv")
    (file,) = find_files(dataset(tmp_path, "raw/{date}.csv"), DAY)
    assert file == RawFile(
        path=tmp_path / "raw/2020-01-02.csv",
        name="raw/2020-01-02.csv",
        day=DAY,
        bytes=8,
        mtime_ns=(tmp_path / "raw/2020-01-02.csv").stat().st_mtime_ns,
    )
    twice = dataset(tmp_path, "raw/{date:%Y%m%d}/x-{date:%d}.csv")
    assert names(find_files(twice, DAY)) == ["raw/20200102/x-02.csv"]
    assert find_files(twice, date(2020, 1, 4)) == []


def test_globs_find_regular_files_in_bytewise_order(tmp_path: Path) -> None:
    touch(tmp_path, "raw/b.csv", "raw/B.csv", "raw/é.csv", "raw/z.csv", "raw/deep/er/a.csv", "raw/.hidden.csv")
    (tmp_path / "raw/folder.csv").mkdir()
    (tmp_path / "raw/broken.csv").symlink_to("nowhere")
    assert names(find_files(dataset(tmp_path, "raw/*.csv"), None)) == [
        "raw/B.csv", "raw/b.csv", "raw/z.csv", "raw/é.csv",
    ]  # fmt: skip
    assert names(find_files(dataset(tmp_path, "raw/**/?.csv"), None)) == [
        "raw/B.csv", "raw/b.csv", "raw/deep/er/a.csv", "raw/z.csv", "raw/é.csv",
    ]  # fmt: skip
    assert find_files(dataset(tmp_path, "raw/*.csv"), None)[0].day is None


def test_only_stars_and_question_marks_are_globs(tmp_path: Path) -> None:
    touch(tmp_path, "[x]*/a[1].csv", "[x]*/a1.csv", "x/a1.csv")
    assert names(find_files(dataset(tmp_path, "[x]*/a[1].csv"), None)) == ["[x]*/a[1].csv"]
    assert names(find_files(dataset(tmp_path, "?x]*/a[1]*"), None)) == ["[x]*/a[1].csv"]
    assert names(find_files(dataset(tmp_path / "[x]*", "a*.csv"), None)) == ["a1.csv", "a[1].csv"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    touch(tmp_path, "raw/a")
    for path in ("raw/a/**", "raw/a/*", "raw/a/b", "raw/a/b/**"):
        assert find_files(dataset(tmp_path, path), None) == []


def test_a_file_outside_the_folder_is_named_in_full(tmp_path: Path) -> None:
    touch(tmp_path, "raw/a.csv")
    (tmp_path / "sets").mkdir()
    for path in ("../raw/a.csv", "../raw/*.csv", str(tmp_path / "raw/*.csv")):
        (file,) = find_files(dataset(tmp_path / "sets", path), None)
        assert file.name == str(tmp_path / "raw/a.csv")
        assert file.path.is_absolute()


def test_neighbours(tmp_path: Path) -> None:
    touch(tmp_path, *(f"202001{day:02}.csv" for day in range(1, 6)))
    declared = dataset(tmp_path, "{date:%Y%m%d}.csv", neighbours=[1, 2])
    found = files_of_day(declared, DAY)
    assert [(file.name, file.day and file.day.day) for file in found] == [
        ("20200101.csv", 1), ("20200102.csv", 2), ("20200103.csv", 3), ("20200104.csv", 4),
    ]  # fmt: skip
    assert names(files_of_day(dataset(tmp_path, "{date:%Y%m%d}.csv"), DAY)) == ["20200102.csv"]
    assert len(files_of_day(dataset(tmp_path, "*.csv"), DAY)) == 5


def test_ready(tmp_path: Path) -> None:
    declared = dataset(tmp_path, "{date}.csv", ready="{date}/_SUCCESS")
    assert not is_ready(declared, DAY)
    touch(tmp_path, "2020-01-02/_SUCCESS")
    assert is_ready(declared, DAY)
    assert not is_ready(declared, date(2020, 1, 3))
    assert is_ready(dataset(tmp_path, "{date}.csv"), DAY)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.csv", "csv"), ("a.TSV.gz", "csv"), ("a.txt.bz2", "csv"), ("a.parquet", "parquet"), ("a.pq", "parquet"),
        ("a.ndjson", "ndjson"), ("a.jsonl.zst", "ndjson"), ("a.json", "ndjson"), ("a.txt.xz", "csv"),
        ("a.arrow", "arrow"), ("a.IPC", "arrow"), ("a.feather", "arrow"),
    ],
)  # fmt: skip
def test_format_by_extension(tmp_path: Path, name: str, expected: str) -> None:
    touch(tmp_path, name)
    declared = dataset(tmp_path, name)
    assert file_format(find_files(declared, None)[0], declared) == expected


def test_unknown_extensions_need_a_format(tmp_path: Path) -> None:
    touch(tmp_path, "a.log", "b", "c.parquet.gz")
    declared = dataset(tmp_path, "a.log")
    with pytest.raises(PipelineError, match=r"^a\.log: the extension '\.log' tells no format; set \[source\] format"):
        read_blocks(find_files(declared, None)[0], declared, block_bytes=1)
    assert read_file(find_files(declared, None)[0], dataset(tmp_path, "a.log", format="csv"), 9).rows == [("1", "2")]
    packed = dataset(tmp_path, "c.parquet.gz")
    with pytest.raises(PipelineError, match=r"^c\.parquet\.gz: Parquet inside gzip"):
        read_blocks(find_files(packed, None)[0], packed, block_bytes=1)


PACK = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda content: pa.compress(content, codec="zstd", asbytes=True),
    ".xz": lzma.compress,
}
CONTENT = b"a,b\n" + b"".join(b"%d,%d\n" % (row, row * 7919 % 1000) for row in range(300))


@pytest.mark.parametrize("extension", PACK)
@pytest.mark.parametrize("block_bytes", [7, 1 << 20])
def test_compressed_files(tmp_path: Path, extension: str, block_bytes: int) -> None:
    plain = read(tmp_path, "log.csv", CONTENT)
    pack = PACK[extension]
    several = pack(CONTENT[:500]) + pack(CONTENT[500:])
    for content in (pack(CONTENT), several):
        found = read(tmp_path, "log.csv" + extension, content, block_bytes=block_bytes)
        assert (found.rows, found.lines) == (plain.rows, plain.lines)
    jsonl = read(tmp_path, "log.jsonl" + extension, pack(b'{"a": 1}\n{"a": 2}\n'), block_bytes=block_bytes)
    assert jsonl.rows == [("1",), ("2",)]


NAMES = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".xz": "xz"}


@pytest.mark.parametrize("extension", PACK)
def test_a_declared_compression_replaces_the_extension(tmp_path: Path, extension: str) -> None:
    packed = PACK[extension](CONTENT)
    rows = read(tmp_path, "log.csv", CONTENT).rows
    assert read(tmp_path, "log.csv", packed, compression=NAMES[extension]).rows == rows
    other = ".gz" if extension != ".gz" else ".xz"
    assert read(tmp_path, "log.csv" + other, packed, compression=NAMES[extension]).rows == rows
    assert read(tmp_path, "log.csv" + extension, CONTENT, compression="none").rows == rows
    assert (
        read(tmp_path, "log.csv" + extension, b"", compression="none", csv={"has_header": False, "columns": ["a"]}).rows
        == []
    )
    with pytest.raises(PipelineError, match=r"^log\.csv: the compressed file is cut or corrupt"):
        read(tmp_path, "log.csv", CONTENT, compression=NAMES[extension])


@pytest.mark.parametrize("name", ["log.parquet.xz", "log.feather.gz"])
def test_formats_that_are_compressed_inside(tmp_path: Path, name: str) -> None:
    touch(tmp_path, name)
    (file,) = find_files(dataset(tmp_path, name), None)
    kind, sentence = {
        "log.parquet.xz": ("parquet", r"Parquet inside xz is not read"),
        "log.feather.gz": ("arrow", r"Arrow inside gzip is not read"),
    }[name]
    with pytest.raises(PipelineError, match=rf"^{name}: {sentence}.*unpack the file"):
        file_format(file, dataset(tmp_path, name))
    assert file_format(file, dataset(tmp_path, name, compression="none")) == kind


def test_every_format_has_a_reader_a_version_and_a_block_size(tmp_path: Path) -> None:
    formats = set(get_args(Format))
    assert set(sources.READERS) == set(sources.VERSION) == set(sources.USUAL_BLOCK_BYTES) == formats
    assert set(sources.FORMATS.values()) <= formats


@pytest.mark.parametrize("extension", PACK)
def test_cut_and_corrupt_compressed_files_are_refused(tmp_path: Path, extension: str) -> None:
    whole = PACK[extension](CONTENT)
    name = "log.csv" + extension
    broken = [whole[:size] for size in (0, 1, 5, len(whole) // 2, *range(len(whole) - 40, len(whole)))]
    broken += [whole + b"more", whole + whole[:-1], b"x" + whole, CONTENT]
    for content in broken:
        with pytest.raises(PipelineError, match=rf"^log\.csv\{extension}: the compressed file is (cut|empty)"):
            read(tmp_path, name, content)


def test_a_flipped_bit_in_an_xz_file_is_found(tmp_path: Path) -> None:
    whole = lzma.compress(CONTENT)
    for place in range(len(whole) // 2, len(whole), 7):
        broken = bytearray(whole)
        broken[place] ^= 1
        with pytest.raises(PipelineError, match=r"^log\.csv\.xz: the compressed file is cut or corrupt"):
            read(tmp_path, "log.csv.xz", bytes(broken))


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.ndjson", "log.parquet"])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, name: str) -> None:
    content = {
        "log.csv": CONTENT,
        "log.csv.gz": gzip.compress(CONTENT),
        "log.ndjson": b'{"a": 1}\n' * 100,
        "log.parquet": parquet(tmp_path),
    }[name]
    path = tmp_path / name
    for change in (content + b"9,9\n", content[:-9], content):
        path.write_bytes(content)
        declared = dataset(tmp_path, name)
        (file,) = find_files(declared, None)
        reader = read_blocks(file, declared, block_bytes=100)
        next(reader)
        path.write_bytes(change)
        os.utime(path, ns=(file.mtime_ns + 1000, file.mtime_ns + 1000))
        with pytest.raises(PipelineError, match=rf"^{name}: the file changed while it was read.* run the day again"):
            list(reader)
        with pytest.raises(RuntimeError):
            _ = reader.checksum


def parquet(folder: Path) -> bytes:
    pl.DataFrame({"a": range(100)}).write_parquet(folder / "made.parquet")
    return (folder / "made.parquet").read_bytes()


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.ndjson", "log.parquet"])
def test_a_file_that_is_gone(tmp_path: Path, name: str) -> None:
    touch(tmp_path, name)
    declared = dataset(tmp_path, name)
    (file,) = find_files(declared, None)
    (tmp_path / name).unlink()
    with pytest.raises(PipelineError, match=rf"^{name}: there is no such file any more"):
        list(read_blocks(file, declared, block_bytes=100))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_forbidden_files_and_folders(tmp_path: Path) -> None:
    touch(tmp_path, "raw/a.csv")
    declared = dataset(tmp_path, "raw/*.csv")
    (file,) = find_files(declared, None)
    file.path.chmod(0)
    with pytest.raises(PipelineError, match=r"^raw/a\.csv: the file cannot be read \(Permission denied\)"):
        list(read_blocks(file, declared, block_bytes=100))
    (tmp_path / "raw").chmod(0)
    try:
        with pytest.raises(PipelineError, match="may not be listed"):
            find_files(declared, None)
        with pytest.raises(PipelineError, match="cannot be looked at"):
            find_files(dataset(tmp_path, "raw/a.csv"), None)
    finally:
        (tmp_path / "raw").chmod(0o755)


def test_an_unlistable_folder_is_not_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "raw/a.csv")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "raw")
    with pytest.raises(PipelineError, match="raw: the folder may not be listed"):
        find_files(dataset(tmp_path, "raw/*.csv"), None)

from pathlib import Path

import polars as pl
import pytest

from pipeline.contracts import PipelineError
from pipeline.sources import find_files
from pipeline_tests.datasets import make_dataset, make_events_of, make_store, row, table
from pipeline_tests.raw_files import Everything, dataset, read_file


def read(folder: Path, pattern: str, *, name: str, content: bytes = b"user,item\n1,a\n2,b,c\n", **source) -> Everything:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    declared = dataset(folder, pattern, hive=True, **source)
    return read_file(find_files(declared, None)[0], declared, 1)


def test_folders_are_columns(tmp_path: Path) -> None:
    found = read(tmp_path, "logs/**/*.csv", name="logs/country=DE/month=05/log.csv")
    assert found.frame.to_dict(as_series=False) == {
        "user": ["1", None], "item": ["a", None], "country": ["DE", "DE"], "month": ["05", "05"],
    }  # fmt: skip
    assert found.malformed == [False, True]
    assert found.raw == ["1,a", "2,b,c"]
    assert found.blocks > 1


@pytest.mark.parametrize(
    ("folder", "columns"),
    [
        ("a=1=2", {"a": "1=2"}),
        ("a=", {"a": ""}),
        ("=1", {}),
        ("plain", {}),
        ("a=x%2Fy%20%C3%A9", {"a": "x/y é"}),
        ("a%3Db=1", {"a=b": "1"}),
        ("a=__HIVE_DEFAULT_PARTITION__", {"a": None}),
        ("a=%", {"a": "%"}),
        ("user=5", {}),
    ],
)
def test_names_of_folders(tmp_path: Path, folder: str, columns: dict[str, str | None]) -> None:
    found = read(tmp_path, "*/log.csv", name=f"{folder}/log.csv", content=b"user\n1\n")
    assert found.frame.to_dicts() == [{"user": "1", **columns}]


def test_only_folders_of_the_declared_path_count(tmp_path: Path) -> None:
    above = tmp_path / "above=1"
    assert read(above, "day=2/*.csv", name="day=2/log.csv").frame.columns == ["user", "item", "day"]
    assert read(above, "log.csv", name="log.csv").frame.columns == ["user", "item"]
    declared = dataset(above, f"{tmp_path}/above=1/day=2/log.csv", hive=True)
    assert read_file(find_files(declared, None)[0], declared, 1).frame.columns == ["user", "item", "day"]


def test_without_hive_folders_are_no_columns(tmp_path: Path) -> None:
    assert read(tmp_path, "day=2/*.csv", name="day=2/log.csv").frame.width == 3
    declared = dataset(tmp_path, "day=2/*.csv")
    assert read_file(find_files(declared, None)[0], declared, 1).frame.width == 2


def test_folders_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"log\.csv: two of its folders give the column 'a'"):
        read(tmp_path, "*/*/log.csv", name="a=1/a=2/log.csv")


def test_a_folder_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"log\.csv: the name of the folder .* is no UTF-8"):
        read(tmp_path, "*/log.csv", name="a=%FF/log.csv")


def test_typed_files_and_zero_rows(tmp_path: Path) -> None:
    (tmp_path / "k=v").mkdir()
    pl.DataFrame({"user": [1, 2]}).write_parquet(tmp_path / "k=v" / "log.parquet")
    pl.DataFrame({"user": []}, schema={"user": pl.Int64}).write_parquet(tmp_path / "k=v" / "none.parquet")
    declared = dataset(tmp_path, "k=v/*.parquet", hive=True)
    log, none = find_files(declared, None)
    assert read_file(log, declared, 1 << 20).frame.to_dicts() == [{"user": 1, "k": "v"}, {"user": 2, "k": "v"}]
    assert read_file(none, declared, 1 << 20).frame.schema == {"user": pl.Int64, "k": pl.String}


def test_exploded_lines_get_their_folders(tmp_path: Path) -> None:
    content = b'{"s":1,"e":[{"a":1},{"a":2}]}\n{"s":2}\n'
    found = read(tmp_path, "*/log.jsonl", name="k=v/log.jsonl", content=content, explode={"column": "e"})
    assert found.frame.select("s", "e.a", "k").rows() == [("1", "1", "v"), ("1", "2", "v"), (None, None, "v")]
    assert found.malformed == [False, False, True]


def test_an_action_stands_in_a_folder(tmp_path: Path) -> None:
    rows = [row(1, "a", 1_577_836_800), row(2, "b", 1_577_836_801)]
    days = {"kind=view/log": [{k: r[k] for k in ("user", "item", "time")} for r in rows]}
    written = make_dataset(
        tmp_path,
        days=days,
        extension="ndjson",
        source={"path": "raw/*/log.ndjson", "hive": True},
        columns={"action": {"from": "kind"}},
    )
    store = make_store(written)
    make_events_of(written, store, "2020-01-01")
    assert table(store, "events", "2020-01-01")["action"].to_list() == ["view", "view"]

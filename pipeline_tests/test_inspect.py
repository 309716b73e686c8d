"""`python -m pipeline inspect`: literal small logs in many layouts, and what is proposed for each."""

import bz2
import gzip
import json
import lzma
import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.__main__ import main
from pipeline.config import Dataset, load_dataset
from pipeline.contracts import PipelineError
from pipeline.inspection import inspect_log
from pipeline.inspection.bytes import sniff_encoding
from pipeline.inspection.columns import UNKNOWN
from pipeline.inspection.draft import to_toml
from pipeline.inspection.words import name_score
from pipeline_tests.preset_logs import LOGS

SHOP = "user,item,time,event\n1,a,1577836800,view\n2,b,1577836801,cart\n"


@dataclass
class Proposed:
    """What `inspect` proposed.

    Attributes:
        text: The dataset file.
        says: The same, read as TOML.
        dataset: The same, as `load_dataset` validated it.
    """

    text: str
    says: dict[str, Any]
    dataset: Dataset

    @property
    def columns(self) -> dict[str, Any]:
        return self.says["columns"]

    def comment(self, words: str) -> bool:
        """Whether the comments say something, however they are wrapped."""
        comments = " ".join(line.partition("#")[2].strip() for line in self.text.splitlines() if "#" in line)
        return words in comments


def inspect(folder: Path, *names: str, quick: bool = False) -> Proposed:
    text = inspect_log(
        [folder / name for name in names], folder=folder, name=None, quick=quick, report=lambda _: None
    )  # fmt: skip
    file = folder / "proposed.toml"
    file.write_text(text, encoding="utf-8")
    dataset = load_dataset(file)
    file.unlink()
    return Proposed(text, tomllib.loads(text), dataset)


def proposed(folder: Path, name: str, content: str | bytes, *, quick: bool = False) -> Proposed:
    """Writes one file and inspects it."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return inspect(folder, name, quick=quick)


# Layouts


def test_movielens_100k_by_its_name(tmp_path: Path) -> None:
    found = proposed(tmp_path, "u.data", "196\t242\t3\t881250949\n186\t302\t3\t891717742\n")
    assert found.says["preset"] == "movielens_100k"
    assert found.dataset.partitions.start.isoformat() == "1997-12-04"
    assert found.dataset.partitions.end is not None
    assert found.dataset.partitions.end.isoformat() == "1998-04-04"
    assert found.dataset.columns.timestamp.unit == "s"


def test_the_same_under_another_name(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.dat", "196\t242\t3\t881250949\n186\t302\t3\t891717742\n186\t303\t3\t891717742\n")
    assert found.says["source"]["format"] == "csv"
    assert found.says["source"]["csv"]["separator"] == "\t"
    assert found.says["source"]["csv"]["has_header"] is False
    assert found.says["source"]["csv"]["columns"] == ["column_1", "column_2", "column_3", "column_4"]
    assert found.columns["user_id"] == {"from": "column_1", "type": "int64"}
    assert found.columns["item_id"] == {"from": "column_2", "type": "int64"}
    assert found.columns["timestamp"] == {"from": "column_4", "unit": "s"}
    assert found.columns["action"] == {"value": "event"}
    assert found.comment("user_id: no name says it; column_1 was taken")
    assert found.comment("rows equal another of their user in time") is True  # user 186, twice at 891717742


def test_movielens_1m(tmp_path: Path) -> None:
    found = proposed(tmp_path, "ratings.dat", "1::1193::5::978300760\n1::661::3::978302109\n")
    assert found.says["preset"] == "movielens_dat"
    other = proposed(tmp_path, "other.dat", "1::1193::5::978300760\n1::661::3::978302109\n")
    assert other.says["source"]["csv"]["separator"] == "::"
    assert other.says["source"]["csv"]["quote_char"] == ""
    assert other.columns["timestamp"] == {"from": "column_4", "unit": "s"}


RETAILROCKET = (
    "timestamp,visitorid,event,itemid,transactionid\n1433221332117,257597,view,355908,\n"
    "1433224214164,992329,addtocart,248676,\n1433221955914,483717,transaction,253185,11117\n"
)


def test_retailrocket(tmp_path: Path) -> None:
    found = proposed(tmp_path, "events.csv", RETAILROCKET)
    assert found.says["preset"] == "retailrocket"
    assert "columns" not in found.says
    assert found.comment("user_id = visitorid, item_id = itemid, timestamp = timestamp, action = event")


def test_retailrocket_with_a_column_less_is_no_preset(tmp_path: Path) -> None:
    cut = "".join(line.rpartition(",")[0] + "\n" for line in RETAILROCKET.splitlines())
    found = proposed(tmp_path, "events.csv", cut)
    assert "preset" not in found.says
    assert found.columns == {
        "user_id": {"from": "visitorid", "type": "int64"},
        "item_id": {"from": "itemid", "type": "int64"},
        "timestamp": {"from": "timestamp", "unit": "ms"},
        "action": {"from": "event"},
    }
    assert found.says["actions"]["names"] == ["view", "addtocart", "transaction"]


TAOBAO = (
    "1,2268318,2520377,pv,1511544070\n1,2333346,2520771,pv,1511561733\n"
    "1,2576651,149192,buy,1511572885\n2,3830808,4181361,cart,1511593493\n"
)


def test_taobao(tmp_path: Path) -> None:
    assert proposed(tmp_path, "UserBehavior.csv", TAOBAO).says["preset"] == "taobao"
    found = proposed(tmp_path, "log.csv", TAOBAO)
    assert found.columns == {
        "user_id": {"from": "column_1", "type": "int64"},
        "item_id": {"from": "column_2", "type": "int64"},
        "timestamp": {"from": "column_5", "unit": "s"},
        "action": {"from": "column_4"},
    }
    assert found.says["actions"]["names"] == ["pv", "buy", "cart"]
    assert found.comment("rows: pv 2, buy 1, cart 1")


def test_yoochoose(tmp_path: Path) -> None:
    log = "1,2014-04-07T10:51:09.277Z,214536502,0\n1,2014-04-07T10:54:09.868Z,214536500,0\n2,2014-04-08T13:56:37.614Z,214662742,S\n"
    assert proposed(tmp_path, "yoochoose-clicks.dat", log).says["preset"] == "yoochoose"
    found = proposed(tmp_path, "clicks.csv", log)
    assert found.columns["item_id"] == {"from": "column_3", "type": "int64"}
    assert found.columns["timestamp"] == {"from": "column_2", "format": "%Y-%m-%dT%H:%M:%S%.f%z"}
    assert found.says["partitions"] == {"start": "2014-04-07", "end": "2014-04-08"}


def test_lastfm(tmp_path: Path) -> None:
    log = (
        'user_000001\t2009-05-04T23:08:57Z\tf1b1cf71-bd35-4e99-8624-24a6e15f133a\tDeep Dish\t\tMc2 "Live\n'
        'user_000002\t2009-05-04T13:54:10Z\ta7f7df4a-77d8-4f12-8acd-5c60c93f4de8\t坂本龍一\t\t"Composition 0919\n'
    )
    found = proposed(tmp_path, "plays.tsv", log)
    assert found.says["source"]["csv"]["quote_char"] == ""
    assert found.columns["user_id"] == {"from": "column_1", "type": "string"}
    assert found.columns["timestamp"] == {"from": "column_2", "format": "%Y-%m-%dT%H:%M:%S%z"}
    assert found.columns["item_id"]["from"] in ("column_3", "column_4", "column_6")
    assert found.comment("item_id: no name says it")


def test_gowalla(tmp_path: Path) -> None:
    log = (
        "0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847\n"
        "0\t2010-10-18T22:17:43Z\t30.2691029532\t-97.7493953705\t420315\n"
    )
    found = proposed(tmp_path, "checkins.txt", log)
    assert found.columns["user_id"] == {"from": "column_1", "type": "int64"}
    assert found.columns["item_id"] == {"from": "column_5", "type": "int64"}  # coordinates are no ids


def test_recbole(tmp_path: Path) -> None:
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
    found = proposed(tmp_path, "ml.inter", f"{header}196\t242\t3\t881250949\n186\t302\t3\t891717742\n")
    assert found.says["preset"] == "recbole"
    other = proposed(tmp_path, "ml.tsv", f"{header.replace('item_id', 'movie_id')}196\t242\t3\t881250949\n")
    assert other.says["source"]["csv"]["typed_header"] is True
    assert other.columns["item_id"] == {"from": "movie_id", "type": "int64"}


def test_amazon_reviews(tmp_path: Path) -> None:
    records = [
        {"rating": 5.0, "title": "x", "images": [], "asin": f"B00{n}", "parent_asin": "P", "user_id": "AG", "timestamp": 1588687728923 + n}
        for n in range(3)
    ]  # fmt: skip
    found = proposed(tmp_path, "reviews.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    assert found.columns["user_id"] == {"from": "user_id", "type": "string"}
    assert found.columns["item_id"] == {"from": "asin", "type": "string"}
    assert found.columns["timestamp"] == {"from": "timestamp", "unit": "ms"}
    assert found.comment("parent_asin may be meant as well")
    assert "explode" not in found.says["source"]  # the lists are empty


def test_sessions_are_exploded(tmp_path: Path) -> None:
    log = '{"who":1,"clicks":[{"product":5,"time":1659304800,"kind":"view"},{"product":6,"time":1659304900,"kind":"buy"}]}\n'
    found = proposed(tmp_path, "sessions.jsonl", log)
    assert found.says["source"]["explode"] == {"column": "clicks"}
    assert found.columns["item_id"] == {"from": "clicks.product", "type": "int64"}
    assert found.columns["timestamp"] == {"from": "clicks.time", "unit": "s"}
    assert found.columns["action"] == {"from": "clicks.kind"}
    assert found.columns["user_id"] == {"from": "who", "type": "int64"}


def test_nested_objects_are_paths(tmp_path: Path) -> None:
    log = '{"user":{"id":"u1"},"item":{"sku":"007"},"at":"2020-01-01T00:00:00Z","type":"view"}\n' * 2
    found = proposed(tmp_path, "log.ndjson", log)
    assert found.columns["user_id"]["from"] == "user.id"
    assert found.columns["item_id"] == {"from": "item.sku", "type": "string"}
    assert found.comment("int64 would lose the leading zero of 007")
    assert found.comment("2 rows repeat") is False
    assert found.comment("1 rows repeat another in all columns")


@pytest.mark.parametrize("indent", [None, 1])
def test_json_documents(tmp_path: Path, indent: int | None) -> None:
    records = [
        {"user": 1, "item": "a", "ts": 1577836800, "type": "view"},
        {"user": 2, "item": "b", "ts": 1577836801, "type": "buy"},
    ]
    found = proposed(tmp_path, "list.json", json.dumps(records, indent=indent))
    assert found.says["source"]["format"] == "json"
    assert "json" not in found.says["source"]
    within = proposed(tmp_path, "within.json", json.dumps({"page": 1, "data": {"events": records}}, indent=indent))
    assert within.says["source"]["json"] == {"records": "data.events"}
    assert within.columns["timestamp"] == {"from": "ts", "unit": "s"}
    assert within.says["actions"]["names"] == ["view", "buy"]


def test_web_server_log(tmp_path: Path) -> None:
    line = '83.149.9.216 - - [17/May/2015:10:05:03 +0200] "GET /a.png HTTP/1.1" 200 203023 "http://x/" "Mozilla/5.0"\n'
    found = proposed(tmp_path, "access.log", line + line.replace("GET", "POST").replace(":05:", ":06:"))
    assert found.says["source"]["format"] == "regex"
    assert found.columns["user_id"] == {"from": "host", "type": "string"}
    assert found.columns["item_id"] == {"from": "path", "type": "string"}
    assert found.columns["timestamp"] == {"from": "time", "format": "%d/%b/%Y:%H:%M:%S %z"}
    assert found.says["actions"]["names"] == ["GET", "POST"]


def test_words_with_keys(tmp_path: Path) -> None:
    log = "2020-01-01 00:00:00,123 INFO user=12 item=ab action=view\n2020-01-01 00:00:01,456 INFO user=13 item= action=cart\n"
    found = proposed(tmp_path, "app.log", log)
    assert found.says["source"]["format"] == "regex"
    assert found.columns["user_id"] == {"from": "user", "type": "int64"}
    assert found.columns["item_id"] == {"from": "item", "type": "string"}
    assert found.columns["timestamp"] == {
        "from": "column_1",
        "time_from": "column_2",
        "format": "%Y-%m-%d %H:%M:%S,%3f",
        "timezone": "UTC",
    }
    assert found.says["actions"]["names"] == ["view", "cart"]


def test_parquet_and_arrow(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "user": [{"id": 1}, {"id": 2}],
            "item": ["a", "b"],
            "t": [datetime(2020, 1, 1), datetime(2020, 1, 2)],  # noqa: DTZ001
            "kind": ["view", "cart"],
        }
    )
    frame.write_parquet(tmp_path / "log.parquet")
    frame.write_ipc(tmp_path / "log.data")
    frame.write_ipc_stream(tmp_path / "log.stream")
    for name in ("log.parquet", "log.data", "log.stream"):
        found = inspect(tmp_path, name)
        assert found.columns["user_id"] == {"from": "user.id", "type": "int64"}
        assert found.columns["timestamp"] == {"from": "t", "timezone": "UTC"}
        assert found.comment("UTC is assumed")
        assert found.says["partitions"] == {"start": "2020-01-01", "end": "2020-01-02"}
    assert found.says["source"]["format"] == "arrow"


def test_fixed_width(tmp_path: Path) -> None:
    rows = [("u1", "", "2020-01-01T00:00:00", "view"), ("u22", "bcd", "2020-01-01T00:00:05", "purchase")]
    lines = "".join(f"{user:<8}{item:<10}{time:<22}{action}\n" for user, item, time, action in [*rows, *rows])
    found = proposed(tmp_path, "log.txt", lines)
    assert found.says["source"]["format"] == "fixed_width"
    assert found.says["source"]["fixed_width"]["columns"] == {
        "column_1": [1, 8],
        "column_2": [9, 18],
        "column_3": [19, 40],
        "column_4": [41, 1000],
    }
    assert found.comment("compare the places of the columns")


def test_whitespace(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.txt", "1 10\t 2020-01-01T00:00:00 view\n2 20   2020-01-01T00:00:01 cart\n")
    assert found.says["source"]["csv"]["separator"] == "whitespace"
    assert found.columns["timestamp"]["format"] == "%Y-%m-%dT%H:%M:%S"


@pytest.mark.parametrize("preset", sorted(LOGS))
def test_every_preset_is_recognised(tmp_path: Path, preset: str) -> None:
    log = LOGS[preset]
    first, *others, last = log.text.splitlines(keepends=True)
    found = proposed(tmp_path, log.file, "".join([first, *(others * 300), last]))  # a few of their rows are bad
    assert found.says.get("preset") == preset


COLUMNS = {"user_id": "user", "item_id": "item", "timestamp": "time", "action": "event"}
WRITTEN = {
    "s": lambda at: f"{1577836800 + at}",
    "ms": lambda at: f"{(1577836800 + at) * 1000}",
    "%Y-%m-%dT%H:%M:%S%z": lambda at: f"2020-01-01T{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z",
    "%d.%m.%Y %H:%M:%S": lambda at: f"31.01.2020 {at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}",
}


@given(
    order=st.permutations(["user", "item", "time", "event", "price"]),
    separator=st.sampled_from(["\t", "::", "|", ";", ","]),
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
    written=st.sampled_from(sorted(WRITTEN)),
    rows=st.lists(
        st.tuples(
            st.integers(0, 10**9), st.from_regex(r"[a-z]{1,3}[0-9]{1,4}", fullmatch=True), st.integers(0, 86_399)
        ),
        min_size=2,
        max_size=20,
    ),
    closed=st.booleans(),
)
def test_any_plain_log_with_a_header_is_declared_right(
    tmp_path_factory: pytest.TempPathFactory,
    order: list[str],
    separator: str,
    end: str,
    mark: str,
    written: str,
    rows: list[tuple[int, str, int]],
    closed: bool,
) -> None:
    lines = [order]
    for number, (user, item, at) in enumerate(rows):
        cells = {
            "user": user,
            "item": item,
            "time": WRITTEN[written](at),
            "event": ("view", "cart")[number % 2],
            "price": "1.5",
        }
        lines.append([str(cells[name]) for name in order])
    text = mark + end.join(separator.join(line) for line in lines) + (end if closed else "")
    found = proposed(tmp_path_factory.mktemp("any"), "log.csv", text)
    assert {role: column["from"] for role, column in found.columns.items()} == COLUMNS
    assert (found.columns["user_id"]["type"], found.columns["item_id"]["type"]) == ("int64", "string")
    assert written in (found.columns["timestamp"].get("unit"), found.columns["timestamp"].get("format"))
    users, items = len({row[0] for row in rows}), len({row[1] for row in rows})
    assert found.comment(f"all of its {len(rows)} rows; all are accepted: {users} users, {items} items")


# Bytes


@pytest.mark.parametrize(
    ("pack", "name"), [(gzip.compress, "gzip"), (bz2.compress, "bz2"), (lzma.compress, "xz")], ids=["gzip", "bz2", "xz"]
)
def test_packed_files(tmp_path: Path, pack: Any, name: str) -> None:
    found = proposed(tmp_path, "log", pack(SHOP.encode()))
    assert found.says["source"]["compression"] == name
    assert found.says["source"]["format"] == "csv"
    by_name = {"gzip": "log.csv.gz", "bz2": "log.csv.bz2", "xz": "log.csv.xz"}[name]
    assert "compression" not in proposed(tmp_path, by_name, pack(SHOP.encode())).says["source"]
    assert proposed(tmp_path, by_name, SHOP).says["source"]["compression"] == "none"


@pytest.mark.parametrize(
    ("encoding", "found"),
    [("utf-8-sig", None), ("utf-16", "utf-16"), ("utf-16-le", "utf-16-le"), ("gb18030", "gb18030")],
)
def test_encodings(tmp_path: Path, encoding: str, found: str | None) -> None:
    log = "user,item,time,event\r\n1,苹果手机,1577836800,view\r\n2,香蕉,1577836801,cart\r\n"
    says = proposed(tmp_path, "log.csv", log.encode(encoding))
    assert says.says["source"].get("csv", {}).get("encoding") == found
    assert says.columns["user_id"] == {"from": "user", "type": "int64"}
    assert says.comment("lines end with CR LF")
    assert says.comment("2 users, 2 items")


def test_latin_1(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", SHOP.replace("a,", "café,").encode("latin-1"))
    assert found.says["source"]["csv"]["encoding"] == "latin-1"
    assert found.comment("encoding: latin-1 was taken")


@given(st.text(st.characters(min_codepoint=0x80, max_codepoint=0x2FFF), min_size=1))
def test_what_is_utf_8_is_never_taken_for_anything_else(text: str) -> None:
    assert sniff_encoding(f"a,{text}\n".encode()).name == "utf-8"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04rest", "zip archive"),
        (b"%PDF-1.4", "PDF"),
        (b"", "empty"),
        (b"user,item,time,event\n", "no records behind its header"),
        (b"once upon a time\nthere was\na log that nobody can cut\n", "no layout cuts its lines evenly"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        proposed(tmp_path, "log.csv", content)


# Header, quotes, comments


def test_quotes_separators_and_comments(tmp_path: Path) -> None:
    log = '# shop\n# 2020\nuser;item;time;event\n1;"a;b";2020-01-01 00:00:00;view\n2;"say ""x""";2020-01-02 00:00:00;cart\n'
    found = proposed(tmp_path, "log.csv", log)
    assert found.says["source"]["csv"] == {"separator": ";", "comment": "#"}
    assert found.comment("2 users, 2 items")
    assert found.comment("all are accepted")


def test_a_header_that_holds_a_name_twice(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", "user,item,time,event,item\n1,a,1577836800,view,x\n2,b,1577836801,cart,y\n")
    assert found.says["source"]["csv"]["columns"] == ["user", "item", "time", "event", "item_2"]
    assert found.comment("all are accepted")


def test_a_header_of_unknown_words_is_a_doubt(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", "wer,was\n" + "anna,apfel\nbert,birne\n")
    assert found.comment("has_header: the first line, 'wer,was', was taken for names; it may be a record")
    assert found.columns["timestamp"]["from"] == UNKNOWN


# Ids


@pytest.mark.parametrize(
    ("ids", "type_", "reason"),
    [
        (["1", "22"], "int64", "whole numbers"),
        (["17850.0", "2.0"], "int64", "some written 1.0"),
        (["007", "8"], "string", "int64 would lose the leading zero of 007"),
        (["7e091613", "12345678"], "string", "numbers and others, such as '7e091613'"),
        (["85123A", "71053"], "string", "numbers and others"),
        (["9223372036854775807", "1"], "int64", "whole numbers"),
        (["9223372036854775808", "1"], "string", "9223372036854775808 is beyond int64"),
        (["u 1", "u 2"], "string", "such as 'u 1'"),
    ],
)
def test_types_of_ids(tmp_path: Path, ids: list[str], type_: str, reason: str) -> None:
    rows = "".join(f"{text},a,{1577836800 + at},view\n" for at, text in enumerate(ids))
    found = proposed(tmp_path, "log.csv", "user,item,time,event\n" + rows)
    assert found.columns["user_id"] == {"from": "user", "type": type_}
    assert found.comment(reason)
    assert found.comment(f"all are accepted: {len(ids)} users")


def test_blanks_around_string_ids(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", "user,item,time\nu1 ,a,1577836800\nu1,b,1577836801\n")
    assert found.columns["user_id"] == {"from": "user", "type": "string", "strip": True}
    assert found.comment("1 users, 2 items")


def test_spellings_of_missing(tmp_path: Path) -> None:
    rows = ["NA,a", r"\N,b", "-1,c", ",d", *(f"{n},e" for n in range(1, 17))]
    log = "user,item,time\n" + "".join(f"{row},{1577836800 + at}\n" for at, row in enumerate(rows))
    found = proposed(tmp_path, "log.csv", log)
    assert found.columns["user_id"]["type"] == "int64"
    assert set(found.columns["user_id"]["null_values"]) == {"NA", r"\N", "-1"}
    assert found.says["quality"]["max_rejected_share"] == 0.25
    assert found.comment("on 2020-01-01 20.0% of the rows are refused; in all: missing_user_id 4")


def test_two_columns_may_be_the_user(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", "user_session,user_id,item,time\ns1,1,a,1577836800\ns2,1,b,1577836801\n")
    assert found.columns["user_id"] == {"from": "user_id", "type": "int64"}
    assert found.comment("user_session may be meant as well")


# Times


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (["1577836800", "1577836801"], {"unit": "s"}),
        (["1577836800.94", "1577836801"], {"unit": "s"}),
        (["1577836800000", "1577836801000"], {"unit": "ms"}),
        (["1577836800000000", "1577836801000000"], {"unit": "us"}),
        (["1577836800000000000", "1577836801000000000"], {"unit": "ns"}),
        (["2020-01-01", "2020-01-02"], {"format": "%Y-%m-%d", "timezone": "UTC"}),
        (["20200101", "20200102"], {"format": "%Y%m%d", "timezone": "UTC"}),
        (["20200101235959", "20200102000000"], {"format": "%Y%m%d%H%M%S", "timezone": "UTC"}),
        (
            ["2020-01-01 10:11:12 UTC", "2020-01-02 10:11:12 UTC"],
            {"format": "%Y-%m-%d %H:%M:%S UTC", "timezone": "UTC"},
        ),
        (["2020-01-01T10:11:12.5+02:00", "2020-01-02T10:11:12Z"], {"format": "%Y-%m-%dT%H:%M:%S%.f%z"}),
        (["2020/1/1 9:05", "2020/1/2 19:05"], {"format": "%Y/%m/%d %H:%M", "timezone": "UTC"}),
        (["13/04/2020 10:00:00", "01/05/2020 10:00:00"], {"format": "%d/%m/%Y %H:%M:%S", "timezone": "UTC"}),
        (["04/13/2020 10:00:00 PM", "05/01/2020 9:00:00 AM"], {"format": "%m/%d/%Y %I:%M:%S %p", "timezone": "UTC"}),
        (["09 13, 2009", "12 1, 2010"], {"format": "%m %d, %Y", "timezone": "UTC"}),
        (["Tue Apr 03 18:00:06 +0000 2012", "Tue Apr 03 18:00:09 +0000 2012"], {"format": "%a %b %d %H:%M:%S %z %Y"}),
        (
            ["2020-01-01 00:00:00,123", "2020-01-01 00:00:01,456"],
            {"format": "%Y-%m-%d %H:%M:%S,%3f", "timezone": "UTC"},
        ),
    ],
    ids=lambda part: str(part)[:40],
)
def test_times(tmp_path: Path, cells: list[str], says: dict[str, str]) -> None:
    rows = "".join(f'{at};a;"{cell}";view\n' for at, cell in enumerate(cells))
    found = proposed(tmp_path, "log.csv", "user;item;time;event\n" + rows)
    assert found.columns["timestamp"] == {"from": "time", **says}
    assert found.comment("all are accepted")
    assert found.comment("UTC is assumed") == (says.get("timezone") == "UTC" and "UTC" not in says["format"])


def test_day_first_or_month_first_are_both_shown(tmp_path: Path) -> None:
    log = "user,item,when\n1,a,03/04/2020\n2,b,05/04/2020\n3,c,02/04/2020\n"
    found = proposed(tmp_path, "log.csv", log)
    assert found.columns["timestamp"]["format"] == "%d/%m/%Y"
    assert found.comment('format = "%m/%d/%Y" reads every value as well (2020-02-04..2020-05-04)')
    assert found.comment("the log is the shorter one")


def test_a_day_above_12_further_on_settles_it(tmp_path: Path) -> None:
    first = "".join(f"{at},a,0{at % 9 + 1}/04/2020 00:00:00\n" for at in range(60_000))
    found = proposed(tmp_path, "log.csv", f"user,item,when\n{first}1,a,05/13/2020 00:00:00\n{first}")
    assert found.columns["timestamp"]["format"] == "%m/%d/%Y %H:%M:%S"
    assert found.comment("reads every value as well") is False


def test_date_and_clock_in_two_columns(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", "user,item,date,time\n1,a,2020-04-13,10:11:12\n2,b,2020-04-14,1:11:12\n")
    assert found.columns["timestamp"] == {
        "from": "date",
        "time_from": "time",
        "format": "%Y-%m-%d %H:%M:%S",
        "timezone": "UTC",
    }


def test_seconds_divided_by_ten(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", "user,item,time\n1,1,157783680\n2,8,157783690\n")
    assert found.columns["timestamp"] == {"sql": 'CAST("time" AS BIGINT) * 10', "unit": "s"}
    assert found.says["partitions"]["start"] == "2020-01-01"
    assert found.comment("looks like seconds divided by 10")


def test_two_columns_may_be_the_time(tmp_path: Path) -> None:
    found = proposed(
        tmp_path, "log.csv", "user,item,created_at,event_time\n1,a,1577836800,1577836900\n2,b,1577836801,1577836901\n"
    )
    assert found.columns["timestamp"] == {"from": "event_time", "unit": "s"}
    assert found.comment("timestamp: created_at can be read as the time as well")


def test_a_few_rows_far_away_stretch_no_partitions(tmp_path: Path) -> None:
    rows = [f"{at},a,{1577836800 + 60 * at},view\n" for at in range(3000)]
    found = proposed(tmp_path, "log.csv", "user,item,time,event\n" + "".join([*rows, "1,a,1000000000,view\n"]))
    assert found.says["partitions"] == {"start": "2020-01-01", "end": "2020-01-03"}
    assert found.comment("1 rows lie far before or behind, the first on 2001-09-09")


# What only the whole file tells

HEAD = [
    f"{1000 + at % 700},{at % 90},{1577836800 + at},{'cart' if at % 50 == 0 else 'view'}\n" for at in range(120_000)
]
HEADER = "user,item,time,event\n"


def with_line(line: str) -> str:
    """A log too large for the sample, with one line between its places."""
    return HEADER + "".join([*HEAD[:60_500], line, *HEAD[60_500:]])


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Proposed:
    return proposed(tmp_path_factory.mktemp("large"), "log.csv", HEADER + "".join(HEAD))


def test_the_large_log_itself(large: Proposed) -> None:
    assert large.columns["user_id"] == {"from": "user", "type": "int64"}
    assert large.comment("rows: view 117,600, cart 2,400")
    assert large.comment("all are accepted: 700 users, 90 items")
    assert "quality" not in large.says


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("99999999999999999999,1,1577836900,view\n", {"user_id": {"from": "user", "type": "string"}}),
        ("A17,1,1577836900,view\n", {"user_id": {"from": "user", "type": "string"}}),
        ("1,1,1577836900.5,view\n", {}),
        ("1,1,1577836900,purchase\n", {}),
    ],
)
def test_one_line_that_the_sample_lacks(tmp_path: Path, large: Proposed, line: str, changed: dict[str, Any]) -> None:
    found = proposed(tmp_path, "log.csv", with_line(line))
    assert found.columns == {**large.columns, **changed}
    assert found.comment("all of its 120,001 rows; all are accepted")
    assert found.says["actions"]["names"] == ["view", "cart", *(["purchase"] if "purchase" in line else [])]
    quick = inspect(tmp_path, "log.csv", quick=True)
    assert quick.columns == large.columns
    assert quick.comment("only a sample was read")


def test_an_earlier_day_in_one_line(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", with_line("1,1,1577750400,view\n"))
    assert found.says["partitions"] == {"start": "2019-12-31", "end": "2020-01-02"}


def test_a_header_in_the_middle(tmp_path: Path, large: Proposed) -> None:
    found = proposed(tmp_path, "log.csv", with_line(HEADER))
    assert found.columns == large.columns
    assert found.says["actions"]["names"] == ["view", "cart"]
    assert found.comment("1 rows repeat the header")


def test_a_quote_that_is_never_closed(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", with_line('1,"7,1577836900,view\n'))
    assert found.says["source"]["csv"]["quote_char"] == ""
    assert found.comment("all of its 120,001 rows; all are accepted")


def test_lines_that_cannot_be_cut(tmp_path: Path, large: Proposed) -> None:
    found = proposed(tmp_path, "log.csv", with_line("1,7,1577836900\n"))
    assert found.columns == large.columns
    assert found.comment("lines that cannot be cut, such as '1,7,1577836900'")
    assert found.comment("malformed_line 1")


def test_garbage_in_one_cell_does_not_change_the_type(tmp_path: Path, large: Proposed) -> None:
    found = proposed(tmp_path, "log.csv", with_line("oops,7,1577836900,view\n"))
    assert found.columns == large.columns
    assert found.comment("cells such as oops are no numbers, and their rows are refused")


# Places


def day_file(day: int) -> str:
    return HEADER + f"1,a,{1577836800 + 86400 * (day - 1)},view\n"


def write_days(folder: Path, pattern: str, days: range) -> None:
    for day in days:
        file = folder / pattern.format(day=f"{day:02}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(day_file(day))


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("raw/2020-01-{day}.csv", "raw/{date}.csv"),
        ("raw/202001{day}.csv", "raw/{date:%Y%m%d}.csv"),
        ("raw/2020/01/{day}/log.csv", "raw/{date:%Y/%m/%d}/log.csv"),
        ("raw/2020/01/2020-01-{day}.csv", "raw/{date:%Y/%m}/{date}.csv"),
        ("raw/dt=2020-01-{day}/part-0.csv", "raw/dt={date}/part-0.csv"),
        ("raw/year=2020/month=01/day={day}/x.csv", "raw/year={date:%Y}/month={date:%m}/day={date:%d}/x.csv"),
    ],
)
def test_files_named_by_day(tmp_path: Path, pattern: str, path: str) -> None:
    write_days(tmp_path, pattern, range(9, 12))
    found = inspect(tmp_path, "raw")
    assert found.says["source"] == {"path": path}
    assert found.says["partitions"] == {"start": "2020-01-09", "end": "2020-01-11"}
    assert found.says["name"] == "raw"


def test_several_files_a_day_and_a_missing_one(tmp_path: Path) -> None:
    for part in "ab":
        write_days(tmp_path, f"raw/2020-01-{{day}}-{part}.csv", range(1, 3))
        write_days(tmp_path, f"raw/2020-01-{{day}}-{part}.csv", range(4, 6))
    found = inspect(tmp_path, "raw")
    assert found.says["source"] == {"path": "raw/{date}-*.csv", "missing_day": "empty"}
    assert found.comment("1 days have no file")


def test_files_cut_at_local_midnight(tmp_path: Path) -> None:
    write_days(tmp_path, "raw/2020-01-{day}.csv", range(1, 4))
    with (tmp_path / "raw" / "2020-01-01.csv").open("a") as file:
        file.write(f"1,a,{1577836800 + 86400 + 5},view\n")
    found = inspect(tmp_path, "raw")
    assert found.says["source"]["neighbours"] == [1, 0]


def test_names_that_are_not_the_days_of_the_rows(tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / f"export-2021-06-0{day}.csv").write_text(day_file(day) + day_file(day + 7).removeprefix(HEADER))
    found = inspect(tmp_path, "export-2021-06-01.csv", "export-2021-06-02.csv")
    assert found.says["source"]["path"] == "export-2021-06-*.csv"
    assert found.says["partitions"] == {"start": "2020-01-01", "end": "2020-01-09"}
    assert found.comment("the days in the names are not those of the rows")


def test_folders_that_name_the_action(tmp_path: Path) -> None:
    for at, action in enumerate(("view", "cart"), 1):
        file = tmp_path / "raw" / f"event={action}" / "x.csv"
        file.parent.mkdir(parents=True)
        file.write_text(f"user,item,time\n{at},a,1577836800\n")
    found = inspect(tmp_path, "raw")
    assert found.says["source"] == {"path": "raw/event=*/x.csv", "hive": True}
    assert found.columns["action"] == {"from": "event"}
    assert set(found.says["actions"]["names"]) == {"view", "cart"}


def test_the_first_file_begins_in_the_day_before(tmp_path: Path) -> None:
    write_days(tmp_path, "raw/2020-01-{day}.csv", range(2, 4))
    with (tmp_path / "raw" / "2020-01-02.csv").open("a") as file:
        file.write(f"1,a,{1577836800 + 5},view\n")
    found = inspect(tmp_path, "raw")
    assert found.says["source"] == {"path": "raw/{date}.csv", "neighbours": [0, 1], "missing_day": "empty"}
    assert found.says["partitions"] == {"start": "2020-01-01", "end": "2020-01-03"}


def test_a_row_far_from_the_day_of_its_file(tmp_path: Path) -> None:
    write_days(tmp_path, "raw/2020-01-{day}.csv", range(1, 4))
    with (tmp_path / "raw" / "2020-01-01.csv").open("a") as file:
        file.write(f"1,a,{1577836800 + 5},view\n" * 300 + f"1,a,{1577836800 + 86400 * 2},view\n")
    found = inspect(tmp_path, "raw")
    assert found.says["source"] == {"path": "raw/{date}.csv"}
    assert found.comment("304 rows; 303 are accepted")
    assert found.comment("1 rows lie two days or more from the day in the name of their file, and are refused")


def test_a_folder_with_other_files(tmp_path: Path) -> None:
    write_days(tmp_path, "raw/2020-01-{day}.csv", range(1, 4))
    (tmp_path / "raw" / "README.md").write_text("about")
    (tmp_path / "raw" / "_SUCCESS").touch()
    found = inspect(tmp_path, "raw")
    assert found.says["source"] == {"path": "raw/{date}.csv"}
    assert found.comment("path: 1 files of other kinds were left out: README.md")


def test_files_that_the_path_matches_besides(tmp_path: Path) -> None:
    for name in ("a1.csv", "b1.csv", "c1.csv"):
        (tmp_path / name).write_text(SHOP)
    found = inspect(tmp_path, "a1.csv", "b1.csv")
    assert found.says["source"]["path"] == "*.csv"
    assert found.comment("path: it matches 1 files that were not looked at, such as")


# What a run would stop at, or lose


def test_two_units_in_one_column_are_said(tmp_path: Path) -> None:
    rows = [f"{at},a,{1577836800 + at}\n" for at in range(80)] + [f"{at},a,{1577836800000 + at}\n" for at in range(20)]
    found = proposed(tmp_path, "log.csv", "user,item,time\n" + "".join(rows))
    assert found.comment("a run would stop")
    assert found.comment("milliseconds")


def test_a_packed_file_that_is_cut(tmp_path: Path) -> None:
    content = gzip.compress((HEADER + "".join(HEAD)).encode())
    found = proposed(tmp_path, "log.csv.gz", content[: len(content) // 2])
    assert found.comment("a run would stop: ")
    assert found.comment("cut or corrupt")


def test_ids_that_look_like_numbers_with_a_fraction(tmp_path: Path) -> None:
    log = (
        '{"user_pseudo_id":"12.5","item":"x","ts":1577836800}\n{"user_pseudo_id":"13.75","item":"y","ts":1577836801}\n'
    )
    found = proposed(tmp_path, "log.jsonl", log)
    assert found.columns["user_id"] == {"from": "user_pseudo_id", "type": "string"}


def test_a_log_without_times(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", "user_id,item,rank\n1,a,2\n2,b,3\n")
    assert found.columns["timestamp"] == {"from": UNKNOWN, "unit": "s"}
    assert found.comment("timestamp: no column reads as a time")
    assert found.comment("a run would stop: ")
    assert found.comment("there is no column '?'")
    assert "quality" not in found.says


@pytest.mark.parametrize(
    "content", ['"', '"a,b\nc,d\n', '1,"a"b,1577836800\n"', "\n\n\n", "{", "[", "[]", "{}", "#\n", ",,,\n,,,\n", "PAR1"]
)
def test_odd_files_give_a_sentence_or_a_valid_draft(tmp_path: Path, content: str) -> None:
    for name in ("log.csv", "log.json", "log"):
        with suppress(PipelineError):
            proposed(tmp_path, name, content)


def test_numbers_for_actions(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", "user,item,time,behavior_type\n1,a,1577836800,1\n2,b,1577836801,4\n")
    assert found.columns["action"] == {"from": "behavior_type"}
    assert found.says["actions"]["names"] == ["1", "4"]
    assert found.comment('rename = { "1" = "view" } gives one a name')


def test_missing_items(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", "user,item,time\n1,,1577836800\n2,b,1577836801\n")
    assert found.says["quality"]["max_rejected_share"] == 0.55
    assert found.comment("optional = true accepts them, with item_index 0")


def test_names_that_sql_has_to_quote(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", 'user,item,"event ""time"""\n1,1,157783680\n2,8,157783690\n')
    assert found.columns["timestamp"]["sql"] == 'CAST("event ""time""" AS BIGINT) * 10'
    assert found.comment("all are accepted: 2 users, 2 items")


# The command


def test_command_writes_a_file_that_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "log.csv").write_text(SHOP)
    place = tmp_path / "sets" / "shop.toml"
    place.parent.mkdir()
    assert main(["inspect", str(tmp_path / "raw" / "log.csv"), "--write", str(place), "--name", "shop"]) == 0
    dataset = load_dataset(place)
    assert dataset.name == "shop"
    assert dataset.source.path == "../raw/log.csv"
    assert "is written" in capsys.readouterr().out
    before = place.read_bytes()
    assert main(["inspect", str(tmp_path / "raw" / "log.csv"), "--write", str(place)]) == 1
    assert "there is such a file already" in capsys.readouterr().err
    assert place.read_bytes() == before


def test_command_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(SHOP)
    assert main(["inspect", "log.csv", "--quick"]) == 0
    printed = capsys.readouterr()
    assert tomllib.loads(printed.out)["source"]["path"] == "log.csv"
    assert printed.err == ""
    assert main(["inspect", "nowhere.csv"]) == 1
    assert capsys.readouterr().err == "nowhere.csv: there is no such file; give the path of a log\n"


def test_progress_is_shown_on_a_terminal_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.inspection.counts.ROWS_A_REPORT", 10)
    (tmp_path / "log.csv").write_text(HEADER + "".join(HEAD[:100]))
    assert main(["inspect", str(tmp_path / "log.csv")]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["inspect", str(tmp_path / "log.csv")]) == 0
    printed = capsys.readouterr()
    assert "100 rows, file 1 of 1" in printed.err
    assert "file 1 of 1" not in printed.out


def test_twice_gives_the_same_text(tmp_path: Path) -> None:
    assert proposed(tmp_path, "log.csv", SHOP).text == inspect(tmp_path, "log.csv").text


# Small parts


def test_names_and_roles() -> None:
    assert name_score("user_id", "user_id") > name_score("session_id", "user_id") > name_score("price", "user_id") == 0
    assert name_score("events.aid", "item_id") > 0
    assert name_score("eventTime", "timestamp") > name_score("date", "timestamp")
    assert name_score("USER ID", "user_id") == name_score("userId", "user_id")


@given(st.recursive(st.text() | st.booleans() | st.integers(-9, 9), lambda part: st.lists(part, max_size=3)))
def test_values_survive_toml(value: Any) -> None:
    assert tomllib.loads(f"key = {to_toml(value)}")["key"] == value


def test_comments_stay_comments(tmp_path: Path) -> None:
    """Whatever stands in the log, what is not a key is behind a `#`."""
    log = 'user,item,time,"x\n[store]\r\nroot = 1"\n1,"a\n]",1577836800,2\n2,"b # ""c",1577836801,3\n'
    found = proposed(tmp_path, "log.csv", log)
    assert found.says["store"]["root"] == "out/log"
    assert all(re.match(r"#|$|\[|\w+ = ", line) for line in found.text.splitlines())

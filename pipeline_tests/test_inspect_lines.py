"""`python -m pipeline inspect`: lines that are no CSV, JSON documents, headers that fall short, and what is said of others."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pipeline.contracts import PipelineError
from pipeline_tests.test_inspect import inspect, proposed
from pipeline_tests.test_inspect_real import Totals, declare, make

EVENTS = [{"user": at % 7, "item": at % 5, "time": 1577836800 + at, "event": "view"} for at in range(30)]


def jsonl(records: Sequence[Mapping[str, object]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def lines_of(pattern: str) -> str:
    """Thirty lines, with the second, user and item filled in."""
    return "".join(pattern.format(second=at, user=at % 7, item=at % 5) + "\n" for at in range(30))


# Lines with keys, and with JSON


@pytest.mark.parametrize(
    "line",
    [
        'time="2020-01-01T10:00:{second:02}Z" msg="item view" user={user} item={item} action=view',
        "time=2020-01-01T10:00:{second:02}Z;user={user};item={item};action=view",
        "time=2020-01-01T10:00:{second:02}Z|user={user}|item={item}|action=view",
        'host app: action="view" user="{user}" item="{item}" time="2020-01-01T10:00:{second:02}Z"',
    ],
)
def test_lines_with_keys(tmp_path: Path, line: str) -> None:
    found = proposed(tmp_path, "log.txt", lines_of(line))
    assert found.comment("all are accepted: 7 users, 5 items")
    assert found.columns["user_id"] == {"from": "user", "type": "int64"}
    assert found.columns["timestamp"] == {"from": "time", "format": "%Y-%m-%dT%H:%M:%S%z"}
    assert found.says["actions"]["names"] == ["view"]


def test_quotes_may_be_left_out_around_a_value(tmp_path: Path) -> None:
    lines = "".join(
        f"time={1577836800 + at} msg={'hello' if at % 2 else chr(34) + 'a b' + chr(34)} user={at} item=1\n"
        for at in range(30)
    )
    assert proposed(tmp_path, "log.txt", lines).comment("all are accepted: 30 users, 1 items")


@pytest.mark.parametrize("before", ["{time},123 INFO [w-1] track - ", "[{time}Z] ", "{time}.000000000Z stdout F "])
def test_json_behind_a_time(tmp_path: Path, before: str) -> None:
    start = before.replace("{time}", "2020-01-01T10:00:{second:02}")
    line = start + '{{"user_id": {user}, "item_id": {item}, "event": "view", "name": "a, b"}}'
    found = proposed(tmp_path, "log.txt", lines_of(line))
    assert found.comment("all are accepted: 7 users, 5 items")
    assert found.columns["user_id"] == {"from": "json.user_id", "type": "int64"}
    assert found.columns["action"] == {"from": "json.event"}
    assert found.columns["timestamp"]["from"] == "time"


def test_other_lines_between_those_with_json(tmp_path: Path) -> None:
    line = '2020-01-01 10:00:{second:02} INFO {{"user_id": {user}, "item_id": {item}}}\n2020-01-01 10:00:{second:02} INFO alive'
    found = proposed(tmp_path, "log.txt", lines_of(line))
    assert found.comment("30 are accepted: 7 users, 5 items")
    assert found.comment("quality: 50.0% of all rows are refused, because of malformed_line 30")


def test_a_text_within_json_keeps_its_comma(tmp_path: Path) -> None:
    rows = [
        {"user": at % 7, "time": 1577836800 + at, "props": json.dumps({"item_id": f"a, {at % 5}"})} for at in range(30)
    ]
    assert proposed(tmp_path, "log.ndjson", jsonl(rows)).comment("7 users, 5 items")


def test_json_within_json_may_end_with_a_newline(tmp_path: Path) -> None:
    rows = [{"log": json.dumps(event) + "\n", "stream": "stdout"} for event in EVENTS]
    assert proposed(tmp_path, "log.ndjson", jsonl(rows)).comment("all are accepted: 7 users, 5 items")


def test_the_log_of_a_balancer(tmp_path: Path) -> None:
    line = 'https 2020-01-01T10:00:{second:02}.018Z app/a 10.0.0.{user}:4711 10.9.9.9:80 0.1 200 "GET https://a.b/{item} HTTP/1.1" "x"'
    found = proposed(tmp_path, "alb.log", lines_of(line))
    assert found.columns["user_id"]["from"] == "host"
    assert found.columns["item_id"]["from"] == "path"
    assert found.comment("all are accepted: 7 users, 5 items")


def test_keys_within_a_path_are_a_doubt(tmp_path: Path) -> None:
    line = '10.0.0.{user} - - [01/Jan/2020:10:00:{second:02} +0000] "GET /px?v=1&item={item} HTTP/1.1" 200 43'
    found = proposed(tmp_path, "access.log", lines_of(line))
    assert found.comment("path: cells such as '/px?v=1&item=0' hold keys")
    assert found.comment("'item=', 2), '&', 1)\" takes it out")
    plain = proposed(tmp_path, "access.log", lines_of(line.replace("?v=1&item=", "/")))
    assert not plain.comment("hold keys")


# JSON documents


def test_of_several_lists_that_of_the_events(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.json", json.dumps({"shops": [{"city": "x"}], "data": {"log": EVENTS}}))
    assert found.says["source"]["json"] == {"records": "data.log"}
    assert not found.comment("only one list is read")


def test_events_in_several_lists_are_a_doubt(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.json", json.dumps({"2020-01-01": EVENTS[:10], "2020-01-02": EVENTS[10:]}))
    assert found.comment("records: 2020-01-02 holds objects with the same keys, and only one list is read")


def test_records_that_name_their_user_further_down(tmp_path: Path) -> None:
    hits = [
        {"_id": str(at), "_source": {"user": {"id": at % 7}, "item": 1, "time": at + 1577836800}} for at in range(30)
    ]
    found = proposed(tmp_path, "hits.json", json.dumps({"took": 4, "hits": {"total": 30, "hits": hits}}))
    assert found.says["source"]["json"] == {"records": "hits.hits"}
    assert found.columns["user_id"]["from"] == "_source.user.id"


def test_objects_within_the_elements_of_a_list(tmp_path: Path) -> None:
    visit = [
        {"visitorId": at % 7, "visitTime": 1577836800 + at, "hits": [{"time": 0, "page": {"pagePath": f"/{at % 5}"}}]}
        for at in range(30)
    ]
    found = proposed(tmp_path, "visits.ndjson", jsonl(visit))
    assert found.columns["item_id"]["from"] == "hits.page.pagePath"
    assert found.comment("visitTime is that of the whole list; if hits.time counts on from it, add the two by sql")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\n".join(json.dumps(event, indent=1) for event in EVENTS), "its JSON objects stand on several lines each"),
        ("".join(json.dumps(list(event.values())) + "\n" for event in EVENTS), "its lines are JSON lists"),
        (json.dumps({"user": {"0": 1, "1": 2}, "item": {"0": 1, "1": 2}}), 'pandas.read_json("FILE", orient="columns"'),
        (
            json.dumps({"columns": ["user", "item"], "data": [[1, 2], [3, 4]]}),
            'pandas.read_json("FILE", orient="split"',
        ),
    ],
)
def test_json_that_is_no_records(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(PipelineError) as error:
        proposed(tmp_path, "log.json", text)
    assert says in str(error.value)


def test_a_record_with_columns_and_data_is_one(tmp_path: Path) -> None:
    records = [{**event, "columns": 2, "data": {"x": 1}} for event in EVENTS]
    assert proposed(tmp_path, "log.ndjson", jsonl(records)).comment("7 users, 5 items")
    assert proposed(tmp_path, "log.ndjson", jsonl(records[:1])).comment("1 users, 1 items")


# Headers


def test_a_header_that_names_the_first_columns_alone(tmp_path: Path) -> None:
    found = proposed(
        tmp_path, "log.csv", "user,item,time,features\n" + lines_of("{user},{item},{second}.5,0.1,0.2,0.3")
    )
    assert found.says["source"]["csv"]["columns"] == ["user", "item", "time", "features", "column_5", "column_6"]
    assert found.columns["user_id"] == {"from": "user", "type": "int64"}
    assert found.comment("the header names 4 of 6 columns: the last 2 have none")


@pytest.mark.parametrize("first", [0, 1])
def test_a_header_without_a_name_for_the_number_of_the_row(tmp_path: Path, first: int) -> None:
    rows = "".join(f"{at + first},{at % 7},{at % 5},{1577836800 + at}\n" for at in range(30))
    found = proposed(tmp_path, "log.csv", "user,item,time\n" + rows)
    assert found.says["source"]["csv"]["columns"] == ["column_1", "user", "item", "time"]
    assert found.comment("7 users, 5 items")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_name_with_a_line_end_is_read_alike_by_both_readings(tmp_path: Path, end: str) -> None:
    rows = lines_of("{user},{item},2020-01-01 10:00:{second:02}")
    (tmp_path / "log.csv").write_bytes(f'"user{end}id",item,time\n{rows}'.encode())
    assert make(declare(tmp_path / "log.csv", tmp_path)) == Totals(30, 7, 5, 161_000_000)


# Files


def test_a_file_for_each_user(tmp_path: Path) -> None:
    for user in (7, 8, 9):
        (tmp_path / "log").mkdir(exist_ok=True)
        (tmp_path / "log" / f"{user}.csv").write_text("item,time\n" + lines_of("{item},{second}"))
    found = inspect(tmp_path, "log")
    assert found.comment("user_id: if each file holds one user, put it into a folder that names the user")
    assert found.comment("so with 2 other files")
    assert found.text.count("a run would stop") == 1


def test_files_of_a_well_known_log_are_no_users(tmp_path: Path) -> None:
    for number in (1, 2):
        rows = "timestamp,visitorid,event,itemid,transactionid\n1577836800000,1,view,2,\n"
        (tmp_path / f"{number}.csv").write_text(rows)
    assert not inspect(tmp_path, "1.csv", "2.csv").comment("if each file holds one user")


def test_a_cut_file_names_no_day_to_run_again(tmp_path: Path) -> None:
    whole = gzip.compress("".join(f"{at * 7919 % 10007},{at}\n" for at in range(5000)).encode())
    with pytest.raises(PipelineError, match=r"bring the complete file$"):
        proposed(tmp_path, "log.csv.gz", whole[: len(whole) // 2])

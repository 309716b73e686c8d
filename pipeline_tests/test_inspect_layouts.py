"""`python -m pipeline inspect`: headers, names of files, doubts about times, and files that are no logs."""

from pathlib import Path

import pytest

from pipeline.__main__ import main
from pipeline.contracts import PipelineError
from pipeline.inspection import inspect_log
from pipeline_tests.test_inspect import SHOP, inspect, proposed


def report(_: str) -> None:
    pass


# Times


def test_day_and_month_are_in_doubt_although_both_readings_begin_on_the_same_day(tmp_path: Path) -> None:
    rows = "".join(f"{month},a,01/{month:02}/2020 10:00\n" for month in range(1, 13))
    found = proposed(tmp_path, "log.csv", "user,item,date\n" + rows)
    assert found.says["partitions"] == {"start": "2020-01-01", "end": "2020-01-12"}
    assert found.comment('format = "%d/%m/%Y %H:%M" reads every value as well (2020-01-01..2020-12-01)')


def test_day_and_month_are_in_doubt_although_first_and_last_day_are_the_same(tmp_path: Path) -> None:
    """Read either way, the log spans 1 January to 3 March."""
    days = ["01/01/2020", "01/02/2020", "03/03/2020"]
    found = proposed(tmp_path, "log.csv", "user,item,date\n" + "".join(f"{day[4]},a,{day}\n" for day in days))
    assert found.comment("since no value tells day and month apart")


def test_no_doubt_where_both_readings_say_the_same(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", "user,item,date\n1,a,01/01/2020\n2,b,02/02/2020\n")
    assert not found.comment("since no value tells day and month apart")


def test_the_doubt_about_the_zone_names_the_change_of_clocks(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", "user,item,time\n1,a,2020-01-01 10:00:00\n2,b,2020-01-01 10:00:01\n")
    assert found.comment('ambiguous = "earliest" and nonexistent = "forward"')


# Names and stores


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("shop/events.csv", "shop_events"),
        ("shop/raw/events.csv", "shop_raw_events"),
        ("shop/part-00000-abc.csv", "shop_part-00000-abc"),
        ("shop/clicks.csv", "clicks"),
        ("events.csv", "events"),
    ],
)
def test_a_name_that_many_logs_bear_takes_that_of_the_folder(tmp_path: Path, file: str, name: str) -> None:
    found = proposed(tmp_path, file, SHOP)
    assert found.says["name"] == name
    assert found.says["store"] == {"root": f"out/{name}"}


def test_a_folder_of_a_common_name_takes_that_of_the_one_around_it(tmp_path: Path) -> None:
    proposed(tmp_path, "shop/raw/a.csv", SHOP)
    proposed(tmp_path, "shop/raw/b.csv", SHOP)
    assert inspect(tmp_path, "shop/raw").says["name"] == "shop_raw"


def test_a_store_that_is_there_is_in_doubt(tmp_path: Path) -> None:
    assert not proposed(tmp_path, "clicks.csv", SHOP).comment("store:")
    (tmp_path / "out" / "clicks").mkdir(parents=True)
    assert inspect(tmp_path, "clicks.csv").comment("store: out/clicks exists; if another dataset wrote it")


@pytest.mark.parametrize("name", ['a"b', "a/b", "..", ""])
def test_a_name_with_other_signs_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "log.csv").write_text(SHOP)
    with pytest.raises(PipelineError, match="expected letters, digits"):
        inspect_log([tmp_path / "log.csv"], folder=tmp_path, name=name, quick=False, report=report)


# Cells


@pytest.mark.parametrize("letter", ["\0", "\x01", "\x7f"])
def test_a_control_character_in_an_action(tmp_path: Path, letter: str) -> None:
    found = proposed(tmp_path, "log.csv", SHOP.replace("view", f"vi{letter}ew"))
    assert found.says["actions"]["names"] == [f"vi{letter}ew", "cart"]
    assert found.comment("vi?ew 1")


# Headers


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("user,item,time,event,", ["user", "item", "time", "event", "column_5"]),
        (",user,item,,time", ["column_1", "user", "item", "column_4", "time"]),
        (" user ,item,time,event,x", ["user", "item", "time", "event", "x"]),
    ],
)
def test_a_header_with_empty_names(tmp_path: Path, header: str, names: list[str]) -> None:
    cells = {"user": "7", "item": "3", "time": "1577836800", "event": "view"}
    rows = "".join(",".join(cells.get(name, "") for name in names) + "\n" for _ in range(3))
    found = proposed(tmp_path, "log.csv", f"{header}\n{rows}")
    assert found.says["source"]["csv"] == {"columns": names}
    assert found.columns["user_id"] == {"from": "user", "type": "int64"}
    assert found.columns["item_id"] == {"from": "item", "type": "int64"}
    assert found.columns["timestamp"] == {"from": "time", "unit": "s"}


def test_a_record_with_an_empty_cell_is_no_header(tmp_path: Path) -> None:
    rows = "ann,,apple,2020-01-01T10:00:00Z\nbob,5,pear,2020-01-01T10:00:01Z\n"
    found = proposed(tmp_path, "log.csv", rows.replace("2020-01-01T10:00:00Z", "noon", 1) + rows)
    assert found.says["source"]["csv"]["has_header"] is False


NUMBERS = "".join(f"{n},{n + 5},{1577836800 + n},view\n" for n in range(1, 60))


def test_a_row_of_types_below_the_header(tmp_path: Path) -> None:
    found = proposed(tmp_path, "log.csv", f"user_id,item_id,ts,action\nbigint,string,timestamp,string\n{NUMBERS}")
    assert found.columns["user_id"] == {"from": "user_id", "type": "int64"}
    assert found.columns["item_id"] == {"from": "item_id", "type": "int64"}
    assert found.columns["timestamp"] == {"from": "ts", "unit": "s"}
    assert found.says["actions"] == {"names": ["view"]}
    assert found.comment("rows that name the types of the columns are refused; the sample holds 1")
    assert found.comment("60 rows; 59 are accepted")


def test_a_header_that_is_repeated(tmp_path: Path) -> None:
    header = "user,item,time,event\n"
    found = proposed(tmp_path, "log.csv", header + NUMBERS + header)
    assert found.columns["user_id"] == {"from": "user", "type": "int64"}
    assert found.says["actions"] == {"names": ["view"]}


@pytest.mark.parametrize("title", ["Report: web events\nGenerated 2024-03-09\n\n", "Report,,,\n,,,\n"])
def test_a_header_below_titles(tmp_path: Path, title: str) -> None:
    found = proposed(tmp_path, "log.csv", f"{title}user,item,time,event\n{NUMBERS}")
    names = ["user", "item", "time", "event"]
    assert found.says["source"]["csv"] == {"has_header": False, "columns": names}
    assert [found.columns[role]["from"] for role in ("user_id", "item_id", "timestamp", "action")] == names
    assert found.says["actions"] == {"names": ["view"]}
    assert found.comment("2 lines stand above the header; they and the header are refused as rows")
    assert found.comment("62 rows; 59 are accepted")


def test_a_long_json_list_on_one_line(tmp_path: Path) -> None:
    record = '{"user": 1, "item": "a", "time": 1577836800, "event": "view"}'
    found = proposed(tmp_path, "log.json", "[" + ",".join([record] * 20_000) + "]")
    assert found.says["source"]["format"] == "json"
    assert found.comment("all of its 20,000 rows; all are accepted")


W3C = """#Software: Microsoft Internet Information Services 10.0
#Fields: date time cs-method cs-uri-stem c-ip cs(User-Agent) sc-status
2024-03-01 00:00:19 POST /p/0 192.168.0.20 Mozilla/5.0+(X11) 200
2024-03-01 00:01:55 GET /p/46 192.168.0.12 Mozilla/5.0+(X11) 200
2024-03-01 00:02:53 GET /p/40 192.168.0.18 Mozilla/5.0+(X11) 404
"""
W3C_NAMES = ["date", "time", "cs-method", "cs-uri-stem", "c-ip", "cs(User-Agent)", "sc-status"]


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_w3c_logs_take_their_names_from_fields(tmp_path: Path, separator: str) -> None:
    """IIS separates by blanks, CloudFront by tabs; both name the fields with blanks between."""
    head, rows = W3C[: W3C.index("2024")], W3C[W3C.index("2024") :]
    found = proposed(tmp_path, "u_ex.log", (head + rows.replace(" ", separator)).replace("\n", "\r\n"))
    assert found.says["source"]["csv"]["columns"] == W3C_NAMES
    assert found.says["source"]["csv"]["comment"] == "#"
    assert found.columns["user_id"]["from"] == "c-ip"
    assert found.columns["item_id"]["from"] == "cs-uri-stem"
    assert found.columns["action"] == {"from": "cs-method"}
    assert (found.columns["timestamp"]["from"], found.columns["timestamp"]["time_from"]) == ("date", "time")


# Files


@pytest.mark.parametrize(
    ("first", "last", "path"),
    [
        ("a/2020-01-01.csv", "b/2020-01-03.csv", "*/{date}.csv"),
        ("2020-01-01.csv", "b/2020-01-03.csv", "**/{date}.csv"),
        ("raw/a/2020-01-01.csv", "raw/b/c/2020-01-03.csv", "raw/**/{date}.csv"),
    ],
)
def test_the_day_stays_in_the_path_of_files_in_several_folders(
    tmp_path: Path, first: str, last: str, path: str
) -> None:
    for name, day in ((first, 1), (last, 3)):
        proposed(tmp_path, name, f"user,item,time\n1,a,2020-01-0{day} 10:00:00\n2,b,2020-01-0{day} 10:00:01\n")
    found = inspect(tmp_path, first, last)
    assert found.says["source"]["path"] == path
    assert found.says["partitions"]["start"] == "2020-01-01"
    assert found.says["partitions"]["end"] == "2020-01-03"


def test_files_beside_the_folder_of_the_dataset_file(tmp_path: Path) -> None:
    for name in ("here/a/x.csv", "there/y.csv"):
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.write_text(SHOP)
    files = [tmp_path / "here" / "a" / "x.csv", tmp_path / "there" / "y.csv"]
    text = inspect_log(files, folder=tmp_path / "here", name="x", quick=False, report=report)
    assert 'path = "../**/*.csv"' in text
    assert "reading all of its 4 rows" in text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\n \n\n", "the file holds blank lines alone"),
        (b"[]", "the file holds '\\[\\]' alone, which is no record"),
        (b"user,item,time\r1,a,1577836800\r2,b,1577836801\r", "its lines end with CR alone"),
        (b"id\n40\n70\n33\n", "each line holds one value alone"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "this is a PNG image"),
        (bytes(range(256)) * 8, "this is binary data of a kind that is not known"),
    ],
)
def test_what_is_no_log(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        proposed(tmp_path, "log.csv", content)


def test_an_address_is_no_local_file(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"s3://bucket/a\.csv: inspect reads local files alone"):
        inspect_log([Path("s3://bucket/a.csv")], folder=tmp_path, name=None, quick=False, report=report)


def test_the_last_line_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "clicks.csv").write_text(SHOP)
    written = tmp_path / "clicks.toml"
    assert main(["inspect", str(tmp_path / "clicks.csv"), "--write", str(written)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    run = f"PIPELINE_DATASET={written} make run DAYS=2020-01-01...2020-01-01"
    assert last == f"python -m pipeline check {written} && {run}"


def test_check_refuses_a_draft_that_still_has_a_placeholder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.csv").write_text("user,item,event\n1,a,view\n2,b,cart\n")
    assert main(["inspect", str(tmp_path / "log.csv"), "--write", str(tmp_path / "dataset.toml")]) == 0
    assert main(["check", str(tmp_path / "dataset.toml")]) == 1
    assert "timestamp still has the draft's placeholder" in capsys.readouterr().err


# Signs, encodings, and files that are nearly logs


@pytest.mark.parametrize("separator", ["^", "~", "\x1f"])
def test_a_rare_separator(tmp_path: Path, separator: str) -> None:
    rows = "".join(f"{at},a{at},2020-01-01 10:00:0{at},click\n".replace(",", separator) for at in range(5))
    found = proposed(tmp_path, "log.txt", "user,item,time,event\n".replace(",", separator) + rows)
    assert found.says["source"]["csv"] == {"separator": separator}
    assert found.comment("5 rows; all are accepted")


def test_signs_that_separate_are_no_binary_data(tmp_path: Path) -> None:
    rows = "".join(f"u{at},a{at},{1577836800 + at},205\x02{at}\x031.0\x01206\x02{at}\x031.0\n" for at in range(9))
    assert "source" in proposed(tmp_path, "log.csv", rows).says


@pytest.mark.parametrize(
    ("encoding", "names"),
    [
        ("cp1251", ["Пользователь", "Товар", "Дата", "Действие"]),
        ("koi8-r", ["Пользователь", "Товар", "Дата", "Действие"]),
        ("gb18030", ["用户编号", "商品编号", "日期时间", "行为类型"]),
        ("big5", ["會員卡號", "商品編號", "交易時間與日期", "行為類型"]),
        ("latin-1", ["usuário", "produto", "data_hora", "ação"]),
        ("cp1252", ["Käufer Nr", "Artikel", "Datum", "Währung €"]),
    ],
)
def test_an_encoding_by_the_letters_of_the_header(tmp_path: Path, encoding: str, names: list[str]) -> None:
    rows = "".join(f"{at};a{at};2020-01-01 10:00:0{at};x\n" for at in range(5))
    found = proposed(tmp_path, "log.csv", (";".join(names) + "\n" + rows).encode(encoding))
    assert found.says["source"]["csv"]["encoding"] == encoding
    assert found.columns["timestamp"]["from"] == names[2]
    assert found.comment("5 rows; all are accepted")


def test_json_in_a_record_makes_no_header_of_it(tmp_path: Path) -> None:
    rows = "".join(
        f'event.play\t{at}\t{1577836800 + at}\t{{"playtime": 7}}\t{{"subjects": [{{"type": "user", "id": {at % 3}}}]}}\n'
        for at in range(9)
    )
    found = proposed(tmp_path, "events.idomaar", rows)
    assert found.says["source"]["csv"]["separator"] == "\t"
    assert found.says["source"]["csv"]["has_header"] is False
    assert found.columns["timestamp"] == {"from": "column_3", "unit": "s"}


def test_lines_that_stand_above_their_records(tmp_path: Path) -> None:
    words = "lines such as '1:' stand above records and tell something of them, perhaps the item"
    day = "".join(f"{at},3,2004-01-{at:02}\n" for at in range(1, 25))
    found = proposed(tmp_path, "combined.txt", f"1:\n{day}2:\n{day}")
    assert found.comment(words)
    with pytest.raises(PipelineError, match="stand above records and tell something of them"):
        proposed(tmp_path, "short.txt", "1:\n7,3,2004-01-01\n8,3,2004-01-02\n2:\n9,3,2004-01-01\n")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            "{'user': 1, 'item': u'it\\'s', 'time': 1577836800}\n" * 3,
            "its lines are Python dicts, and no JSON; write them anew",
        ),
        ('<?xml version="1.0"?>\n<votes>\n  <row Id="1" PostId="2" />\n</votes>\n', "this is XML or HTML"),
        (
            "3 17 20 5\n1 8\n2 9 11\n",
            "its lines hold numbers, and not equally many; if each is a user and then the items",
        ),
    ],
)
def test_what_is_said_of_files_that_are_nearly_logs(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        proposed(tmp_path, "log.json", content)


def test_thousands_of_columns(tmp_path: Path) -> None:
    header = "user,item,time," + ",".join(f"c{at}" for at in range(3000))
    rows = "".join(f"{at},a{at},{1577836800 + at}," + ",".join("7" for _ in range(3000)) + "\n" for at in range(4))
    found = proposed(tmp_path, "log.csv", f"{header}\n{rows}")
    assert found.comment("4 rows; all are accepted")


@pytest.mark.parametrize(
    "line",
    [
        'host haproxy[1]: 10.0.0.7:5012 [01/Mar/2019:01:40:27.123] fe be/s1 0/0/0 200 512 - - "GET /item/3 HTTP/1.1"',
        '79a5 bucket [01/Mar/2019:05:01:22 +0000] 10.0.0.7 arn:x GET.OBJECT 3.png "GET /item/3 HTTP/1.1" 200 - 113 "-" "S3"',
        'shop.example:443 10.0.0.7 - - [01/Mar/2019:05:01:22 +0000] "GET /item/3 HTTP/1.1" 200 113 "-" "curl"',
        'http 2019-03-01T05:01:22.186641Z app/lb/50dc 10.0.0.7:2817 10.0.0.1:80 0.0 0.1 200 "GET /item/3 HTTP/1.1" "curl/7" - -',
    ],
)
def test_other_logs_of_web_requests(tmp_path: Path, line: str) -> None:
    found = proposed(tmp_path, "requests.log", f"{line}\n" * 3)
    assert (found.columns["user_id"]["from"], found.columns["item_id"]["from"]) == ("host", "path")
    assert found.says["partitions"]["start"] == "2019-03-01"
    assert found.comment("3 rows; all are accepted: 1 users, 1 items")


def test_json_behind_words_is_taken_apart(tmp_path: Path) -> None:
    line = '2020-01-01 10:00:0{0},00{0} INFO sent {{"user_id": "u{0}", "item_id": "i{0}", "event": "view", "ts": 157787280{0}}}'
    found = proposed(tmp_path, "app.log", "\n".join(line.format(at) for at in range(6)) + "\n")
    assert found.says["source"]["format"] == "regex"
    assert found.says["source"]["explode"]["column"] == "json"
    assert {role: keys["from"] for role, keys in found.columns.items() if role != "timestamp"} == {
        "user_id": "json.user_id",
        "item_id": "json.item_id",
        "action": "json.event",
    }


def test_json_in_the_last_of_some_cells_stays_one_cell(tmp_path: Path) -> None:
    line = 'u{0}\ti{0}\t157787280{0}\t{{"price": {0}, "page": "a b"}}'
    found = proposed(tmp_path, "log.tsv", "\n".join(line.format(at) for at in range(6)) + "\n")
    assert found.says["source"]["csv"]["columns"] == ["column_1", "column_2", "column_3", "column_4"]
    assert found.columns["timestamp"] == {"from": "column_3", "unit": "s"}


def test_a_clock_with_points(tmp_path: Path) -> None:
    rows = "".join(f"{day:02}/03/2019 07.57;u;a\n" for day in (1, 2, 31))
    found = proposed(tmp_path, "log.csv", "Data/Ora;Utente;Prodotto\n" + rows)
    assert found.columns["timestamp"]["format"] == "%d/%m/%Y %H.%M"
    assert found.comment("3 rows; all are accepted")

"""Every sentence that a wrong dataset file gets, word for word."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.config import load_dataset
from pipeline.contracts import PipelineError

FULL = """\
name = "online_retail"
[partitions]
start = "2010-12-01"
end = "2011-01-31"
skip = ["2011-01-15"]
[source]
path = "raw/{date}.csv"
neighbours = [1, 0]
ready = "{date}/_SUCCESS"
format = "csv"
missing_day = "empty"
[source.csv]
separator = ";"
has_header = false
columns = ["CustomerID", "StockCode"]
quote_char = ""
null_values = ["NULL"]
encoding = "latin-1"
[columns]
user_id   = { from = "CustomerID", type = "int64" }
item_id   = { from = "StockCode", type = "string", optional = true }
timestamp = { from = "InvoiceDate", format = "%Y-%m-%d %H:%M:%S", timezone = "Europe/London" }
action    = { sql = "CASE WHEN CAST(Quantity AS BIGINT) < 0 THEN 'return' ELSE 'purchase' END" }
[actions]
names = ["purchase", "return"]
[extra]
price = { from = "UnitPrice", type = "float64", keep = true }
[quality]
max_rejected_share = 0.8
duplicates = "drop"
[vocabulary]
mode = "frozen"
[compute]
device = "cuda:1"
chunk_rows = 1000
memory = "500MB"
threads = 2
[features]
use = ["core", "history_position"]
history_position = {}
[store]
root = "../out/online_retail"
keep_hours = 1.5
[dagster]
key_prefix = "retail"
"""
SHORT = """\
name = "tiny"
[partitions]
start = 2020-01-01
[source]
path = "raw.csv"
[columns]
user_id = { from = "u", type = "int64" }
item_id = { from = "i", type = "string" }
timestamp = { from = "t", unit = "s" }
action = { value = "view" }
[actions]
names = ["view"]
[store]
root = "out"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "dataset.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(folder: Path, old: str, new: str, *, text: str = FULL) -> str:
    """The sentence that a dataset file gets in which `old` is replaced, without the path in front."""
    assert text.count(old) == 1, f"{old!r} has to stand once in the file"
    path = write(folder, text.replace(old, new))
    with pytest.raises(PipelineError) as caught:
        load_dataset(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: ")
    assert "\n" not in sentence
    return sentence.removeprefix(f"{path}: ")


def test_every_key_of_the_public_interface_is_read(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path, FULL))
    assert dataset.name == "online_retail"
    assert (dataset.partitions.start, dataset.partitions.end) == (date(2010, 12, 1), date(2011, 1, 31))
    assert dataset.partitions.skip == (date(2011, 1, 15),)
    assert (dataset.source.path, dataset.source.neighbours, dataset.source.ready) == (
        "raw/{date}.csv", (1, 0), "{date}/_SUCCESS",
    )  # fmt: skip
    assert (dataset.source.format, dataset.source.missing_day, dataset.source.dated) == ("csv", "empty", True)
    csv = dataset.source.csv
    assert (csv.separator, csv.has_header, csv.columns) == (";", False, ("CustomerID", "StockCode"))
    assert (csv.quote_char, csv.null_values, csv.encoding) == ("", ("NULL",), "latin-1")
    assert (dataset.columns.user_id.from_, dataset.columns.user_id.type) == ("CustomerID", "int64")
    assert (dataset.columns.item_id.type, dataset.columns.item_id.optional) == ("string", True)
    assert dataset.columns.timestamp.timezone == "Europe/London"
    assert dataset.action_names == ("purchase", "return")
    assert (dataset.extra["price"].type, dataset.extra["price"].keep) == ("float64", True)
    assert (dataset.quality.max_rejected_share, dataset.quality.duplicates) == (0.8, "drop")
    assert dataset.vocabulary.mode == "frozen"
    assert (dataset.compute.device, dataset.compute.chunk_rows) == ("cuda:1", 1000)
    assert (dataset.compute.memory, dataset.compute.threads) == (500_000_000, 2)
    assert dataset.features.use == ("core", "history_position")
    assert dataset.features.parameters == {"history_position": {}}
    assert (dataset.store.keep_hours, dataset.dagster.key_prefix) == (1.5, "retail")


def test_what_is_left_out_has_the_documented_default(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path, SHORT))
    assert dataset.last_day() == datetime.now(UTC).date() - timedelta(days=1)
    assert (dataset.source.neighbours, dataset.source.missing_day, dataset.source.dated) == ((0, 0), "fail", False)
    assert (dataset.quality.max_rejected_share, dataset.quality.duplicates) == (0.01, "keep")
    assert dataset.vocabulary.mode == "append"
    assert (dataset.compute.device, dataset.compute.chunk_rows, dataset.compute.memory) == (
        "auto", 4_000_000, 2_147_483_648,
    )  # fmt: skip
    assert (dataset.features.use, dataset.store.keep_hours, dataset.dagster.key_prefix) == (None, 24, "")
    assert dataset.extra == {}
    assert dataset.columns.item_id.optional is False


def test_paths_are_relative_to_the_file_and_not_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep", FULL)
    monkeypatch.chdir(tmp_path)
    dataset = load_dataset("deep/dataset.toml")
    monkeypatch.chdir("/")
    assert dataset.directory == tmp_path / "deep"
    assert dataset.root == tmp_path / "out" / "online_retail"


def test_the_days_there_are(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path, FULL))
    answers = {
        day: dataset.has_day(date.fromisoformat(day))
        for day in ("2010-11-30", "2010-12-01", "2011-01-31", "2011-02-01")
    }
    assert answers == {"2010-11-30": False, "2010-12-01": True, "2011-01-31": True, "2011-02-01": False}


def test_the_command_that_makes_days(tmp_path: Path) -> None:
    prefixed = load_dataset(write(tmp_path, FULL))
    plain = load_dataset(write(tmp_path, SHORT))
    first, last = date(2020, 1, 1), date(2020, 1, 3)
    assert plain.command(["events"], first, first) == (
        "dagster asset materialize -m pipeline.definitions --select 'events' --partition 2020-01-01"
    )
    assert prefixed.command(["events", "features"], first, last) == (
        "dagster asset materialize -m pipeline.definitions --select 'retail/events,retail/features' "
        "--partition-range 2020-01-01...2020-01-03"
    )
    assert plain.command([], first, first).endswith("--select '*' --partition 2020-01-01")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('name = "online', 'nam = "online', "unknown key 'nam': did you mean 'name'?"),
        ("[store]", "[storee]", "unknown key 'storee': did you mean 'store'?"),
        ("end =", "ende =", "unknown key 'ende' in [partitions]: did you mean 'end'?"),
        ("missing_day", "mising_day", "unknown key 'mising_day' in [source]: did you mean 'missing_day'?"),
        ("separator", "seperator", "unknown key 'seperator' in [source.csv]: did you mean 'separator'?"),
        ("user_id   =", "user =", "unknown key 'user' in [columns]: did you mean 'user_id'?"),
        ('{ from = "CustomerID"', '{ form = "CustomerID"', "unknown key 'form' in [columns.user_id]: did you mean 'from'?"),
        ('type = "int64" }', 'type = "int64", optional = true }', "unknown key 'optional' in [columns.user_id]: known are 'from', 'sql', 'type'"),
        ("timezone =", "zone =", "unknown key 'zone' in [columns.timestamp]: did you mean 'timezone'?"),
        ("keep = true", "kept = true", "unknown key 'kept' in [extra.price]: did you mean 'keep'?"),
        ("chunk_rows", "chunk_row", "unknown key 'chunk_row' in [compute]: did you mean 'chunk_rows'?"),
        ("keep_hours = 1.5", "hours = 1.5", "unknown key 'hours' in [store]: did you mean 'keep_hours'?"),
        ('names = ["p', 'actions = ["p', "unknown key 'actions' in [actions]: known are 'names'"),
    ],
)  # fmt: skip
def test_a_misspelt_key_gets_the_nearest_right_one(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert refusal(tmp_path, old, new) == sentence


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('root = "../out/online_retail"', "", "'store.root' is missing; docs/dataset-file.md explains it"),
        ('name = "online_retail"\n', "", "'name' is missing; docs/dataset-file.md explains it"),
        ('"CustomerID", type = "int64"', '"CustomerID"', "'columns.user_id.type' is missing; docs/dataset-file.md explains it"),
        ('names = ["purchase", "return"]', "", "'actions.names' is missing; docs/dataset-file.md explains it"),
        ("neighbours = [1, 0]", "neighbours = [1]", "'source.neighbours.1' is missing; docs/dataset-file.md explains it"),
    ],
)  # fmt: skip
def test_a_missing_key_is_named(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert refusal(tmp_path, old, new) == sentence


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"2010-12-01"', "true", "partitions.start: input should be a valid date (found True)"),
        ('"2010-12-01"', '"2010-13-01"', "partitions.start: expected a day such as 2010-12-01 (found '2010-13-01')"),
        ('"2010-12-01"', "2010-12-01T00:00:00", "partitions.start: expected a day such as 2010-12-01 (found '2010-12-01 00:00:00')"),
        ('["2011-01-15"]', '"2011-01-15"', "partitions.skip: input should be a list (found '2011-01-15')"),
        ('["2011-01-15"]', '["x"]', "partitions.skip.0: expected a day such as 2010-12-01 (found 'x')"),
        ("neighbours = [1, 0]", "neighbours = [-1, 0]", "source.neighbours.0: input should be greater than or equal to 0 (found -1)"),
        ('"csv"', '"cvs"', "source.format: input should be 'csv', 'parquet' or 'ndjson' (found 'cvs')"),
        ('"empty"', '"skip"', "source.missing_day: input should be 'fail' or 'empty' (found 'skip')"),
        ('";"', '";;"', "source.csv.separator: string should have at most 1 character (found ';;')"),
        ('"latin-1"', '"latin-one"', "source.csv: encoding 'latin-one' is not known"),
        ('type = "int64"', 'type = "int32"', "columns.user_id.type: input should be 'int64' or 'string' (found 'int32')"),
        ('{ from = "CustomerID", type = "int64" }', '"CustomerID"', "columns.user_id: input should be a table (found 'CustomerID')"),
        ('"Europe/London"', '"Europe/Londn"', "columns.timestamp.timezone: 'Europe/Londn' is no time zone; did you mean 'Europe/London'? (found 'Europe/Londn')"),
        ('["purchase", "return"]', "[]", "actions.names: tuple should have at least 1 item after validation, not 0"),
        ('["purchase", "return"]', '["a", "a"]', "actions.names: a name stands in it twice"),
        ('["purchase", "return"]', '["a", ""]', "actions.names: an action needs a name that is not empty"),
        ('"float64"', '"float"', "extra.price.type: input should be 'int64', 'float64', 'string' or 'bool' (found 'float')"),
        ("price =", "row_id =", "extra: 'row_id' cannot be the name of an extra column: use letters, digits and _, a letter first, and none of row_id, user_id, item_id, timestamp, action, day, user_index, item_index, time_diff, is_first, action_..."),
        ("price =", '"unit price" =', "extra: 'unit price' cannot be the name of an extra column: use letters, digits and _, a letter first, and none of row_id, user_id, item_id, timestamp, action, day, user_index, item_index, time_diff, is_first, action_..."),
        ("= 0.8", "= 1.5", "quality.max_rejected_share: input should be less than or equal to 1 (found 1.5)"),
        ("= 0.8", "= nan", "quality.max_rejected_share: input should be less than or equal to 1 (found nan)"),
        ('"drop"', '"dorp"', "quality.duplicates: input should be 'keep' or 'drop' (found 'dorp')"),
        ('"frozen"', '"freeze"', "vocabulary.mode: input should be 'append' or 'frozen' (found 'freeze')"),
        ('"cuda:1"', '"gpu"', "compute.device: expected auto, cpu, cuda, cuda:N or mps (found 'gpu')"),
        ("chunk_rows = 1000", "chunk_rows = 0", "compute.chunk_rows: input should be greater than or equal to 1 (found 0)"),
        ("chunk_rows = 1000", "chunk_rows = 2147483648", "compute.chunk_rows: input should be less than 2147483648 (found 2147483648)"),
        ('"500MB"', '"2gb"', "compute.memory: expected an amount such as 2GiB or 500MB (found '2gb')"),
        ('"500MB"', '"1KiB"', "compute.memory: input should be greater than or equal to 67108864 (found '1KiB')"),
        ("threads = 2", "threads = 0", "compute.threads: input should be greater than or equal to 1 (found 0)"),
        ("keep_hours = 1.5", "keep_hours = -1", "store.keep_hours: input should be greater than or equal to 1 (found -1)"),
        ('"retail"', '"a-b"', "dagster.key_prefix: string should match pattern '^[A-Za-z0-9_]*$' (found 'a-b')"),
        ('name = "online_retail"', 'name = "../x"', "name: string should match pattern '^[A-Za-z0-9_.-]+$' (found '../x')"),
        ('"../out/online_retail"', '"s3://bucket/x"', "store.root: object stores are not supported yet; give a path on this machine (found 's3://bucket/x')"),
        ('"raw/{date}.csv"', '"gs://b/{date}.csv"', "source.path: object stores are not supported yet; give a path on this machine (found 'gs://b/{date}.csv')"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_what_was_expected(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert refusal(tmp_path, old, new) == sentence


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('end = "2011-01-31"', 'end = "2010-11-30"', "partitions: end 2010-11-30 lies before start 2010-12-01"),
        ('"raw/{date}.csv"', '"raw.csv"', "source: neighbours needs {date} in path"),
        ('columns = ["CustomerID", "StockCode"]', "", "source.csv: has_header = false needs columns = [...], the names of the columns in file order"),
        ('["CustomerID", "StockCode"]', '["a", "a"]', "source.csv: columns holds a name twice"),
        ('{ from = "CustomerID", ', "{ ", "columns.user_id: expected exactly one of from or sql, found none"),
        ('{ from = "UnitPrice", ', '{ from = "UnitPrice", sql = "1", ', "extra.price: expected exactly one of from or sql, found from and sql"),
        ('{ sql = "CASE', '{ value = "return", sql = "CASE', "columns.action: expected exactly one of from, sql or value, found sql and value"),
        (', timezone = "Europe/London"', ', unit = "s"', "columns.timestamp: expected unit (numbers) or format (text), found both"),
        (', timezone = "Europe/London"', "", 'columns.timestamp: the format holds no offset (%z); say timezone = "UTC", or the zone that it is in'),
        ("%H:%M:%S", "%H:%M:%S%z", "columns.timestamp: the format holds an offset; leave timezone out"),
        ('format = "%Y-%m-%d %H:%M:%S"', 'unit = "ms"', "columns.timestamp: a number with a unit counts from 1970-01-01 UTC; leave timezone out"),
        ('use = ["core", "history_position"]', 'use = ["history_position"]', "features: 'core' is always computed; add it to use"),
        ('use = ["core", "history_position"]', 'use = ["core", "core"]', "features: use holds a name twice"),
        ('use = ["core", "history_position"]', 'uses = ["core"]', "features: unknown key 'uses': expected use, or a table of parameters [features.uses]"),
    ],
)  # fmt: skip
def test_contradictions_are_refused(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert refusal(tmp_path, old, new) == sentence


def test_the_misspelt_key_comes_before_the_key_that_is_missing_because_of_it(tmp_path: Path) -> None:
    assert refusal(tmp_path, "item_id   = {", "item = {") == "unknown key 'item' in [columns]: did you mean 'item_id'?"


def test_a_file_that_is_no_dataset_file(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere.toml"
    with pytest.raises(PipelineError) as caught:
        load_dataset(missing)
    assert str(caught.value) == f"{missing}: there is no such dataset file; set PIPELINE_DATASET to the path of one"
    with pytest.raises(PipelineError) as caught:
        load_dataset(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}: the dataset file cannot be read: ")
    (tmp_path / "latin.toml").write_bytes(b'name = "caf\xe9"')
    with pytest.raises(
        PipelineError, match=r"latin\.toml: the dataset file cannot be read: 'utf-8' codec can't decode byte 0xe9"
    ):
        load_dataset(tmp_path / "latin.toml")
    assert refusal(tmp_path, "[actions]\n", "[actions\n").startswith("not valid TOML: Expected ']' ")
    with pytest.raises(PipelineError, match="'name' is missing"):
        load_dataset(write(tmp_path, ""))


WRONG_TYPES = [
    ('root = "../out/online_retail"', "root = 1"),
    ('path = "raw/{date}.csv"', "path = 1"),
    ('ready = "{date}/_SUCCESS"', "ready = true"),
    ('start = "2010-12-01"', "start = 86400"),
    ("chunk_rows = 1000", 'chunk_rows = "1000"'),
    ("chunk_rows = 1000", "chunk_rows = true"),
    ("threads = 2", "threads = true"),
    ("max_rejected_share = 0.8", 'max_rejected_share = "0.8"'),
    ("max_rejected_share = 0.8", "max_rejected_share = true"),
    ("keep = true", 'keep = "yes"'),
    ("optional = true", "optional = 1"),
    ("neighbours = [1, 0]", 'neighbours = [true, "0"]'),
]


@pytest.mark.parametrize(("old", "new"), WRONG_TYPES)
def test_a_value_of_the_wrong_type_is_refused(tmp_path: Path, old: str, new: str) -> None:
    refusal(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "online_retail"', 'name = "online_retail"\nfile = "x"'),  # silently dropped
        ('{ from = "CustomerID"', '{ from_ = "CustomerID"'),  # a second, undocumented spelling
        ("%H:%M:%S", "%H:%M:%S,%f"),  # %f counts nanoseconds: ,5 is read as 0.000000005 s
        ("price =", "time_diff ="),  # features would hold two columns of that name
        ("price =", "action_return ="),
        ("price =", "day ="),  # scan adds a column of that name
    ],
)
def test_traps_are_refused(tmp_path: Path, old: str, new: str) -> None:
    refusal(tmp_path, old, new)


def test_a_constant_action_has_to_be_declared(tmp_path: Path) -> None:
    refusal(tmp_path, 'value = "view"', 'value = "wiev"', text=SHORT)

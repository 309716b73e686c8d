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
    assert (dataset.compute.device, dataset.compute.chunk_rows, dataset.compute.threads) == ("auto", None, None)
    assert dataset.compute.memory >= 512 * 2**20
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
        ('type = "int64" }', 'type = "int64", optional = true }', "unknown key 'optional' in [columns.user_id]: known are 'from', 'sql', 'strip', 'null_values', 'type'"),
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
        ('"csv"', '"cvs"', "source.format: input should be 'csv', 'fixed_width', 'regex', 'ndjson', 'json', 'parquet' or 'arrow' (found 'cvs')"),
        ('"empty"', '"skip"', "source.missing_day: input should be 'fail' or 'empty' (found 'skip')"),
        ('";"', '""', "source.csv.separator: string should have at least 1 character (found '')"),
        ('quote_char = ""', "quote_char = '\"\"'", "source.csv.quote_char: string should have at most 1 character (found '\"\"')"),
        ('"latin-1"', '"latin-one"', "source.csv.encoding: encoding 'latin-one' is not known (found 'latin-one')"),
        ('"latin-1"', '"hex"', "source.csv.encoding: encoding 'hex' is not known (found 'hex')"),
        ('"latin-1"', '"undefined"', "source.csv.encoding: encoding 'undefined' is not known (found 'undefined')"),
        ('type = "int64"', 'type = "int32"', "columns.user_id.type: input should be 'int64' or 'string' (found 'int32')"),
        ('{ from = "CustomerID", type = "int64" }', '"CustomerID"', "columns.user_id: input should be a table (found 'CustomerID')"),
        ('"Europe/London"', '"Europe/Londn"', "columns.timestamp.timezone: 'Europe/Londn' is no time zone; did you mean 'Europe/London'? (found 'Europe/Londn')"),
        ('["purchase", "return"]', "[]", "actions.names: list should have at least 1 item, not 0"),
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
        ('"raw/{date}.csv"', '"ftp://b/{date}.csv"', "source.path: ftp:// is not read; expected s3://, gs:// or az://, or a path on this machine (found 'ftp://b/{date}.csv')"),
        ('neighbours = [1, 0]', 'table = "iceberg"', 'source: table = "iceberg" needs one table as path, without {date}, * and ?'),
        ('"raw/{date}.csv"', '"s3://{date}.csv"', "source.path: expected s3://bucket/folder/file, with the name of the bucket in full (found 's3://{date}.csv')"),
        ('"raw/{date}.csv"', '"gs://b*/{date}.csv"', "source.path: expected gs://bucket/folder/file, with the name of the bucket in full (found 'gs://b*/{date}.csv')"),
        ('"raw/{date}.csv"', '"az://b//{date}.csv"', "source.path: a part of the URL is empty, . or ..; write the key as the store lists it (found 'az://b//{date}.csv')"),
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


# The smallest dataset file, with other tables in the place of `[source]`; and what each gets.
@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ('compression = "zip"', "source.compression: input should be 'none', 'gzip', 'bz2', 'zstd' or 'xz' (found 'zip')"),
        ('table = "hudi"', "source.table: input should be 'delta' or 'iceberg' (found 'hudi')"),
        ('table = "delta"\nformat = "csv"', 'source: the files of a table = "delta" are Parquet; leave format out'),
        ("hive = 1", "source.hive: input should be a valid boolean (found 1)"),
        ('format = "parquet"\ncompression = "gzip"', 'source: format = "parquet" is packed inside; leave compression out'),
        ('format = "arrow"\ncompression = "zstd"', 'source: format = "arrow" is packed inside; leave compression out'),
        ('format = "ndjson"\n[source.csv]\nnull_values = ["NULL"]', 'source: [source.csv] needs format = "csv", found "ndjson"'),
        ('[source.csv]\nseparator = "::"', 'source.csv: a separator of several characters needs quote_char = "", since quotes are plain text then'),
        ('[source.csv]\nseparator = "whitespace"', 'source.csv: separator = "whitespace" needs quote_char = "", since quotes are plain text then'),
        ('[source.csv]\nseparator = "\\n"', "source.csv: separator and quote_char hold no line ends"),
        ('[source.csv]\nquote_char = "\\r"', "source.csv: separator and quote_char hold no line ends"),
        ('[source.csv]\nquote_char = ","', "source.csv: separator and quote_char have to differ"),
        ('[source.csv]\nhas_header = false\ntyped_header = true\ncolumns = ["u"]', "source.csv: typed_header needs a header"),
        ('[source.csv]\ncomment = ""', "source.csv.comment: string should have at least 1 character (found '')"),
        ('[source.csv]\ncomment = "#\\n"', "source.csv.comment: expected the text that a comment line begins with (found '#\\n')"),
        ('format = "fixed_width"', 'source: format = "fixed_width" needs [source.fixed_width] columns = { name = [first, last], ... }'),
        ("[source.fixed_width]\ncolumns = { u = [1, 2] }", 'source: [source.fixed_width] needs format = "fixed_width"'),
        ('format = "fixed_width"\n[source.fixed_width]\ncolumns = {}', "source.fixed_width.columns: table should have at least 1 item, not 0"),
        ('format = "fixed_width"\n[source.fixed_width]\ncolumns = { u = [0, 2] }', "source.fixed_width.columns: column 'u' goes from 0 to 2; expected 1 <= first <= last"),
        ('format = "fixed_width"\n[source.fixed_width]\ncolumns = { u = [3, 2] }', "source.fixed_width.columns: column 'u' goes from 3 to 2; expected 1 <= first <= last"),
        ('format = "fixed_width"\n[source.fixed_width]\ncolumns = { u = [1, 2, 3] }', "source.fixed_width.columns.u: list should have at most 2 items, not 3"),
        ('format = "fixed_width"\n[source.fixed_width]\ncolumns = { u = 1 }', "source.fixed_width.columns.u: input should be a list (found 1)"),
        ('format = "fixed_width"\n[source.fixed_width]\nseparator = ","\ncolumns = { u = [1, 2] }', "unknown key 'separator' in [source.fixed_width]: known are 'null_values', 'comment', 'encoding', 'columns', 'has_header'"),
        ('format = "regex"', 'source: format = "regex" needs [source.regex] pattern = "..."'),
        ('[source.regex]\npattern = "(?P<u>.)"', 'source: [source.regex] needs format = "regex"'),
        ('format = "regex"\n[source.regex]\npattern = "(.)"', "source.regex.pattern: expected named groups such as (?P<user>[^ ]+), which become the columns (found '(.)')"),
        ('format = "regex"\n[source.regex]\npattern = "(?P<u>"', "source.regex.pattern: not a regular expression: missing ), unterminated subpattern at position 0 (found '(?P<u>')"),
        ('[source.json]\nrecords = "events"', 'source: [source.json] needs format = "json"'),
        ('format = "json"\n[source.json]\nrecords = "data..events"', "source.json.records: expected keys with points between, such as data.events (found 'data..events')"),
        ('format = "json"\n[source.json]\nrecord = "events"', "unknown key 'record' in [source.json]: did you mean 'records'?"),
        ('explode = "events"', "source.explode: input should be a table (found 'events')"),
        ('[source.explode]\nseparator = " "', "'source.explode.column' is missing; docs/dataset-file.md explains it"),
        ('[source.explode]\ncolumn = ""', "source.explode.column: string should have at least 1 character (found '')"),
        ('[source.explode]\ncolumn = "e"\nseparator = ""', "source.explode.separator: string should have at least 1 character (found '')"),
        ('[source.explode]\ncolumn = "e"\npattern = "[0-9]+"', "source.explode.pattern: expected named groups such as (?P<user>[^ ]+), which become the columns (found '[0-9]+')"),
        ('[source.explode]\ncolumn = "e"\npattern = "["', "source.explode.pattern: not a regular expression: unterminated character set at position 0 (found '[')"),
        ('[source.explode]\ncolumn = "e"\nfield = "x"', "unknown key 'field' in [source.explode]: known are 'column', 'separator', 'pattern'"),
    ],
)  # fmt: skip
def test_wrong_settings_of_a_format(tmp_path: Path, source: str, sentence: str) -> None:
    assert refusal(tmp_path, 'path = "raw.csv"\n', f'path = "raw.csv"\n{source}\n', text=SHORT) == sentence


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('from = "u"', 'from = "u", strip = 1', "columns.user_id.strip: input should be a valid boolean (found 1)"),
        ('from = "u"', 'from = "u", null_values = "-"', "columns.user_id.null_values: input should be a list (found '-')"),
        ('from = "u"', 'from = "u", null_values = [-1]', "columns.user_id.null_values.0: input should be a valid string (found -1)"),
        ('unit = "s"', 'unit = "s", time_from = "clock"', "columns.timestamp: time_from needs from, the column with the date, and the format of both with a blank between"),
        ('from = "t", unit = "s"', 'sql = "t", format = "%F %T", timezone = "UTC", time_from = "clock"', "columns.timestamp: time_from needs from, the column with the date, and the format of both with a blank between"),
        ('unit = "s"', 'unit = "s", ambiguous = "latest"', "columns.timestamp: ambiguous and nonexistent are about local times; say timezone"),
        ('unit = "s"', 'format = "%F %T%z", nonexistent = "forward"', "columns.timestamp: ambiguous and nonexistent are about local times; say timezone"),
        ('unit = "s"', 'format = "%F %T", timezone = "UTC", ambiguous = "first"', "columns.timestamp.ambiguous: input should be 'refuse', 'earliest' or 'latest' (found 'first')"),
        ('unit = "s"', 'format = "%F %T", timezone = "UTC", nonexistent = "back"', "columns.timestamp.nonexistent: input should be 'refuse' or 'forward' (found 'back')"),
        ('value = "view"', 'from = "e", rename = { "1" = "vew" }', "[columns] action is renamed to 'vew', which [actions] names lacks: did you mean 'view'?"),
        ('value = "view"', 'from = "e", rename = { "1" = 1 }', "columns.action.rename.1: input should be a valid string (found 1)"),
        ('value = "view"', 'from = "e", rename = { "" = "view" }', "columns.action: an empty cell is missing and cannot be renamed; use sql, such as COALESCE(event, 'view')"),
        ('value = "view"', 'value = "view", rename = { "1" = "view" }', "columns.action: value is the same for every row; leave rename, strip and null_values out"),
        ('value = "view"', 'value = "view", null_values = ["-"]', "columns.action: value is the same for every row; leave rename, strip and null_values out"),
        ('name = "tiny"', 'name = "tiny"\npreset = "taobo"', "there is no preset 'taobo'; did you mean 'taobao'?"),
        ('name = "tiny"', 'name = "tiny"\npreset = ["taobao"]', "preset: input should be a valid string"),
    ],
)  # fmt: skip
def test_wrong_conversions(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert refusal(tmp_path, old, new, text=SHORT) == sentence


def test_every_key_of_the_other_formats_is_read(tmp_path: Path) -> None:
    more = """\
hive = true
compression = "xz"
format = "regex"
[source.regex]
pattern = '(?P<u>[0-9]+) (?P<list>.*)'
null_values = ["-"]
comment = "#"
encoding = "utf-16"
[source.explode]
column = "list"
separator = " "
pattern = "(?P<i>.+)-(?P<e>[01])"
"""
    text = SHORT.replace('path = "raw.csv"\n', 'path = "raw.csv"\n' + more).replace(
        'value = "view"', 'from = "list.e", strip = true, null_values = ["x"], rename = { "1" = "view" }'
    )
    dataset = load_dataset(write(tmp_path, text))
    source, action = dataset.source, dataset.columns.action
    assert (source.hive, source.compression, source.format) == (True, "xz", "regex")
    assert source.regex is not None
    assert (source.regex.null_values, source.regex.comment, source.regex.encoding) == (("-",), "#", "utf-16")
    assert source.explode is not None
    assert (source.explode.column, source.explode.separator) == ("list", " ")
    assert (action.strip, action.null_values, action.rename) == (True, ("x",), {"1": "view"})


def test_fixed_places_and_the_place_in_a_document_are_read(tmp_path: Path) -> None:
    fixed = 'path = "raw.txt"\nformat = "fixed_width"\n[source.fixed_width]\ncolumns = { u = [1, 4], t = [5, 5] }'
    dataset = load_dataset(write(tmp_path, SHORT.replace('path = "raw.csv"', fixed)))
    assert dataset.source.fixed_width is not None
    assert dataset.source.fixed_width.columns == {"u": (1, 4), "t": (5, 5)}
    nested = 'path = "raw.json"\nformat = "json"\n[source.json]\nrecords = "data.events"'
    assert (
        load_dataset(write(tmp_path, SHORT.replace('path = "raw.csv"', nested))).source.json_.records == "data.events"
    )


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

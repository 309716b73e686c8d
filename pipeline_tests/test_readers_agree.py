"""The readers and the plain Python that judges them cut every file alike, however odd or damaged it is."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipeline.checks.raw import Wanted, read_records
from pipeline.contracts import PipelineError
from pipeline.sources import find_files, read_blocks
from pipeline_tests.raw_files import dataset
from pipeline_tests.two_readings import Records, agree

STEPS = st.sampled_from([1, 3, 8, 30, 1 << 20])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("agree")


def agree_on(folder: Path, name: str, content: bytes, data: st.DataObject, **source: Any) -> Records:
    """Writes a file and demands that both read it alike, in steps of any size."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    declared = dataset(folder, source.pop("path", name), **source)
    return agree(declared, block_bytes=data.draw(STEPS, "reader"), small_steps=data.draw(STEPS, "plain Python"))


def stops(read: Callable[[], object]) -> bool:
    try:
        read()
    except PipelineError:
        return True
    return False


def agree_or_both_stop(folder: Path, name: str, content: bytes, data: st.DataObject, **source: Any) -> None:
    """The same, but where one stops with a sentence, the other does so too."""
    (folder / name).write_bytes(content)
    declared = dataset(folder, name, **source)
    (file,) = find_files(declared, None)
    reader = stops(lambda: list(read_blocks(file, declared, block_bytes=data.draw(STEPS, "reader"))))
    plain = stops(lambda: read_records(file.path, dataset=declared, wanted=Wanted(())))
    assert reader == plain, f"reader stops: {reader}, plain Python stops: {plain}"
    if not reader:
        agree_on(folder, name, content, data, **source)


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes as they are, or with something put in, taken out or cut off."""
    for _ in range(draw(st.sampled_from((0, 0, 1, 2)))):
        place = draw(st.integers(0, len(content)))
        width = draw(st.sampled_from((0, 1, 3)))
        put_in = draw(
            st.sampled_from([b"", b"\xff", b"\xc3", b'"', b"\n", b"\r", b"\x00", b"#", b"\xed\xa0\x80", b"\\"])
        )
        content = content[:place] + put_in + content[place + width :]
    return content[: draw(st.integers(0, len(content)))] if draw(st.integers(0, 9)) == 0 else content


def lines_of(cells: list[str], *, end: str = "\n") -> st.SearchStrategy[str]:
    """Lines put together of odd pieces."""
    line = st.lists(st.sampled_from(cells), max_size=7).map("".join)
    ends = st.sampled_from([end, end, end, "\r\n", "\n\n", "\r\r\n", ""])
    return st.lists(st.tuples(line, ends).map("".join), max_size=12).map("".join)


# --- text --------------------------------------------------------------------------------------------------------

ENCODINGS = ["utf-8", "utf-8", "utf-8", "latin-1", "utf-16", "utf-8-sig", "gb18030", "cp1252"]


@given(data=st.data())
@settings(max_examples=100)
def test_csv(folder: Path, data: st.DataObject) -> None:
    separator = data.draw(st.sampled_from([",", "\t", "|", "::", "||", "whitespace", "é"]))
    quote = "" if len(separator) > 1 else data.draw(st.sampled_from(['"', '"', "'", ""]))
    between = {"whitespace": " \t "}.get(separator, separator)
    pieces = [between, between, between[0], '"', "'", "a", "bé", "NULL", " ", "#", "\r", "1", "\t", '"x"', '"y\nz"']
    csv: dict[str, Any] = {"separator": separator, "quote_char": quote}
    csv["comment"] = data.draw(st.sampled_from([None, "#", "#", "a", "##", '"']))
    csv["null_values"] = data.draw(st.sampled_from([[], ["NULL"], ["a", "1 "]]))
    csv["typed_header"] = data.draw(st.booleans())
    if data.draw(st.integers(0, 3)) == 0:
        csv |= {"columns": ["p", "q", "r"]}
    before = ["", "#\n", "\n# no\n\r\n"] if csv["comment"] == "#" else ["", "\n\r\n"]
    header = data.draw(st.sampled_from(before)) + f"h{between}i:x{between}j\n"
    if data.draw(st.integers(0, 3)) == 0:
        csv |= {"columns": ["p", "q", "r"], "has_header": False, "typed_header": False}
    csv["encoding"] = data.draw(st.sampled_from(ENCODINGS))
    text = header.encode(csv["encoding"], "replace")
    body = data.draw(lines_of(pieces))
    codec = csv["encoding"].replace("utf-16", "utf-16-le").replace("-sig", "")
    text += data.draw(damaged(body.encode(codec, "replace")))
    agree_on(folder, "x.csv", text, data, csv=csv)


@given(data=st.data())
@settings(max_examples=60)
def test_fixed_width(folder: Path, data: st.DataObject) -> None:
    spans = data.draw(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 4)), min_size=1, max_size=3))
    fixed = {
        "columns": {f"c{n}": [first, first + more] for n, (first, more) in enumerate(spans)},
        "null_values": data.draw(st.sampled_from([[], ["-", "ab"]])),
        "comment": data.draw(st.sampled_from([None, "#", "  "])),
        "has_header": data.draw(st.booleans()),
        "encoding": data.draw(st.sampled_from(["utf-8", "latin-1", "gb18030"])),
    }
    body = data.draw(lines_of(["a", "b", "é", " ", "  ", "\t", "-", "#", "\u00a0", "\r", "123", "ab"]))
    text = data.draw(damaged(body.encode(fixed["encoding"])))
    agree_on(folder, "x.log", text, data, format="fixed_width", fixed_width=fixed)


PATTERNS = [
    r'(?P<host>\S+) "(?P<line>[^"]*)" (?P<size>\d+|-)',
    r"(?P<a>a*)(?P<b>b)?(?P<rest>.*)",
    r"(?P<x>a|ab)(?P<y>c|bcd)?(?P<z>d*)",
    r"(?:(?P<a>a)|(?P<b>b)|é)+",
    r"(?P<w>\w+)?[ \t]*(?P<rest>[^ ]*?) *",
    r"(?P<all>(?s:.*))",
    r"(?i)(?P<a>A+)(?P<b>.+)?$",
]


@given(data=st.data(), pattern=st.sampled_from(PATTERNS))
@settings(max_examples=100)
def test_regex(folder: Path, data: st.DataObject, pattern: str) -> None:
    regex = {
        "pattern": pattern,
        "null_values": data.draw(st.sampled_from([[], ["-", "a"]])),
        "comment": data.draw(st.sampled_from([None, "#"])),
        "encoding": data.draw(st.sampled_from(["utf-8", "latin-1", "utf-16-le"])),
    }
    body = data.draw(
        lines_of(["a", "ab", "b", "cd", "é", " ", '"', '"GET"', "-", "#", "12", "\t", "\r", "\x85", "\x0b"])
    )
    text = data.draw(damaged(body.encode(regex["encoding"], "replace")))
    agree_on(folder, "x.log", text, data, format="regex", regex=regex)


# --- JSON --------------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["u", "u", "i", "e", "a.b", "u.i", "", "é", "\\u0075", "u\\u002ei", "x", "\\n"])
SCALARS = [
    "null", "true", "false", "0", "-0", "7", "12345678901234567890", "1.50", "1E5", "-1.0e-7", '""', '"a"', '"u.i"', '"é"',
    '"\\u00e9"', '"\\ud83d\\ude00"', '"\\/\\t"', '"[1, {\\"i\\": 2}]"', '"[]"', '" "', '"a b  c"', "{}", "[]",
]  # fmt: skip
WRONG = ["01", "+1", ".5", "1.", "NaN", "Infinity", "nul", "'a'", '"\\ud800"', '"\\x"', '"\t"', "[1,]", "{,}", "", '"']


def json_texts(*, wrong: bool) -> st.SearchStrategy[str]:
    blank = st.sampled_from(["", "", "", " ", "\t", " \r"])
    scalar = st.sampled_from(SCALARS) | (st.sampled_from(WRONG) if wrong else st.sampled_from(SCALARS))

    def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        member = st.tuples(KEYS, blank, inner).map(lambda part: f'"{part[0]}"{part[1]}:{part[1]}{part[2]}')
        lists = st.lists(inner, max_size=3).map(lambda parts: "[" + ",".join(parts) + "]")
        objects = st.lists(member, max_size=4).map(lambda parts: "{" + " ,".join(parts) + "}")
        return lists | objects | objects

    return st.recursive(scalar, nested, max_leaves=12)


def json_records(*, wrong: bool = True) -> st.SearchStrategy[list[str]]:
    member = st.tuples(KEYS, json_texts(wrong=False) | json_texts(wrong=wrong)).map(lambda m: f'"{m[0]}": {m[1]}')
    record = st.lists(member, max_size=5).map(lambda parts: "{" + ", ".join(parts) + "}")
    return st.lists(record | record | record | json_texts(wrong=wrong), max_size=8)


NAMES = ["u", "u.i", "a.b", "i", "u.u.i", "e.i", "x.u.a.b", "\u00e9"]


@st.composite
def json_columns(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "user_id": {"from": draw(st.sampled_from(NAMES)), "type": "string"},
        "item_id": {"from": draw(st.sampled_from(NAMES)), "type": "string"},
    }


@given(data=st.data())
@settings(max_examples=100)
def test_ndjson(folder: Path, data: st.DataObject) -> None:
    ends = st.sampled_from(["\n", "\n", "\r\n", "\n\n", " \n", "\n \t\n"])
    body = "".join(record + data.draw(ends) for record in data.draw(json_records()))
    text = data.draw(damaged(body.encode()))
    agree_on(folder, "x.ndjson", text, data, format="ndjson", columns=data.draw(json_columns()))


def document(data: st.DataObject, records: list[str]) -> tuple[bytes, dict[str, Any]]:
    """A document of some records, and the [source.json] that goes with it."""
    comma = st.sampled_from([",", ",\n", " ,\r\n\t"])
    text = "".join(record + data.draw(comma) for record in records)
    text = "[" + text.rstrip(", \r\n\t") + "]"
    depth = data.draw(st.integers(0, 2))
    for key in ("k", "m")[:depth]:
        before, behind = data.draw(st.sampled_from([("", ""), ('"z": [1, {"k": []}], ', ""), ("\n", ', "z": "]"')]))
        text = f'{{{before}"{key}": {text}{behind}}}'
    return text.encode(), {"records": ".".join(("m", "k")[2 - depth :])} if depth else {}


@given(data=st.data())
@settings(max_examples=100)
def test_json_documents(folder: Path, data: st.DataObject) -> None:
    text, where = document(data, data.draw(json_records(wrong=data.draw(st.booleans()))))
    text = data.draw(damaged(text))
    columns = data.draw(json_columns())
    agree_or_both_stop(folder, "x.json", text, data, format="json", json=where, columns=columns)


# --- explode -----------------------------------------------------------------------------------------------------


@st.composite
def explodes(draw: st.DrawFn, *columns: str) -> dict[str, Any]:
    found: dict[str, Any] = {"column": draw(st.sampled_from(columns))}
    if draw(st.booleans()):
        found["separator"] = draw(st.sampled_from([" ", "::", "a"]))
    if draw(st.integers(0, 2)) == 0:
        found["pattern"] = draw(
            st.sampled_from([r"(?P<i>[a-z]+)(?P<n>\d*)", r"(?P<i>.*)", r"(?P<a>N[0-9]+)-(?P<b>[01])?"])
        )
    return found


@given(data=st.data())
@settings(max_examples=100)
def test_exploded_text(folder: Path, data: st.DataObject) -> None:
    explode = data.draw(explodes("e"))
    cell = st.sampled_from(
        [
            "",
            "a b",
            " a1  b ",
            "N1-0 N2- x",
            "[1, 2]",
            '[{"i": 1, "x": {"y": 2}}, "s"]',
            "[",
            "[]",
            "{}",
            "5",
            "NULL",
            "é::b",
            "[null]",
        ]
    )
    rows = data.draw(st.lists(st.lists(cell, min_size=1, max_size=3), max_size=6))
    body = data.draw(damaged("\n".join("|".join(row) for row in rows).encode()))
    csv = {"separator": "|", "quote_char": "", "null_values": ["NULL", "a"]}
    columns = {"item_id": {"from": data.draw(st.sampled_from(["e", "e.i", "e.x.y"])), "type": "string"}}
    agree_on(folder, "x.csv", b"u|e\n" + body, data, csv=csv, explode=explode, columns=columns)


@pytest.mark.parametrize("kind", ["ndjson", "json"])
@given(data=st.data())
@settings(max_examples=100)
def test_exploded_json(folder: Path, kind: str, data: st.DataObject) -> None:
    explode = data.draw(explodes("e", "u", "u.i", "x.e"))
    column = explode["column"]
    has_column = '{"e": [], "u": {"i": []}, "x": {"e": [0]}}'
    name = data.draw(st.sampled_from([column, f"{column}.i", f"{column}.u.i", f"{column}.a.b", "u", "a.b"]))
    source = {"format": kind, "explode": explode, "columns": {"item_id": {"from": name, "type": "string"}}}
    records = [has_column, *data.draw(json_records(wrong=kind == "ndjson"))]
    text, where = ("\n".join(records).encode(), {}) if kind == "ndjson" else document(data, records)
    try:
        agree_on(folder, "x", text, data, **({"json": where} if where else {}), **source)
    except PipelineError as error:  # a name that could mean both is refused
        assume("both the records and the elements" not in str(error))
        raise


# --- Parquet and Arrow -------------------------------------------------------------------------------------------

DAY_US = 86_400_000_000
ELEMENTS = pa.struct([("i", pa.int64()), ("x", pa.struct([("y", pa.string())]))])
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "unsigned": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "float": (pa.float64(), st.floats()),
    "narrow": (pa.float32(), st.floats(width=32)),
    "yes": (pa.bool_(), st.booleans()),
    "text": (pa.string(), st.text("aé \n", max_size=3)),
    "large text": (pa.large_string(), st.text("aé\x00", max_size=3)),
    "view": (pa.string_view(), st.text("ab", max_size=20)),
    "word": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "b", ""])),
    "coded": (pa.dictionary(pa.int32(), pa.int64()), st.sampled_from([7, 2**62])),
    "exact": (pa.decimal128(20, 3), st.decimals(-(10**9), 10**9, places=3)),
    "second": (pa.timestamp("s"), st.integers(-(10**10), 10**11)),
    "us": (pa.timestamp("us", "UTC"), st.integers(-(10**16), 10**17)),
    "ns": (pa.timestamp("ns", "Asia/Tokyo"), st.integers(-(2**63), 2**63 - 1)),
    "day": (pa.date32(), st.integers(-700_000, 2_000_000)),
    "ms day": (pa.date64(), st.integers(-700_000, 2_000_000).map(lambda day: day * 86_400_000)),
    "nested": (ELEMENTS, st.none()),
    "a.b": (pa.int32(), st.integers(0, 9)),
    "a": (pa.struct([("b", pa.int32()), ("c.d", pa.int32())]), st.none()),
}  # fmt: skip
OBJECT = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(0, 9),
        "x": st.none() | st.fixed_dictionaries({"y": st.none() | st.text("ab", max_size=2)}),
    }
)
A = st.fixed_dictionaries({"b": st.none() | st.integers(0, 9), "c.d": st.integers(0, 9)})
VALUES = {name: values for name, (_, values) in KINDS.items()} | {"nested": OBJECT, "a": A}


@st.composite
def tables(draw: st.DrawFn, always: dict[str, pa.Array] | None = None) -> pa.Table:
    names = draw(st.lists(st.sampled_from(list(KINDS)), unique=True, min_size=1, max_size=5))
    rows = draw(st.integers(0, 7))
    columns = {}
    for name in names:
        cells = draw(st.lists(st.none() | VALUES[name], min_size=rows, max_size=rows))
        kind = KINDS[name][0]
        whole = pa.types.is_temporal(kind)
        columns[name] = pa.array(cells, pa.int64() if whole else kind)
        if whole:
            columns[name] = (
                columns[name].cast(pa.int32()).cast(kind) if kind == pa.date32() else columns[name].cast(kind)
            )
    return pa.table(columns)


def write_table(path: Path, table: pa.Table, kind: str, group: int) -> None:
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=group)
        return
    make = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    with pa.OSFile(str(path), "wb") as sink, make(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=group)


@pytest.mark.parametrize("kind", ["parquet", "file", "stream"])
@given(data=st.data())
@settings(max_examples=60)
def test_tables(folder: Path, kind: str, data: st.DataObject) -> None:
    table = data.draw(tables())
    paths = {"nested": ["nested.i", "nested.x.y"], "a": ["a.b", "a.c.d"]}
    declared = [path for name in table.column_names for path in paths.get(name, [name])]
    columns = {"item_id": {"from": data.draw(st.sampled_from(declared)), "type": "string"}}
    name = "x.parquet" if kind == "parquet" else "x.arrow"
    write_table(folder / name, table, kind, data.draw(st.sampled_from([1, 2, 100])))
    agree(dataset(folder, name, columns=columns), block_bytes=data.draw(STEPS))


LISTS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "objects": (pa.list_(ELEMENTS), st.lists(st.none() | OBJECT, max_size=3)),
    "numbers": (pa.large_list(pa.int64()), st.lists(st.none() | st.integers(0, 9), max_size=3)),
    "texts": (pa.list_(pa.string()), st.lists(st.none() | st.sampled_from(["a1", "", "N1-0"]), max_size=3)),
    "pairs": (pa.list_(pa.int32(), 2), st.lists(st.integers(0, 9), min_size=2, max_size=2)),
    "text": (pa.string(), st.sampled_from(["a b", "", " ", '[{"i": 1.0, "x": {"y": "a"}}, "b", true]', "[", "[]", "N1-0 N2-"])),
    "word": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a b", "", "c"])),
    "no list": (pa.int64(), st.integers(0, 9)),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["parquet", "file"])
@given(data=st.data(), which=st.sampled_from(list(LISTS)), nested=st.booleans())
@settings(max_examples=60)
def test_exploded_tables(folder: Path, kind: str, data: st.DataObject, which: str, nested: bool) -> None:
    list_type, lists = LISTS[which]
    cells = data.draw(st.lists(st.none() | lists, max_size=6))
    column = pa.array(cells, list_type)
    if nested:
        whole = data.draw(st.lists(st.booleans(), min_size=len(cells), max_size=len(cells)))
        column = pa.StructArray.from_arrays(
            [column, column], ["e", "f"], mask=pa.array([not one for one in whole], pa.bool_())
        )
    table = pa.table({"x" if nested else "e": column, "u": pa.array(range(len(cells)), pa.int64())})
    explode = data.draw(explodes("x.e" if nested else "e"))
    if which not in ("text", "texts", "word"):
        explode.pop("pattern", None)
    item = data.draw(st.sampled_from(["", ".i", ".x.y"]))
    columns = {"item_id": {"from": f"{explode['column']}{item}", "type": "string"}}
    name = "x.parquet" if kind == "parquet" else "x.arrow"
    write_table(folder / name, table, kind, data.draw(st.sampled_from([1, 2, 100])))
    agree(dataset(folder, name, columns=columns, explode=explode), block_bytes=data.draw(STEPS))


# --- folders and compression -------------------------------------------------------------------------------------

PACKED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gz": ("gzip", gzip.compress),
    "bz2": ("bz2", bz2.compress),
    "xz": ("xz", lzma.compress),
    "zst": ("zstd", lambda text: pa.compress(text, "zstd", asbytes=True)),
}


@given(data=st.data(), packed=st.sampled_from(list(PACKED)), declared=st.booleans())
@settings(max_examples=40)
def test_packed_files(folder: Path, data: st.DataObject, packed: str, declared: bool) -> None:
    compression, pack = PACKED[packed]
    cut = data.draw(st.integers(0, 40))
    text = b'u,i\n1,"a\nb"\n' + data.draw(lines_of(["1", ",", '"', "x"])).encode() * 9
    pieces = [pack(text[:cut])] * (cut > 0) + [pack(text[cut:])]
    content = b"".join(pieces)
    source: dict[str, Any] = {"compression": compression} if declared else {}
    agree_on(folder, "x.csv" if declared else f"x.csv.{packed}", content, data, **source)
    agree_on(folder, f"y.csv.{packed}", text, data, compression="none")


VALUES_OF_FOLDERS = ["1", "a%20b", "a=b", "__HIVE_DEFAULT_PARTITION__", "%C3%A9", "+", "é", "2020-01-01"]


@pytest.mark.parametrize("kind", ["csv", "ndjson", "json", "parquet"])
@given(data=st.data())
@settings(max_examples=25)
def test_folders(tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject) -> None:
    keys = data.draw(st.lists(st.sampled_from(["day", "u", "i", "k"]), unique=True, max_size=3))
    folders = [f"{key}={data.draw(st.sampled_from(VALUES_OF_FOLDERS))}" for key in keys]
    folder, name = tmp_path_factory.mktemp("out=side"), "/".join(["raw", *folders, "plain", f"x.{kind}"])
    columns = {"item_id": {"from": data.draw(st.sampled_from(["a.b", "i", *keys])), "type": "string"}}
    source = {"path": "raw/**/x.*", "hive": True, "format": kind, "columns": columns}
    if kind == "parquet":
        (folder / name).parent.mkdir(parents=True)
        pq.write_table(pa.table({"u": [1, None], "a": [{"b": 5}, None]}), folder / name)
        content = (folder / name).read_bytes()
    elif kind == "csv":
        content = b"u,x\n1,\n2\n,3\n"
    else:
        records = data.draw(json_records(wrong=kind == "ndjson"))
        content = "\n".join(records).encode() if kind == "ndjson" else document(data, records)[0]
        assume(kind == "ndjson" or content.startswith(b"["))
    agree_on(folder, name, content, data, **source)

"""NDJSON: one JSON object a line; cells are exact texts, and typed by the whole file for `sql`."""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import polars as pl

from pipeline.config import Dataset, RawColumn
from pipeline.contracts import PipelineError
from pipeline.sources.block import BlockReader, RawBlock, RawFile, text_block
from pipeline.sources.stream import ByteStream
from pipeline.sources.text import HeldText

INT64 = range(-(2**63), 2**63)
EXACT_IN_FLOAT = range(-(2**53), 2**53 + 1)
MAX_NESTING = 100  # where Python gives up depends on who calls it; the fate of a line must not
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class _Integer(str):
    """An integer as it is written."""

    __slots__ = ()


class _Decimal(str):
    """A number with a fraction or an exponent, as it is written."""

    __slots__ = ()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


DECODER = json.JSONDecoder(parse_int=_Integer, parse_float=_Decimal, parse_constant=_no_constant)


class NdjsonReader(BlockReader):
    """The blocks of an NDJSON file; the file is read twice, first for its columns, then for its rows.

    Columns are the keys of all objects of the file, in the order in which they are first seen, in every block.
    Cells are String: numbers as they are written, `true` and `false`, texts as they are, nested values as compact
    JSON, null where null or missing. A column that an `sql` expression uses is also typed, for `sql` alone, by all of
    its values in the file: integers within int64 -> Int64; numbers that float64 holds (integers up to 2^53) -> Float64;
    booleans -> Boolean; all else String. A line that is no JSON object in UTF-8, or one that is nested deeper than
    `MAX_NESTING`, is malformed; blank lines are no records.
    A complete last line without newline is counted as `last_record_without_newline`.
    """

    def __init__(self, *, file: RawFile, dataset: Dataset, block_bytes: int) -> None:
        super().__init__(file=file, block_bytes=block_bytes)
        self._in_sql = _columns_in_sql(dataset)

    def _blocks(self) -> Iterator[RawBlock]:
        schema, checksum = self._survey()
        with ByteStream(self.file) as stream:
            line, delivered = 1, False
            for text, newline_added in self._texts(stream):
                found = [
                    (number, start, end)
                    for number, start, end in _lines(text, first_line=line)
                    if text[start:end].strip(b" \t\r\n")
                ]
                records = [_parsed(text[start:end]) for _, start, end in found]
                if newline_added and records and found[-1][2] == len(text) and records[-1] is not None:
                    self._warn("last_record_without_newline", 1)
                line += text.count(b"\n")
                if records:
                    delivered = True
                    yield _block(text, found, records, schema)
            if not delivered:
                yield _block(b"", [], [], schema)
            self._checksum = stream.checksum()
        if self._checksum != checksum:
            raise PipelineError(
                f"{self.file.name}: the file changed while it was read; run the day again when the file is complete"
            )

    def _survey(self) -> tuple[dict[str, pl.DataType], str]:
        """The columns of the whole file with their types in `sql`, and its checksum."""
        kinds: dict[str, set[str]] = {}
        with ByteStream(self.file) as stream:
            for text, _ in self._texts(stream):
                for _, start, end in _lines(text, first_line=1):
                    for key, value in (_parsed(text[start:end]) or {}).items():
                        seen = kinds.setdefault(key, set())
                        if key in self._in_sql:
                            seen.add(_kind(value))
            checksum = stream.checksum()
        types = {key: _type(seen) if key in self._in_sql else pl.String() for key, seen in kinds.items()}
        return types, checksum

    def _texts(self, stream: ByteStream) -> Iterator[tuple[bytes, bool]]:
        """Runs of whole lines, and whether the last newline is not in the file."""
        text = HeldText(stream, encoding="utf-8", block_bytes=self.block_bytes)
        text.more()
        text.drop_mark()
        while True:
            size = text.held.rfind(b"\n") + 1
            if size:
                yield text.held[:size], text.newline_added
                text.drop(size)
            if text.ended:
                return
            text.more()


def _lines(text: bytes, *, first_line: int) -> Iterator[tuple[int, int, int]]:
    """Number, first byte and byte behind each line."""
    start, number = 0, first_line
    while end := text.find(b"\n", start) + 1:
        yield number, start, end
        start, number = end, number + 1


def _parsed(line: bytes) -> dict[str, Any] | None:
    """The object that stands in a line; None when there is none, or one that is no text."""
    try:
        found = DECODER.decode(line.decode())
        if not isinstance(found, dict) or _too_deep(found, line):
            return None
        if SURROGATE.search(line):
            _compact(found).encode()
    except (ValueError, RecursionError):  # UnicodeError is a ValueError
        return None
    return found


def _too_deep(found: dict[str, Any], line: bytes) -> bool:
    if line.count(b"[") + line.count(b"{") <= MAX_NESTING:
        return False
    level: list[Any] = [found]
    for _ in range(MAX_NESTING):
        nested = [part.values() if isinstance(part, dict) else part for part in level]
        level = [value for values in nested for value in values if isinstance(value, dict | list)]
    return bool(level)


def _kind(value: object) -> str:
    """What a value says about the type of its column; '' when nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, _Integer) and len(value) < 25:
        number = int(value)
        if number in INT64:
            return "integer" if number in EXACT_IN_FLOAT else "long integer"
    if isinstance(value, _Decimal) and np.isfinite(float(value)):
        return "decimal"
    return "text"


def _type(kinds: set[str]) -> pl.DataType:
    seen = kinds - {""}
    if not seen:
        return pl.String()
    if seen <= {"integer", "long integer"}:
        return pl.Int64()
    if seen <= {"integer", "decimal"}:
        return pl.Float64()
    return pl.Boolean() if seen == {"boolean"} else pl.String()


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return str(value)
    return _compact(value)


def _compact(value: object) -> str:
    """A value as JSON without blanks, its numbers as they are written."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_compact(key)}:{_compact(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_compact(item) for item in value) + "]"
    if isinstance(value, _Integer | _Decimal):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def _block(
    text: bytes,
    lines: list[tuple[int, int, int]],
    records: list[dict[str, Any] | None],
    schema: dict[str, pl.DataType],
) -> RawBlock:
    columns, typed = [], []
    for name, dtype in schema.items():
        values = [None if record is None else record.get(name) for record in records]
        columns.append(pl.Series(name, [_text(value) for value in values], dtype=pl.String))
        if dtype == pl.Boolean:
            typed.append(pl.Series(name, values, dtype=dtype))
        elif dtype != pl.String:
            number = int if dtype == pl.Int64 else float
            typed.append(pl.Series(name, [None if value is None else number(value) for value in values], dtype=dtype))
    frame = pl.DataFrame(columns or None, height=len(records))
    frame.columns = list(schema)  # polars gives a column without a name one of its own
    return text_block(
        frame=frame,
        line=pl.Series("line", [number for number, _, _ in lines], dtype=pl.Int64),
        malformed=pl.Series("malformed", [record is None for record in records], dtype=pl.Boolean),
        text=text,
        start=[start for _, start, _ in lines],
        end=[end for _, _, end in lines],
        typed=typed,
    )


def _columns_in_sql(dataset: Dataset) -> frozenset[str]:
    """The raw columns that expressions of the dataset file use."""
    declared: dict[str, RawColumn] = {
        **{name: getattr(dataset.columns, name) for name in type(dataset.columns).model_fields},
        **dataset.extra,
    }
    found: set[str] = set()
    for name, column in declared.items():
        if column.sql is None:
            continue
        try:
            found.update(pl.sql_expr(column.sql).meta.root_names())
        except pl.exceptions.PolarsError as error:
            raise PipelineError(f"column '{name}': sql cannot be read ({error}); mend the expression") from None
    return frozenset(found)

"""Counts the records of a raw file from its bytes, and cuts out a few of them."""

import bisect
import codecs
import contextlib
import csv
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pipeline.checks.raw.parquet_cells import Cells, read_parquet
from pipeline.checks.raw.stored import BLOCK_BYTES, Hashed, Utf8, unpacked
from pipeline.config import Csv

MAX_NESTING = 100  # of a JSON line: far below where Python gives up, which depends on who calls it
FORMATS = {"csv": "csv", "tsv": "csv", "txt": "csv", "parquet": "parquet", "pq": "parquet"}


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record as plain Python reads it.

    Attributes:
        ordinal: Which record of the file, from 0.
        line: The line on which it starts, from 1; None in Parquet.
        cells: Raw column -> value, None where it is missing; None when the record cannot be cut into cells.
    """

    ordinal: int
    line: int | None
    cells: Cells | None


@dataclass
class Reading:
    """What a pass over a file found.

    Attributes:
        records: How many there are.
        sha256: Of the bytes on disk.
        found: The wanted ones, by ordinal, in file order.
    """

    records: int = 0
    sha256: str = ""
    found: dict[int, RawRecord] = field(default_factory=dict)


def raw_format(name: str, declared: str | None) -> str:
    """The format of a raw file, as declared or by its extension."""
    if declared is not None:
        return declared
    parts = name.lower().rsplit("/", 1)[-1].split(".")
    if parts[-1] in ("gz", "bz2", "zst"):
        parts.pop()
    return FORMATS.get(parts[-1], "ndjson")


@dataclass(frozen=True)
class Wanted:
    """Which records are to be cut out, and what of them.

    Attributes:
        ordinals: By position, from 0.
        lines: By the line on which they start, from 1; not in Parquet.
        columns: The raw columns to give; None for all.
        integers: Columns of Parquet of which a float that stands for several integers is given as NaN.
    """

    ordinals: Collection[int]
    lines: Collection[int] = ()
    columns: Collection[str] | None = None
    integers: Collection[str] = ()

    def holds(self, ordinal: int, line: int) -> bool:
        """Whether a record is wanted."""
        return ordinal in self.ordinals or line in self.lines

    def only(self, cells: Cells) -> Cells:
        """The cells to give."""
        return cells if self.columns is None else {name: cells[name] for name in self.columns if name in cells}


def read_records(path: Path, *, declared_format: str | None, csv_settings: Csv, wanted: Wanted) -> Reading:
    """Counts the records of a file and reads the wanted ones.

    Args:
        path: The raw file.
        declared_format: `[source] format`, None for by extension.
        csv_settings: `[source.csv]`.
        wanted: What to cut out.
    """
    kind = raw_format(path.name, declared_format)
    if kind == "parquet":
        rows, sha256, found = read_parquet(
            path, wanted=wanted.ordinals, columns=wanted.columns, integers=wanted.integers
        )
        return Reading(rows, sha256, {ordinal: RawRecord(ordinal, None, cells) for ordinal, cells in found})
    with path.open("rb") as stored:
        hashed = Hashed(stored)
        stream = unpacked(hashed, path.name)
        reading = _read_lines(stream, wanted) if kind == "ndjson" else _CsvCount(csv_settings, wanted).read(stream)
        while hashed.read(BLOCK_BYTES):
            pass
        reading.sha256 = hashed.digest.hexdigest()
    return reading


def _read_lines(stream: IO[bytes], wanted: Wanted) -> Reading:
    reading = Reading()
    for number, line in enumerate(stream, 1):
        text = line.strip(b" \t\r\n")
        if number == 1:
            text = text.removeprefix(codecs.BOM_UTF8)
        if not text:
            continue
        if wanted.holds(reading.records, number):
            cells = _json_cells(text)
            only = None if cells is None else wanted.only(cells)
            reading.found[reading.records] = RawRecord(reading.records, number, only)
        reading.records += 1
    return reading


def _json_cells(text: bytes) -> Cells | None:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        value = json.loads(text.decode("utf-8"), parse_int=_Number, parse_float=_Number, parse_constant=refuse)
        if not isinstance(value, dict) or _nesting(text, value) > MAX_NESTING:
            return None
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # fails on half a surrogate pair
    except (ValueError, RecursionError):
        return None
    return {key: _json_text(cell) for key, cell in value.items()}


def _nesting(text: bytes, value: object) -> int:
    """How many lists and objects stand within each other."""
    if text.count(b"[") + text.count(b"{") <= MAX_NESTING:
        return 1
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        part, depth = waiting.pop()
        deepest = max(deepest, depth)
        parts = part.values() if isinstance(part, dict) else part
        waiting += [(inner, depth + 1) for inner in parts if isinstance(inner, dict | list)]  # type: ignore[union-attr]
    return deepest


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def _json_text(cell: object) -> str | None:
    """A cell as text: texts as they are, all else as compact JSON."""
    return None if cell is None else str(cell) if isinstance(cell, str) else _compact(cell)


def _compact(part: object) -> str:
    if isinstance(part, dict):
        return "{" + ",".join(f"{_compact(key)}:{_compact(value)}" for key, value in part.items()) + "}"
    if isinstance(part, list):
        return "[" + ",".join(map(_compact, part)) + "]"
    return part if isinstance(part, _Number) else json.dumps(part, ensure_ascii=False)


class _CsvCount:
    """Counts CSV records: by newlines where a block holds no quote, by `csv.reader` where it does."""

    def __init__(self, settings: Csv, wanted: Wanted) -> None:
        self._settings, self._wanted = settings, wanted
        self._ordinals, self._lines = sorted(wanted.ordinals), sorted(wanted.lines)
        self._quote = settings.quote_char.encode()
        self._names: Sequence[str] | None = None if settings.has_header else settings.columns
        self._reading = Reading()
        self._line = 0
        self._tail = b""
        self._queue: Iterator[bytes] = iter(())

    def read(self, stream: IO[bytes]) -> Reading:
        encoding = codecs.lookup(self._settings.encoding).name
        self._stream = stream if encoding in ("utf-8", "utf-8-sig") else Utf8(stream, encoding)
        while len(self._tail) < len(codecs.BOM_UTF8) and (more := self._stream.read(BLOCK_BYTES)):
            self._tail += more
        self._tail = self._tail.removeprefix(codecs.BOM_UTF8)
        while self._names is None:
            line = self._next_line()
            if line is None:
                return self._reading
            if line.strip(b"\r"):
                header = next(csv.reader(self._open_field([line]), **self._dialect()))
                self._names = self._settings.columns or header
        self._by_line()
        while block := self._block():
            if (self._quote and self._quote in block) or not self._count_newlines(block):
                self._queue = _lines(block)
                self._by_line()
        return self._reading

    def _block(self) -> bytes:
        """The next whole lines; at the end of the file the last line may lack its newline."""
        parts, ended = [self._tail], False
        while not ended and (len(parts) == 1 or b"\n" not in parts[-1]):
            parts.append(self._stream.read(BLOCK_BYTES))
            ended = not parts[-1]
        whole = b"".join(parts)
        cut = len(whole) if ended else whole.rfind(b"\n") + 1
        self._tail = whole[cut:]
        return whole[:cut]

    def _next_line(self) -> bytes | None:
        """The next line without its newline, of this block or the next; None at the end of the file."""
        line = next(self._queue, None)
        if line is None:
            block = self._block()
            if not block:
                return None
            self._queue = _lines(block)
            line = next(self._queue)
        self._line += 1
        return line

    def _count_newlines(self, block: bytes) -> bool:
        """Counts a block without looking into it; False when it holds blank lines or a wanted record."""
        lines = block.count(b"\n") + (not block.endswith(b"\n"))
        first = self._reading.records
        if b"\n\n" in block or b"\n\r" in block or block.startswith((b"\n", b"\r")):
            return False
        if _any_within(self._ordinals, first, lines) or _any_within(self._lines, self._line + 1, lines):
            return False
        self._reading.records += lines
        self._line += lines
        return True

    def _by_line(self) -> None:
        """Goes through the lines of the block at hand, record by record."""
        while (line := next(self._queue, None)) is not None:
            self._line += 1
            start, parts = self._line, [line]
            if not line.strip(b"\r"):
                continue
            if self._quote and self._quote in line:
                with contextlib.suppress(csv.Error):  # a record that csv refuses ends where it does so
                    next(csv.reader(self._open_field(parts), **self._dialect()))
            self._record(parts, start)

    def _open_field(self, parts: list[bytes]) -> Iterator[str]:
        """Hands csv one line after the other, for as long as a quoted field is open."""
        yield self._text(parts[0]) + "\n"
        while (line := self._next_line()) is not None:
            parts.append(line)
            yield self._text(line) + "\n"

    def _record(self, parts: Sequence[bytes], line: int) -> None:
        ordinal = self._reading.records
        if self._wanted.holds(ordinal, line):
            self._reading.found[ordinal] = RawRecord(ordinal, line, self._cells(parts))
        self._reading.records += 1

    def _cells(self, parts: Sequence[bytes]) -> Cells | None:
        try:
            text = [part.decode("utf-8") for part in parts]
            last = text.pop().removesuffix("\r")
            row = next(csv.reader([line + "\n" for line in text] + [last], **self._dialect()))
        except (csv.Error, UnicodeDecodeError, StopIteration):
            return None
        if self._names is None or len(row) != len(self._names):
            return None
        nulls = {"", *self._settings.null_values}
        cells = {name: None if cell in nulls else cell for name, cell in zip(self._names, row, strict=True)}
        return self._wanted.only(cells)

    def _text(self, line: bytes) -> str:
        return line.decode("utf-8", errors="replace").removesuffix("\r")

    def _dialect(self) -> dict[str, Any]:
        if not self._quote:
            return {"delimiter": self._settings.separator, "quoting": csv.QUOTE_NONE, "strict": True}
        return {"delimiter": self._settings.separator, "quotechar": self._settings.quote_char, "strict": True}


def _lines(block: bytes) -> Iterator[bytes]:
    return iter(block.removesuffix(b"\n").split(b"\n"))


def _any_within(ascending: Sequence[int], first: int, count: int) -> bool:
    place = bisect.bisect_left(ascending, first)
    return place < len(ascending) and ascending[place] < first + count

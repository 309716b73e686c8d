"""Counts the records of a raw file from its bytes, and cuts out a few of them."""

import bz2
import codecs
import contextlib
import csv
import gzip
import hashlib
import io
import json
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pipeline.config import Csv

BLOCK_BYTES = 1 << 20
WIDE_ENCODINGS = ("utf-16", "utf-32", "utf16", "utf32", "ucs")
FORMATS = {"csv": "csv", "tsv": "csv", "txt": "csv", "parquet": "parquet", "pq": "parquet"}

Cells = dict[str, Any]


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
        found: The wanted ones, by ordinal.
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


def read_records(path: Path, *, declared_format: str | None, csv_settings: Csv, wanted: Collection[int]) -> Reading:
    """Counts the records of a file and reads the wanted ones.

    Args:
        path: The raw file.
        declared_format: `[source] format`, None for by extension.
        csv_settings: `[source.csv]`.
        wanted: Ordinals, from 0.
    """
    kind = raw_format(path.name, declared_format)
    if kind == "parquet":
        return _read_parquet(path, wanted)
    with path.open("rb") as stored:
        hashed = _Hashed(stored)
        stream = _unpacked(hashed, path.name)
        reading = _read_lines(stream, wanted) if kind == "ndjson" else _CsvCount(csv_settings, wanted).read(stream)
        while hashed.read(BLOCK_BYTES):
            pass
        reading.sha256 = hashed.digest.hexdigest()
    return reading


class _Hashed(io.RawIOBase):
    """A file whose bytes are hashed while they are read."""

    def __init__(self, stored: IO[bytes]) -> None:
        self._stored = stored
        self.digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = self._stored.readinto(buffer)  # type: ignore[attr-defined]
        self.digest.update(memoryview(buffer)[:size])
        return size


def _unpacked(stored: io.RawIOBase, name: str) -> IO[bytes]:
    buffered = io.BufferedReader(stored, BLOCK_BYTES)
    if name.endswith(".gz"):
        return gzip.open(buffered)  # type: ignore[return-value]
    if name.endswith(".bz2"):
        return bz2.open(buffered)  # type: ignore[return-value]
    if name.endswith(".zst"):
        import pyarrow as pa

        return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(buffered, mode="r"), "zstd"))  # type: ignore[arg-type]
    return buffered


def _read_parquet(path: Path, wanted: Collection[int]) -> Reading:
    import pyarrow.parquet as pq

    reading = Reading()
    with path.open("rb") as stored:
        reading.sha256 = hashlib.file_digest(stored, "sha256").hexdigest()
    with pq.ParquetFile(path) as file:
        reading.records = file.metadata.num_rows
        start = 0
        for group in range(file.metadata.num_row_groups):
            stop = start + file.metadata.row_group(group).num_rows
            here = [ordinal for ordinal in wanted if start <= ordinal < stop]
            if here:
                table = file.read_row_group(group)
                for ordinal in here:
                    cells = _exact(table.slice(ordinal - start, 1))
                    reading.found[ordinal] = RawRecord(ordinal, None, cells)
            start = stop
    return reading


def _exact(row: Any) -> Cells:
    """The cells of one row of an Arrow table; a float32 that stands for several integers becomes NaN."""
    cells = row.to_pylist()[0]
    for field_ in row.schema:
        value = cells[field_.name]
        if str(field_.type) == "float" and value is not None and not abs(value) < 2**24:
            cells[field_.name] = math.nan
    return cells


def _read_lines(stream: IO[bytes], wanted: Collection[int]) -> Reading:
    reading = Reading()
    for number, line in enumerate(stream, 1):
        text = line.strip(b" \t\r\n")
        if number == 1:
            text = text.removeprefix(codecs.BOM_UTF8)
        if not text:
            continue
        if reading.records in wanted:
            reading.found[reading.records] = RawRecord(reading.records, number, _json_cells(text))
        reading.records += 1
    return reading


def _json_cells(text: bytes) -> Cells | None:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        value = json.loads(text.decode("utf-8"), parse_int=str, parse_float=str, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return {key: _json_text(cell) for key, cell in value.items()}


def _json_text(cell: object) -> object:
    return {True: "true", False: "false"}[cell] if isinstance(cell, bool) else cell


class _CsvCount:
    """Counts CSV records: by newlines where a block holds no quote, by `csv.reader` where it does."""

    def __init__(self, settings: Csv, wanted: Collection[int]) -> None:
        self._settings, self._wanted = settings, wanted
        self._quote = settings.quote_char.encode()
        self._names: Sequence[str] | None = None if settings.has_header else settings.columns
        self._encoding = settings.encoding
        self._reading = Reading()
        self._line = 0
        self._tail = b""
        self._queue: Iterator[bytes] = iter(())

    def read(self, stream: IO[bytes]) -> Reading:
        if self._encoding.lower().startswith(WIDE_ENCODINGS):
            stream = io.BytesIO(stream.read().decode(self._encoding).removeprefix("\ufeff").encode("utf-8"))
            self._encoding = "utf-8"
        self._stream = stream
        if self._encoding.lower() in ("utf-8", "utf8"):
            self._tail = stream.read(3).removeprefix(codecs.BOM_UTF8)
        while self._names is None:
            line = self._next_line()
            if line is None:
                return self._reading
            if line.strip(b"\r"):
                self._names = self._settings.columns or next(csv.reader([self._text(line)], **self._dialect()))
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
        if b"\n\n" in block or b"\n\r\n" in block or block.startswith((b"\n", b"\r\n")):
            return False
        if any(first <= ordinal < first + lines for ordinal in self._wanted):
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
        if ordinal in self._wanted:
            self._reading.found[ordinal] = RawRecord(ordinal, line, self._cells(parts))
        self._reading.records += 1

    def _cells(self, parts: Sequence[bytes]) -> Cells | None:
        try:
            text = [part.decode(self._encoding) for part in parts]
            last = text.pop().removesuffix("\r")
            row = next(csv.reader([line + "\n" for line in text] + [last], **self._dialect()))
        except (csv.Error, UnicodeDecodeError, StopIteration):
            return None
        if self._names is None or len(row) != len(self._names):
            return None
        nulls = {"", *self._settings.null_values}
        return {name: None if cell in nulls else cell for name, cell in zip(self._names, row, strict=True)}

    def _text(self, line: bytes) -> str:
        return line.decode(self._encoding, errors="replace").removesuffix("\r")

    def _dialect(self) -> dict[str, Any]:
        if not self._quote:
            return {"delimiter": self._settings.separator, "quoting": csv.QUOTE_NONE, "strict": True}
        return {"delimiter": self._settings.separator, "quotechar": self._settings.quote_char, "strict": True}


def _lines(block: bytes) -> Iterator[bytes]:
    return iter(block.removesuffix(b"\n").split(b"\n"))

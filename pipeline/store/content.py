"""Content versions: hashes of values, whatever files and chunks they lie in."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import xxhash

from pipeline.contracts import PipelineError

MASK_128 = (1 << 128) - 1
MISSING_NAME, NEW_NAME = -1, -2
UNNUMBERED = 255  # a name, in bytes, that is missing or occurs for the first time


class ContentHash:
    """Hashes a table column by column while it streams by, in row order.

    Each column goes through XXH3 (128 bits) in a canonical encoding: its little-endian values; booleans one byte;
    timestamps int64 microseconds; texts their UTF-8 bytes and, apart from them, their lengths as int64. A column of few
    names (Enum) is one int32 a row, the number of its name in order of first appearance, and those names. A missing value
    is 0, the empty text or name number -1, and the positions of missing values follow as int64. Names and types of the
    columns go before their values.
    """

    def __init__(self) -> None:
        self._columns: dict[str, _Column] = {}
        self._rows = 0

    def update(self, frame: pl.DataFrame) -> None:
        """Adds the next rows; every call brings the same columns."""
        for series in frame.iter_columns():
            if series.name not in self._columns:
                self._columns[series.name] = _Names() if series.dtype == pl.Enum else _Column(str(series.dtype))
            self._columns[series.name].update(series, self._rows)
        self._rows += frame.height

    def update_names(self, column: str, codes: np.ndarray, names: Sequence[str]) -> None:
        """Adds the next rows of a table of this one column of names, as `update` does of an Enum.

        Args:
            column: Its name.
            codes: Positions in `names`, unsigned [rows].
            names: All names that may occur.
        """
        hashed = self._columns.setdefault(column, _Names())
        assert isinstance(hashed, _Names)
        hashed.update_codes(codes, list(names))
        self._rows += len(codes)

    def columns(self) -> dict[str, str]:
        """The hash of each column by itself, by which two tables can be told to hold the same column."""
        return {name: column.hexdigest() for name, column in self._columns.items()}

    def hexdigest(self) -> str:
        """The content version of all rows so far."""
        total = xxhash.xxh3_128(str(self._rows).encode())
        if self._rows:
            for name in sorted(self._columns):
                column = self._columns[name]
                total.update(f"{name}\0{column.dtype}\0".encode())
                for part in column.digests():
                    total.update(part)
        return total.hexdigest()


class _Column:
    """The hashes of one column."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self._values, self._lengths, self._missing = xxhash.xxh3_128(), xxhash.xxh3_128(), xxhash.xxh3_128()

    def update(self, series: pl.Series, rows_before: int) -> None:
        if series.null_count():
            self._missing.update((series.is_null().arg_true().cast(pl.Int64) + rows_before).to_numpy().data)
        if series.dtype == pl.String:
            filled = series.fill_null("")
            self._lengths.update(filled.str.len_bytes().cast(pl.Int64).to_numpy().data)
            self._values.update(_text_bytes(filled).data)
        elif series.dtype == pl.Boolean:
            filled = series.fill_null(value=False) if series.null_count() else series
            self._values.update(filled.cast(pl.UInt8).to_numpy().data)
        else:
            filled = series.to_physical().fill_null(0) if series.null_count() else series
            values = np.ascontiguousarray(filled.to_numpy())
            # the time of a Datetime is not asked for by to_physical where nothing is missing: that is a query each time
            self._values.update((values.view(np.int64) if values.dtype.kind == "M" else values).data)

    def hexdigest(self) -> str:
        whole = xxhash.xxh3_128(self.dtype.encode())
        for part in self.digests():
            whole.update(part)
        return whole.hexdigest()

    def digests(self) -> list[bytes]:
        return [self._values.digest(), self._lengths.digest(), self._missing.digest()]


class _Names(_Column):
    """The hashes of a column of few names: they depend on the names that occur, not on the list of those that could."""

    def __init__(self) -> None:
        super().__init__("names")
        self._number: dict[str, int] = {}

    def update(self, series: pl.Series, rows_before: int) -> None:
        names: list[str | None] = list(series.dtype.categories)  # type: ignore[attr-defined]
        if series.null_count():
            self._missing.update((series.is_null().arg_true().cast(pl.Int64) + rows_before).to_numpy().data)
            names = [*names, None]
            codes = series.to_physical().cast(pl.UInt32).fill_null(len(names) - 1).to_numpy()
        else:
            codes = series.to_physical().to_numpy()
        self.update_codes(codes, names)

    def update_codes(self, codes: np.ndarray, names: list[str | None]) -> None:
        """Adds the next rows: positions in `names`, of which the last may be the missing one."""
        if codes.dtype == np.uint8 and len(names) < UNNUMBERED and len(self._number) < UNNUMBERED:
            numbered = bytes(UNNUMBERED if n is None else self._number.get(n, UNNUMBERED) for n in names)
            # Python's table look-up for bytes takes a tenth of the time of numpy's.
            found = np.frombuffer(codes.tobytes().translate(numbered.ljust(256, bytes([UNNUMBERED]))), np.uint8)
            if found.max(initial=0) != UNNUMBERED:
                self._values.update(found.astype(np.int32).data)
                return
        numbers = np.array(
            [MISSING_NAME if name is None else self._number.get(name, NEW_NAME) for name in names], dtype=np.int32
        )
        found = numbers[codes]
        if found.min(initial=0) == NEW_NAME:
            new, first = np.unique(codes[found == NEW_NAME], return_index=True)
            for code in new[np.argsort(first)]:
                numbers[code] = self._number[names[code]] = len(self._number)
            found = numbers[codes]
        self._values.update(found.data)

    def digests(self) -> list[bytes]:
        texts = "".join(f"{len(name.encode())}:{name}" for name in self._number)
        return [*super().digests(), texts.encode()]


def _text_bytes(text: pl.Series) -> np.ndarray:
    """The UTF-8 bytes of all strings, one after the other."""
    arrow = text.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, payload = arrow.buffers()
    if payload is None:
        return np.empty(0, np.uint8)
    start, stop = np.frombuffer(offsets, np.int64)[[arrow.offset, arrow.offset + len(arrow)]]
    return np.frombuffer(payload, np.uint8)[start:stop]


def row_hash_sum(frame: pl.DataFrame) -> int:
    """The sum, modulo 2^128, of a 128-bit hash of every row: independent of order, and updatable.

    Rows that leave are subtracted and rows that come are added, so that the version of a table with a hundred million
    rows costs as much as its changed rows.

    Args:
        frame: Rows of a table without nulls; integer, boolean, float and string columns.
    """
    if frame.is_empty():
        return 0
    for series in frame.iter_columns():
        if series.null_count():
            raise PipelineError(
                f"column '{series.name}' holds {series.null_count():,} nulls and cannot be hashed row by row"
            )
    seeds = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], dtype=np.uint64)
    lanes = [np.full(frame.height, seed, dtype=np.uint64) for seed in seeds]
    for series in frame.iter_columns():
        for word in _words(series):
            for lane, seed in zip(lanes, seeds, strict=True):
                np.bitwise_xor(lane, word, out=lane)
                np.add(lane, seed, out=lane)
                _mix(lane)
    return ((_exact_sum(lanes[0]) << 64) + _exact_sum(lanes[1])) & MASK_128


def _words(series: pl.Series) -> list[np.ndarray]:
    """A column as 64-bit words [rows]: one a row, or two that stand for the text of a string."""
    if series.dtype == pl.String:
        digests = b"".join(xxhash.xxh3_128_digest(text.encode()) for text in series)
        pairs = np.frombuffer(digests, np.uint64).reshape(-1, 2)
        return [pairs[:, 0], pairs[:, 1]]
    physical = series.to_physical()
    if physical.dtype == pl.Boolean:
        physical = physical.cast(pl.UInt8)
    values = physical.to_numpy()
    if values.dtype.kind == "f":
        return [values.astype(np.float64).view(np.uint64)]
    return [values.astype(np.int64).view(np.uint64)]


def _mix(lane: np.ndarray) -> None:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014), in place."""
    lane ^= lane >> np.uint64(30)
    lane *= np.uint64(0xBF58476D1CE4E5B9)
    lane ^= lane >> np.uint64(27)
    lane *= np.uint64(0x94D049BB133111EB)
    lane ^= lane >> np.uint64(31)


def _exact_sum(lane: np.ndarray) -> int:
    low = int(np.sum(lane & np.uint64(0xFFFFFFFF), dtype=np.uint64))
    return low + (int(np.sum(lane >> np.uint64(32), dtype=np.uint64)) << 32)


def file_sha256(path: Path) -> str:
    """The checksum of a file's bytes.

    Raises:
        PipelineError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise PipelineError(f"{path}: cannot be read ({error.strerror}); check that it is there and readable") from None

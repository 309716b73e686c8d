"""Parquet: the file's own columns and types, slice by slice."""

import calendar
import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import NoReturn

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.contracts import PipelineError
from pipeline.sources.block import BlockReader, RawBlock, unreadable

CELL_BYTES = 16  # a text takes as much in memory even where the file stores it as a small dictionary code


class ParquetReader(BlockReader):
    """The blocks of a Parquet file: about `block_bytes` of uncompressed rows each."""

    def _blocks(self) -> Iterator[RawBlock]:
        with ThreadPoolExecutor(max_workers=1) as threads:
            digest = threads.submit(_sha256, self.file.path)
            yield from self._slices()
            self._checksum = digest.result()

    def _slices(self) -> Iterator[RawBlock]:
        try:
            footer = pq.read_metadata(self.file.path)
            self._refuse_wide_decimals(footer.schema.to_arrow_schema())
            scan = pl.scan_parquet(self.file.path, glob=False, hive_partitioning=False)
            schema = scan.collect_schema()
        except (pa.ArrowException, pl.exceptions.PolarsError, OSError) as error:
            self._refuse(error)
        groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
        stored = sum(group.total_byte_size for group in groups)
        row_bytes = max(stored // max(1, footer.num_rows), CELL_BYTES * max(1, len(schema)))
        rows = max(1, self.block_bytes // row_bytes)
        for offset in range(0, max(1, footer.num_rows), rows):
            expected = min(rows, footer.num_rows - offset)
            try:
                frame = scan.slice(offset, expected).collect()
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
                self._refuse(error)
            if frame.height != expected:
                raise PipelineError(
                    f"{self.file.name}: found {frame.height} rows from row {offset} on where the Parquet footer promises "
                    f"{expected}; bring the complete file and run the day again"
                )
            yield _block(frame)

    def _refuse_wide_decimals(self, schema: pa.Schema) -> None:
        for column in schema:
            if pa.types.is_decimal256(column.type):
                raise PipelineError(
                    f"{self.file.name}: the column '{column.name}' holds {column.type}, which cannot be read; write it with "
                    "at most 38 digits, or as text"
                )

    def _refuse(self, error: BaseException) -> NoReturn:
        if isinstance(error, OSError) and error.errno is not None:
            raise unreadable(self.file, error) from None
        reason = str(error).strip().split("\n")[0]
        raise PipelineError(
            f"{self.file.name}: not a complete Parquet file ({reason}); bring the complete file and run the day again"
        ) from None


def _block(frame: pl.DataFrame) -> RawBlock:
    def read_raw(rows: Sequence[int]) -> list[str]:
        found = _within_calendar(frame[pl.Series(list(rows), dtype=pl.UInt32)])
        return [json.dumps(cells, default=str, ensure_ascii=False) for cells in found.iter_rows(named=True)]

    return RawBlock(
        frame=frame,
        line=pl.repeat(None, frame.height, dtype=pl.Int64, eager=True).alias("line"),
        malformed=pl.repeat(False, frame.height, dtype=pl.Boolean, eager=True).alias("malformed"),
        read_raw=read_raw,
    )


def _within_calendar(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows that Python can hold: of a column with times beyond its calendar, the numbers that the file holds."""
    return rows.with_columns(column.to_physical() for column in rows if not _fits_python(column))


def _fits_python(column: pl.Series) -> bool:
    if column.dtype.is_nested():
        return not any(name in str(column.dtype) for name in ("Date", "Duration"))
    if column.dtype == pl.Date:
        return bool(column.is_between(date.min, date.max).all())
    if not isinstance(column.dtype, pl.Datetime | pl.Duration) or column.dtype.time_unit == "ns":
        return True
    # A zone may move a time by up to a day; the width of the calendar is a bound for durations as well.
    ticks = 10**3 if column.dtype.time_unit == "ms" else 10**6
    first, last = (calendar.timegm(edge.timetuple()) + day for edge, day in ((date.min, 86_400), (date.max, -86_400)))
    return bool(column.to_physical().is_between(first * ticks, last * ticks).all())


def _sha256(path: Path) -> str:
    with path.open("rb") as stored:
        return hashlib.file_digest(stored, "sha256").hexdigest()

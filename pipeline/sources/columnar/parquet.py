"""Parquet: the file's own columns and types, slice by slice."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NoReturn

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.contracts import PipelineError
from pipeline.sources.block import BlockReader, RawBlock, unreadable
from pipeline.sources.columnar.frames import CELL_BYTES, refuse_unreadable, sha256_of, typed_block
from pipeline.sources.paths import declared_names
from pipeline.threads import thread_aside


class ParquetReader(BlockReader):
    """The blocks of a Parquet file: about `block_bytes` of uncompressed rows each."""

    def _blocks(self) -> Iterator[RawBlock]:
        with thread_aside() as thread:
            digest = thread.submit(sha256_of, self.file.path)
            yield from self._slices()
            self._checksum = digest.result()

    def _slices(self) -> Iterator[RawBlock]:
        try:
            footer = pq.read_metadata(self.file.path)
            refuse_unreadable(footer.schema.to_arrow_schema(), file=self.file.name)
            scan = pl.scan_parquet(self.file.path, glob=False, hive_partitioning=False)
            schema = scan.collect_schema()
        except (pa.ArrowException, pl.exceptions.PolarsError, OSError) as error:
            self._refuse(error)
        groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
        stored = sum(group.total_byte_size for group in groups)
        row_bytes = max(stored // max(1, footer.num_rows), CELL_BYTES * max(1, len(schema)))
        rows = max(1, self.block_bytes // row_bytes)
        names = declared_names(self.dataset)
        for offset, behind in pairwise(_borders([group.num_rows for group in groups], rows)):
            expected = behind - offset
            try:
                frame = scan.slice(offset, expected).collect()
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
                self._refuse(error)
            if frame.height != expected:
                raise PipelineError(
                    f"{self.file.name}: found {frame.height} rows from row {offset} on where the Parquet footer promises "
                    f"{expected}; bring the complete file and run the day again"
                )
            yield typed_block(frame, names=names)

    def _refuse(self, error: BaseException) -> NoReturn:
        if isinstance(error, OSError) and error.errno is not None:
            raise unreadable(self.file, error) from None
        reason = str(error).strip().split("\n")[0]
        raise PipelineError(
            f"{self.file.name}: not a complete Parquet file ({reason}); bring the complete file and run the day again"
        ) from None


def _borders(group_rows: Sequence[int], rows: int) -> list[int]:
    """Where slices of at most so many rows begin and end: at row groups where possible, since these are decoded whole."""
    borders, total = [0], 0
    for count in group_rows:
        if borders[-1] < total and total + count > borders[-1] + rows:
            borders.append(total)
        total += count
        while total > borders[-1] + rows:
            borders.append(borders[-1] + rows)
    return [*borders, total]

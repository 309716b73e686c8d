"""Arrow IPC, as a file (Feather is one) or as a stream: the columns and types that it holds, batch by batch."""

from collections.abc import Iterator
from typing import NoReturn

import polars as pl
import pyarrow as pa
import pyarrow.ipc

from pipeline.contracts import PipelineError
from pipeline.sources.block import BlockReader, RawBlock, unreadable
from pipeline.sources.columnar.frames import CELL_BYTES, refuse_unreadable, sha256_of, typed_block
from pipeline.sources.paths import declared_names
from pipeline.threads import thread_aside

FILE_MAGIC = b"ARROW1"
OLD_FEATHER = b"FEA1"
STREAM_ENDS = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class ArrowReader(BlockReader):
    """The blocks of an Arrow IPC file or stream: its batches, cut into about `block_bytes` each.

    A stream has to have its end mark, without which one that is cut between two batches looks complete.
    """

    def _blocks(self) -> Iterator[RawBlock]:
        names = declared_names(self.dataset)
        with thread_aside() as thread:
            digest = thread.submit(sha256_of, self.file.path)
            delivered = False
            for frame in self._frames():
                delivered = True
                yield typed_block(frame, names=names)
            if not delivered:
                yield typed_block(self._empty, names=names)
            self._checksum = digest.result()

    def _frames(self) -> Iterator[pl.DataFrame]:
        try:
            with pa.OSFile(str(self.file.path)) as source:
                for batch in self._batches(source):
                    batch.validate(full=True)
                    row_bytes = max(batch.nbytes // max(1, batch.num_rows), CELL_BYTES * max(1, batch.num_columns))
                    rows = max(1, self.block_bytes // row_bytes)
                    frame = pl.DataFrame(batch)  # polars dies of a part of a batch with lists of a fixed size
                    yield from frame.iter_slices(rows)
        except (pa.ArrowException, pl.exceptions.PolarsError, OSError) as error:
            self._refuse(error)

    def _batches(self, source: pa.OSFile) -> Iterator[pa.RecordBatch]:
        begin = source.read(len(FILE_MAGIC))
        if begin.startswith(OLD_FEATHER):
            raise PipelineError(
                f"{self.file.name}: an old Feather file (version 1), which is not read; write it as version 2"
            )
        is_file = begin == FILE_MAGIC
        if not is_file:
            self._require_end(source)
        source.seek(0)
        reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
        refuse_unreadable(reader.schema, file=self.file.name)
        self._empty = pl.DataFrame(reader.schema.empty_table())
        if isinstance(reader, pa.ipc.RecordBatchFileReader):
            for position in range(reader.num_record_batches):
                yield reader.get_batch(position)
        else:
            yield from reader

    def _require_end(self, source: pa.OSFile) -> None:
        size = source.size()
        source.seek(max(0, size - len(STREAM_ENDS)))
        if size == 0 or source.read() != STREAM_ENDS:
            raise pa.ArrowInvalid("it has neither the footer of a file nor the end mark of a stream")

    def _refuse(self, error: BaseException) -> NoReturn:
        if isinstance(error, OSError) and error.errno is not None:
            raise unreadable(self.file, error) from None
        reason = str(error).strip().split("\n")[0]
        raise PipelineError(
            f"{self.file.name}: not a complete Arrow file ({reason}); bring the complete file and run the day again"
        ) from None

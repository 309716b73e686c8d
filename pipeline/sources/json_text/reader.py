"""Files of JSON records: read twice, first for their columns, then for their rows."""

from abc import abstractmethod
from collections.abc import Iterator

from pipeline.contracts import PipelineError
from pipeline.sources.block import BlockReader, RawBlock
from pipeline.sources.elements import WITHOUT_ELEMENTS
from pipeline.sources.json_text.table import NO_RECORDS, JsonRun, JsonTable, json_table
from pipeline.sources.stream import ByteStream


class JsonRecordReader(BlockReader):
    """The blocks of a file of JSON records, all with the columns of the whole file; see `JsonColumns`."""

    @abstractmethod
    def _runs(self, stream: ByteStream) -> Iterator[JsonRun]:
        """The records, about `block_bytes` of text at a time."""

    def _blocks(self) -> Iterator[RawBlock]:
        table = json_table(self.dataset, file=self.file.name)
        runs, checksum = self._survey(table)
        if runs is not None:
            self._checksum = checksum
            yield from self._rows(runs, table)
            return
        with ByteStream(self.file, self.dataset.source.compression) as stream:
            yield from self._rows(self._runs(stream), table)
            self._checksum = stream.checksum()
        if self._checksum != checksum:
            raise PipelineError(
                f"{self.file.name}: the file changed while it was read; run the day again when the file is complete"
            )

    def _survey(self, table: JsonTable) -> tuple[list[JsonRun] | None, str]:
        """Shows all records to the table; gives them when they are few, and the checksum of the file."""
        held: list[JsonRun] = []
        count = 0
        with ByteStream(self.file, self.dataset.source.compression) as stream:
            for count, run in enumerate(self._runs(stream), 1):
                table.see(run)
                held = [run] if count == 1 else []
            return held if count <= 1 else None, stream.checksum()

    def _rows(self, runs: Iterator[JsonRun] | list[JsonRun], table: JsonTable) -> Iterator[RawBlock]:
        delivered = False
        for run in runs:
            if run.newline_missing:
                self._warn("last_record_without_newline", 1)
            if len(run.lines):
                delivered = True
                yield table.block(run)
        if not delivered:
            yield table.block(NO_RECORDS)
        if table.without_elements:
            self._warn(WITHOUT_ELEMENTS, table.without_elements)

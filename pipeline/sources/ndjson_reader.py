"""NDJSON."""
from collections.abc import Iterator

from pipeline.config import Dataset
from pipeline.sources.block import BlockReader, RawBlock, RawFile


class NdjsonReader(BlockReader):
    """To come."""

    def __init__(self, *, file: RawFile, dataset: Dataset, block_bytes: int) -> None:
        super().__init__(file=file, block_bytes=block_bytes)
        self._dataset = dataset

    def _blocks(self) -> Iterator[RawBlock]:
        raise NotImplementedError
        yield

"""Columns that stand in the names of folders: `country=DE/log.csv`."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from urllib.parse import unquote_to_bytes

import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.sources.block import BlockReader, RawBlock, RawFile

MISSING = "__HIVE_DEFAULT_PARTITION__"


class HiveReader(BlockReader):
    """The blocks of another reader with a String column for each `key=value` folder, unless the file has it."""

    def __init__(self, inner: BlockReader) -> None:
        super().__init__(file=inner.file, dataset=inner.dataset, block_bytes=inner.block_bytes)
        self._inner = inner

    def _blocks(self) -> Iterator[RawBlock]:
        cells = folder_columns(self.file, self.dataset)
        for block in self._inner:
            new = [
                pl.repeat(value, block.frame.height, dtype=pl.String, eager=True).alias(name)
                for name, value in cells.items()
                if name not in block.frame.columns
            ]
            yield replace(block, frame=block.frame.hstack(new))
        self._warnings, self._checksum = self._inner.warnings, self._inner.checksum


def folder_columns(file: RawFile, dataset: Dataset) -> dict[str, str | None]:
    """The columns in the folders of a file, as far as `[source] path` names them or reaches through them.

    Args:
        file: The file.
        dataset: The dataset file, in whose folder relative paths begin.

    Raises:
        PipelineError: A folder name is no text, or a column is there twice.
    """
    path = PurePath(file.name) if file.copy is not None else file.path
    directory = dataset.directory.absolute()
    folders = (path.relative_to(directory) if path.is_relative_to(directory) else path).parent.parts
    found: dict[str, str | None] = {}
    for folder in folders:
        key, mark, value = os.fsencode(folder).partition(b"=")
        if not key or not mark:
            continue
        try:
            name, cell = unquote_to_bytes(key).decode(), unquote_to_bytes(value).decode()
        except UnicodeDecodeError:
            raise PipelineError(f"{file.name}: the name of the folder {folder!r} is no UTF-8; rename it") from None
        if name in found:
            raise PipelineError(f"{file.name}: two of its folders give the column '{name}'; rename one of them")
        found[name] = None if cell == MISSING else cell
    return found

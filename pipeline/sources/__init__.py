"""Raw log formats -> raw rows: which files there are, and the records that stand in them."""

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.sources.block import BlockReader, RawBlock, RawFile
from pipeline.sources.csv_reader import CsvReader
from pipeline.sources.files import files_of_day, find_files, is_ready, require_folder
from pipeline.sources.ndjson_reader import NdjsonReader
from pipeline.sources.parquet_reader import ParquetReader
from pipeline.sources.stream import split_extension

VERSION = {"csv": 1, "ndjson": 1, "parquet": 1}  # raised when a format's rows change

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
}

USUAL_BLOCK_BYTES = {"csv": 8 * 2**20, "ndjson": 8 * 2**20, "parquet": 128 * 2**20}

__all__ = [
    "VERSION",
    "BlockReader",
    "RawBlock",
    "RawFile",
    "file_format",
    "files_of_day",
    "find_files",
    "is_ready",
    "read_blocks",
    "require_folder",
    "usual_block_bytes",
]


def file_format(file: RawFile, dataset: Dataset) -> str:
    """The format of a raw file: `[source] format`, or by its extension.

    Returns:
        csv, ndjson or parquet.

    Raises:
        PipelineError: When neither says it.
    """
    extension, compression = split_extension(file.name)
    if dataset.source.format is None and extension not in FORMATS:
        raise PipelineError(
            f"{file.name}: the extension '{extension}' tells no format; set [source] format to csv, parquet or ndjson"
        )
    found = dataset.source.format or FORMATS[extension]
    if found == "parquet" and compression:
        raise PipelineError(
            f"{file.name}: Parquet inside {compression} is not read, since it is compressed itself; unpack the file"
        )
    return found


def usual_block_bytes(file: RawFile, dataset: Dataset) -> int:
    """How large a block reads fastest: text that fits the caches, Parquet that need not be decoded twice."""
    return USUAL_BLOCK_BYTES[file_format(file, dataset)]


def read_blocks(file: RawFile, dataset: Dataset, *, block_bytes: int) -> BlockReader:
    """Reads a raw file record by record, in blocks.

    Args:
        file: The file, as `find_files` found it.
        dataset: The dataset file, for the format.
        block_bytes: About how many unpacked bytes make a block; what is read does not depend on it.

    Returns:
        An iterator over the blocks; afterwards its `checksum` and `warnings` are known.

    Raises:
        PipelineError: When the format is not known; see `BlockReader` for what is raised while iterating.
    """
    kind = file_format(file, dataset)
    if kind == "csv":
        return CsvReader(file=file, csv=dataset.source.csv, block_bytes=block_bytes)
    if kind == "ndjson":
        return NdjsonReader(file=file, dataset=dataset, block_bytes=block_bytes)
    return ParquetReader(file=file, block_bytes=block_bytes)

"""Raw log formats -> raw rows: which files there are, and the records that stand in them."""

from collections.abc import Callable, Collection
from functools import partial

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.sources.block import BlockReader, RawBlock, RawFile
from pipeline.sources.columnar.arrow import ArrowReader
from pipeline.sources.columnar.parquet import ParquetReader
from pipeline.sources.delimited.reader import CsvReader
from pipeline.sources.explode import ExplodeReader
from pipeline.sources.fixed_width_reader import FixedWidthReader
from pipeline.sources.hive import HiveReader
from pipeline.sources.json_text.document import JsonDocumentReader
from pipeline.sources.json_text.ndjson import NdjsonReader
from pipeline.sources.locations.files import files_of_day, find_files, is_ready, require_folder
from pipeline.sources.locations.objects import remove_copies
from pipeline.sources.regex_reader import RegexReader
from pipeline.sources.stream import compression_of, split_extension

VERSION = {  # raised when a format's rows change
    "csv": 1,
    "fixed_width": 1,
    "regex": 1,
    "ndjson": 1,
    "json": 1,
    "parquet": 1,
    "arrow": 1,
}

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
}

READERS: dict[str, Callable[..., BlockReader]] = {
    "csv": CsvReader,
    "fixed_width": FixedWidthReader,
    "regex": RegexReader,
    "ndjson": NdjsonReader,
    "json": JsonDocumentReader,
    "parquet": ParquetReader,
    "arrow": ArrowReader,
}

EXPLODE_THEMSELVES = ("ndjson", "json")  # while they still hold the objects

COMPRESSED_INSIDE = {"parquet": "Parquet", "arrow": "Arrow"}

USUAL_BLOCK_BYTES = {
    "csv": 8 * 2**20,
    "fixed_width": 8 * 2**20,
    "regex": 8 * 2**20,
    "ndjson": 8 * 2**20,
    "json": 8 * 2**20,
    "parquet": 32 * 2**20,
    "arrow": 128 * 2**20,
}

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
    "remove_copies",
    "require_folder",
    "usual_block_bytes",
]


def file_format(file: RawFile, dataset: Dataset) -> str:
    """The format of a raw file: `[source] format`, or by its extension.

    Returns:
        csv, fixed_width, regex, ndjson, json, parquet or arrow.

    Raises:
        PipelineError: When neither says it, or when a format that is read from its end is packed as a whole.
    """
    extension = split_extension(file.name)[0]
    if dataset.source.format is None and extension not in FORMATS:
        raise PipelineError(
            f"{file.name}: the extension '{extension}' tells no format; set [source] format to csv, fixed_width, "
            "regex, ndjson, json, parquet or arrow"
        )
    found = dataset.source.format or FORMATS[extension]
    compression = compression_of(file.name, dataset.source.compression)
    if found in COMPRESSED_INSIDE and compression != "none":
        raise PipelineError(
            f"{file.name}: {COMPRESSED_INSIDE[found]} inside {compression} is not read, since it is compressed itself; "
            "unpack the file"
        )
    return found


def usual_block_bytes(file: RawFile, dataset: Dataset) -> int:
    """How large a block reads fastest: text that fits the caches, columns that need not be decoded twice."""
    return USUAL_BLOCK_BYTES[file_format(file, dataset)]


def read_blocks(file: RawFile, dataset: Dataset, *, block_bytes: int, integers: Collection[str] = ()) -> BlockReader:
    """Reads a raw file record by record, in blocks.

    Args:
        file: The file, as `find_files` found it.
        dataset: The dataset file, for the format.
        block_bytes: About how many unpacked bytes make a block; what is read does not depend on it.
        integers: Columns of CSV whose cells may come as numbers, block by block, where no other text gives the same number.

    Returns:
        An iterator over the blocks; afterwards its `checksum` and `warnings` are known.

    Raises:
        PipelineError: When the format is not known; see `BlockReader` for what is raised while iterating.
    """
    kind = file_format(file, dataset)
    open_reader = partial(READERS[kind], file=file, dataset=dataset, block_bytes=block_bytes)
    if dataset.source.explode is None or kind in EXPLODE_THEMSELVES:
        reader = open_reader()
        reader.integers = frozenset(integers)
    else:
        reader = ExplodeReader(open_reader, missing_is_empty=kind not in COMPRESSED_INSIDE)
    return HiveReader(reader) if dataset.source.hive else reader

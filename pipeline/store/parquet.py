"""The Parquet files of the lake: how their columns are encoded, and how they are streamed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.contracts import PipelineError
from pipeline.store.manifest import DataFile

ROW_GROUP_ROWS = 131_072  # fixed, so that sampled users are found through the statistics
SEARCHED = "user_id"  # the only column with statistics: rows are sorted by it
IDS = ("user_id", "item_id")  # as differences: ascending ones become small, others are read fastest so
RUNS = ("user_id", "user_index")  # one value over many rows: plain, zstd makes little of it in the shortest time
Compression = Literal["zstd", "lz4"]


def write_file(frame: pl.DataFrame, path: Path, *, compression: Compression = "zstd") -> None:
    """Writes a file; the same rows give the same bytes.

    Encodings are chosen and not tried out: bytes by their place for numbers and times, differences for ids, a dictionary
    for texts, plain values for all else; a column without nulls is declared so. That takes a third of the time of looking
    for a dictionary in each.

    Args:
        frame: The rows; Enum columns become texts.
        path: The file, overwritten.
        compression: zstd at level 1, or lz4: a few percent larger, and written and read in two thirds of the time.

    Raises:
        OSError: The disk is full, or the file cannot be written.
    """
    table = _required(_arrow(frame))
    encodings = _encodings(table.schema, runs=RUNS, compression=compression)
    pq.write_table(table, path, row_group_size=ROW_GROUP_ROWS, **encodings)


def write_blocks(frames: Iterable[pl.DataFrame], path: Path, *, row_group_rows: int) -> int:
    """Writes a file of one row a user while its rows stream by; how they are cut into frames changes no byte.

    Args:
        frames: The rows, at least one frame.
        path: The file, overwritten.
        row_group_rows: Rows of a row group.

    Returns:
        The number of rows.

    Raises:
        OSError: The disk is full, or the file cannot be written.
    """
    rows = waiting_rows = 0
    writer: pq.ParquetWriter | None = None
    waiting: list[pl.DataFrame] = []
    try:
        for frame in frames:
            if writer is None:
                schema = _arrow(frame.head(0)).schema
                writer = pq.ParquetWriter(path, schema, **_encodings(schema, runs=()))
            waiting.append(frame)
            rows += frame.height
            waiting_rows += frame.height
            if waiting_rows >= row_group_rows:
                held = pl.concat(waiting)
                whole = held.height - held.height % row_group_rows
                writer.write_table(_arrow(held[:whole]), row_group_size=row_group_rows)
                waiting, waiting_rows = [held[whole:]], held.height - whole
        assert writer is not None, f"{path}: a file needs at least one frame"
        left = pl.concat(waiting)
        if left.height:
            writer.write_table(_arrow(left), row_group_size=row_group_rows)
    finally:
        if writer is not None:
            writer.close()
    return rows


def _arrow(frame: pl.DataFrame) -> pa.Table:
    return frame.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())


def _required(table: pa.Table) -> pa.Table:
    """The same rows; columns without nulls are written, and read, without a level for each value."""
    fields = [
        field.with_nullable(column.null_count > 0) for field, column in zip(table.schema, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields))


def _encodings(schema: pa.Schema, *, runs: Sequence[str], compression: Compression = "zstd") -> dict[str, Any]:
    """What the writer is told; `runs` are columns with one value over many rows."""
    dictionaries = [
        field.name for field in schema if pa.types.is_large_string(field.type) or pa.types.is_dictionary(field.type)
    ]
    numbers = {
        field.name: "DELTA_BINARY_PACKED"
        if field.name in IDS and pa.types.is_integer(field.type)
        else "BYTE_STREAM_SPLIT"
        for field in schema
        if pa.types.is_primitive(field.type) and not pa.types.is_boolean(field.type) and field.name not in runs
    }
    return {
        "compression": compression,
        "compression_level": 1 if compression == "zstd" else None,
        "store_schema": False,  # else a reader would find dictionaries where texts are declared
        "use_dictionary": dictionaries,
        "write_statistics": [SEARCHED],
        "write_page_checksum": True,  # what is read of an old file is known to be what was written
        "column_encoding": numbers,
    }


def read_blocks(
    directory: Path,
    files: Sequence[DataFile],
    columns: Sequence[str],
    *,
    block_rows: int,
    names: Mapping[str, Sequence[str]] | None = None,
    verify: bool = True,
    user: int | str | None = None,
) -> Iterator[pl.DataFrame]:
    """Streams some columns of the files of a day, in manifest order.

    Args:
        directory: Where the files lie.
        files: The files.
        columns: Names of the columns, in the order wanted.
        block_rows: A block is the fewest row groups of one file that hold as many rows, or all that is left of it.
        names: Column of texts -> all texts that it may hold; it is read as Enum of these, and any other text as null.
        verify: Compares the checksum of every page; not needed by who takes the checksum of the whole file.
        user: Only the rows of this user, found through the statistics of row groups; user_id is then among the columns.

    Yields:
        Frames in one piece, none of them empty.

    Raises:
        PipelineError: A file is missing or damaged.
    """
    declared = names or {}
    for file in files:
        path = directory / file.path
        try:
            with pq.ParquetFile(
                path, read_dictionary=list(declared), pre_buffer=False, page_checksum_verification=verify
            ) as parquet:
                for groups in _blocks_of(parquet.metadata, block_rows, user):
                    frame = _frame(parquet.read_row_groups(groups, columns=list(columns)), columns, declared)
                    wanted = frame if user is None else frame.filter(frame[SEARCHED] == user)
                    if wanted.height:
                        yield wanted
        except (OSError, pa.ArrowException) as error:
            raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception, *, remedy: str = "make this day again") -> PipelineError:
    """The sentence for a file of a day that is gone or damaged."""
    why = str(error).strip().splitlines()[0]
    return PipelineError(f"{path}: the file cannot be read ({why}); {remedy}")


def _blocks_of(metadata: pq.FileMetaData, block_rows: int, user: int | str | None) -> Iterator[list[int]]:
    """Row groups that are read together: all, or those that may hold a user."""
    held: list[int] = []
    rows = 0
    for group in range(metadata.num_row_groups):
        if user is not None and not _may_hold(metadata, group, user):
            continue
        held.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= block_rows:
            yield held
            held, rows = [], 0
    if held:
        yield held


def _may_hold(metadata: pq.FileMetaData, group: int, user: int | str) -> bool:
    column = metadata.row_group(group).column(metadata.schema.names.index(SEARCHED))
    found = column.statistics
    return found is None or not found.has_min_max or found.min <= user <= found.max


def _frame(table: pa.Table, columns: Sequence[str], names: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    series = []
    for name in columns:
        column = table[name]
        series.append(_named(name, column, names[name]) if name in names else pl.Series(name, column).rechunk())
    return pl.DataFrame(series)


def _named(name: str, column: pa.ChunkedArray, names: Sequence[str]) -> pl.Series:
    """A column of dictionaries as Enum; each row group has a dictionary of its own."""
    known = {text: position for position, text in enumerate(names)}
    codes = []
    for chunk in column.chunks:
        position = np.array(
            [*(known.get(text, len(names)) for text in chunk.dictionary.to_pylist()), len(names)], dtype=np.uint32
        )
        indices = chunk.indices
        if indices.null_count:
            indices = indices.fill_null(len(position) - 1)
        # not pyarrow's own to_numpy: it imports pandas where it is installed
        codes.append(position.take(pl.Series(indices).to_numpy(), mode="clip"))  # all lie within
    whole = codes[0] if len(codes) == 1 else np.concatenate([np.empty(0, np.uint32), *codes])
    all_known = whole.max(initial=0) < len(names)  # a missing one among the texts doubles the time to gather
    texts = pl.Series(name, names if all_known else [*names, None], dtype=pl.Enum(list(names)))
    return texts.gather(pl.Series(whole))

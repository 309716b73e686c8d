"""Rows of Parquet and Arrow files, group by group; of groups without a wanted row only the footer is read."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.checks.raw.records.arrow_cells import values_of
from pipeline.checks.raw.values.taking import Taker, Wanted

ARROW_FILE = b"ARROW1"
SLICE_ROWS = 256  # become Python values at a time


@dataclass(frozen=True)
class _Group:
    """Rows that are read together.

    Attributes:
        rows: How many.
        read: Names of columns -> an Arrow table of them.
    """

    rows: int
    read: Callable[[Sequence[str]], Any]


def read_arrow(path: Path, taker: Taker, *, kind: str, needed: Iterable[str]) -> str:
    """Takes the rows of a file.

    Args:
        path: The file.
        taker: What becomes of them.
        kind: parquet or arrow.
        needed: Names of columns to read besides the wanted ones, and of paths into columns.

    Returns:
        The sha256 of the bytes.
    """
    with ExitStack() as open_files:
        names, groups = (_parquet_groups if kind == "parquet" else _arrow_groups)(path, open_files)
        chosen = chosen_columns(names, taker.wanted, needed)
        for group in groups:
            if not taker.needs_none(group.rows, None, 0):
                _take_group(group, chosen, taker)
            else:
                taker.skip(group.rows)
    with path.open("rb") as stored:
        return hashlib.file_digest(stored, "sha256").hexdigest()


def chosen_columns(names: Sequence[str], wanted: Wanted, needed: Iterable[str]) -> list[str]:
    """The columns of a file that have to be read."""
    needed = list(needed)
    roots = {name.split(".")[0] for name in needed if name not in names}
    return [name for name in names if wanted.column(name) or name in needed or name in roots]


def column_names(path: Path, kind: str) -> list[str]:
    """The columns of a file."""
    with ExitStack() as open_files:
        return (_parquet_groups if kind == "parquet" else _arrow_groups)(path, open_files)[0]


def _take_group(group: _Group, chosen: Sequence[str], taker: Taker) -> None:
    table = group.read(chosen)
    for start in range(0, group.rows, SLICE_ROWS):
        rows = min(SLICE_ROWS, group.rows - start)
        if taker.needs_none(rows, None, 0):
            taker.skip(rows)
            continue
        columns = [values_of(table[name].slice(start, rows)) for name in chosen]
        for row in range(rows):
            taker.take(None, lambda row=row, columns=columns: {n: columns[i][row] for i, n in enumerate(chosen)})


def _parquet_groups(path: Path, open_files: ExitStack) -> tuple[list[str], Iterator[_Group]]:
    import pyarrow.parquet as pq

    file = open_files.enter_context(pq.ParquetFile(path))

    def groups() -> Iterator[_Group]:
        for number in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            yield _Group(rows, lambda names, number=number: file.read_row_group(number, columns=names))

    return file.schema_arrow.names, groups()


def _arrow_groups(path: Path, open_files: ExitStack) -> tuple[list[str], Iterator[_Group]]:
    import pyarrow as pa

    source = open_files.enter_context(pa.memory_map(str(path)) if path.stat().st_size else path.open("rb"))
    if source.read(len(ARROW_FILE)) != ARROW_FILE:
        source.seek(0)
        stream = open_files.enter_context(pa.ipc.open_stream(source))
        return stream.schema.names, (_group_of(batch) for batch in stream)
    file = open_files.enter_context(pa.ipc.open_file(source))
    return file.schema.names, (_group_of(file.get_batch(number)) for number in range(file.num_record_batches))


def _group_of(batch: Any) -> _Group:
    return _Group(batch.num_rows, lambda names: batch.select(list(names)))

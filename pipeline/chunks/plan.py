"""What a day of events will take, said before the work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.chunks.cut import CHUNK_ROWS
from pipeline.contracts import Column
from pipeline.memory import held_bytes
from pipeline.store import ROW_GROUP_ROWS, Manifest, unreadable

FEWEST_ROWS = 16_384  # of a chunk: fewer would not be worth their overhead
BYTES = {"int64": 8, "timestamp": 8, "float64": 8, "int32": 4, "float32": 4, "uint8": 1, "bool": 1}
TEXT_BYTES = 40  # about as many for a text, with what points to it
MIB, GIB = 2**20, 2**30


@dataclass(frozen=True, slots=True)
class Plan:
    """How a day of events will be cut, and what that is expected to take.

    Attributes:
        rows: Events of the day.
        file_bytes: Bytes of its files.
        chunk_rows: The most events of a chunk.
        chunks: About how many chunks.
        giants: user_id -> how many events at least, for the users with more than a chunk that the files' footers show.
        expected_bytes: About the most memory that the process will hold.
        budget_bytes: `[compute] memory`.
    """

    rows: int
    file_bytes: int
    chunk_rows: int
    chunks: int
    giants: Mapping[int | str, int] = field(default_factory=dict)
    expected_bytes: int = 0
    budget_bytes: int = 0

    def __str__(self) -> str:
        giants = ", ".join(f"{user!r} with {rows:,} or more" for user, rows in self.giants.items())
        return (
            f"{self.rows:,} events in {self.file_bytes / MIB:,.1f} MiB, about {self.chunks:,} chunks of up to "
            f"{self.chunk_rows:,} events, {f'in pieces: users {giants}' if giants else 'no user larger than a chunk'}; "
            f"expected peak of memory {self.expected_bytes / GIB:.2f} GiB, {self.budget_bytes / GIB:.2f} GiB of it for rows "
            "at most"
        )


def row_bytes(columns: Sequence[Column]) -> int:
    """About how many bytes a row takes in memory; the action is a code there."""
    return sum(1 if column.name == "action" else BYTES.get(column.dtype, TEXT_BYTES) for column in columns)


def plan_chunks(
    directory: Path, manifest: Manifest, *, held_row_bytes: int, budget_bytes: int, chunk_rows: int | None
) -> Plan:
    """Cuts so that what is held at the same time stays within a budget.

    Args:
        directory: Where the day's files lie.
        manifest: The day of `events`.
        held_row_bytes: Bytes that the stage holds at the same time for each row of a chunk, over all copies.
        budget_bytes: `[compute] memory`, for rows: what the process holds already comes on top.
        chunk_rows: The most events of a chunk where the dataset file says so; None plans it.

    Raises:
        PipelineError: A file is missing or damaged.
    """
    rows = chunk_rows or min(CHUNK_ROWS, max(FEWEST_ROWS, _whole_groups(budget_bytes // held_row_bytes)))
    return Plan(
        rows=manifest.rows,
        file_bytes=sum(file.bytes for file in manifest.files),
        chunk_rows=rows,
        chunks=-(-manifest.rows // rows),
        giants=_giants(directory, manifest, rows),
        expected_bytes=held_bytes() + min(rows, manifest.rows) * held_row_bytes,
        budget_bytes=budget_bytes,
    )


def _whole_groups(rows: int) -> int:
    return rows - rows % ROW_GROUP_ROWS if rows > ROW_GROUP_ROWS else rows


def _giants(directory: Path, manifest: Manifest, chunk_rows: int) -> dict[int | str, int]:
    """Users who fill more rows than a chunk holds, counted over the row groups that are all theirs: no data is read."""
    alone: dict[int | str, int] = {}
    for file in manifest.files:
        path = directory / file.path
        try:
            footer = pq.read_metadata(path)
        except (OSError, pa.ArrowException) as error:
            raise unreadable(path, error) from None
        place = footer.schema.names.index("user_id")
        for group in range(footer.num_row_groups):
            statistics = footer.row_group(group).column(place).statistics
            if statistics is not None and statistics.has_min_max and statistics.min == statistics.max:
                alone[statistics.min] = alone.get(statistics.min, 0) + footer.row_group(group).num_rows
    return {user: rows for user, rows in alone.items() if rows > chunk_rows}

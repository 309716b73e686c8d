"""The sorted rows of a day to the files of `events`, counted on their way."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from pipeline.config import Dataset
from pipeline.events.duplicates import FINGERPRINT, find_ties
from pipeline.events.parts import joined
from pipeline.store import ROW_GROUP_ROWS, ContentHash, Staging

FILE_ROWS = 4 * ROW_GROUP_ROWS


@dataclass
class Written:
    """What was written to `events`.

    Attributes:
        rows: How many.
        ties: How many share user and instant with another.
        duplicates: How many double an earlier one, written or not.
        content_version: The hash of their values.
        by_action: Rows of each declared action.
        dropped: row_ids of the duplicates that were left out, int64, in pieces.
    """

    rows: int
    ties: int
    duplicates: int
    content_version: str
    by_action: dict[str, int]
    dropped: list[np.ndarray] = field(default_factory=list)


def write_events(ranges: Iterator[pl.DataFrame], dataset: Dataset, staging: Staging) -> Written:
    """Writes the rows of a day, without the duplicates that are to be dropped.

    Args:
        ranges: The rows in stored order, whole users together.
        dataset: The declarations.
        staging: Where to write.

    Raises:
        PipelineError: A file cannot be written.
    """
    content = ContentHash()
    written = Written(0, 0, 0, content_version="", by_action=dict.fromkeys(dataset.action_names, 0))

    for table in _in_files(_without_duplicates(ranges, dataset, written)):
        staging.write(table, compression="lz4")  # read by every later stage and its proof, and shipped to nobody
        content.update(table)
    written.content_version = content.hexdigest()
    return written


def _without_duplicates(ranges: Iterator[pl.DataFrame], dataset: Dataset, written: Written) -> Iterator[pl.DataFrame]:
    """The rows as they stand in `events`, counted on their way."""
    names = pl.Series(dataset.action_names, dtype=pl.Enum(dataset.action_names))
    for frame in ranges:
        tied, doubled = find_ties(frame)
        written.ties += tied
        written.duplicates += len(doubled)
        kept = frame
        if doubled and dataset.quality.duplicates == "drop":
            kept = frame.filter(~pl.col("row_id").is_in(pl.Series(doubled, dtype=pl.Int64).implode()))
            written.dropped.append(np.array(doubled, dtype=np.int64))
        written.rows += kept.height
        for name, count in zip(names, np.bincount(kept["action"], minlength=len(names)), strict=True):
            written.by_action[name] += int(count)
        yield pl.DataFrame([_as_written(column, names) for column in kept if column.name not in FINGERPRINT])


def _as_written(column: pl.Series, names: pl.Series) -> pl.Series:
    """A column of `events` as it is stored: actions by name, times as such."""
    if column.name == "action":
        return names.gather(column).alias("action")
    return column.cast(pl.Datetime("us", "UTC")) if column.name == "timestamp" else column


def _in_files(tables: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same rows, as many in a table as in a file; so the files of a day are the same whatever memory there was."""
    held: list[pl.DataFrame] = []
    rows = 0
    for table in tables:
        rest = table
        while rows + rest.height >= FILE_ROWS:
            # Cut before it is copied: else each file that is being written would keep the rows of the next one as well.
            missing = FILE_ROWS - rows
            whole = joined([*held, rest[:missing]])
            held, rows, rest = [], 0, rest[missing:]
            yield whole
        held.append(rest)
        rows += rest.height
    if rows:
        yield joined(held)

"""One raw file, read by the readers of the pipeline and once more in plain Python."""

import math
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import polars as pl

from pipeline.checks.raw import Wanted, read_records
from pipeline.checks.raw.records import stored
from pipeline.config import Dataset
from pipeline.sources import find_files, read_blocks

EVERY = range(10_000)
Records = list[tuple[int | None, dict[str, Any] | None]]


def agree(declared: Dataset, *, block_bytes: int = 1 << 20, small_steps: int = 1 << 20) -> Records:
    """Demands that both read the same records in the one file of a dataset.

    Args:
        declared: The dataset.
        block_bytes: For the readers.
        small_steps: How many bytes plain Python reads at a time.

    Returns:
        Line and cells of every record, without the missing ones; None for a malformed record.
    """
    (file,) = find_files(declared, None)
    reader = read_blocks(file, declared, block_bytes=block_bytes)
    theirs, columns = [], set()
    for block in reader:
        columns |= set(block.frame.columns)
        theirs += [
            (line, None if malformed else _present(cells))
            for cells, line, malformed in zip(_rows(block.frame), block.line, block.malformed, strict=True)
        ]
    usual, stored.BLOCK_BYTES = stored.BLOCK_BYTES, small_steps
    try:
        reading = read_records(file.path, dataset=declared, wanted=Wanted(EVERY))
        counted = read_records(file.path, dataset=declared, wanted=Wanted(()))
    finally:
        stored.BLOCK_BYTES = usual
    explode = declared.source.explode
    # What is left of the column in which a nested list stood is not laid down.
    beside = {explode.column.split(".")[0]} if explode is not None and "." in explode.column else set()
    needed = columns | (set(declared.raw_columns) & {name for r in reading.found.values() for name in r.cells or ()})
    needed -= beside
    theirs = [(line, cells and {n: c for n, c in cells.items() if n in needed}) for line, cells in theirs]
    ours: Records = [
        (
            record.line,
            None if record.cells is None else _present({n: c for n, c in record.cells.items() if n in needed}),
        )
        for record in reading.found.values()
    ]
    for ordinal, (our, their) in enumerate(zip(ours, theirs, strict=False)):
        assert our == their, f"record {ordinal}: plain Python {our}, reader {their}"
    assert reading.records == counted.records == len(theirs)
    assert reading.sha256 == counted.sha256 == reader.checksum
    return ours


def _rows(frame: pl.DataFrame) -> Sequence[dict[str, Any]]:
    return [dict(zip(frame.columns, row, strict=True)) for row in frame.rows()] if frame.width else [{}] * frame.height


def _present(cells: dict[str, Any]) -> dict[str, Any]:
    return {name: _comparable(cell) for name, cell in cells.items() if cell is not None}


def _comparable(cell: Any) -> Any:
    if isinstance(cell, float) and math.isnan(cell):
        return "NaN"
    if isinstance(cell, date) and not isinstance(cell, datetime):  # a day of Arrow's date64 may be read as its midnight
        return datetime(cell.year, cell.month, cell.day)  # noqa: DTZ001
    return cell

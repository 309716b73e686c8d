"""Raw files for the tests of `pipeline.sources`: a dataset file around them, and all that a reader delivers."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.config import Dataset
from pipeline.sources import RawFile, find_files, read_blocks

PRICE = {"price": {"from": "p", "type": "float64"}}


def dataset(folder: Path, path: str, **source: Any) -> Dataset:
    """A dataset file in `folder`; `columns` replaces parts of [columns], all else belongs to [source]."""
    columns = {
        "user_id": {"from": "user", "type": "int64"},
        "item_id": {"from": "item", "type": "string"},
        "timestamp": {"from": "time", "unit": "s"},
        "action": {"value": "view"},
        **source.pop("columns", {}),
    }
    raw = {
        "name": "test",
        "partitions": {"start": "2020-01-01", "end": "2020-12-31"},
        "source": {"path": path, **source},
        "columns": columns,
        "actions": {"names": ["view"]},
        "store": {"root": "out"},
    }
    return Dataset.model_validate(raw).model_copy(update={"file": folder / "dataset.toml"})


def declared_raw(
    folder: Path,
    *,
    start: str = "2024-03-01",
    end: str = "2024-03-02",
    extra: Mapping[str, Any] = PRICE,
    **columns: Any,
) -> Dataset:
    """A dataset file for the second reading; `columns` replaces parts of [columns]."""
    raw = {
        "name": "raw",
        "partitions": {"start": start, "end": end},
        "source": {"path": "{date}.csv"},
        "columns": {
            "user_id": {"from": "u", "type": "int64"},
            "item_id": {"from": "i", "type": "string"},
            "timestamp": {"from": "t", "unit": "s"},
            "action": {"from": "a"},
            **columns,
        },
        "actions": {"names": ["view", "buy"]},
        "extra": extra,
        "store": {"root": "out"},
    }
    return Dataset.model_validate(raw).model_copy(update={"file": folder / "dataset.toml"})


@dataclass
class Everything:
    """A whole file as it was read."""

    frame: pl.DataFrame
    rows: list[tuple]
    lines: list[int | None]
    malformed: list[bool]
    raw: list[str]
    warnings: dict[str, int]
    checksum: str
    blocks: int


def read_file(file: RawFile, declared: Dataset, block_bytes: int) -> Everything:
    reader = read_blocks(file, declared, block_bytes=block_bytes)
    blocks = list(reader)
    frame = pl.concat([block.frame for block in blocks])
    for block in blocks:
        assert block.line.dtype == pl.Int64
        assert block.malformed.dtype == pl.Boolean
        assert len(block.line) == len(block.malformed) == block.frame.height
    return Everything(
        frame=frame,
        rows=frame.rows(),
        lines=[line for block in blocks for line in block.line],
        malformed=[flag for block in blocks for flag in block.malformed],
        raw=[text for block in blocks for text in block.raw_text(range(block.frame.height))],
        warnings=reader.warnings,
        checksum=reader.checksum,
        blocks=len(blocks),
    )


def read(folder: Path, name: str, content: bytes, *, block_bytes: int = 1 << 20, **source: Any) -> Everything:
    """Writes one file and reads it."""
    (folder / name).write_bytes(content)
    declared = dataset(folder, name, **source)
    (file,) = find_files(declared, None)
    return read_file(file, declared, block_bytes)

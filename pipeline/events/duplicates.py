"""Rows that are equal in all raw columns: they are tied in user and time, so they stand side by side after the sort."""

import polars as pl

from pipeline.config import Dataset
from pipeline.events.origin import declared_columns

FINGERPRINT = ("_hash_a", "_hash_b")


def fingerprints(raw: pl.DataFrame, dataset: Dataset, *, only_file: bool) -> list[pl.Series]:
    """A 128-bit hash of the raw cells of each row, in two columns, to travel through the sort.

    Args:
        raw: All raw columns [rows].
        dataset: The declarations.
        only_file: Whether the day has one raw file; several may differ in their columns, and are always hashed.

    Returns:
        Two UInt64 series [rows]; none where equal values mean equal raw cells, and the values themselves can be compared.
    """
    if only_file and _values_tell_all(raw.schema, dataset):
        return []
    cells = raw.select(sorted(raw.columns))  # files may differ in the order of their columns
    return [cells.hash_rows(seed).alias(name) for seed, name in enumerate(FINGERPRINT)]


def find_ties(frame: pl.DataFrame) -> tuple[int, list[int]]:
    """How many rows share user and instant with another, and the row_ids of those that double an earlier one.

    Args:
        frame: Sorted by (user_id, timestamp, row_id), whole users; with fingerprints where there are any.
    """
    user_id, time_us = frame["user_id"], frame["timestamp"]
    as_before = ((user_id == user_id.shift(1)) & (time_us == time_us.shift(1))).fill_null(value=False)
    if not as_before.any():
        return 0, []
    tied = frame.filter(as_before | as_before.shift(-1, fill_value=False))
    present = [name for name in FINGERPRINT if name in frame.columns]
    compared = ["user_id", "timestamp", *present] if present else [name for name in frame.columns if name != "row_id"]
    doubled = tied.filter(~pl.struct(compared).is_first_distinct())
    return tied.height, doubled["row_id"].to_list()


def _values_tell_all(schema: pl.Schema, dataset: Dataset) -> bool:
    """Whether every raw column stands in the values, each through a conversion that keeps different cells apart."""
    declared = declared_columns(dataset)
    taken = {column.from_ for column in declared.values() if column.from_ is not None}
    return taken == set(schema) and all(
        column.sql is None and (column.from_ is None or _keeps_apart(name, schema[column.from_], dataset))
        for name, column in declared.items()
    )


def _keeps_apart(name: str, raw: pl.DataType, dataset: Dataset) -> bool:
    if name == "timestamp":
        return raw.is_integer() and dataset.columns.timestamp.unit in ("s", "ms", "us")
    if name == "action":
        return raw == pl.String
    ids = {"user_id": dataset.columns.user_id, "item_id": dataset.columns.item_id}
    column = ids.get(name) or dataset.extra[name]
    if column.type == "int64":
        return raw.is_integer()
    # An optional text may be empty or null, and both are missing.
    return column.type == "string" and raw == pl.String and not getattr(column, "optional", False)

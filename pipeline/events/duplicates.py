"""Rows that are equal in all raw columns: they are tied in user and time, so they stand side by side after the sort."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from pipeline.config import Dataset, ExtraColumn, IdColumn
from pipeline.events.times.numbers import PLACES

FINGERPRINT = ("_hash_a", "_hash_b")


def number_columns(dataset: Dataset) -> frozenset[str]:
    """The raw columns of text that may be read as numbers, where each number has one spelling, without a trace of the text.

    None where rows have to be told apart by texts that do not stand in their values.
    """
    declared = dataset.declared_columns
    takers: dict[str, list[str]] = {}
    for name, column in declared.items():
        takers.setdefault(column.from_ or "", []).append(name)
    numbers = {
        raw for raw, names in takers.items() if all(_keeps_apart(name, pl.Int64(), dataset) for name in names) and raw
    }
    schema = pl.Schema({raw: pl.Int64 if raw in numbers else pl.String for raw in takers if raw})
    plain = dataset.source.explode is None and not dataset.source.hive
    return frozenset(numbers) if plain and _values_tell_all(schema, dataset) else frozenset()


def fingerprints(raw: pl.DataFrame, values: pl.DataFrame, dataset: Dataset) -> list[pl.Series]:
    """A 128-bit hash of the raw cells of each row, in two columns, to travel through the sort.

    Args:
        raw: All raw columns [rows].
        values: The same rows, typed.
        dataset: The declarations.

    Returns:
        Two UInt64 series [rows], null for rows of which equal values mean equal raw cells; none when all rows are such.
    """
    if _values_tell_all(raw.schema, dataset):
        return []
    cells = raw.select(sorted(raw.columns))  # files may differ in the order of their columns
    hashes = [cells.hash_rows(seed).alias(name) for seed, name in enumerate(FINGERPRINT)]
    as_printed = _as_printed(raw, values, dataset)
    return hashes if as_printed is None else [column.set(as_printed, None) for column in hashes]


def find_ties(frame: pl.DataFrame) -> tuple[int, list[int]]:
    """How many rows share user and instant with another, and the row_ids of those that double an earlier one.

    Args:
        frame: Sorted by (user_id, timestamp, row_id), whole instants of users; with fingerprints where there are any.
    """
    users, times = frame["user_id"], frame["timestamp"].to_numpy()
    tied = np.zeros(frame.height, dtype=bool)  # with the row before
    np.equal(times[1:], times[:-1], out=tied[1:])
    tied[1:] &= (users.slice(1) == users.head(-1)).to_numpy()
    if not tied.any():
        return 0, []
    followed = np.append(tied[1:], False)
    ties = frame[pl.Series(np.flatnonzero(tied | followed).astype(np.uint32))]
    again = pl.Series(tied[tied | followed])
    compared = [name for name in frame.columns if name not in ("row_id", "user_id", "timestamp")]
    doubled = ties["row_id"].filter(again & _as_before(ties, compared))
    third = again & again.shift(1, fill_value=False)
    if third.any():  # of three or more, one may double another that is not next to it
        tie = (~again).cum_sum()
        larger = ties.filter(tie.is_in(tie.filter(third).unique().implode()))
        repeats = ~larger.select(pl.struct("user_id", "timestamp", *compared).is_first_distinct()).to_series()
        doubled = pl.concat([doubled, larger["row_id"].filter(repeats)]).unique()
    return ties.height, doubled.to_list()


def _as_before(frame: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    """Whether each row equals the one before it in these columns, Boolean [rows]."""
    equal = pl.repeat(True, max(0, frame.height - 1), dtype=pl.Boolean, eager=True)
    for name in names:
        equal &= frame[name].slice(1).eq_missing(frame[name].head(-1))
    return pl.concat([pl.Series([False][: frame.height], dtype=pl.Boolean), equal])


def _as_printed(raw: pl.DataFrame, values: pl.DataFrame, dataset: Dataset) -> pl.Series | None:
    """Which rows could as well have come as numbers, Boolean [rows]; None where that is not to be known."""
    numbers = number_columns(dataset) & {name for name, dtype in raw.schema.items() if dtype == pl.String}
    as_numbers = pl.Schema({name: pl.Int64 if name in numbers else dtype for name, dtype in raw.schema.items()})
    if not numbers or not _values_tell_all(as_numbers, dataset):
        return None
    printed = pl.repeat(True, raw.height, dtype=pl.Boolean, eager=True)
    for name, column in dataset.declared_columns.items():
        if column.from_ in numbers:
            unit_us = 10 ** PLACES[dataset.columns.timestamp.unit or "us"] if name == "timestamp" else 1
            printed &= raw[column.from_].eq_missing((values[name] // unit_us).cast(pl.String))
    return printed


def _values_tell_all(schema: pl.Schema, dataset: Dataset) -> bool:
    """Whether every raw column stands in the values, each through a conversion that keeps different cells apart."""
    declared = dataset.declared_columns
    taken = {column.from_ for column in declared.values() if column.from_ is not None}
    return taken == set(schema) and all(
        column.sql is None and (column.from_ is None or _keeps_apart(name, schema[column.from_], dataset))
        for name, column in declared.items()
    )


def _keeps_apart(name: str, raw: pl.DataType, dataset: Dataset) -> bool:
    """Whether two different cells of an accepted row never become the same value.

    Blanks that are cut off, further texts that mean missing, renamed actions, and decimals and texts of numbers (1.50
    and 1.5) do not keep apart. A column that only `time_from` names stands in no value of its own.
    """
    column = dataset.declared_columns[name]
    if column.strip or column.null_values:
        return False
    if name == "timestamp":
        return raw.is_integer() and dataset.columns.timestamp.unit in ("s", "ms", "us")
    if name == "action":
        return raw == pl.String and not dataset.columns.action.rename
    assert isinstance(column, IdColumn | ExtraColumn)
    if column.type == "int64":
        return raw.is_integer()
    # An optional text may be empty or null, and both are missing.
    return column.type == "string" and raw == pl.String and not getattr(column, "optional", False)

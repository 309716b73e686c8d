"""The slow, obvious version that judges the fast one: plain Python over one event at a time."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.contracts import Column, Event, Feature

Difference = dict[str, Any]


def fold(
    features: Sequence[Feature], state: Mapping[str, Any] | None, events: Sequence[Event]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Steps every feature's oracle through the events of one user.

    Args:
        features: The features in use.
        state: The carried state `<feature>.<column>` -> value; None for a user without a past.
        events: The user's events of the day, in any order.

    Returns:
        The state afterwards, and one row of feature values an event, in the order (timestamp, row_id).
    """
    ordered = sorted(events, key=lambda event: (event.timestamp_us, event.row_id))
    rows: list[dict[str, Any]] = [{} for _ in ordered]
    after: dict[str, Any] = {}
    for feature in features:
        own = feature.initial()
        if state is not None and feature.state:
            own = {column.name: state[feature.name + "." + column.name] for column in feature.state}
        for position, event in enumerate(ordered):
            own, row = feature.step(own, event)
            rows[position].update(row)
        for column in feature.state:
            after[feature.name + "." + column.name] = own[column.name]
    return after, rows


def as_written(value: Any, dtype: str) -> Any:
    """A plain value as its declared type holds it: float32 is rounded once, from float64."""
    if dtype == "float32":
        return struct.unpack("<f", struct.pack("<f", value))[0]
    return value


def compare(
    expected: Iterable[Mapping[str, Any]],
    found: Iterable[Mapping[str, Any]],
    columns: Sequence[Column],
    *,
    user_id: object,
    row_ids: Sequence[int | None],
) -> list[Difference]:
    """The values of one user that differ, row by row and column by column."""
    differences: list[Difference] = []
    for row_id, wanted, row in zip(row_ids, expected, found, strict=True):
        for column in columns:
            right, value = as_written(wanted[column.name], column.dtype), row[column.name]
            if type(right) is not type(value) or right != value:
                differences.append(
                    {"user_id": user_id, "row_id": row_id, "column": column.name, "expected": right, "found": value}
                )
    return differences

"""The columns of `opening` and `closing`, and the tensors that features see of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from pipeline.chunks import opening_tensors
from pipeline.config import Dataset
from pipeline.contracts import Column, Feature

if TYPE_CHECKING:
    import torch


def state_columns(features: Sequence[Feature], dataset: Dataset) -> list[Column]:
    """The columns of `opening` and `closing`: user_id and `<feature>.<column>` for all that is carried."""
    declared = Column("user_id", dataset.columns.user_id.type, meaning="raw id of the user")
    return [declared, *(column for feature in features for column in carried_columns(feature).values())]


def carried_columns(feature: Feature) -> dict[str, Column]:
    """Column of `user_state` -> declaration, for one feature, in declared order."""
    return {
        f"{feature.name}.{column.name}": Column(
            f"{feature.name}.{column.name}",
            column.dtype,
            column.unit,
            column.meaning,
            column.minimum,
            column.maximum,
            initial=column.initial,
        )
        for column in feature.state
    }


def carried_tensors(
    feature: Feature, opening: pl.DataFrame, users: pl.Series, *, device: "torch.device"
) -> dict[str, "torch.Tensor"]:
    """What one feature carries into a chunk, by its own names of the columns; tensors [U].

    Args:
        feature: The feature.
        opening: Rows of `opening`, at most one a user.
        users: user_id [U], ascending.
        device: Where the tensors go.
    """
    tensors = opening_tensors(opening, users, carried_columns(feature), device=device)
    return {name.removeprefix(f"{feature.name}."): tensor for name, tensor in tensors.items()}


def feature_config(features: Sequence[Feature], dataset: Dataset) -> dict[str, object]:
    """Which features are in use, with their parameters."""
    return {feature.name: dataset.features.parameters.get(feature.name, {}) for feature in features}

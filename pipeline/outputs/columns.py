"""What a day of `features` holds and what it is made of."""

from collections.abc import Sequence
from datetime import date

from pipeline.config import Dataset
from pipeline.contracts import Column, Feature
from pipeline.features import output_columns
from pipeline.state import feature_config
from pipeline.store import Recipe, Store, require_current

VERSION = 2


def feature_columns(features: Sequence[Feature], dataset: Dataset) -> list[Column]:
    """The columns of `features`: identity, indices, features, kept extra columns."""
    columns = dataset.columns
    return [
        Column("row_id", "int64", meaning="the event's row_id; with day it joins back to events", minimum=0),
        Column("user_id", columns.user_id.type, meaning="raw id of the user"),
        Column("item_id", columns.item_id.type, meaning="raw id of the item", nullable=columns.item_id.optional),
        Column("timestamp", "timestamp", unit="us", meaning="when it happened, UTC"),
        Column("user_index", "int32", meaning="index in user_vocabulary; 1 is unknown", minimum=1),
        Column("item_index", "int32", meaning="index in item_vocabulary; 1 is unknown, 0 a missing item", minimum=0),
        *output_columns(features, dataset),
        *(column for column in dataset.extra_columns if dataset.extra[column.name].keep),
    ]


def features_recipe(*, day: date, dataset: Dataset, features: Sequence[Feature], store: Store) -> Recipe:
    """What a day of features would be made of now.

    Raises:
        PipelineError: An input is missing or not current.
    """
    inputs = {
        "events": require_current(store, "events", day, dataset).version(),
        "user_vocabulary": require_current(store, "user_vocabulary", day, dataset).version(),
        "item_vocabulary": require_current(store, "item_vocabulary", day, dataset).version(),
        "user_state.opening": require_current(store, "user_state", day, dataset).version("opening"),
    }
    config = {
        "features": feature_config(features, dataset),
        "actions": list(dataset.action_names),
        "extra": {
            column.name: {"type": column.dtype, "optional": column.nullable}
            for column in dataset.extra_columns
            if dataset.extra[column.name].keep
        },
    }
    code = {"outputs": VERSION, **{feature.name: feature.version for feature in features}}
    return Recipe(config=config, code=code, inputs=inputs)

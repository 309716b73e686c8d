"""What a day of state is made of, and from which day before it can be carried on."""

from collections.abc import Sequence
from datetime import date, timedelta

from pipeline.config import Dataset
from pipeline.contracts import Feature, PipelineError
from pipeline.state.columns import carried_columns, feature_config
from pipeline.store import Manifest, Recipe, Store, previous, require_current

VERSION = 2


def state_recipe(*, day: date, dataset: Dataset, features: Sequence[Feature], store: Store) -> Recipe:
    """What a day of state would be made of now.

    Raises:
        PipelineError: An input is missing or not current, or the day before lacks a feature's state.
    """
    inputs = {"events": require_current(store, "events", day, dataset).version()}
    if day > dataset.partitions.start:
        before = require_current(store, "user_state", previous(day), dataset)
        _require_same_features(before, features, dataset)
        inputs[f"user_state.closing@{previous(day)}"] = before.version("closing")
    return Recipe(
        config={"features": feature_config(features, dataset)},
        code={"state": VERSION, **{feature.name: feature.version for feature in features}},
        inputs=inputs,
    )


def _require_same_features(before: Manifest, features: Sequence[Feature], dataset: Dataset) -> None:
    """State can be carried on only by the code that made it: same stage, and features of same columns, version and parameters."""
    present = {column["name"] for column in before.columns}
    configured = feature_config(features, dataset)
    why = None
    if before.code.get("state") != VERSION:
        why = f"cannot be carried on, since version {before.code.get('state')} of this stage made it and this is version {VERSION}"
    for feature in (feature for feature in features if feature.state and why is None):
        lacking = [name for name in carried_columns(feature) if name not in present]
        made_with = (before.code.get(feature.name), before.config["features"].get(feature.name))
        if lacking or made_with != (feature.version, configured[feature.name]):
            how = (
                "was made without it"
                if lacking
                else f"was made with version {made_with[0]} and parameters {made_with[1]}"
            )
            why = (
                f"cannot be carried on by feature '{feature.name}' (version {feature.version}, parameters "
                f"{configured[feature.name]}), since it {how}"
            )
    if why is not None:
        again = dataset.command(["user_state"], dataset.partitions.start, before.day + timedelta(days=1))
        raise PipelineError(f"user_state of {before.day} {why}; run: {again}")

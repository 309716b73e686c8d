"""What is carried from one day to the next: `opening` for the day's users, `closing` for all users."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING

import polars as pl

from pipeline.chunks import iter_chunks, opening_tensors, resolve_device, to_tensors
from pipeline.config import Dataset
from pipeline.contracts import Chunk, Column, Feature, PipelineError, State
from pipeline.store import (
    POLARS_DTYPES,
    ContentHash,
    Manifest,
    Recipe,
    Staged,
    Store,
    manifest_schema,
    previous,
    read_files,
    require_current,
    row_hash_sum,
)

if TYPE_CHECKING:
    import torch

VERSION = 2
MASK_128 = (1 << 128) - 1


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


def read_state(store: Store, manifest: Manifest, role: str) -> pl.DataFrame:
    """One of the two tables of a day, sorted by user_id."""
    directory = store.directory("user_state", manifest.day)
    return read_files(directory, manifest.of_role(role), manifest_schema(manifest)).collect()


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


def feature_config(features: Sequence[Feature], dataset: Dataset) -> dict[str, object]:
    """Which features are in use, with their parameters."""
    return {feature.name: dataset.features.parameters.get(feature.name, {}) for feature in features}


def make_user_state(
    *,
    day: date,
    dataset: Dataset,
    features: Sequence[Feature],
    store: Store,
    run: str,
    report: Callable[[str], None],
) -> Staged:
    """Summarises a day and combines it with the day before.

    Args:
        day: UTC day.
        dataset: The declarations.
        features: The features in use.
        store: Where to read and stage.
        run: Name of the run.
        report: Gets a line of progress a chunk.

    Raises:
        PipelineError: `events`, or the day before, are missing or not current.
    """
    recipe = state_recipe(day=day, dataset=dataset, features=features, store=store)
    events = require_current(store, "events", day, dataset)
    columns = state_columns(features, dataset)
    schema = {column.name: POLARS_DTYPES[column.dtype] for column in columns}
    before = store.manifest("user_state", previous(day)) if day > dataset.partitions.start else None
    known = pl.DataFrame(schema=schema) if before is None else read_state(store, before, "closing").select(list(schema))

    openings, changes = [pl.DataFrame(schema=schema)], [pl.DataFrame(schema=schema)]
    device = resolve_device("cpu")
    done = 0
    for chunk in iter_chunks(store.directory("events", day), events, chunk_rows=dataset.compute.chunk_rows):
        users = chunk.users
        opening = known.join(users.to_frame(), on="user_id", how="semi", maintain_order="left")
        tensors = to_tensors(chunk, dataset=dataset, device=device)
        changed = [users]
        for feature in features:
            changed += _carry(feature, tensors, carried_tensors(feature, opening, users, device=device))
        openings.append(opening)
        changes.append(pl.DataFrame(changed).cast(schema))  # type: ignore[arg-type]
        done += chunk.frame.height
        report(f"user_state {day}: {done:,} of {events.rows:,} events summarised")

    opening, changed = pl.concat(openings), pl.concat(changes)
    former = (
        row_hash_sum(known)
        if before is None or _dropped_columns(before, schema)
        else int(before.version("closing"), 16)
    )
    closing = pl.concat([known.join(changed, on="user_id", how="anti"), changed]).sort("user_id")
    with store.stage("user_state", day, run=run) as staging:
        if opening.height:
            staging.write(opening, role="opening")
        if closing.height:
            staging.write(closing, role="closing")
        opening_hash = ContentHash()
        opening_hash.update(opening)
        return staging.finish(
            rows=opening.height,
            columns=columns,
            recipe=recipe,
            content_version={
                "opening": opening_hash.hexdigest(),
                "closing": closing_version(former, left=opening, came=changed),
            },
            counts={
                "users": changed.height,
                "new_users": changed.height - opening.height,
                "closing_rows": closing.height,
            },
            facts={},
        )


def closing_version(former: int, *, left: pl.DataFrame, came: pl.DataFrame) -> str:
    """The version of `closing`: that of the day before, without the rows that left and with those that came.

    Args:
        former: The sum over the rows of the day before.
        left: Rows of the day before that are replaced.
        came: The day's users as they are now.
    """
    return f"{(former - row_hash_sum(left) + row_hash_sum(came)) & MASK_128:032x}"


def _dropped_columns(before: Manifest, schema: Mapping[str, object]) -> bool:
    """Whether the day before carried features that are no longer in use."""
    return {column["name"] for column in before.columns} != set(schema)


def _carry(feature: Feature, chunk: Chunk, opening: State) -> list[pl.Series]:
    """The state of a feature after a chunk, one series a carried column."""
    if feature.summarise is None or feature.combine is None:
        return []
    after = feature.combine(opening, feature.summarise(chunk))
    return [pl.Series(f"{feature.name}.{column.name}", after[column.name].numpy()) for column in feature.state]


def _require_same_features(before: Manifest, features: Sequence[Feature], dataset: Dataset) -> None:
    """State can be carried on only by the feature that made it: same columns, version and parameters."""
    present = {column["name"] for column in before.columns}
    configured = feature_config(features, dataset)
    for feature in (feature for feature in features if feature.state):
        lacking = [name for name in carried_columns(feature) if name not in present]
        made_with = (before.code.get(feature.name), before.config["features"].get(feature.name))
        if lacking or made_with != (feature.version, configured[feature.name]):
            why = (
                "was made without it"
                if lacking
                else f"was made with version {made_with[0]} and parameters {made_with[1]}"
            )
            raise PipelineError(
                f"user_state of {before.day} cannot be carried on by feature '{feature.name}' (version {feature.version}, parameters "
                f"{configured[feature.name]}), since it {why}; "
                + "run: "
                + dataset.command(["user_state"], dataset.partitions.start, before.day + timedelta(days=1))
            )

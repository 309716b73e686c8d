"""Makes a day of `user_state`: the day's users are looked up, their events summarised, and only they are written."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date

import polars as pl

from pipeline.chunks import columns_to_summarise, iter_chunks, resolve_device, to_tensors
from pipeline.config import Dataset
from pipeline.contracts import Chunk, Feature, State
from pipeline.state.closing import GROUP_ROWS, ClosingReader, latest_blocks, merge_from
from pipeline.state.columns import carried_tensors, state_columns
from pipeline.state.recipe import state_recipe
from pipeline.store import (
    POLARS_DTYPES,
    ContentHash,
    Manifest,
    Staged,
    Staging,
    Store,
    manifest_schema,
    previous,
    require_current,
    row_hash_sum,
)
from pipeline.threads import ahead

FILE_USERS = 1 << 22  # users whose rows are held back for one file
MASK_128 = (1 << 128) - 1


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
    before = store.manifest("user_state", previous(day)) if day > dataset.partitions.start else None
    columns = state_columns(features, dataset)
    with store.stage("user_state", day, run=run) as staging:
        former = _Former(store, before, {column.name: POLARS_DTYPES[column.dtype] for column in columns})
        former.take_over(staging, merge=events.rows > 0)
        openings, changes = _Rows(staging, "opening"), _Rows(staging, "closing")
        for done in _carry(events, former, openings, changes, features, dataset, store):
            report(f"user_state {day}: {done:,} of {events.rows:,} events summarised")
        new_users = changes.rows - openings.rows
        closing = (former.version - openings.hashes + changes.hashes) & MASK_128
        return staging.finish(
            rows=openings.rows,
            columns=columns,
            recipe=recipe,
            content_version={"opening": openings.content.hexdigest(), "closing": f"{closing:032x}"},
            counts={"users": changes.rows, "new_users": new_users, "closing_rows": former.rows + new_users},
            facts={},
        )


class _Former:
    """`closing` of the day before.

    Attributes:
        schema: The columns that are carried on.
        rows: Its users.
        version: The sum of the hashes of its rows.
    """

    def __init__(self, store: Store, before: Manifest | None, schema: dict[str, pl.DataType]) -> None:
        self.schema = schema
        self.rows: int = before.counts["closing_rows"] if before else 0
        self.version = int(before.version("closing"), 16) if before else 0
        self._files = before.of_role("closing") if before else []
        self._folder = store.directory("user_state", before.day) if before else store.root
        self._dropped = before is not None and list(manifest_schema(before)) != list(schema)

    def reader(self) -> ClosingReader:
        """Finds users in it."""
        return ClosingReader(self._folder, self._files, self.schema)

    def take_over(self, staging: Staging, *, merge: bool) -> None:
        """Takes its files over into the new day; those of like size become one, and all of them when a feature was dropped.

        Args:
            staging: The new day.
            merge: Whether files may become one.
        """
        first = merge_from([file.rows for file in self._files]) if merge else len(self._files)
        if self._dropped:
            first = 0
            self.version = sum(row_hash_sum(block) for block in self._latest(0))
        for file in self._files[:first]:
            staging.link(self._folder, file)
        if first < len(self._files):
            staging.write_blocks(self._latest(first), row_group_rows=GROUP_ROWS, role="closing")

    def _latest(self, first: int) -> Iterator[pl.DataFrame]:
        return latest_blocks(self._folder, self._files[first:], list(self.schema))


class _Rows:
    """Rows of one role on their way to files, and what their version is made of."""

    def __init__(self, staging: Staging, role: str) -> None:
        self._staging, self._role = staging, role
        self._held: list[pl.DataFrame] = []
        self.rows, self.hashes, self.content = 0, 0, ContentHash()

    def add(self, rows: pl.DataFrame) -> None:
        self._held.append(rows)
        if sum(part.height for part in self._held) >= FILE_USERS:
            self.write(keep=1)

    def take_back(self) -> pl.DataFrame:
        """The last row, which is no longer there."""
        last = self._held[-1]
        self._held[-1] = last[:-1]
        return last[-1:]

    def write(self, *, keep: int = 0) -> None:
        """Writes what is held back, but for the last frames."""
        parts, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        rows = pl.concat(parts) if parts else pl.DataFrame()
        if rows.height:
            self._staging.write_blocks([rows], row_group_rows=GROUP_ROWS, role=self._role)
            self.rows += rows.height
            self.hashes += row_hash_sum(rows)
            if self._role == "opening":  # the version of closing is the sum alone
                self.content.update(rows)


def _carry(
    events: Manifest,
    former: _Former,
    openings: _Rows,
    changes: _Rows,
    features: Sequence[Feature],
    dataset: Dataset,
    store: Store,
) -> Iterator[int]:
    """Carries the state over a day, chunk by chunk, and yields the number of events done."""
    device, done = resolve_device("cpu"), 0
    chunks = iter_chunks(
        store.directory("events", events.day),
        events,
        columns=columns_to_summarise(features, dataset),
        actions=dataset.action_names,
    )
    with former.reader() as reader:
        for chunk in ahead(chunks):
            users = chunk.users
            known = reader.rows_of(users[1:] if chunk.continues else users)
            earlier = pl.concat([changes.take_back(), known]) if chunk.continues else known
            tensors = to_tensors(chunk, dataset=dataset, device=device)
            changed = [users]
            for feature in features:
                changed += _after(feature, tensors, carried_tensors(feature, earlier, users, device=device))
            openings.add(known)
            changes.add(pl.DataFrame(changed).cast(former.schema))  # type: ignore[arg-type]
            done += chunk.frame.height
            yield done
    openings.write()
    changes.write()


def _after(feature: Feature, chunk: Chunk, opening: State) -> list[pl.Series]:
    """The state of a feature after a chunk, one series a carried column."""
    if feature.summarise is None or feature.combine is None:
        return []
    after = feature.combine(opening, feature.summarise(chunk))
    return [pl.Series(f"{feature.name}.{column.name}", after[column.name].numpy()) for column in feature.state]

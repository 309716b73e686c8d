"""The carried state of sampled users as the loop folds it, event by event."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import chain
from typing import Any

import polars as pl

from pipeline.checks.oracle import LOOP_ROWS, Loop, uncollected
from pipeline.checks.reading import Subject, events_of, rows_by_user
from pipeline.events import event_columns
from pipeline.store import scan


def fold_users(
    subject: Subject, users: pl.Series, giants: pl.Series, openings: Mapping[Any, Mapping[str, Any]] | None
) -> Iterator[tuple[Any, dict[str, Any], int]]:
    """Takes some users through their events.

    Args:
        subject: The day of `user_state`.
        users: user_id of users who have events.
        giants: Those of them whose events are not held together with those of the others.
        openings: What they carried into the day, and they go through that day; None takes them through all days.

    Yields:
        A user, the carried state afterwards, and how many events it took.
    """
    if openings is None:
        by_user = rows_by_user(_all_days(subject), users)
    else:
        large = users.is_in(giants.implode())
        by_user = chain(
            rows_by_user(subject.events(), users.filter(~large)),
            ((user, _streamed(subject, user)) for user in users.filter(large)),
        )
    with uncollected():
        for user, pieces in by_user:
            loop, events = Loop(subject.features, (openings or {}).get(user)), 0
            for rows in pieces:
                loop.step(events_of(user, rows, rows["action"].to_list(), subject.dataset))
                events += rows.height
            yield user, loop.state(), events


def _all_days(subject: Subject) -> pl.LazyFrame:
    """The events from the first day on, with row_ids that ascend over the days."""
    start, last = subject.dataset.partitions.start, subject.manifest.day
    days = {start + timedelta(days=number): number for number in range((last - start).days + 1)}
    first_of_day = pl.col("day").replace_strict(days, return_dtype=pl.Int64) * 2**40
    return scan(subject.store.root, "events", start, last).with_columns(pl.col("row_id") + first_of_day)


def _streamed(subject: Subject, user: int | str) -> Iterator[pl.DataFrame]:
    """The day's events of a user who has very many."""
    columns = [column.name for column in event_columns(subject.dataset)]
    for block in subject.blocks(columns, of=subject.input("events"), user=user):
        yield from block.iter_slices(LOOP_ROWS)

"""Proofs about `features`: the same rows as `events`, and the values that the loop gives."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from pipeline.checks.distributions import GAPS, by_gap, count_gaps
from pipeline.checks.findings import Findings
from pipeline.checks.invariants import (
    count_actions,
    count_events,
    count_hot,
    moved_rows,
    tied_users,
    times_before,
    wrong_gaps,
    wrong_indices,
    wrong_one_hots,
    wrong_totals,
)
from pipeline.checks.oracle import compare, fold
from pipeline.checks.reading import (
    Subject,
    events_by_user,
    prove_files,
    prove_manifest,
    prove_schema,
    range_problems,
    rows_by_user,
    states_by_user,
)
from pipeline.checks.sampling import choose_users
from pipeline.features import output_columns
from pipeline.outputs import feature_columns, features_recipe
from pipeline.store import ContentHash, Manifest, manifest_schema, read_files
from pipeline.vocabularies import read_vocabulary

ROW_PROOFS = (
    "same rows as events, in the same order",
    "values are within their declared ranges",
    "the one-hot marks the action and nothing else",
    "every time_diff and is_first = shifted timestamps",
    "time_diff adds up to each user's time span",
    "indices are those of the vocabularies",
)
IDENTITY = ("row_id", "user_id", "item_id", "timestamp")


def prove_features(subject: Subject, findings: Findings) -> dict[str, Any]:
    """Proves a day of features against its events.

    Args:
        subject: The day.
        findings: Where to note.
    """
    prove_files(subject, findings)
    if any(not finding.passed for finding in findings.found):
        return {}
    prove_schema(
        subject.rows(), feature_columns(subject.features, subject.dataset), findings, name="columns are as declared"
    )
    recipe = features_recipe(
        day=subject.manifest.day, dataset=subject.dataset, features=subject.features, store=subject.store
    )
    prove_manifest(subject, feature_columns(subject.features, subject.dataset), recipe.inputs, findings)
    events = subject.input("events")
    findings.expect("as many rows as events", expected=events.rows, found=subject.manifest.rows)
    if not all(finding.passed for finding in findings.found):
        return {}
    with findings.timed("every row, reading back included"):
        day = _prove_all_rows(subject, findings)
    with findings.timed("the loop over sampled users"):
        sampled = _prove_sample(subject, findings, day)
    return {
        "rows_covered": subject.manifest.rows,
        **sampled,
        "time_diff": by_gap(day.gaps),
    }


@dataclass(frozen=True, slots=True)
class _Day:
    """What the pass over all rows learnt.

    Attributes:
        counts: user_id and events, one row a user, ascending.
        tied: Users with events at the same instant.
        at_borders: First and last user of every file.
        gaps: Events by time_diff.
    """

    counts: pl.DataFrame
    tied: pl.Series
    at_borders: pl.Series
    gaps: np.ndarray


def _prove_all_rows(subject: Subject, findings: Findings) -> _Day:
    """Looks at every row once, file by file, beside the events at the same positions."""
    dataset = subject.dataset
    columns = feature_columns(subject.features, dataset)
    kept = [column.name for column in dataset.extra_columns if dataset.extra[column.name].keep]
    events = subject.events()
    opening = (
        _role(subject, subject.input("user_state"), "opening").select("user_id", "core.last_timestamp_us").collect()
    )
    logs = {name: _log(subject, name) for name in ("user", "item")}
    differing: dict[str, list[Any]] = {name: [] for name in ROW_PROOFS}
    hot = expected_hot = np.zeros(len(dataset.action_names), dtype=np.int64)
    content, position, firsts = ContentHash(), 0, 0
    counts = [pl.DataFrame(schema={"user_id": events.collect_schema()["user_id"], "events": pl.Int64})]
    tied = [counts[0]["user_id"]]
    by_gap_counts = np.zeros(len(GAPS), dtype=np.int64)
    for file in subject.manifest.files:
        with findings.timed("reading back and content version"):
            frame = subject.file_rows(file)
            source = events.slice(position, frame.height).collect().rechunk()
            content.update(frame)
        position += frame.height
        before_us = times_before(source, opening)
        same_rows, ranges, one_hot, gaps, totals, indices = ROW_PROOFS
        differing[same_rows] += moved_rows(source, frame, [*IDENTITY, *kept])
        differing[ranges] += range_problems(frame, columns)
        differing[one_hot] += wrong_one_hots(source, frame, dataset.action_names)
        differing[gaps] += wrong_gaps(source, frame, before_us)
        differing[totals] += wrong_totals(source, frame, before_us)
        for name, log in logs.items():
            differing[indices] += wrong_indices(frame, name, log)
        hot = hot + count_hot(frame, dataset.action_names)
        expected_hot = expected_hot + count_actions(source, dataset.action_names)
        counts.append(count_events(source))
        tied.append(tied_users(source))
        firsts += int(frame["is_first"].sum())
        by_gap_counts += count_gaps(frame["time_diff"], frame["is_first"])
    for name, rows in differing.items():
        findings.expect_none(name, rows)
    findings.expect("events an action = sum of its one-hot", expected=expected_hot.tolist(), found=hot.tolist())
    users = pl.concat(counts)
    findings.expect("is_first = users without opening", expected=users.height - opening.height, found=firsts)
    findings.expect(
        "content version is that of the rows on disk", expected=subject.manifest.version(), found=content.hexdigest()
    )
    at_borders = [pl.concat([part["user_id"].head(1), part["user_id"].tail(1)]) for part in counts]
    return _Day(users.sort("user_id"), pl.concat(tied), pl.concat(at_borders), by_gap_counts)


def _prove_sample(subject: Subject, findings: Findings, day: _Day) -> dict[str, Any]:
    """The loop over sampled users, from the opening state over the day's events."""
    events = subject.events()
    opening = _role(subject, subject.input("user_state"), "opening")
    seen_before = opening.select("user_id").collect().to_series()
    sample = choose_users(
        day.counts, seed=str(subject.manifest.day), tied=day.tied, at_borders=day.at_borders, seen_before=seen_before
    )
    columns = output_columns(subject.features, subject.dataset)
    written = rows_by_user(subject.rows().select("row_id", "user_id", *(c.name for c in columns)), sample.users)
    openings = states_by_user(opening, sample.users)
    differences: list[dict[str, Any]] = []
    rows = 0
    for user, user_events in events_by_user(events, sample.users, subject.dataset):
        _, expected = fold(subject.features, openings.get(user), user_events)
        found = written.get(user, [])
        rows += len(expected)
        if len(found) != len(expected):
            differences.append(
                {"user_id": user, "row_id": None, "column": "rows", "expected": len(expected), "found": len(found)}
            )
            continue
        differences += compare(expected, found, columns, user_id=user, row_ids=[row["row_id"] for row in found])
    findings.expect_none("values of sampled users = the loop", differences)
    return sample.figures(rows)


def _role(subject: Subject, manifest: Manifest, role: str) -> pl.LazyFrame:
    return read_files(
        subject.store.directory(manifest.asset, manifest.day), manifest.of_role(role), manifest_schema(manifest)
    )


def _log(subject: Subject, name: str) -> pl.Series:
    """The ids that the day could know."""
    vocabulary = f"{name}_vocabulary"
    return read_vocabulary(subject.store, vocabulary, subject.dataset).ids[: subject.input(vocabulary).size]

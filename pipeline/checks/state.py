"""Proofs about `user_state`: nobody is forgotten, nothing is invented."""

import random
from datetime import timedelta
from typing import Any

import polars as pl

from pipeline.checks.findings import Findings
from pipeline.checks.oracle import compare, fold
from pipeline.checks.reading import (
    Subject,
    events_by_user,
    prove_files,
    prove_manifest,
    prove_schema,
    range_problems,
    states_by_user,
)
from pipeline.checks.sampling import Sample, choose_users
from pipeline.contracts import Column
from pipeline.state import state_columns, state_recipe
from pipeline.store import ContentHash, row_hash_sum, scan

ABSENT_USERS = 200


def prove_state(subject: Subject, findings: Findings, *, deep: bool) -> dict[str, Any]:
    """Proves a day of carried state.

    Args:
        subject: The day.
        findings: Where to note.
        deep: Folds the sampled users from the first day on, instead of from yesterday's `closing`.
    """
    prove_files(subject, findings)
    if any(not finding.passed for finding in findings.found):
        return {}
    columns = state_columns(subject.features, subject.dataset)
    opening, closing = subject.rows("opening").collect(), subject.rows("closing").collect()
    for role, frame in (("opening", opening), ("closing", closing)):
        prove_schema(frame, columns, findings, name=f"columns of {role} are as declared")
        problems = range_problems(frame, columns)
        findings.expect_none(f"values of {role} are within their declared ranges", problems)
        ascending = bool((frame["user_id"].shift(-1) > frame["user_id"]).fill_null(value=True).all())
        findings.expect(f"{role} ascends by user_id, one row a user", expected=True, found=ascending)
    recipe = state_recipe(
        day=subject.manifest.day, dataset=subject.dataset, features=subject.features, store=subject.store
    )
    prove_manifest(subject, columns, recipe.inputs, findings)
    findings.expect("rows = users in opening", expected=opening.height, found=subject.manifest.rows)
    before = subject.closing_before()
    known = opening.clear() if before is None else before.collect()
    counts = subject.events().group_by("user_id").agg(pl.len().alias("events")).collect().sort("user_id")
    users = counts.select("user_id")

    should_open = known.join(users, on="user_id", how="semi").sort("user_id")
    differing = _differences(should_open, opening, columns)
    findings.expect_none("opening = yesterday's closing of the day's users", differing)
    without_opening = users.height - should_open.height
    findings.expect(
        "rows of closing = yesterday's + users without opening",
        expected=known.height + without_opening,
        found=closing.height,
    )
    versions = subject.manifest.content_version
    assert not isinstance(versions, str)
    opening_hash = ContentHash()
    opening_hash.update(opening)
    findings.expect(
        "version of opening is that of its rows", expected=versions["opening"], found=opening_hash.hexdigest()
    )
    findings.expect(
        "version of closing is the sum over its rows",
        expected=versions["closing"],
        found=f"{row_hash_sum(closing):032x}",
    )
    absent = _sample_absent(known.join(users, on="user_id", how="anti"), seed=str(subject.manifest.day))
    kept = closing.join(absent.select("user_id"), on="user_id", how="semi").sort("user_id")
    forgotten = _differences(absent, kept, columns)
    findings.expect_none("closing of users absent today is unchanged", forgotten)

    none = users["user_id"].head(0)
    sample = choose_users(
        counts, seed=str(subject.manifest.day), tied=none, at_borders=none, seen_before=opening["user_id"]
    )
    with findings.timed("the loop over sampled users"):
        differences, rows = _fold_sample(subject, sample, opening, closing, columns, deep=deep)
    name = "closing = the loop from the first day on" if deep else "closing = the loop from opening over the day"
    findings.expect_none(name, differences)
    return sample.figures(rows) | {"absent_users_proven": absent.height}


def _fold_sample(
    subject: Subject, sample: Sample, opening: pl.DataFrame, closing: pl.DataFrame, columns: list[Column], *, deep: bool
) -> tuple[list[dict[str, Any]], int]:
    """The carried values that the loop does not confirm, and how many events it went through."""
    found = states_by_user(closing.lazy(), sample.users)
    if deep:
        start = subject.dataset.partitions.start
        history = scan(subject.store.root, "events", start, subject.manifest.day)
        openings: dict[Any, dict[str, Any]] = {}
        days = {start + timedelta(days=n): n for n in range((subject.manifest.day - start).days + 1)}
        rows = history.with_columns(
            pl.col("row_id") + pl.col("day").replace_strict(days, return_dtype=pl.Int64) * 2**40
        )
    else:
        openings, rows = states_by_user(opening.lazy(), sample.users), subject.events()
    differences: list[dict[str, Any]] = []
    seen = 0
    for user, events in events_by_user(rows, sample.users, subject.dataset):
        after, _ = fold(subject.features, openings.get(user), events)
        seen += len(events)
        written = found.get(user)
        if written is None:
            differences.append(
                {"user_id": user, "row_id": None, "column": "user_id", "expected": "a row", "found": "none"}
            )
            continue
        differences += compare([after], [written], columns[1:], user_id=user, row_ids=[None])
    return differences, seen


def _differences(expected: pl.DataFrame, found: pl.DataFrame, columns: list[Column]) -> list[dict[str, Any]]:
    """Users whose rows differ between two tables, with the first column that does."""
    names = [column.name for column in columns if column.name in expected.columns]
    missing = expected.join(found.select("user_id"), on="user_id", how="anti")["user_id"].to_list()
    needless = found.join(expected.select("user_id"), on="user_id", how="anti")["user_id"].to_list()
    rows = [_difference(user, "user_id", "a row", "none") for user in missing]
    rows += [_difference(user, "user_id", "no row", "a row") for user in needless]
    both = expected.select(names).join(found.select(names), on="user_id", suffix="|found")
    for name in names[1:]:
        wrong = both.filter(pl.col(name).ne_missing(pl.col(f"{name}|found")))
        rows += [
            _difference(row["user_id"], name, row[name], row[f"{name}|found"]) for row in wrong.iter_rows(named=True)
        ]
    return rows


def _difference(user: object, column: str, expected: object, found: object) -> dict[str, Any]:
    return {"user_id": user, "row_id": None, "column": column, "expected": expected, "found": found}


def _sample_absent(absent: pl.DataFrame, *, seed: str) -> pl.DataFrame:
    ordered = absent.sort("user_id")
    size = min(ordered.height, ABSENT_USERS)
    chosen = sorted(random.Random(seed).sample(range(ordered.height), size))
    return ordered[chosen]

"""Proofs about `features`: the same rows as `events`, and the values that the loop gives."""

from typing import Any

import polars as pl

from pipeline.checks.findings import Findings
from pipeline.checks.oracle import compare, fold
from pipeline.checks.reading import (
    Subject,
    events_by_user,
    prove_files,
    prove_schema,
    range_problems,
    rows_by_user,
    states_by_user,
)
from pipeline.checks.sampling import choose_users
from pipeline.features import output_columns
from pipeline.outputs import feature_columns
from pipeline.store import ContentHash, Manifest, manifest_schema, read_files
from pipeline.vocabularies import FIRST_KNOWN, PADDING, UNKNOWN, read_vocabulary

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
    events = subject.input("events")
    findings.expect("as many rows as events", expected=events.rows, found=subject.manifest.rows)
    if not all(finding.passed for finding in findings.found):
        return {}
    borders, firsts = _prove_all_rows(subject, findings)
    return _prove_sample(subject, findings, borders=borders, firsts=firsts)


def _prove_all_rows(subject: Subject, findings: Findings) -> tuple[pl.Series, int]:
    """What can be said of every row: identity, ranges, one-hot, indices. Returns users at borders and first events."""
    columns = feature_columns(subject.features, subject.dataset)
    one_hot = [f"action_{name}" for name in subject.dataset.action_names]
    same = [
        *IDENTITY,
        *(column.name for column in subject.dataset.extra_columns if subject.dataset.extra[column.name].keep),
    ]
    events = subject.events()
    content, position, firsts = ContentHash(), 0, 0
    moved: list[dict[str, Any]] = []
    problems: list[Any] = []
    not_one: list[dict[str, Any]] = []
    wrong_index: list[dict[str, Any]] = []
    borders: list[Any] = []
    lookups = {name: _lookup(subject, name) for name in ("user", "item")}
    for file in subject.manifest.files:
        frame = subject.file_rows(file)
        content.update(frame)
        source = events.slice(position, frame.height).collect()
        position += frame.height
        moved += _moved(source, frame, same)
        problems += range_problems(frame, columns)
        sums = frame.select(pl.sum_horizontal(pl.col(one_hot).cast(pl.Int64)).alias("sum"), "user_id", "row_id").filter(
            pl.col("sum") != 1
        )
        not_one += [_difference(row, "action_*", 1, row["sum"]) for row in sums.head(5).iter_rows(named=True)]
        swapped = _wrong_actions(source, frame, subject.dataset.action_names)
        not_one += swapped
        for name, lookup in lookups.items():
            wrong_index += _wrong_indices(frame, name, lookup)
        borders += [frame["user_id"][0], frame["user_id"][-1]]
        firsts += int(frame["is_first"].sum())
    findings.expect("same rows as events, in the same order", expected=0, found=len(moved), rows=moved)
    findings.expect("values are within their declared ranges", expected=0, found=len(problems), rows=problems)
    findings.expect("the one-hot marks the action and nothing else", expected=0, found=len(not_one), rows=not_one)
    findings.expect("indices are those of the vocabularies", expected=0, found=len(wrong_index), rows=wrong_index)
    findings.expect(
        "content version is that of the rows on disk", expected=subject.manifest.version(), found=content.hexdigest()
    )
    return pl.Series("user_id", borders, dtype=events.collect_schema()["user_id"]), firsts


def _prove_sample(subject: Subject, findings: Findings, *, borders: pl.Series, firsts: int) -> dict[str, Any]:
    """The loop over sampled users, from the opening state over the day's events."""
    events = subject.events()
    state = subject.input("user_state")
    opening = _role(subject, state, "opening")
    counts = events.group_by("user_id").agg(pl.len().alias("events")).collect().sort("user_id")
    seen_before = opening.select("user_id").collect().to_series()
    findings.expect("is_first = users without opening", expected=counts.height - seen_before.len(), found=firsts)
    as_before = (pl.col("user_id") == pl.col("user_id").shift(1)) & (
        pl.col("timestamp") == pl.col("timestamp").shift(1)
    )
    tied = events.filter(as_before).select("user_id").collect().to_series()
    sample = choose_users(
        counts, seed=str(subject.manifest.day), tied=tied, at_borders=borders, seen_before=seen_before
    )
    columns = output_columns(subject.features, subject.dataset)
    written = rows_by_user(subject.rows(), sample.users)
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
    findings.expect("values of sampled users = the loop", expected=0, found=len(differences), rows=differences)
    return sample.figures(rows)


def _role(subject: Subject, manifest: Manifest, role: str) -> pl.LazyFrame:
    return read_files(
        subject.store.directory(manifest.asset, manifest.day), manifest.of_role(role), manifest_schema(manifest)
    )


def _moved(source: pl.DataFrame, frame: pl.DataFrame, names: list[str]) -> list[dict[str, Any]]:
    """The first places where an identity or kept column is not that of the event at the same position."""
    found = []
    for name in names:
        wrong = source[name].ne_missing(frame[name]).arg_true()
        if wrong.len():
            at = int(wrong[0])
            row = {"user_id": source["user_id"][at], "row_id": source["row_id"][at]}
            found.append(_difference(row, name, source[name][at], frame[name][at]))
    return found


def _wrong_actions(source: pl.DataFrame, frame: pl.DataFrame, action_names: tuple[str, ...]) -> list[dict[str, Any]]:
    found = []
    for name in action_names:
        wrong = ((source["action"] == name) != (frame[f"action_{name}"] == 1)).arg_true()
        if wrong.len():
            at = int(wrong[0])
            row = {"user_id": source["user_id"][at], "row_id": source["row_id"][at]}
            expected = int(source["action"][at] == name)
            found.append(_difference(row, f"action_{name}", expected, frame[f"action_{name}"][at]))
    return found


def _lookup(subject: Subject, name: str) -> pl.DataFrame:
    """Id and right index, as the day had to look them up."""
    vocabulary = f"{name}_vocabulary"
    size = subject.input(vocabulary).size
    ids = read_vocabulary(subject.store, vocabulary, subject.dataset).ids[:size]
    return ids.alias(f"{name}_id").to_frame().with_row_index("right", offset=FIRST_KNOWN)


def _wrong_indices(frame: pl.DataFrame, name: str, lookup: pl.DataFrame) -> list[dict[str, Any]]:
    pairs = frame.group_by(f"{name}_id", f"{name}_index").agg(pl.first("row_id"))
    missing = pl.when(pl.col(f"{name}_id").is_null()).then(PADDING).otherwise(UNKNOWN)
    joined = pairs.join(lookup, on=f"{name}_id", how="left").with_columns(pl.coalesce("right", missing).cast(pl.Int64))
    wrong = joined.filter(pl.col(f"{name}_index").ne_missing(pl.col("right"))).head(5)
    return [
        {
            "user_id": row["user_id"] if name == "user" else None,
            "row_id": row["row_id"],
            "column": f"{name}_index",
            "expected": row["right"],
            "found": row[f"{name}_index"],
        }
        for row in wrong.iter_rows(named=True)
    ]


def _difference(row: Any, column: str, expected: object, found: object) -> dict[str, Any]:
    return {"user_id": row["user_id"], "row_id": row["row_id"], "column": column, "expected": expected, "found": found}

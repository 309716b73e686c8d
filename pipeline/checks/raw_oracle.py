"""From the raw bytes to `events`: every record counted, and a sample of them read again in plain Python."""

import random
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl

from pipeline.checks.findings import Findings
from pipeline.checks.raw import RawRecord, Verdict, excluded_columns, judge, read_records
from pipeline.checks.reading import Subject
from pipeline.events import REASONS
from pipeline.sources import files_of_day

RANDOM_RECORDS = 50
RECORDS_A_REASON = 5
GIVEN_BY = {
    "user_id": {"missing_user_id", "malformed_user_id", "id_out_of_range"},
    "item_id": {"missing_item_id", "malformed_item_id", "id_out_of_range"},
    "timestamp": {"missing_timestamp", "malformed_timestamp", "implausible_timestamp", "outside_day"},
    "action": {"missing_action", "malformed_action", "unknown_action"},
}


def prove_raw(subject: Subject, aside: Subject, findings: Findings) -> dict[str, Any]:
    """Proves a day of `events` against its raw files.

    Args:
        subject: `events`.
        aside: `rejected_events` of the same day.
        findings: Where to note.

    Returns:
        Figures about the sample.
    """
    dataset, day = subject.dataset, subject.manifest.day
    paths = {file.name: file for file in files_of_day(dataset, day)} if subject.manifest.raw_files else {}
    one_file_a_day = dataset.source.dated and dataset.source.neighbours == (0, 0)
    rejected = aside.rows().collect()
    miscounted: list[dict[str, Any]] = []
    changed: list[str] = []
    records: list[tuple[RawRecord, str, date | None, int | None]] = []
    first_row = 0
    for entry in subject.manifest.raw_files:
        name, rows = entry["path"], entry["rows"]
        if name not in paths:
            changed.append(name)
            continue
        here = rejected.filter(pl.col("row_id").is_between(first_row, first_row + rows - 1))
        wanted = _wanted(
            rows, seed=f"{day} {name}", refused=here if one_file_a_day else here.head(0), first_row=first_row
        )
        reading = read_records(
            paths[name].path, declared_format=dataset.source.format, csv_settings=dataset.source.csv, wanted=wanted
        )
        if reading.sha256 != entry["sha256"]:
            changed.append(name)
        if reading.records != rows:
            miscounted.append({"column": name, "expected": reading.records, "found": rows})
        records += [
            (record, name, paths[name].day, first_row + record.ordinal if one_file_a_day else None)
            for record in reading.found.values()
        ]
        first_row += rows
    counts = subject.manifest.counts
    findings.expect("raw files are those that were read", expected=[], found=changed)
    findings.expect_none("records counted from the bytes = rows read", miscounted)
    findings.expect(
        "rows read = rows in + rows of other days",
        expected=sum(entry["rows"] for entry in subject.manifest.raw_files),
        found=counts["in"] + counts["other_day"] + counts["outside_partitions"],
    )
    judged = [
        (record, name, row_id, judge(record.cells, dataset, file_day=file_day))
        for record, name, file_day, row_id in records
    ]
    rows_of = _written_by_row_id if one_file_a_day else _written_by_value
    differences = rows_of(subject, rejected, judged)
    findings.expect_none("sampled raw records read in plain Python = what was written", differences)
    return {
        "raw_records_counted": first_row,
        "raw_records_proven": len(judged),
        "raw_columns_not_judged": excluded_columns(dataset),
    }


Judged = tuple[RawRecord, str, int | None, Verdict]


def _wanted(rows: int, *, seed: str, refused: pl.DataFrame, first_row: int) -> set[int]:
    """First and last record, some at random, and up to five of each reason."""
    if not rows:
        return set()
    draw = random.Random(seed)
    wanted = {0, rows - 1, *draw.sample(range(rows), min(rows, RANDOM_RECORDS))}
    for group in refused.partition_by("reason", maintain_order=True):
        ids = group["row_id"].to_list()
        wanted.update(row_id - first_row for row_id in draw.sample(ids, min(len(ids), RECORDS_A_REASON)))
    return wanted


def _written_by_row_id(subject: Subject, rejected: pl.DataFrame, judged: list[Judged]) -> list[dict[str, Any]]:
    """Compares records with what stands under their row_id."""
    row_ids = pl.Series([row_id for _, _, row_id, _ in judged], dtype=pl.Int64).implode()
    chosen = subject.rows().filter(pl.col("row_id").is_in(row_ids)).with_columns(pl.col("timestamp").to_physical())
    accepted = {row["row_id"]: row for row in chosen.collect().iter_rows(named=True)}
    refused = {row["row_id"]: row for row in rejected.filter(pl.col("row_id").is_in(row_ids)).iter_rows(named=True)}
    differences: list[dict[str, Any]] = []
    for record, name, row_id, verdict in judged:
        where = {"row_id": row_id, "file": name, "line": record.line}
        if row_id in accepted:
            differences += _compare_accepted(accepted[row_id], verdict, where)
        elif row_id in refused:
            differences += _compare_refused(refused[row_id]["reason"], verdict, subject, where)
        else:
            differences.append({**where, "column": "row", "expected": "a row", "found": "none"})
    return differences


def _written_by_value(subject: Subject, rejected: pl.DataFrame, judged: list[Judged]) -> list[dict[str, Any]]:
    """Where files hold rows of several days: a record of this day stands in `events` with its values."""
    today = [entry for entry in judged if entry[3].reason is None and _day_of(entry[3].values) == subject.manifest.day]
    users = pl.Series("user_id", [entry[3].values.get("user_id") for entry in today], dtype=_user_type(subject))
    rows = (
        subject.rows().filter(pl.col("user_id").is_in(users.implode())).with_columns(pl.col("timestamp").to_physical())
    )
    names = list(today[0][3].values) if today else []
    written = {tuple(row[name] for name in names) for row in rows.collect().iter_rows(named=True)} if names else set()
    reasons = {
        (row["file"], row["line"]): row["reason"] for row in rejected.iter_rows(named=True) if row["line"] is not None
    }
    differences: list[dict[str, Any]] = []
    for record, name, _, verdict in judged:
        where = {"file": name, "line": record.line}
        if (name, record.line) in reasons:
            differences += _compare_refused(reasons[name, record.line], verdict, subject, where)
    for record, name, _, verdict in today:
        if tuple(verdict.values[column] for column in names) not in written and (name, record.line) not in reasons:
            differences.append(
                {
                    "file": name,
                    "line": record.line,
                    "column": "row",
                    "expected": str(dict(verdict.values)),
                    "found": "none",
                }
            )
    return differences


def _compare_accepted(row: Mapping[str, Any], verdict: Verdict, where: Mapping[str, Any]) -> list[dict[str, Any]]:
    if verdict.reason is not None:
        return [{**where, "column": "reason", "expected": verdict.reason, "found": "accepted"}]
    return [
        {**where, "column": name, "expected": value, "found": row[name]}
        for name, value in verdict.values.items()
        if row[name] != value
    ]


def _compare_refused(reason: str, verdict: Verdict, subject: Subject, where: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A reason that only a column gives which is not judged here is taken as it is, unless an earlier one applies."""
    if reason == verdict.reason or (reason == "duplicate" and verdict.reason is None):
        return []
    # Python reads years of four digits only; a year of another length is implausible to one and malformed to the other.
    if (reason, verdict.reason) == ("implausible_timestamp", "malformed_timestamp"):
        return []
    excluded = excluded_columns(subject.dataset)
    unjudged = set().union(*(GIVEN_BY.get(name, {"malformed_extra"}) for name in excluded)) if excluded else set()
    earlier = verdict.reason is None or REASONS.index(reason) < REASONS.index(verdict.reason)
    if reason in unjudged and earlier:
        return []
    return [{**where, "column": "reason", "expected": verdict.reason or "accepted", "found": reason}]


def _day_of(values: Mapping[str, Any]) -> date | None:
    us = values.get("timestamp")
    return None if us is None else (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)).date()


def _user_type(subject: Subject) -> pl.DataType:
    return subject.rows().collect_schema()["user_id"]

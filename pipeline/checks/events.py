"""Proofs about `events` and `rejected_events`."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from pipeline.checks.distributions import HOURS, count_hours
from pipeline.checks.findings import Findings
from pipeline.checks.invariants import count_actions
from pipeline.checks.raw_oracle import prove_raw
from pipeline.checks.raw_sample import RawSample
from pipeline.checks.reading import Subject, prove_files, prove_manifest, prove_schema, range_problems
from pipeline.events import REASONS, event_columns, rejected_columns
from pipeline.store import RAW_PREFIX, ContentHash


def prove_events(
    subject: Subject, aside: Subject, findings: Findings, *, sample: RawSample | None = None
) -> dict[str, object]:
    """Proves both tables of a day together.

    Args:
        subject: `events`.
        aside: `rejected_events` of the same day.
        findings: Where to note.
        sample: What was read in the raw files for the day; they are read now when there is none.

    Returns:
        Figures about what was covered.
    """
    prove_files(subject, findings)
    prove_files(aside, findings)
    if any(not finding.passed for finding in findings.found):
        return {}
    columns = event_columns(subject.dataset)
    rejected = aside.rows().collect()
    prove_schema(subject.rows(), columns, findings, name="columns of events are as declared")
    prove_schema(rejected, rejected_columns(), findings, name="columns of rejected_events are as declared")
    content, problems, unordered, outside = ContentHash(), [], 0, 0
    by_action = np.zeros(len(subject.dataset.action_names), dtype=np.int64)
    row_ids = [rejected["row_id"]]
    hours = np.zeros(HOURS, dtype=np.int64)
    start = datetime.combine(subject.manifest.day, datetime.min.time(), tzinfo=UTC)
    last: pl.DataFrame | None = None
    for file in subject.manifest.files:
        with findings.timed("reading back and content version"):
            frame = subject.file_rows(file)
            content.update(
                frame.with_columns(pl.col("action").cast(pl.Enum(subject.dataset.action_names), strict=False))
            )
        problems += range_problems(frame, columns)
        keys = frame.select("user_id", "timestamp", "row_id")
        unordered += _not_ascending(keys if last is None else pl.concat([last, keys]))
        last = keys.tail(1)
        outside += frame.height - int(
            frame["timestamp"].is_between(start, start + timedelta(days=1), closed="left").sum()
        )
        by_action += count_actions(frame, subject.dataset.action_names)
        hours += count_hours(frame["timestamp"])
        row_ids.append(frame["row_id"])
    findings.expect_none("values are within their declared ranges", problems)
    findings.expect("rows ascend by (user_id, timestamp, row_id)", expected=0, found=unordered)
    findings.expect("timestamps lie within the day", expected=0, found=outside)
    findings.expect("actions are declared ones", expected=subject.manifest.rows, found=int(by_action.sum()))
    counts = subject.manifest.counts
    findings.expect(
        "events an action as recorded", expected=by_action.tolist(), found=list(counts["by_action"].values())
    )
    findings.expect(
        "content version is that of the rows on disk", expected=subject.manifest.version(), found=content.hexdigest()
    )
    rows_in = counts["in"]
    findings.expect(
        "rows in = accepted + rejected", expected=rows_in, found=subject.manifest.rows + aside.manifest.rows
    )
    every = pl.concat(row_ids).sort()
    complete = bool((every == pl.int_range(every.len(), dtype=pl.Int64, eager=True)).all())
    findings.expect(
        "row_ids are 0, 1, ... without gap or repetition", expected=True, found=complete and every.len() == rows_in
    )
    by_reason = dict(sorted(rejected["reason"].value_counts().iter_rows()))
    findings.expect("rows a reason as recorded", expected=by_reason, found=dict(sorted(counts["rejected"].items())))
    rejected_content = ContentHash()
    rejected_content.update(rejected)
    findings.expect(
        "version of rejected_events is that of its rows",
        expected=aside.manifest.version(),
        found=rejected_content.hexdigest(),
    )
    raw = {f"{RAW_PREFIX}{file['path']}": file["sha256"] for file in subject.manifest.raw_files}
    prove_manifest(aside, rejected_columns(), raw, findings)
    prove_manifest(subject, columns, {**raw, "rejected_events": aside.manifest.version()}, findings)
    unlisted = sorted(set(rejected["reason"].unique()) - set(REASONS))
    findings.expect("reasons are those of the closed list", expected=[], found=unlisted)
    findings.expect("rejected_events ascend by row_id", expected=True, found=rejected["row_id"].is_sorted())
    for name in ("ties", "duplicates"):
        findings.note(name, subject.manifest.counts.get(name, 0))
    with findings.timed("raw records counted and read again"):
        figures = prove_raw(subject, aside, findings, sample=sample)
    return {
        "rows_covered": subject.manifest.rows,
        "rejected_covered": rejected.height,
        **figures,
        "events_by_hour": hours.tolist(),
    }


def _not_ascending(keys: pl.DataFrame) -> int:
    """How many rows do not come after the row before them."""
    before = keys.select(pl.all().shift(1))
    later_user = keys["user_id"] > before["user_id"]
    same_user = keys["user_id"] == before["user_id"]
    later = keys["timestamp"] > before["timestamp"]
    same_time = keys["timestamp"] == before["timestamp"]
    ascending = later_user | (same_user & (later | (same_time & (keys["row_id"] > before["row_id"]))))
    return keys.height - 1 - int(ascending.fill_null(value=False).sum()) if keys.height else 0

"""Proofs about `events` and `rejected_events`."""

import numpy as np
import polars as pl

from pipeline.checks.event_rows import EventRows
from pipeline.checks.findings import FIRST_DIFFERENCES, Findings
from pipeline.checks.picked import PickedRows
from pipeline.checks.raw_oracle import prove_raw, sample_raw
from pipeline.checks.raw_sample import RawSample
from pipeline.checks.reading import Subject, of_whole_files, prove_manifest, prove_schemas
from pipeline.events import REASONS, event_columns, rejected_columns
from pipeline.store import RAW_PREFIX, ContentHash, manifest_schema


def prove_events(
    subject: Subject, aside: Subject, findings: Findings, *, sample: RawSample | None = None
) -> dict[str, object]:
    """Proves both tables of a day together, with one pass over the rows of each.

    Args:
        subject: `events`.
        aside: `rejected_events` of the same day.
        findings: Where to note.
        sample: What was read in the raw files for the day; they are read now when there is none.

    Returns:
        Figures about what was covered.
    """
    seen = of_whole_files(lambda looked: _look(subject, aside, sample, looked, findings), findings, subject, aside)
    if seen is None:
        return {}
    rows, rejected, sample = seen
    rows.row_ids.mark(rejected["row_id"])
    _prove_rows(subject, aside, rejected, rows, findings)
    _prove_rejected(subject, aside, rejected, findings)
    with findings.timed("raw records compared"):
        written = subject.rows() if rows.picked is None else rows.picked.rows(manifest_schema(subject.manifest))
        figures = prove_raw(subject, sample, written, rejected, findings)
    return {
        "rows_covered": subject.manifest.rows,
        "rejected_covered": rejected.height,
        **figures,
        "events_by_hour": rows.hours.tolist(),
        "column_hashes": rows.content.columns(),
    }


def _look(
    subject: Subject, aside: Subject, sample: RawSample | None, looked: Findings, findings: Findings
) -> tuple[EventRows, pl.DataFrame, RawSample] | None:
    """The rows of both tables and of the raw files; None where the tables have other columns than declared."""
    for table, columns in ((subject, event_columns(subject.dataset)), (aside, rejected_columns())):
        name = f"columns of {table.manifest.asset} are as declared"
        if not prove_schemas(table.paths(), columns, looked, name=name):
            return None
    if sample is None:
        with findings.timed("raw records counted and read again"):
            (sample,) = sample_raw([(subject, aside)])
    return _look_at_rows(subject, sample, findings), aside.rows().collect(), sample


def _look_at_rows(subject: Subject, sample: RawSample, findings: Findings) -> EventRows:
    columns, wanted = event_columns(subject.dataset), sample.looks_for()
    rows = EventRows(
        subject.manifest.day,
        columns=columns,
        action_names=subject.dataset.action_names,
        rows_in=subject.manifest.counts["in"],
        picked=None if wanted is None else PickedRows(*wanted),
    )
    for frame in findings.waiting("reading back, waited for", subject.blocks([column.name for column in columns])):
        with findings.timed("every row"):
            rows.add(frame)
    return rows


def _prove_rows(subject: Subject, aside: Subject, rejected: pl.DataFrame, rows: EventRows, findings: Findings) -> None:
    counts, rows_in = subject.manifest.counts, subject.manifest.counts["in"]
    findings.expect_none("values are within their declared ranges", rows.problems)
    findings.expect("rows ascend by (user_id, timestamp, row_id)", expected=0, found=rows.unordered)
    findings.expect("timestamps lie within the day", expected=0, found=rows.outside)
    findings.expect("actions are declared ones", expected=subject.manifest.rows, found=int(rows.by_action.sum()))
    findings.expect(
        "events an action as recorded", expected=rows.by_action.tolist(), found=list(counts["by_action"].values())
    )
    findings.expect(
        "content version is that of the rows on disk",
        expected=subject.manifest.version(),
        found=rows.content.hexdigest(),
    )
    findings.expect(
        "rows in = accepted + rejected", expected=rows_in, found=subject.manifest.rows + aside.manifest.rows
    )
    findings.expect(
        "row_ids are 0, 1, ... without gap or repetition",
        expected=True,
        found=rows.row_ids.complete() and rows.rows + rejected.height == rows_in,
    )


def _prove_rejected(subject: Subject, aside: Subject, rejected: pl.DataFrame, findings: Findings) -> None:
    by_reason = dict(sorted(rejected["reason"].value_counts().iter_rows()))
    counts = subject.manifest.counts
    findings.expect("rows a reason as recorded", expected=by_reason, found=dict(sorted(counts["rejected"].items())))
    content = ContentHash()
    content.update(rejected)
    findings.expect(
        "version of rejected_events is that of its rows",
        expected=aside.manifest.version(),
        found=content.hexdigest(),
    )
    raw = {f"{RAW_PREFIX}{file['path']}": file["sha256"] for file in subject.manifest.raw_files}
    prove_manifest(aside, rejected_columns(), raw, findings)
    inputs = {**raw, "rejected_events": aside.manifest.version()}
    prove_manifest(subject, event_columns(subject.dataset), inputs, findings)
    unlisted = sorted(set(rejected["reason"].unique()) - set(REASONS))
    findings.expect("reasons are those of the closed list", expected=[], found=unlisted)
    findings.expect("rejected_events ascend by row_id", expected=True, found=rejected["row_id"].is_sorted())
    findings.expect("refused rows name the file in which they stand", expected=[], found=_misplaced(subject, rejected))
    for name in ("ties", "duplicates"):
        findings.note(name, counts.get(name, 0))


def _misplaced(subject: Subject, rejected: pl.DataFrame) -> list[int]:
    """The first refused rows that name another file than the one in which their row_id lies: row_ids count file by file."""
    files = subject.manifest.raw_files
    behind = np.cumsum([file.get("day_rows", file["rows"]) for file in files], dtype=np.int64)
    place = np.searchsorted(behind, rejected["row_id"].to_numpy(), side="right")
    paths = pl.Series([*(file["path"] for file in files), None], dtype=pl.String)
    wrong = rejected["file"].ne_missing(paths.gather(np.minimum(place, len(files)))).arg_true()[:FIRST_DIFFERENCES]
    return rejected["row_id"].gather(wrong).to_list()

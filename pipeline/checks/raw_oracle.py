"""From the raw bytes to `events`: every record counted, and a sample of them read again in plain Python."""

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import polars as pl

from pipeline.checks.findings import Findings
from pipeline.checks.raw import excluded_columns
from pipeline.checks.raw_sample import Entry, RawSample
from pipeline.checks.reading import Subject
from pipeline.sources import RawFile, files_of_day

FILES_AT_ONCE = 2_000  # files times days whose samples are held together: of each about a hundred records


def prove_raw(
    subject: Subject, sample: RawSample, written: pl.LazyFrame, rejected: pl.DataFrame, findings: Findings
) -> dict[str, Any]:
    """Proves a day of `events` against its raw files.

    Args:
        subject: `events`.
        sample: What `sample_raw` read for the day.
        written: Rows of `events`, among them all that the sample looks for.
        rejected: `rejected_events` of the same day.
        findings: Where to note.

    Returns:
        Figures about the sample.
    """
    manifest = subject.manifest
    findings.expect("raw files are those that were read", expected=[], found=sample.changed + sample.unread)
    findings.expect_none("records counted from the bytes = rows read", sample.miscounted)
    counts, rows_read = manifest.counts, sum(entry["rows"] for entry in manifest.raw_files)
    findings.expect(
        "rows read = rows in + rows of other days",
        expected=rows_read,
        found=counts["in"] + counts["other_day"] + counts["outside_partitions"],
    )
    if sample.knows_row_ids:
        findings.expect(
            "records whose day is this one by plain Python = rows in", expected=sample.rows_of_day, found=counts["in"]
        )
    differences, compared = sample.compare(written, rejected)
    findings.expect_none("sampled raw records read in plain Python = what was written", differences)
    findings.expect("raw files with rows of the day of which none was compared", expected=[], found=sample.uncompared)
    return {
        "raw_records_counted": rows_read,
        "raw_records_proven": compared,
        "raw_columns_not_judged": excluded_columns(subject.dataset),
    }


def days_at_once(files: int) -> int:
    """For how many days `sample_raw` is to be asked together, so that its samples fit into memory.

    Args:
        files: Raw files of each.
    """
    return max(1, FILES_AT_ONCE // max(1, files))


def sample_raw(pairs: Sequence[tuple[Subject, Subject]]) -> list[RawSample]:
    """Counts the records of the raw files of some days and reads samples of them, each file once for all of the days.

    Each day gets the sample that it would get alone.

    Args:
        pairs: Of each day `events` and `rejected_events`, all of one dataset.
    """
    samples: list[RawSample] = []
    readers: dict[RawFile, list[tuple[RawSample, Entry]]] = {}
    found: dict[date | None, dict[str, RawFile]] = {}
    for subject, aside in pairs:
        dataset, manifest = subject.dataset, subject.manifest
        key = manifest.day if dataset.source.dated else None
        if key not in found:
            found[key] = {file.name: file for file in files_of_day(dataset, manifest.day)}
        files = {} if manifest.config.get("skipped", False) else found[key]
        sample = RawSample(subject, aside)
        for entry in manifest.raw_files:
            if entry["path"] in files:
                readers.setdefault(files[entry["path"]], []).append((sample, entry))
            else:
                sample.changed.append(entry["path"])
        known = {entry["path"] for entry in manifest.raw_files}
        sample.unread = [name for name in files if name not in known]
        samples.append(sample)
    for file in sorted(readers, key=lambda file: os.fsencode(file.place)):  # row_ids are counted in path order
        _read_for_all(file, readers[file])
    return samples


def _read_for_all(file: RawFile, readers: Sequence[tuple[RawSample, Entry]]) -> None:
    """Reads a file for all days that have rows in it, or may have."""
    alike: dict[Any, list[tuple[RawSample, Entry]]] = {}
    for sample, entry in readers:  # days that were made of different versions of the file are not read together
        alike.setdefault((sample.knows_row_ids, sample.latest_us, entry["rows"]), []).append((sample, entry))
    for group in alike.values():
        first, rows = group[0][0], group[0][1]["rows"]
        days = first.days_of_records(file, rows) if first.knows_row_ids else {}
        wanted = [sample.choose(file, entry, days.get(sample.day, [])) for sample, entry in group]
        ordinals = frozenset().union(*(one.ordinals for one in wanted))
        lines = frozenset().union(*(one.lines for one in wanted))
        reading = first.read(file, replace(wanted[0], ordinals=ordinals, lines=lines))
        by_line: dict[int | None, list[int]] = {}
        if lines:
            for ordinal, record in reading.found.items():
                by_line.setdefault(record.line, []).append(ordinal)
        for (sample, entry), own in zip(group, wanted, strict=True):
            its = {*own.ordinals, *(ordinal for line in own.lines for ordinal in by_line.get(line, ()))}
            sample.take(
                file, entry, own, [reading.found[ordinal] for ordinal in sorted(its) if ordinal in reading.found]
            )
            if reading.sha256 != entry["sha256"]:
                sample.changed.append(file.name)
            if reading.records != entry["rows"]:
                sample.miscounted.append({"column": file.name, "expected": reading.records, "found": entry["rows"]})

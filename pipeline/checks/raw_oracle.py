"""From the raw bytes to `events`: every record counted, and a sample of them read again in plain Python."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from pipeline.checks.findings import Findings
from pipeline.checks.raw import (
    RawRecord,
    Reading,
    Wanted,
    day_number,
    excluded_columns,
    judge,
    owners,
    plausible,
    read_records,
    time_of_record,
)
from pipeline.checks.raw_compare import Sampled, compare_by_row_id, compare_by_value
from pipeline.checks.reading import Subject
from pipeline.sources import RawFile, files_of_day

RANDOM_RECORDS = 50
RECORDS_A_REASON = 5
EVERY_TIME = 200_000  # records of a day's files of which plain Python reads every time in a few seconds
Entry = Mapping[str, Any]


def prove_raw(subject: Subject, aside: Subject, findings: Findings) -> dict[str, Any]:
    """Proves a day of `events` against its raw files.

    Args:
        subject: `events`.
        aside: `rejected_events` of the same day.
        findings: Where to note.

    Returns:
        Figures about the sample.
    """
    manifest = subject.manifest
    skipped = manifest.config.get("skipped", False)
    files = {} if skipped else {file.name: file for file in files_of_day(subject.dataset, manifest.day)}
    proof = _Proof(subject, aside.rows().collect())
    for entry in manifest.raw_files:
        if entry["path"] in files:
            proof.look_at(files[entry["path"]], entry)
        else:
            proof.changed.append(entry["path"])
    known = {entry["path"] for entry in manifest.raw_files}
    unread = [name for name in files if name not in known]
    findings.expect("raw files are those that were read", expected=[], found=proof.changed + unread)
    findings.expect_none("records counted from the bytes = rows read", proof.miscounted)
    counts, rows_read = manifest.counts, sum(entry["rows"] for entry in manifest.raw_files)
    findings.expect(
        "rows read = rows in + rows of other days",
        expected=rows_read,
        found=counts["in"] + counts["other_day"] + counts["outside_partitions"],
    )
    if proof.knows_row_ids:
        findings.expect(
            "records whose day is this one by plain Python = rows in", expected=proof.rows_of_day, found=counts["in"]
        )
    differences, compared = proof.compare()
    findings.expect_none("sampled raw records read in plain Python = what was written", differences)
    findings.expect("raw files with rows of the day of which none was compared", expected=[], found=proof.uncompared)
    return {
        "raw_records_counted": rows_read,
        "raw_records_proven": compared,
        "raw_columns_not_judged": excluded_columns(subject.dataset),
    }


@dataclass
class _Proof:
    """Samples the raw files of a day, in path order.

    Attributes:
        changed: Files that are no longer those that were read.
        miscounted: Files with another number of records.
        sampled: Records to compare.
        rows_of_day: Records of the day in the files so far; those of large logs of several days are not known.
        holding: Files with rows of the day.
        uncompared: Of these, the ones of which no record was compared.
    """

    subject: Subject
    rejected: pl.DataFrame
    changed: list[str] = field(default_factory=list)
    miscounted: list[dict[str, Any]] = field(default_factory=list)
    sampled: list[Sampled] = field(default_factory=list)
    rows_of_day: int = 0
    holding: list[str] = field(default_factory=list)
    uncompared: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        dataset, manifest = self.subject.dataset, self.subject.manifest
        self._latest_us = manifest.counts.get("latest_us")
        self._day = day_number(manifest.day)
        self._excluded = excluded_columns(dataset)
        ids = {"user_id": dataset.columns.user_id, "item_id": dataset.columns.item_id}
        declared = {**ids, "timestamp": dataset.columns.timestamp, "action": dataset.columns.action, **dataset.extra}
        self._columns = {column.from_ for column in declared.values() if column.from_ is not None}
        self._integers = {
            column.from_
            for name, column in declared.items()
            if column.from_ is not None and (name == "timestamp" or getattr(column, "type", None) == "int64")
        }
        self._judges_any = len(self._excluded) < len(declared)
        self._whole_days = dataset.source.dated and dataset.source.neighbours == (0, 0)
        few = sum(entry["rows"] for entry in manifest.raw_files) <= EVERY_TIME
        self.knows_row_ids = self._whole_days or (few and "timestamp" not in self._excluded)
        self._time_us = time_of_record(dataset, self._latest_us)

    def look_at(self, file: RawFile, entry: Entry) -> None:
        """Counts the records of a file and samples them."""
        draw = random.Random(f"{self.subject.manifest.day} {file.name}")
        if self.knows_row_ids:
            mine = self._rows_of_day(file, entry["rows"])
            positions = {mine[place]: self.rows_of_day + place for place in self._places(len(mine), draw)}
            reading = self._read(file, Wanted(positions, columns=self._columns, integers=self._integers))
            for record in reading.found.values():
                self.sampled.append(self._judged(record, file, row_id=positions[record.ordinal]))
            self.rows_of_day += len(mine)
            rows_of_day = len(mine)
        else:
            reading = self._read(file, self._wanted(file, entry, draw))
            self.sampled += self._with_days(reading, file, claimed=entry.get("day_ends", ()))
            rows_of_day = entry.get("day_rows", 0)
        if rows_of_day:
            self.holding.append(file.name)
        if reading.sha256 != entry["sha256"]:
            self.changed.append(file.name)
        if reading.records != entry["rows"]:
            self.miscounted.append({"column": file.name, "expected": reading.records, "found": entry["rows"]})

    def compare(self) -> tuple[list[dict[str, Any]], int]:
        """What differs, and how many records were compared."""
        if self.knows_row_ids:
            differences, compared = compare_by_row_id(self.subject, self.rejected, self.sampled), self.sampled
        else:
            differences, compared = compare_by_value(self.subject, self.rejected, self.sampled)
        if not self._judges_any:
            return differences, 0
        self.uncompared = sorted(set(self.holding) - {one.file for one in compared})
        return differences, len(compared)

    def _read(self, file: RawFile, wanted: Wanted) -> Reading:
        source = self.subject.dataset.source
        return read_records(file.path, declared_format=source.format, csv_settings=source.csv, wanted=wanted)

    def _judged(self, record: RawRecord, file: RawFile, **known: Any) -> Sampled:
        verdict = judge(record.cells, self.subject.dataset, file_day=file.day)
        return Sampled(record, file.name, plausible(verdict, self._latest_us), **known)

    def _rows_of_day(self, file: RawFile, rows: int) -> Sequence[int]:
        """The positions of the day's records in a file, from the time of every record."""
        if self._whole_days:
            return range(rows)
        column = self.subject.dataset.columns.timestamp.from_
        assert column is not None
        reading = self._read(file, Wanted(range(rows), columns={column}, integers={column}))
        times_us = [self._time_us(record.cells) for record in reading.found.values()]
        days = owners(times_us, self.subject.dataset, file_day=file.day)
        return [ordinal for ordinal, day in zip(reading.found, days, strict=True) if day == self._day]

    def _places(self, rows: int, draw: random.Random) -> set[int]:
        """First and last row of the day in a file, some at random, and up to five of each reason."""
        if not rows:
            return set()
        first = self.rows_of_day
        places = {0, rows - 1, *draw.sample(range(rows), min(rows, RANDOM_RECORDS))}
        here = self.rejected.filter(pl.col("row_id").is_between(first, first + rows - 1))
        return places | {row_id - first for row_id in _some_of_each_reason(here, "row_id", draw)}

    def _wanted(self, file: RawFile, entry: Entry, draw: random.Random) -> Wanted:
        """Records of a large log of several days, half of them from where the day's rows stand.

        Where these stand was said by the code that is judged; what is found there is not taken from it. Each record
        comes with the one before it, which may tell its day.
        """
        rows, ends = entry["rows"], entry.get("day_ends", ())
        ordinals = {0, rows - 1, *ends} if rows else set()
        for span in (range(rows), range(ends[0], ends[1] + 1) if ends else range(0)):
            ordinals |= set(draw.sample(span, min(len(span), RANDOM_RECORDS // 2)))
        ordinals |= {ordinal - 1 for ordinal in ordinals if ordinal}
        here = self.rejected.filter((pl.col("file") == file.name) & pl.col("line").is_not_null())
        lines = set(_some_of_each_reason(here, "line", draw))
        return Wanted(ordinals, lines, columns=self._columns, integers=self._integers)

    def _with_days(self, reading: Reading, file: RawFile, *, claimed: Sequence[int]) -> Iterator[Sampled]:
        """Judges records, and tells whether they are the day's; those that are claimed to be so must be found in it."""
        days: dict[int, int] = {}
        for ordinal, record in sorted(reading.found.items()):
            time_us = None if "timestamp" in self._excluded else self._time_us(record.cells)
            if time_us is not None or (file.day is not None and "timestamp" not in self._excluded):
                days[ordinal] = owners([time_us], self.subject.dataset, file_day=file.day)[0]
            elif ordinal - 1 in days:
                days[ordinal] = days[ordinal - 1]
            of_day = days[ordinal] == self._day if ordinal in days else None
            yield self._judged(record, file, of_day=True if ordinal in claimed else of_day)


def _some_of_each_reason(refused: pl.DataFrame, column: str, draw: random.Random) -> Iterator[int]:
    for group in refused.partition_by("reason", maintain_order=True):
        found = group[column].to_list()
        yield from draw.sample(found, min(len(found), RECORDS_A_REASON))

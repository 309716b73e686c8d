"""A sample of the raw records of a day, cut out of the raw bytes and judged in plain Python."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

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
from pipeline.checks.raw_compare import Sampled, compare_by_row_id, compare_by_value, lines_tell, values_looked_for
from pipeline.checks.reading import Subject
from pipeline.sources import RawFile

RANDOM_RECORDS = 50
RECORDS_A_REASON = 5
EVERY_TIME = 200_000  # records of a day's files of which plain Python reads every time in a few seconds
Entry = Mapping[str, Any]


class RawSample:
    """What plain Python reads in the raw files of a day: how many records there are, and some of them, judged.

    Attributes:
        day: As a number.
        knows_row_ids: Whether the row_id of every record is known here; that takes the time of every record.
        latest_us: The first implausible instant, when there were any.
        changed: Files that are no longer those that were read.
        unread: Files that were not there when the day was read.
        miscounted: Files with another number of records.
        sampled: Records to compare.
        rows_of_day: Records of the day in the files so far; those of large logs of several days are not known.
        holding: Files with rows of the day.
        uncompared: Of these, the ones of which no record was compared.
    """

    def __init__(self, subject: Subject, aside: Subject) -> None:
        self._subject, self._dataset = subject, subject.dataset
        self.changed: list[str] = []
        self.unread: list[str] = []
        self.miscounted: list[dict[str, Any]] = []
        self.sampled: list[Sampled] = []
        self.rows_of_day = 0
        self.holding: list[str] = []
        self.uncompared: list[str] = []
        manifest = subject.manifest
        self.latest_us = manifest.counts.get("latest_us")
        self.day = day_number(manifest.day)
        self._excluded = excluded_columns(self._dataset)
        timestamp = self._dataset.columns.timestamp
        self._times = {name for name in (timestamp.from_, timestamp.time_from) if name is not None}
        self._judges_any = len(self._excluded) < len(self._dataset.declared_columns)
        self._whole_days = self._dataset.source.dated and self._dataset.source.neighbours == (0, 0)
        few = sum(entry["rows"] for entry in manifest.raw_files) <= EVERY_TIME
        self.knows_row_ids = self._whole_days or (few and "timestamp" not in self._excluded)
        self._time_us = time_of_record(self._dataset, self.latest_us)
        refused = aside.rows().select("row_id", "file", "line", "reason").collect()
        self._refused = refused if self.knows_row_ids else None
        self._large = {} if self.knows_row_ids else {e["path"]: self._of_large(e, refused) for e in manifest.raw_files}

    def days_of_records(self, file: RawFile, rows: int) -> Mapping[int, Sequence[int]]:
        """The positions of the records of every day in a file, from the time of every record."""
        if self._whole_days:
            return {self.day: range(rows)}
        reading = self.read(file, Wanted(range(rows), columns=self._times))
        times_us = [self._time_us(record.cells) for record in reading.found.values()]
        found: dict[int, list[int]] = {}
        for ordinal, day in zip(reading.found, owners(times_us, self._dataset, file_day=file.day), strict=True):
            found.setdefault(day, []).append(ordinal)
        return found

    def choose(self, file: RawFile, entry: Entry, mine: Sequence[int]) -> Wanted:
        """The records of a file that the day needs; with their row_ids, where these are known.

        Args:
            file: The raw file.
            entry: What the manifest says of it.
            mine: The positions of the day's records, where row_ids are known.
        """
        if not self.knows_row_ids:
            if entry.get("day_rows", 0):
                self.holding.append(file.name)
            return self._large[file.name]
        if mine:
            self.holding.append(file.name)
        places = self._places(len(mine), random.Random(f"{self._subject.manifest.day} {file.name}"))
        positions = {mine[place]: self.rows_of_day + place for place in places}
        self.rows_of_day += len(mine)
        return Wanted(positions, columns=self._dataset.raw_columns)

    def read(self, file: RawFile, wanted: Wanted) -> Reading:
        """Reads a file, whichever days its records belong to."""
        return read_records(file.fetch(), dataset=self._dataset, wanted=wanted)

    def take(self, file: RawFile, entry: Entry, chosen: Wanted, records: Sequence[RawRecord]) -> None:
        """Takes what was found in a file.

        Args:
            file: The raw file.
            entry: What the manifest says of it.
            chosen: What `choose` said.
            records: The chosen ones, in file order.
        """
        if isinstance(chosen.ordinals, Mapping):
            row_ids = chosen.ordinals
            self.sampled += [self._judged(record, file, row_id=row_ids[record.ordinal]) for record in records]
        else:
            self.sampled += self._with_days(records, file, claimed=entry.get("day_ends", ()))

    def looks_for(self) -> tuple[str, pl.Series] | None:
        """The column of `events` and its values by which the sampled records are found; None when it takes every row."""
        if self.knows_row_ids:
            return "row_id", pl.Series([one.row_id for one in self.sampled], dtype=pl.Int64)
        return values_looked_for(self._dataset, self.sampled)

    def compare(self, written: pl.LazyFrame, rejected: pl.DataFrame) -> tuple[list[dict[str, Any]], int]:
        """What differs, and how many records were compared.

        Args:
            written: Rows of `events`, among them those that are looked for.
            rejected: `rejected_events` of the day.
        """
        if self.knows_row_ids:
            differences, compared = compare_by_row_id(self._dataset, written, rejected, self.sampled), self.sampled
        else:
            differences, compared = compare_by_value(self._dataset, written, rejected, self.sampled)
        if not self._judges_any:
            return differences, 0
        self.uncompared = sorted(set(self.holding) - {one.file for one in compared})
        return differences, len(compared)

    def _judged(self, record: RawRecord, file: RawFile, **known: Any) -> Sampled:
        verdict = judge(record.cells, self._dataset, file_day=file.day)
        return Sampled(record, file.name, plausible(verdict, self.latest_us), **known)

    def _places(self, rows: int, draw: random.Random) -> set[int]:
        """First and last row of the day in a file, some at random, and up to five of each reason."""
        if not rows:
            return set()
        assert self._refused is not None
        first = self.rows_of_day
        places = {0, rows - 1, *draw.sample(range(rows), min(rows, RANDOM_RECORDS))}
        here = self._refused.filter(pl.col("row_id").is_between(first, first + rows - 1))
        return places | {row_id - first for row_id in _some_of_each_reason(here, "row_id", draw)}

    def _of_large(self, entry: Entry, refused: pl.DataFrame) -> Wanted:
        """Records of a large log of several days, half of them from where the day's rows stand.

        Where these stand was said by the code that is judged; what is found there is not taken from it. Each record
        comes with the one before it, which may tell its day.
        """
        draw = random.Random(f"{self._subject.manifest.day} {entry['path']}")
        rows, ends = entry["rows"], entry.get("day_ends", ())
        ordinals = {0, rows - 1, *ends} if rows else set()
        for span in (range(rows), range(ends[0], ends[1] + 1) if ends else range(0)):
            ordinals |= set(draw.sample(span, min(len(span), RANDOM_RECORDS // 2)))
        ordinals |= {ordinal - 1 for ordinal in ordinals if ordinal}
        here = refused.filter((pl.col("file") == entry["path"]) & pl.col("line").is_not_null())
        lines = set(_some_of_each_reason(here, "line", draw)) if lines_tell(self._dataset) else set()
        return Wanted(ordinals, lines, columns=self._dataset.raw_columns)

    def _with_days(self, records: Sequence[RawRecord], file: RawFile, *, claimed: Sequence[int]) -> Iterator[Sampled]:
        """Judges records, and tells whether they are the day's; those that are claimed to be so must be found in it.

        Records that may be the day's as well as not are left out, unless their line tells what became of them.
        """
        days: dict[int, int] = {}
        for record in records:
            ordinal, own_time = record.ordinal, True
            time_us = None if "timestamp" in self._excluded else self._time_us(record.cells)
            if time_us is not None or (file.day is not None and "timestamp" not in self._excluded):
                days[ordinal] = owners([time_us], self._dataset, file_day=file.day)[0]
            elif ordinal - 1 in days:
                days[ordinal], own_time = days[ordinal - 1], False
            of_day = days[ordinal] == self.day if ordinal in days else None
            # Of two records on one line that are equal and have no time, each may belong to another day.
            if of_day is False and self._dataset.source.explode is not None and not own_time:
                of_day = None
            if ordinal in claimed or of_day or (record.line is not None and lines_tell(self._dataset)):
                yield self._judged(record, file, of_day=True if ordinal in claimed else of_day)


def _some_of_each_reason(refused: pl.DataFrame, column: str, draw: random.Random) -> Iterator[int]:
    for group in refused.partition_by("reason", maintain_order=True):
        found = group[column].to_list()
        yield from draw.sample(found, min(len(found), RECORDS_A_REASON))

"""Makes the two tables of days of events."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl

from pipeline.config import Dataset, is_url
from pipeline.contracts import PipelineError
from pipeline.events.arrange import Arranger
from pipeline.events.convert import ACCEPTED
from pipeline.events.duplicates import fingerprints
from pipeline.events.parts import DayParts
from pipeline.events.reading import DayRows, DaysReader, day_number
from pipeline.events.reasons import REASONS
from pipeline.events.recipe import event_columns, recipe_of
from pipeline.events.rejected import add_duplicates, add_refused_rows, refuse_bad_day, rejected_columns, rejected_of
from pipeline.events.write import Written, write_events
from pipeline.memory import give_back
from pipeline.sources import find_files, is_ready, require_folder
from pipeline.store import RAW_PREFIX, ContentHash, Staged, Staging, Store
from pipeline.threads import ahead

SECONDS_A_LINE = 5.0  # of progress


def make_events(
    *, day: date, dataset: Dataset, store: Store, run: str, report: Callable[[str], None]
) -> tuple[Staged, Staged]:
    """Reads the raw files of a day and stages `events` and `rejected_events`.

    Args:
        day: UTC day.
        dataset: The declarations.
        store: Where to stage.
        run: Name of the run.
        report: Gets a line of progress now and then.

    Returns:
        The staged `events` and the staged `rejected_events`.

    Raises:
        PipelineError: Raw files are missing, not ready, unreadable or contradict their declaration, or more rows are
            refused than `max_rejected_share` allows.
    """
    made = make_events_of_days(days=[day], dataset=dataset, store=store, run=run, report=report)[day]
    if isinstance(made, PipelineError):
        raise made
    return made


def make_events_of_days(
    *, days: Sequence[date], dataset: Dataset, store: Store, run: str, report: Callable[[str], None]
) -> dict[date, tuple[Staged, Staged] | PipelineError]:
    """Stages `events` and `rejected_events` of some days; raw files that hold rows of all of them are read once.

    A day is made as if it were made alone. A fault of a file is one of every day that reads it; all else that is wrong
    with a day leaves the others as they are.

    Args:
        days: UTC days, ascending; exactly one where the path of the raw files holds `{date}`.
        dataset: The declarations.
        store: Where to stage.
        run: Name of the run.
        report: Gets a line of progress now and then.

    Returns:
        Of each day the staged `events` and `rejected_events`, or what is wrong with it: see `make_events`.
    """
    making = _Making(days, dataset, store, run, _seldom(report))
    try:
        making.read()
        with ExitStack() as stagings:
            for day in days:
                making.write_events(day, stagings)
            making.read_duplicates()
            return {day: making.finish(day) for day in days}
    finally:
        making.close()


class _Making:
    """Days of events while they are made: step by step, each for all days that nothing is wrong with so far."""

    def __init__(
        self, days: Sequence[date], dataset: Dataset, store: Store, run: str, report: Callable[[str], None]
    ) -> None:
        self.dataset, self.store, self.run, self.report = dataset, store, run, report
        self.name = f"events {days[0]}" if len(days) == 1 else f"events of {len(days)} days"
        self.failed: dict[date, PipelineError] = {}
        self.max_block_bytes = max(2**20, dataset.compute.memory // 8)
        self.scratch = store.scratch_directory(run, "events", days[0])
        self.accepted = Arranger(budget_bytes=dataset.compute.memory // 8, directory=self.scratch / "accepted")
        self.refused = DayParts(budget_bytes=dataset.compute.memory // 16, directory=self.scratch / "refused")
        self.duplicates = DayParts(budget_bytes=dataset.compute.memory // 16, directory=self.scratch / "duplicates")
        self.written: dict[date, tuple[Staging, Written]] = {}
        self.unread: PipelineError | None = None
        for day in days:
            with self._noting(day):
                if day not in dataset.partitions.skip:
                    _require_files(day, dataset)
        to_read = [day for day in days if day not in dataset.partitions.skip and day not in self.failed]
        self.reader = DaysReader(to_read, dataset, max_block_bytes=self.max_block_bytes)
        self.second = self.reader.again([])

    def read(self) -> None:
        """Takes the rows of all days out of the raw files."""
        if not self.reader.days:
            return
        try:
            for rows in ahead(self.reader.rows()):
                self.accepted.expect(self.reader.bytes_found)
                add_refused_rows(rows, self.dataset, self.refused)
                accepted = rows.rank == ACCEPTED
                self.accepted.add(_accepted_rows(rows, accepted, self.dataset), rows.day[accepted])
                self.report(f"{self.name}: {self.reader.rows_read:,} rows read, now in {rows.file.name}")
            give_back()
        except PipelineError as error:
            self.failed.update(dict.fromkeys(self.reader.days, error))

    def write_events(self, day: date, stagings: ExitStack) -> None:
        """Writes the accepted rows of a day, unless too many others are refused."""
        if day in self.failed:
            return
        with self._noting(day):
            rows_in = self._reader_of(day).counts_of(day)["in"]
            refuse_bad_day(day, self.dataset, self.store, self.run, rows_in, self.refused)
            # Also removes what was written when it is another day that ends the run.
            staging = stagings.enter_context(self.store.stage("events", day, run=self.run))
            with staging, closing(self.accepted.ranges(day_number(day))) as ranges:
                written = write_events(ranges, self.dataset, staging)
            self.written[day] = (staging, written)
            self.report(f"events {day}: {written.rows:,} rows sorted and written")
        self.accepted.forget(day_number(day))

    def read_duplicates(self) -> None:
        """Reads the days once more of which duplicates are dropped."""
        dropped = {
            day: np.concatenate(written.dropped) for day, (_, written) in self.written.items() if written.dropped
        }
        if not dropped:
            return
        self.second = self.reader.again(list(dropped))
        try:
            add_duplicates(dropped, self.second, self.dataset, self.duplicates)
        except PipelineError as error:
            self.unread = error

    def finish(self, day: date) -> tuple[Staged, Staged] | PipelineError:
        """The staged tables of a day, or what is wrong with it."""
        if day in self.failed:
            return self.failed[day]
        staging, written = self.written[day]
        with self._noting(day), staging:
            rejected = self._rejected(day)
            with self.store.stage("rejected_events", day, run=self.run) as staging_aside:
                return _finish(staging, staging_aside, written, rejected, self._reader_of(day), self.dataset)
        return self.failed[day]

    def close(self) -> None:
        """Removes what did not fit into memory."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _rejected(self, day: date) -> pl.DataFrame:
        if day not in self.second.days:
            return rejected_of([self.refused], day)
        if self.unread is not None:
            raise self.unread
        if self.second.raw_files_of(day) != self.reader.raw_files_of(day):
            raise PipelineError(
                f"events of {day}: raw files changed while they were read; run the day again when they are complete"
            )
        return rejected_of([self.refused, self.duplicates], day)

    def _reader_of(self, day: date) -> DaysReader:
        """What was read for a day: nothing for one that is skipped."""
        return self.reader if day in self.reader.days else self.reader.again([day])

    @contextmanager
    def _noting(self, day: date) -> Iterator[None]:
        """Notes what is wrong with a day, and goes on."""
        try:
            yield
        except PipelineError as error:
            self.failed[day] = error


def _seldom(report: Callable[[str], None]) -> Callable[[str], None]:
    """Reports the first line, and then one every few seconds."""
    next_s = time.monotonic()

    def report_seldom(line: str) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            report(line)
            next_s = time.monotonic() + SECONDS_A_LINE

    return report_seldom


def _require_files(day: date, dataset: Dataset) -> None:
    if dataset.source.ready is not None and not is_ready(dataset, day):
        raise PipelineError(f"events of {day}: {dataset.source.ready} is not there yet; run the day again when it is")
    require_folder(dataset)
    own = find_files(dataset, day if dataset.source.dated else None)
    if not own and dataset.source.missing_day == "fail":
        place = "" if is_url(dataset.source.path) else f" in {dataset.directory}"
        raise PipelineError(
            f"events of {day}: no file matches {dataset.source.path}{place}; bring the file, or declare the "
            'day in [partitions] skip, or every missing day with [source] missing_day = "empty"'
        )


def _accepted_rows(rows: DayRows, accepted: np.ndarray, dataset: Dataset) -> pl.DataFrame:
    """The accepted rows of a block, with a fingerprint of their raw cells where that tells more than their values."""
    frame, raw, row_id = rows.converted.frame, rows.block.frame, rows.row_id
    if not accepted.all() or len(rows.positions) < frame.height:
        chosen = pl.Series(rows.positions[accepted])
        frame, raw, row_id = frame[chosen], raw[chosen], row_id[accepted]
    values = [column.to_physical() if column.name == "action" else column for column in frame.get_columns()]
    # Made of columns: an expression would wait for the threads of polars, which are busy reading.
    return pl.DataFrame([pl.Series("row_id", row_id), *values, *fingerprints(raw, frame, dataset)])


def _finish(
    staging: Staging,
    staging_aside: Staging,
    written: Written,
    rejected: pl.DataFrame,
    reader: DaysReader,
    dataset: Dataset,
) -> tuple[Staged, Staged]:
    day, raw_files = staging.day, reader.raw_files_of(staging.day)
    inputs = {f"{RAW_PREFIX}{file['path']}": str(file["sha256"]) for file in raw_files}
    recipe = recipe_of(day, reader.files, dataset, inputs)
    by_reason = dict(rejected["reason"].value_counts(sort=True).iter_rows())
    counts = {
        **reader.counts_of(day),
        "accepted": written.rows,
        "rejected": {reason: by_reason[reason] for reason in REASONS if reason in by_reason},
        "ties": written.ties,
        "duplicates": written.duplicates,
        "by_action": written.by_action,
    }
    if rejected.height:
        staging_aside.write(rejected)
    rejected_hash = ContentHash()
    rejected_hash.update(rejected)
    aside = staging_aside.finish(
        rows=rejected.height,
        columns=rejected_columns(),
        recipe=recipe,
        content_version=rejected_hash.hexdigest(),
        counts={"in": counts["in"], "by_reason": counts["rejected"]},
        facts={},
        raw_files=raw_files,
    )
    events = staging.finish(
        rows=written.rows,
        columns=event_columns(dataset),
        recipe=replace(recipe, inputs={**inputs, "rejected_events": aside.manifest.version()}),
        content_version=written.content_version,
        counts=counts,
        facts={},
        raw_files=raw_files,
    )
    return events, aside

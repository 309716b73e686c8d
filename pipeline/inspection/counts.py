"""One pass over all rows with a proposed dataset file: what is accepted, what is refused and why, which days there are."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np
import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.events.convert import ACCEPTED, RANK, ConvertedBlock, convert_block
from pipeline.events.origin import check_origins, source_of
from pipeline.events.reasons import REASONS
from pipeline.events.times.unit_doctor import UnitDoctor
from pipeline.sources import RawBlock, RawFile, read_blocks, usual_block_bytes
from pipeline.sources.elements import WITHOUT_ELEMENTS

EPOCH = date(1970, 1, 1)
KEPT = 50  # refused rows that are looked at again, for each reason
MOST_KEYS = 10_000_000  # rows for which ids, ties and duplicates are counted; more would not fit the memory
MOST_ACTIONS = 255
ROWS_A_REPORT = 500_000


@dataclass
class Counts:
    """What a pass found.

    Attributes:
        rows: Rows read.
        accepted: Rows that a run would accept, with the days next to that of each dated file within reach.
        reasons: Reason -> refused rows.
        examples: Reason -> the first cell or line at fault.
        actions: Action -> rows.
        unknown: Action that is not declared -> rows.
        days: Day -> rows of it, and how many of them are refused; without files that have no usable time at all.
        distances: Days from the day of the file to that of the row -> rows.
        headers: Rows that repeat the header.
        ties: Accepted rows that another one of the same user equals in time; None when there were too many rows.
        duplicates: Accepted rows that equal another one in all columns; None when there were too many rows.
        users: Distinct users; None when there were too many rows.
        items: Distinct items.
        floored: Rows whose time was finer than a microsecond.
        without_elements: Records whose list is empty, which give no rows.
        open_lines: Lines behind a quote that is never closed.
        refused: Some rows that were refused, or have the id -1, raw, for another look.
        coded: Of user_id and item_id those with the id -1.
        refused_lines: Some lines that could not be cut.
        problems: Sentences with which a run would stop.
    """

    rows: int = 0
    accepted: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    actions: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    days: dict[date, list[int]] = field(default_factory=dict)
    distances: Counter[int] = field(default_factory=Counter)
    headers: int = 0
    ties: int | None = None
    duplicates: int | None = None
    users: int | None = None
    items: int | None = None
    floored: int = 0
    without_elements: int = 0
    open_lines: int = 0
    refused: list[pl.DataFrame] = field(default_factory=list)
    coded: set[str] = field(default_factory=set)
    refused_lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def worst_day(self, days: Sequence[date]) -> tuple[date | None, float]:
        """Of some days the one with the largest share of refused rows, and that share."""
        shares = {day: self.days[day][1] / self.days[day][0] for day in days if self.days[day][0]}
        worst = max(shares, key=lambda day: shares[day], default=None)
        return worst, shares[worst] if worst is not None else 0.0


def count(dataset: Dataset, files: Sequence[RawFile], report: Callable[[str], None]) -> Counts:
    """Reads all files once.

    Args:
        dataset: The proposal.
        files: The raw files, with their days where the path holds `{date}`.
        report: Gets a line of progress now and then.
    """
    counts, keys = Counts(), _Keys()
    stopped: dict[str, list[str]] = {}  # a sentence without the name of its file -> the sentences
    for number, file in enumerate(files, 1):
        try:
            _count_file(
                dataset, file, counts, keys, lambda rows, at=number: report(f"{rows:,} rows, file {at} of {len(files)}")
            )
        except PipelineError as error:
            stopped.setdefault(str(error).replace(file.name, ""), []).append(str(error))
    counts.problems = [
        alike[0] + (f"; so with {len(alike) - 1} other files" if len(alike) > 1 else "") for alike in stopped.values()
    ]
    keys.close(counts)
    return counts


def _count_file(dataset: Dataset, file: RawFile, counts: Counts, keys: "_Keys", report: Callable[[int], None]) -> None:
    timestamp = dataset.columns.timestamp
    doctor = UnitDoctor(timestamp, file.name, source_of(timestamp))
    reader = read_blocks(file, dataset, block_bytes=usual_block_bytes(file, dataset))
    carried: int | None = None if file.day is None else _number(file.day)
    waiting: list[tuple[int, int]] = []  # rows before the first usable time of the file
    checked, reported = None, counts.rows
    for block in reader:
        schema = block.sql_frame.schema
        if schema != checked:
            check_origins(schema, dataset, file=file.name)
            checked = schema
        converted = convert_block(block, dataset, doctor)
        carried = _count_block(dataset, file, block, converted, counts, carried, waiting)
        keys.add(block, converted)
        if counts.rows - reported > ROWS_A_REPORT:
            report(counts.rows)
            reported = counts.rows
    counts.without_elements += reader.warnings.get(WITHOUT_ELEMENTS, 0)
    counts.open_lines = max(counts.open_lines, reader.warnings.get("lines_in_unclosed_quote", 0))
    doctor.judge()


def _count_block(
    dataset: Dataset,
    file: RawFile,
    block: RawBlock,
    converted: ConvertedBlock,
    counts: Counts,
    carried: int | None,
    waiting: list[tuple[int, int]],
) -> int | None:
    rank, rows, day = converted.rank, len(converted.rank), converted.day
    if file.day is not None:
        own = _number(file.day)
        counts.distances.update(dict((day.drop_nulls() - own).value_counts().rows()))
        far = ((day - own).abs() > 1).fill_null(value=False)
        if far.any():
            rank = np.where(far.to_numpy(), np.minimum(rank, RANK["outside_day"]), rank)
        day = day.set(far, None).fill_null(own)
    counts.rows += rows
    counts.floored += converted.floored
    refused = rank != ACCEPTED
    counts.accepted += rows - int(refused.sum())
    for value, often in zip(*np.unique(rank[refused], return_counts=True), strict=True):
        counts.reasons[REASONS[value]] += int(often)
    _count_actions(block, converted, dataset, counts)
    _keep_codes(block, converted, counts)
    if refused.any():
        _keep_refused(dataset, block, rank, counts)
    if carried is None:
        first = day.drop_nulls().head(1)
        if first.is_empty():
            waiting.append((rows, int(refused.sum())))
            return None
        carried = int(first[0])
        for before, bad in waiting:
            _add_day(counts, EPOCH + timedelta(days=carried), before, bad)
        waiting.clear()
    day = day.fill_null(strategy="forward").fill_null(carried)
    frame = pl.DataFrame({"day": day, "refused": refused}).group_by("day").agg(pl.len(), pl.col("refused").sum())
    for number, often, bad in frame.iter_rows():
        _add_day(counts, EPOCH + timedelta(days=number), often, bad)
    return int(day[-1]) if rows else carried


def _add_day(counts: Counts, day: date, rows: int, refused: int) -> None:
    known = counts.days.setdefault(day, [0, 0])
    known[0] += rows
    known[1] += refused


def _count_actions(block: RawBlock, converted: ConvertedBlock, dataset: Dataset, counts: Counts) -> None:
    for action, rows in converted.frame["action"].cast(pl.String).drop_nulls().value_counts().rows():
        counts.actions[action] += rows
    unknown = converted.rank == RANK["unknown_action"]
    column = dataset.columns.action.from_
    if unknown.any() and column is not None and column in block.frame.columns:
        cells = block.frame[column].filter(pl.Series(unknown)).cast(pl.String)
        if dataset.columns.action.strip:
            cells = cells.str.strip_chars()
        for action, rows in cells.drop_nulls().value_counts().rows():
            if action in counts.unknown or len(counts.unknown) <= MOST_ACTIONS:
                counts.unknown[action] += rows


def _keep_codes(block: RawBlock, converted: ConvertedBlock, counts: Counts) -> None:
    """Keeps a row whose id is -1, which no conversion refuses."""
    for name in ("user_id", "item_id"):
        ids = converted.frame[name]
        if name not in counts.coded and ids.dtype == pl.Int64 and (ids == -1).any():
            counts.coded.add(name)
            counts.refused.append(block.frame[[int((ids == -1).arg_max() or 0)]])


def _keep_refused(dataset: Dataset, block: RawBlock, rank: np.ndarray, counts: Counts) -> None:
    kept = sum(frame.height for frame in counts.refused)
    for value in np.unique(rank[rank != ACCEPTED]):
        reason = REASONS[value]
        at = np.flatnonzero(rank == value)[:KEPT]
        if reason == "outside_day":
            continue
        if reason == "malformed_line":
            if len(counts.refused_lines) < KEPT:
                counts.refused_lines += block.raw_text(at.tolist())
                counts.examples.setdefault(reason, counts.refused_lines[0][:80])
            continue
        if counts.reasons[reason] - int((rank == value).sum()) < KEPT and kept < KEPT * len(REASONS):
            counts.refused.append(block.frame[at])
    header = _repeated_header(dataset, block.frame)
    if header is not None:
        counts.headers += int(header.sum())


def _repeated_header(dataset: Dataset, frame: pl.DataFrame) -> pl.Series | None:
    """Which rows hold the names of the columns."""
    texts = [name for name in frame.columns if frame.schema[name] == pl.String]
    if dataset.source.csv.columns or len(texts) < 2 or len(texts) < frame.width:
        return None
    return (
        frame.select(pl.all_horizontal(pl.col(name) == name for name in texts[:3])).to_series().fill_null(value=False)
    )


class _Keys:
    """Hashes of the accepted rows, by which ties, duplicates and ids are counted."""

    def __init__(self) -> None:
        self._parts: list[pl.DataFrame] = []
        self._rows = 0

    def add(self, block: RawBlock, converted: ConvertedBlock) -> None:
        if self._rows > MOST_KEYS:
            self._parts = []
            return
        accepted = pl.Series(converted.rank == ACCEPTED)
        frame = converted.frame.select("user_id", "item_id", "timestamp")
        keys = frame.select(
            pl.col("user_id").hash().alias("user"),
            pl.col("item_id").hash().alias("item"),
            pl.struct("user_id", "timestamp").hash().alias("moment"),
        )
        flat = [name for name, dtype in block.frame.schema.items() if not dtype.is_nested()]
        keys = keys.with_columns(block.frame.select(flat).hash_rows().alias("row"))
        self._parts.append(keys.filter(accepted))
        self._rows += self._parts[-1].height

    def close(self, counts: Counts) -> None:
        """Writes the numbers into the counts."""
        if self._rows > MOST_KEYS or not self._parts:
            return
        keys = pl.concat(self._parts)
        rows = keys.height
        counts.users, counts.items = keys["user"].n_unique(), keys["item"].n_unique()
        counts.ties = rows - keys["moment"].n_unique()
        counts.duplicates = rows - keys["row"].n_unique()


def _number(day: date) -> int:
    return (day - EPOCH) // timedelta(days=1)

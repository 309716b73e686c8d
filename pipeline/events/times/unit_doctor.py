"""Whether the declaration of a file's timestamps can be right, and what they look like if it cannot."""

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
import polars as pl

from pipeline.config import TimestampColumn
from pipeline.contracts import PipelineError
from pipeline.events.ids import mask

DAY_US = 86_400_000_000
EARLIEST_US = 631_152_000_000_000  # 1990-01-01
CALENDAR_END_US = 253_402_300_800_000_000  # 10000-01-01
HERE = "in [columns] timestamp"


class Scale(NamedTuple):
    """What a number may count: so many nanoseconds each; times `factor` it is of a unit."""

    ns: int
    looks: str
    factor: int
    unit: str


# Further powers of ten are left out: there, microseconds and ticks since 1601 begin.
SCALES = (
    Scale(10**10, "seconds divided by 10", 10, "s"),
    Scale(10**9, "seconds", 1, "s"),
    Scale(10**8, "seconds times 10", 100, "ms"),
    Scale(10**7, "seconds times 100", 10, "ms"),
    Scale(10**6, "milliseconds", 1, "ms"),
    Scale(10**5, "milliseconds times 10", 100, "us"),
    Scale(10**4, "milliseconds times 100", 10, "us"),
    Scale(10**3, "microseconds", 1, "us"),
    Scale(1, "nanoseconds", 1, "ns"),
)
UNITS = {scale.unit: scale for scale in SCALES if scale.factor == 1}


def tomorrow_us() -> int:
    """The end of tomorrow (UTC), in microseconds; the first implausible instant."""
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return int((midnight + timedelta(days=2)).timestamp()) * 1_000_000


@dataclass
class UnitDoctor:
    """Looks at all timestamps of a file and tells a wrong declaration from wild rows."""

    declared: TimestampColumn
    file: str
    column: str
    latest_us: int = field(default_factory=tomorrow_us)
    parsed: int = 0
    outside: int = 0
    inside_by_scale: dict[Scale, int] = field(default_factory=lambda: dict.fromkeys(SCALES, 0))
    lowest: int = 2**63  # of the values outside: the number, or the us where there are no numbers
    highest: int = -(2**63)
    cell: object = None  # the first of them; None for dates and times, which Python may not be able to hold

    def examine(self, us: pl.Series, numbers: pl.Series | None, cells: pl.Series) -> np.ndarray | None:
        """Counts a block and returns its implausible rows.

        Args:
            us: Int64 [rows], null where nothing was parsed.
            numbers: The declared numbers [rows] before they got a unit, rounded down; None for text and dates.
            cells: What they were read from [rows].
        """
        self.parsed += us.len() - us.null_count()
        low, high = us.min(), us.max()
        if low is None or (int(low) >= EARLIEST_US and int(high) < self.latest_us):  # type: ignore[arg-type]
            return None
        wild = (us.is_not_null() & ((us < EARLIEST_US) | (us >= self.latest_us))).fill_null(value=False)
        if not self.outside and not cells.dtype.is_temporal():
            self.cell = cells[int(wild.arg_max() or 0)]
        self.outside += int(wild.sum())
        values = (us if numbers is None else numbers).filter(wild)
        self.lowest, self.highest = min(self.lowest, int(values.min())), max(self.highest, int(values.max()))  # type: ignore[arg-type]
        if numbers is not None:
            for scale in SCALES:  # no number is inside by two of them
                first, last = EARLIEST_US * 1000 // scale.ns, (self.latest_us * 1000 - 1) // scale.ns
                self.inside_by_scale[scale] += int(values.is_between(first, last).sum())
        return mask(wild)

    def judge(self) -> None:
        """Stops the run when the declaration cannot be right.

        Raises:
            PipelineError: More than half of the file's timestamps lie outside 1990-01-01..tomorrow; or another unit,
                or a unit times a power of ten, puts 99 % of them inside; or 99 % of those outside, if these are at
                least 10 and more than 1 % of all: then the file holds two units.
        """
        if self.outside == 0:
            return
        scale, inside = max(self.inside_by_scale.items(), key=lambda entry: entry[1])
        said = [f'{key} = "{value}"' for key in ("unit", "format") if (value := getattr(self.declared, key))]
        declared = f"is declared with {said[0]}" if said else "holds dates or times"
        example = self.cell if self.declared.unit else _as_text(self.lowest)
        found = (
            f"{self.file}: column '{self.column}' {declared}, but {self.outside:,} of {self.parsed:,} values "
            f"(for example {example}) lie outside 1990-01-01..tomorrow"
        )
        if inside >= 0.99 * self.parsed:
            raise PipelineError(f"{found}; they look like {scale.looks}: write {self._as_unit(scale)} {HERE}")
        other = scale.factor == 1 and inside >= 0.99 * self.outside
        if other and self.outside >= 10 and self.outside > 0.01 * self.parsed:
            raise PipelineError(f"{found} ({self.outside / self.parsed:.1%}); {self._two_units(scale)}")
        if self.outside * 2 > self.parsed:
            raise PipelineError(f"{found}; {self._looks()}")

    def _as_unit(self, scale: Scale) -> str:
        if scale.factor == 1:
            return f'unit = "{scale.unit}"'
        return f'sql = {json.dumps(f"{self._integer()} * {scale.factor}", ensure_ascii=False)}, unit = "{scale.unit}"'

    def _two_units(self, other: Scale) -> str:
        assert self.declared.unit is not None
        own = UNITS[self.declared.unit]
        coarse, fine = sorted((own, other), reverse=True)
        number, border = self._integer(), 100 * 10**18 // coarse.ns
        sql = f"CASE WHEN {number} < {border} THEN {number} * {coarse.ns // fine.ns} ELSE {number} END"
        return (
            f"these look like {other.looks}, the others like {own.looks}: split the file by unit, or write "
            f'sql = {json.dumps(sql, ensure_ascii=False)}, unit = "{fine.unit}" {HERE}'
        )

    def _integer(self) -> str:
        """The declared column as an integer, for an expression."""
        column = self.declared.from_
        if column is None:
            return f"CAST({self.declared.sql} AS BIGINT)"
        plain = f"CAST({column} AS BIGINT)"
        try:
            if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", column) and pl.sql_expr(plain).meta.root_names() == [column]:
                return plain
        except pl.exceptions.PolarsError:  # a word of the language
            pass
        quoted = column.replace('"', '""')
        return f'CAST("{quoted}" AS BIGINT)'

    def _looks(self) -> str:
        number, cell = self.declared.unit is not None, json.dumps(str(self.cell), ensure_ascii=False)
        none = f"write null_values = [{cell}] {HERE} if that means none"
        if self.cell is None:
            none = f"write sql {HERE} that gives NULL instead if that means none"
        if self.lowest == self.highest == 0:
            return f"all of these are 1970-01-01, like a time that was never set: name the column that holds the time {HERE}, or {none}"
        if number and self.lowest >= -1 and self.highest <= 1:
            return f"these are -1, 0 or 1, like flags: name the column that holds the time {HERE}"
        tick = UNITS[self.declared.unit].ns if self.declared.unit else 1000
        low, high = self.lowest * tick // 1000, self.highest * tick // 1000
        if low >= self.latest_us and low == high:
            return f'all of these are equal and far in the future, like a placeholder for "never": {none}'
        if low >= self.latest_us and high < CALENDAR_END_US:
            return (
                f"these lie in the future, from {_as_text(low)} to {_as_text(high)}: "
                f"check [columns] timestamp, and the clock that wrote them"
            )
        return "no other unit fits either: check [columns] timestamp against the log"


def _as_text(us: int) -> str:
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)).isoformat()
    except OverflowError:
        return f"{us} us"

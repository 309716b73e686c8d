"""`[columns]` and `[extra]`: where the columns of an event come from."""

import re
from functools import cache
from typing import Literal
from zoneinfo import available_timezones

from pydantic import Field, field_validator, model_validator

from pipeline.config.settings import Settings
from pipeline.contracts import quoted_or


class RawColumn(Settings):
    """Where a column comes from: exactly one of `from`, `sql` and, for the action, `value`.

    Of text, surrounding blanks are cut off when `strip` says so, and what then is one of `null_values` is missing.
    """

    from_: str | None = Field(default=None, alias="from")
    sql: str | None = None
    strip: bool = False
    null_values: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _one_origin(self) -> "RawColumn":
        origins = [name for name in ("from_", "sql", "value") if getattr(self, name, None) is not None]
        if len(origins) != 1:
            allowed = "from, sql or value" if "value" in type(self).model_fields else "from or sql"
            found = " and ".join(origin.rstrip("_") for origin in origins) or "none"
            raise ValueError(f"expected exactly one of {allowed}, found {found}")
        return self


class IdColumn(RawColumn):
    """`user_id`, `item_id`."""

    type: Literal["int64", "string"]


class ItemColumn(IdColumn):
    """`item_id`; with `optional` a missing item is accepted and gets index 0."""

    optional: bool = False


class TimestampColumn(RawColumn):
    """`timestamp`: numbers need `unit`; text needs `format`, and `timezone` unless the format holds an offset."""

    format: str | None = None
    unit: Literal["s", "ms", "us", "ns"] | None = None
    timezone: str | None = None
    time_from: str | None = None
    ambiguous: Literal["refuse", "earliest", "latest"] = "refuse"
    nonexistent: Literal["refuse", "forward"] = "refuse"

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, zone: str | None) -> str | None:
        if zone is not None:
            zones = _zones()
            if zone not in zones or zone in ("localtime", "Factory"):
                raise ValueError(f"'{zone}' is no time zone; {quoted_or(zone, zones)[:120]}")
        return zone

    @field_validator("format")
    @classmethod
    def _fraction(cls, written: str | None) -> str | None:
        """Python writes the fraction of a second `.%f`, chrono, whose formats these are, `%.f`."""
        if written is None:
            return None
        chrono = written.replace(".%f", "%.f")
        if "%f" in chrono:
            raise ValueError("%f stands for nanoseconds here; write %.f for a point and the fraction of a second")
        return chrono

    @model_validator(mode="after")
    def _declared(self) -> "TimestampColumn":
        if self.format is not None and self.unit is not None:
            raise ValueError("expected unit (numbers) or format (text), found both")
        if self.unit is not None and self.timezone is not None:
            raise ValueError("a number with a unit counts from 1970-01-01 UTC; leave timezone out")
        if self.time_from is not None and (self.from_ is None or self.format is None):
            raise ValueError(
                "time_from needs from, the column with the date, and the format of both with a blank between"
            )
        if self.timezone is None and (self.ambiguous, self.nonexistent) != ("refuse", "refuse"):
            raise ValueError("ambiguous and nonexistent are about local times; say timezone")
        if self.format is not None:
            has_offset = re.search(r"%[:#]?z|%\+", self.format) is not None
            if has_offset and self.timezone is not None:
                raise ValueError("the format holds an offset; leave timezone out")
            if not has_offset and self.timezone is None:
                raise ValueError('the format holds no offset (%z); say timezone = "UTC", or the zone that it is in')
        return self


@cache
def _zones() -> list[str]:
    """The time zones of this machine, ascending: looking for them takes a while."""
    return sorted(name for name in available_timezones() if not name.startswith(("right/", "posix/")))


class ActionColumn(RawColumn):
    """`action`: a column, an expression, or one value for every row."""

    value: str | None = None
    rename: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _of_a_cell(self) -> "ActionColumn":
        if self.value is not None and (self.rename or self.strip or self.null_values):
            raise ValueError("value is the same for every row; leave rename, strip and null_values out")
        if "" in self.rename:
            raise ValueError("an empty cell is missing and cannot be renamed; use sql, such as COALESCE(event, 'view')")
        return self


class Columns(Settings):
    """`[columns]`: the canonical columns."""

    user_id: IdColumn
    item_id: ItemColumn
    timestamp: TimestampColumn
    action: ActionColumn


class ExtraColumn(RawColumn):
    """`[extra]`: a further typed column; `keep` writes it to features, `optional` accepts missing values as null."""

    type: Literal["int64", "float64", "string", "bool"]
    keep: bool = False
    optional: bool = False

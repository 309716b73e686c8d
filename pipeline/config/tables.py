"""The tables of the dataset file."""

import re
from datetime import date, timedelta
from typing import Annotated, Any, Literal
from zoneinfo import available_timezones

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from pipeline.contracts import quoted_or

DATE_FIELD = re.compile(r"\{date(?::([^{}]+))?\}")
MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)")
MEMORY_FACTOR = {
    "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
RESERVED = (
    *("row_id", "user_id", "item_id", "timestamp", "action", "day"),
    *("user_index", "item_index", "time_diff", "is_first"),
)


def fill_date(pattern: str, day: date) -> str:
    """A path with the day in the place of `{date}`.

    >>> fill_date("{date:%Y/%m}/{date}.csv", date(2010, 12, 1))
    '2010/12/2010-12-01.csv'
    """
    return DATE_FIELD.sub(lambda field: day.strftime(field[1] or "%Y-%m-%d"), pattern)


def _local_only(path: object) -> object:
    if isinstance(path, str) and "://" in path:
        raise ValueError("object stores are not supported yet; give a path on this machine")
    return path


def _day(value: object) -> object:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise ValueError("expected a day such as 2010-12-01") from None
    return value


def _bytes(value: object) -> object:
    if isinstance(value, str):
        match = MEMORY.fullmatch(value.strip())
        if match is None:
            raise ValueError("expected an amount such as 2GiB or 500MB")
        return int(float(match[1]) * MEMORY_FACTOR[match[2]])
    return value


Day = Annotated[date, BeforeValidator(_day)]
LocalPath = Annotated[str, BeforeValidator(_local_only)]
Memory = Annotated[int, BeforeValidator(_bytes), Field(ge=64 * 2**20)]


class Settings(BaseModel):
    """A table of the dataset file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Partitions(Settings):
    """`[partitions]`: which UTC days there are."""

    start: Day
    end: Day | None = None
    skip: tuple[Day, ...] = ()

    @model_validator(mode="after")
    def _ordered(self) -> "Partitions":
        if self.end is not None and self.end < self.start:
            raise ValueError(f"end {self.end} lies before start {self.start}")
        for day in self.skip:
            if day < self.start or (self.end is not None and day > self.end):
                last = f"to end {self.end}" if self.end else "on"
                raise ValueError(f"skip holds {day}, which is no day from start {self.start} {last}")
        return self


class Csv(Settings):
    """`[source.csv]`: how the text of a CSV file is cut into cells."""

    separator: str = Field(default=",", min_length=1, max_length=1)
    has_header: bool = True
    columns: tuple[str, ...] | None = None
    quote_char: str = Field(default='"', max_length=1)
    null_values: tuple[str, ...] = ()
    encoding: str = "utf-8"

    @model_validator(mode="after")
    def _named(self) -> "Csv":
        if not self.has_header and not self.columns:
            raise ValueError("has_header = false needs columns = [...], the names of the columns in file order")
        if self.columns is not None and len(set(self.columns)) != len(self.columns):
            raise ValueError("columns holds a name twice")
        try:
            "".encode(self.encoding)
        except LookupError:
            raise ValueError(f"encoding '{self.encoding}' is not known") from None
        return self


class Source(Settings):
    """`[source]`: where the raw files of a day are and how they are read."""

    path: LocalPath
    neighbours: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] = (0, 0)
    ready: LocalPath | None = None
    format: Literal["csv", "parquet", "ndjson"] | None = None
    missing_day: Literal["fail", "empty"] = "fail"
    csv: Csv = Csv()

    @property
    def dated(self) -> bool:
        """Whether the path names a day, so that every day has files of its own."""
        return DATE_FIELD.search(self.path) is not None

    @model_validator(mode="after")
    def _consistent(self) -> "Source":
        unknown = re.search(r"\{(?!date[:}])[^{}]*\}", self.path)
        if unknown is not None:
            raise ValueError(f"path holds {unknown[0]}; the only field is {{date}}, or {{date:%Y%m%d}}")
        names = {fill_date(self.path, date(2024, 2, 1) + timedelta(days=offset)) for offset in range(366)}
        if self.dated and len(names) < 366:
            raise ValueError(
                "the date in path has to tell every day apart; leave {date} out for files that hold many days"
            )
        if not self.dated and self.neighbours != (0, 0):
            raise ValueError("neighbours needs {date} in path")
        return self


class RawColumn(Settings):
    """Where a column comes from: exactly one of `from`, `sql` and, for the action, `value`."""

    from_: str | None = Field(default=None, alias="from")
    sql: str | None = None

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

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, zone: str | None) -> str | None:
        if zone is not None:
            zones = sorted(name for name in available_timezones() if not name.startswith(("right/", "posix/")))
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
        if self.format is not None:
            has_offset = re.search(r"%[:#]?z|%\+", self.format) is not None
            if has_offset and self.timezone is not None:
                raise ValueError("the format holds an offset; leave timezone out")
            if not has_offset and self.timezone is None:
                raise ValueError('the format holds no offset (%z); say timezone = "UTC", or the zone that it is in')
        return self


class ActionColumn(RawColumn):
    """`action`: a column, an expression, or one value for every row."""

    value: str | None = None


class Columns(Settings):
    """`[columns]`: the canonical columns."""

    user_id: IdColumn
    item_id: ItemColumn
    timestamp: TimestampColumn
    action: ActionColumn


class Actions(Settings):
    """`[actions]`: the closed list of actions, in the order of the one-hot columns."""

    names: tuple[str, ...] = Field(min_length=1, max_length=255)

    @field_validator("names")
    @classmethod
    def _distinct(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) != len(names):
            raise ValueError("a name stands in it twice")
        if "" in names:
            raise ValueError("an action needs a name that is not empty")
        return names


class ExtraColumn(RawColumn):
    """`[extra]`: a further typed column; `keep` writes it to features, `optional` accepts missing values as null."""

    type: Literal["int64", "float64", "string", "bool"]
    keep: bool = False
    optional: bool = False


class Quality(Settings):
    """`[quality]`: what a day may hold and still be published."""

    max_rejected_share: float = Field(default=0.01, ge=0, le=1)
    duplicates: Literal["keep", "drop"] = "keep"


class VocabularySettings(Settings):
    """`[vocabulary]`: whether new ids get an index."""

    mode: Literal["append", "frozen"] = "append"


class ComputeSettings(Settings):
    """`[compute]`: how the work is done; none of it changes a value."""

    device: str = "auto"
    chunk_rows: int = Field(default=4_000_000, ge=1, lt=2**31)
    memory: Memory = 2 * 2**30
    threads: int | None = Field(default=None, ge=1)

    @field_validator("device")
    @classmethod
    def _device(cls, device: str) -> str:
        if DEVICE.fullmatch(device) is None:
            raise ValueError("expected auto, cpu, cuda, cuda:N or mps")
        return device


class FeatureSettings(BaseModel):
    """`[features]`: which features are computed; the other keys are tables of parameters, one a feature."""

    model_config = ConfigDict(extra="allow", frozen=True)

    use: tuple[str, ...] | None = None

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Feature name -> its table of parameters."""
        return dict(self.model_extra or {})

    @model_validator(mode="after")
    def _tables(self) -> "FeatureSettings":
        for name, table in self.parameters.items():
            if not isinstance(table, dict):
                raise ValueError(f"unknown key '{name}': expected use, or a table of parameters [features.{name}]")
        if self.use is not None and "core" not in self.use:
            raise ValueError("'core' is always computed; add it to use")
        if self.use is not None and len(set(self.use)) != len(self.use):
            raise ValueError("use holds a name twice")
        return self


class StoreSettings(Settings):
    """`[store]`: where the output goes."""

    root: LocalPath
    keep_hours: float = Field(default=24, ge=1)


class DagsterSettings(Settings):
    """`[dagster]`: names in the Dagster instance."""

    key_prefix: str = Field(default="", pattern=r"^[A-Za-z0-9_]*$")

"""The tables of the dataset file that are neither about the source nor about its columns."""

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pipeline.config.settings import Day, LocalPath, Memory, Settings
from pipeline.memory import free_share

DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
RESERVED = (
    *("row_id", "user_id", "item_id", "timestamp", "action", "day"),
    *("user_index", "item_index", "time_diff", "is_first"),
)


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
    chunk_rows: int | None = Field(default=None, ge=1, lt=2**31)
    memory: Memory = Field(default_factory=free_share)
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

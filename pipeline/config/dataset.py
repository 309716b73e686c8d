"""A dataset file, read and validated."""

import json
import tomllib
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from pipeline.config.columns import Columns, ExtraColumn, RawColumn
from pipeline.config.presets import with_preset
from pipeline.config.settings import Settings
from pipeline.config.source import Source
from pipeline.config.tables import (
    NAME,
    RESERVED,
    Actions,
    ComputeSettings,
    DagsterSettings,
    FeatureSettings,
    Partitions,
    Quality,
    StoreSettings,
    VocabularySettings,
)
from pipeline.contracts import Column, PipelineError, quoted_or

# Words of pydantic -> those of TOML.
TERMS = {
    "valid array": "list", "an object": "a table", "Tuple": "list", "Dictionary": "table", " after validation": "",
}  # fmt: skip


class Dataset(Settings):
    """A dataset file, validated. `file` is where it was read from; paths in it are relative to that file."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]+$")
    preset: str | None = None
    partitions: Partitions
    source: Source
    columns: Columns
    actions: Actions
    extra: dict[str, ExtraColumn] = Field(default_factory=dict)
    quality: Quality = Quality()
    vocabulary: VocabularySettings = VocabularySettings()
    compute: ComputeSettings = ComputeSettings()
    features: FeatureSettings = FeatureSettings()
    store: StoreSettings
    dagster: DagsterSettings = DagsterSettings()
    file: Path = Field(default=Path("dataset.toml"), exclude=True)

    @field_validator("extra")
    @classmethod
    def _extra_names(cls, extra: dict[str, ExtraColumn]) -> dict[str, ExtraColumn]:
        for name in extra:
            if NAME.fullmatch(name) is None or name in RESERVED or name.startswith("action_"):
                raise ValueError(
                    f"'{name}' cannot be the name of an extra column: use letters, digits and _, a letter first, and none of {', '.join(RESERVED)}, action_..."
                )
        return extra

    @model_validator(mode="after")
    def _known_action(self) -> "Dataset":
        action = self.columns.action
        if action.value is not None and action.value not in self.actions.names:
            raise ValueError(
                f"[columns] action is always '{action.value}', which [actions] names lacks: {quoted_or(action.value, self.actions.names)}"
            )
        for name in action.rename.values():
            if name not in self.actions.names:
                raise ValueError(
                    f"[columns] action is renamed to '{name}', which [actions] names lacks: {quoted_or(name, self.actions.names)}"
                )
        return self

    @property
    def directory(self) -> Path:
        """The folder of the dataset file."""
        return self.file.parent

    @property
    def root(self) -> Path:
        """The store's root."""
        return (self.directory / self.store.root).resolve()

    @property
    def action_names(self) -> tuple[str, ...]:
        """The declared actions, in declared order."""
        return self.actions.names

    @property
    def declared_columns(self) -> dict[str, RawColumn]:
        """Every column that is read from the log, by its name: the canonical ones first, then the extra ones."""
        columns = self.columns
        canonical = {"user_id": columns.user_id, "item_id": columns.item_id, "timestamp": columns.timestamp}
        return {**canonical, "action": columns.action, **self.extra}

    @property
    def raw_columns(self) -> tuple[str, ...]:
        """The raw columns that `from` and `time_from` name, each once, in declared order; not those in `sql`."""
        named = [(column.from_, getattr(column, "time_from", None)) for column in self.declared_columns.values()]
        return tuple(dict.fromkeys(name for pair in named for name in pair if name is not None))

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        """The declared extra columns, in declared order."""
        return tuple(
            Column(name, column.type, meaning=f"as declared in [extra] {name}", nullable=column.optional)
            for name, column in self.extra.items()
        )

    def last_day(self) -> date:
        """The last day there is: `end`, or yesterday (UTC) when no end is declared."""
        return self.partitions.end or datetime.now(UTC).date() - timedelta(days=1)

    def command(self, assets: Sequence[str], first: date, last: date) -> str:
        """The command that makes days of some assets, or of all when none is named."""
        prefix = f"{self.dagster.key_prefix}/" if self.dagster.key_prefix else ""
        select = ",".join(f"{prefix}{asset}" for asset in assets) or "*"
        days = f"--partition {first}" if first == last else f"--partition-range {first}...{last}"
        return f"dagster asset materialize -m pipeline.definitions --select '{select}' {days}"

    def has_day(self, day: date) -> bool:
        """Whether a day lies within start..end."""
        return self.partitions.start <= day <= self.last_day()


def load_dataset(path: str | Path) -> Dataset:
    """Reads and validates a dataset file.

    Args:
        path: The TOML file.

    Raises:
        PipelineError: One sentence that names the file, the key, what was found and what was expected.
    """
    file = Path(path).absolute()
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PipelineError(f"{path}: there is no such dataset file; set PIPELINE_DATASET to the path of one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"{path}: the dataset file cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise PipelineError(f"{path}: not valid TOML: {error}") from None
    if "file" in raw:
        raise PipelineError(f"{path}: unknown key 'file': {quoted_or('file', _keys_at([]))}")
    try:
        raw = with_preset(raw)
    except PipelineError as error:
        raise PipelineError(f"{path}: {error}") from None
    try:
        # As JSON, since strict validation takes its arrays and days, and converts no type silently.
        dataset = Dataset.model_validate_json(json.dumps(raw, default=str), strict=True)
    except ValidationError as error:
        raise PipelineError(f"{path}: {_sentence(error)}") from None
    return dataset.model_copy(update={"file": file})


def _sentence(error: ValidationError) -> str:
    """The first problem, as one sentence; misspelt keys come first since they cause the others."""
    problems = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    problem = problems[0]
    location = [str(part) for part in problem["loc"]]
    key = ".".join(location)
    if problem["type"] == "extra_forbidden":
        known = _keys_at(location[:-1])
        table = f" in [{'.'.join(location[:-1])}]" if location[:-1] else ""
        return f"unknown key '{location[-1]}'{table}: {quoted_or(location[-1], known)}"
    if problem["type"] == "missing":
        return f"'{key}' is missing; docs/dataset-file.md explains it"
    message = problem["msg"].removeprefix("Value error, ")
    for theirs, ours in TERMS.items():
        message = message.replace(theirs, ours)
    found = problem["input"]
    shown = f" (found {found!r})" if isinstance(found, str | int | float | bool | None) else ""
    return f"{key}: {message[0].lower() + message[1:]}{shown}" if key else message


def _keys_at(location: list[str]) -> list[str]:
    """The keys that a table of the dataset file may hold."""
    model: type[BaseModel] = Dataset
    for part in location:
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        if part not in fields:  # a free name: [extra] price
            continue
        annotation = fields[part].annotation
        candidates = [annotation, *get_args(annotation)]
        models = [c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)]
        if models:
            model = models[0]
    return [field.alias or name for name, field in model.model_fields.items() if name != "file"]

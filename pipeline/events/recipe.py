"""What a day of `events` holds, and what it is made of."""

from collections.abc import Iterable, MutableMapping
from datetime import date
from typing import Any

from pipeline.config import Dataset
from pipeline.contracts import Column
from pipeline.sources import VERSION as SOURCE_VERSION
from pipeline.sources import RawFile, file_format, files_of_day
from pipeline.store import RAW_PREFIX, Manifest, Recipe, file_sha256

VERSION = 3


def event_columns(dataset: Dataset) -> list[Column]:
    """The columns of `events`."""
    columns = dataset.columns
    return [
        Column("row_id", "int64", meaning="position of the row in the day's input, refused rows included", minimum=0),
        Column("user_id", columns.user_id.type, meaning="raw id of the user"),
        Column("item_id", columns.item_id.type, meaning="raw id of the item", nullable=columns.item_id.optional),
        Column("timestamp", "timestamp", unit="us", meaning="when it happened, UTC"),
        Column("action", "string", meaning="one of " + ", ".join(dataset.action_names)),
        *dataset.extra_columns,
    ]


def events_recipe(*, day: date, dataset: Dataset, former: Manifest, remembered: MutableMapping[str, Any]) -> Recipe:
    """What a day of events would be made of now; raw files that look as they did are not read again.

    Args:
        day: UTC day.
        dataset: The declarations.
        former: The published version, whose checksums are taken over for files of the same size and time.
        remembered: Checksums that this process has taken: a file of all days is read for the first of them only.
    """
    files = [] if day in dataset.partitions.skip else files_of_day(dataset, day)
    known = {(file["path"], file["bytes"], file["mtime_ns"]): file["sha256"] for file in former.raw_files}

    def checksum(file: RawFile) -> str:
        name = f"{RAW_PREFIX}{file.place} {file.bytes} {file.mtime_ns}"
        if name not in remembered:
            remembered[name] = file_sha256(file.fetch())
        return remembered[name]

    inputs = {
        f"{RAW_PREFIX}{file.name}": known.get((file.name, file.bytes, file.mtime_ns)) or checksum(file)
        for file in files
    }
    if "rejected_events" in former.inputs:
        inputs["rejected_events"] = former.inputs["rejected_events"]
    return recipe_of(day, files, dataset, inputs)


def recipe_of(day: date, files: Iterable[RawFile], dataset: Dataset, inputs: dict[str, str]) -> Recipe:
    """The recipe of a day.

    Args:
        day: UTC day.
        files: Its raw files.
        dataset: The declarations.
        inputs: Their checksums, named as in a manifest.
    """
    formats = sorted({file_format(file, dataset) for file in files})
    config = {
        **dataset.model_dump(mode="json", by_alias=True, include={"columns", "actions", "extra", "quality"}),
        "source": dataset.source.model_dump(mode="json", by_alias=True, exclude={"path", "ready"}),
        "skipped": day in dataset.partitions.skip,
    }
    code = {"events": VERSION, **{f"sources.{name}": SOURCE_VERSION[name] for name in formats}}
    return Recipe(config=config, code=code, inputs=inputs)

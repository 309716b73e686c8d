"""Which columns a file has besides those that its records bear: paths into nested values, and folders of its path."""

import os
from collections.abc import Collection
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote

from pipeline.checks.raw.records.explode import Exploder, ExplodingTaker
from pipeline.checks.raw.records.json_values import as_text
from pipeline.checks.raw.values.taking import Naming, Taker, Wanted
from pipeline.config import Dataset

NESTED = ("ndjson", "json", "parquet", "arrow")
TYPED = ("parquet", "arrow")
NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def names_in_question(path: Path, dataset: Dataset, wanted: Wanted, kind: str) -> set[str]:
    """Names that mean a path or a folder unless the file has a column so named."""
    explode = dataset.source.explode
    names = {name for name in dataset.raw_columns if "." in name and wanted.column(name)} if kind in NESTED else set()
    names |= {name for name in folders_of(path, dataset) if wanted.column(name)}
    return names | ({explode.column} if explode is not None and "." in explode.column else set())


def exploder_of(dataset: Dataset, kind: str, *, borne: Collection[str]) -> Exploder | None:
    """What makes several records of one; None where nothing is declared.

    Args:
        dataset: The declarations.
        kind: The format.
        borne: Names that are columns of the file, and no paths.
    """
    if dataset.source.explode is None:
        return None
    is_path = kind in NESTED and dataset.source.explode.column not in borne
    return Exploder(dataset.source.explode, is_path=is_path, empty_is_missing=kind not in NESTED)


def taker_of(path: Path, dataset: Dataset, wanted: Wanted, kind: str, *, borne: Collection[str]) -> Taker:
    """What takes the records of a file; see `exploder_of`."""
    exploder = exploder_of(dataset, kind, borne=borne)

    def is_path(name: str) -> bool:
        inside = exploder is not None and name.startswith(f"{exploder.column}.")
        return "." in name and (inside or kind in NESTED) and name not in borne

    as_cell: Any = (lambda value: value) if kind in TYPED else as_text
    naming = Naming(
        paths={
            name: name.split(".")
            for name in dataset.raw_columns
            if is_path(name) and (exploder is None or name != exploder.column)
        },
        folders={name: text for name, text in folders_of(path, dataset).items() if name not in borne},
        as_cell=as_cell,
    )
    return Taker(wanted, naming) if exploder is None else ExplodingTaker(wanted, naming, exploder)


def folders_of(path: Path, dataset: Dataset) -> dict[str, str | None]:
    """Column -> value by the folders `key=value` in a path, from where `[source] path` begins."""
    if not dataset.source.hive:
        return {}
    declared = PurePath(dataset.source.path)
    begin = dataset.directory
    for part in declared.parts:
        if part != "..":
            break
        begin /= part
    if "://" in dataset.source.path:  # a copy of the object lies in the store, its key beneath
        begin = dataset.root
    begin = Path(declared.anchor) if declared.is_absolute() else begin
    folders = PurePath(os.path.relpath(path, begin)).parent.parts
    found = [folder.partition("=") for folder in folders if "=" in folder]
    return {name: None if text == NO_PARTITION else unquote(text) for name, _, text in found}

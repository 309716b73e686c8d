"""A version of a day while it is written: nothing of it is visible before the commit."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.contracts import Column, PipelineError
from pipeline.store.manifest import DataFile, Manifest, Recipe

ROW_GROUP_ROWS = 131_072  # fixed, so that sampled users are found through the statistics


@dataclass(frozen=True, slots=True)
class Staged:
    """A version that is written but not published: only `checks.publish` can do that.

    Attributes:
        manifest: What will be committed, still without proof.
        run: The run that wrote it.
        directory: Where its files lie.
        facts: What the stage learnt on the way and the UI shows; no part of the version.
    """

    manifest: Manifest
    run: str
    directory: Path
    facts: Mapping[str, Any] = field(default_factory=dict)


class Staging:
    """Files of one day of one asset while they are written: never-used names, created exclusively.

    As a context it removes what was written when an error leaves it.
    """

    def __init__(self, *, asset: str, day: date, run: str, directory: Path, aside: Path) -> None:
        self.asset, self.day, self.run, self.directory = asset, day, run, directory
        self._aside = aside
        self._next = 0
        self._files: list[DataFile] = []
        self._paths: list[Path] = []
        with writing(f"{asset} of {day}", directory):
            directory.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> "Staging":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for path in self._paths:
                path.unlink(missing_ok=True)

    def write(self, frame: pl.DataFrame, *, role: str | None = None) -> DataFile:
        """Writes the next file `<run>-<n>.parquet`, synced, and takes its checksum.

        Raises:
            PipelineError: The disk is full, or the file cannot be written.
        """
        with writing(f"{self.asset} of {self.day}", self.directory):
            path = self._new_file()
            frame.write_parquet(path, compression="zstd", compression_level=1, row_group_size=ROW_GROUP_ROWS)
            with path.open("rb") as file:
                os.fsync(file.fileno())
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        written = DataFile(path.name, frame.height, path.stat().st_size, digest, role)
        self._files.append(written)
        return written

    def finish(
        self,
        *,
        rows: int,
        columns: Sequence[Column],
        recipe: Recipe,
        content_version: str | Mapping[str, str],
        counts: Mapping[str, Any],
        facts: Mapping[str, Any],
        raw_files: Sequence[Mapping[str, Any]] = (),
        size: int | None = None,
    ) -> Staged:
        """The staged version, ready to be proven."""
        manifest = Manifest(
            asset=self.asset,
            day=self.day,
            rows=rows,
            files=tuple(self._files),
            columns=[column.described() for column in columns],
            config=recipe.config,
            code=recipe.code,
            inputs=recipe.inputs,
            content_version=content_version,
            counts=counts,
            size=size,
            raw_files=raw_files,
        )
        return Staged(manifest, self.run, self.directory, facts)

    def _new_file(self) -> Path:
        while True:
            path = self.directory / f"{self.run}-{self._next}.parquet"
            self._next += 1
            if (self._aside / path.name).exists():  # a run that is tried again does not use a name twice
                continue
            try:
                path.open("xb").close()
            except FileExistsError:
                continue
            self._paths.append(path)
            return path


@contextmanager
def writing(what: str, directory: Path, *leftovers: Path) -> Iterator[None]:
    """Words what goes wrong while a file is written, such as a full disk, and removes what it leaves half written.

    Raises:
        PipelineError: One sentence with the folder and what to do.
    """
    try:
        yield
    except (OSError, pl.exceptions.ComputeError) as error:
        for path in leftovers:
            path.unlink(missing_ok=True)
        raise PipelineError(
            f"{what}: cannot write to {directory} ({error}); make room there or check its rights, then run the day again: "
            "nothing of it was published"
        ) from None

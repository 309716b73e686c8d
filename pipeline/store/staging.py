"""A version of a day while it is written: nothing of it is visible before the commit."""

import hashlib
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from pipeline.contracts import Column, PipelineError
from pipeline.store.manifest import DataFile, Manifest, Recipe
from pipeline.store.parquet import Compression, write_blocks, write_file

WRITERS = 2  # files of a day that are encoded at the same time


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

    Files are encoded, synced and given their checksum by threads of its own, while the next rows are computed. As a context
    it waits for these, and removes what was written when an error leaves it.
    """

    def __init__(self, *, asset: str, day: date, run: str, directory: Path, aside: Path) -> None:
        self.asset, self.day, self.run, self.directory = asset, day, run, directory
        self._aside = aside
        self._next = 0
        self._writing: deque[Future[DataFile]] = deque()
        self._files: list[DataFile] = []
        self._paths: list[Path] = []
        self._threads = ThreadPoolExecutor(max_workers=min(WRITERS, pl.thread_pool_size()))
        with writing(f"{asset} of {day}", directory):
            directory.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> "Staging":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        failed = kind is not None
        try:
            if not failed:
                self._take_written()
        except PipelineError:
            failed = True
            raise
        finally:
            self._threads.shutdown(cancel_futures=failed)
            if failed:
                for path in self._paths:
                    path.unlink(missing_ok=True)

    def write(self, frame: pl.DataFrame, *, role: str | None = None, compression: Compression = "zstd") -> None:
        """Writes the next file `<run>-<n>.parquet` while the caller goes on; waits while `WRITERS` others are written.

        Args:
            frame: The rows.
            role: Role of the file.
            compression: See `write_file`.

        Raises:
            PipelineError: The disk is full, or this file or an earlier one cannot be written.
        """

        def write(path: Path) -> int:
            write_file(frame, path, compression=compression)
            return frame.height

        self._start(write, role)

    def write_blocks(self, frames: Iterable[pl.DataFrame], *, row_group_rows: int, role: str | None = None) -> None:
        """Writes the next file from rows that stream by; otherwise as `write`.

        Args:
            frames: The rows, at least one frame; taken by another thread.
            row_group_rows: Rows of a row group.
            role: Role of the file.

        Raises:
            PipelineError: See `write`.
        """
        self._start(lambda path: write_blocks(frames, path, row_group_rows=row_group_rows), role)

    def link(self, directory: Path, file: DataFile) -> None:
        """Takes a file of another day over as the next one: a hard link, which takes no room and stays when that day goes.

        Args:
            directory: The folder of the other day.
            file: Its file.

        Raises:
            PipelineError: The file is gone.
        """
        source = directory / file.path
        if not source.exists():
            raise PipelineError(f"{source}: the file is missing; make this day again")
        with writing(f"{self.asset} of {self.day}", self.directory):
            path = self._new_file(lambda path: _link(source, path))
        self._writing.append(Future())
        self._writing[-1].set_result(replace(file, path=path.name))

    def _start(self, write: Callable[[Path], int], role: str | None) -> None:
        with writing(f"{self.asset} of {self.day}", self.directory):
            path = self._new_file(lambda path: path.open("xb").close())
        while len(self._writing) >= WRITERS:
            self._files.append(self._writing.popleft().result())
        self._writing.append(self._threads.submit(self._written, write, path, role))

    def _written(self, write: Callable[[Path], int], path: Path, role: str | None) -> DataFile:
        with writing(f"{self.asset} of {self.day}", self.directory):
            rows = write(path)
            with path.open("rb") as file:
                os.fsync(file.fileno())
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            return DataFile(path.name, rows, path.stat().st_size, digest, role)

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
        """The staged version, ready to be proven; all of its files are written.

        Raises:
            PipelineError: A file cannot be written.
        """
        self._take_written()
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

    def _take_written(self) -> None:
        while self._writing:
            self._files.append(self._writing.popleft().result())

    def _new_file(self, create: Callable[[Path], None]) -> Path:
        while True:
            path = self.directory / f"{self.run}-{self._next}.parquet"
            self._next += 1
            if (self._aside / path.name).exists():  # a run that is tried again does not use a name twice
                continue
            try:
                create(path)
            except FileExistsError:
                continue
            self._paths.append(path)
            return path


def _link(source: Path, path: Path) -> None:
    """A second name of a file, as young as a new one to the sweep; a copy where the file system has no such thing."""
    try:
        os.link(source, path)
        os.utime(path)
    except FileExistsError:
        raise
    except OSError:
        path.unlink(missing_ok=True)
        with source.open("rb") as old, path.open("xb") as new:
            shutil.copyfileobj(old, new)
            new.flush()
            os.fsync(new.fileno())


@contextmanager
def writing(what: str, directory: Path, *leftovers: Path) -> Iterator[None]:
    """Words what goes wrong while a file is written, such as a full disk, and removes what it leaves half written.

    Raises:
        PipelineError: One sentence with the folder and what to do.
    """
    try:
        yield
    except (OSError, pa.ArrowException, pl.exceptions.ComputeError) as error:
        for path in leftovers:
            path.unlink(missing_ok=True)
        raise PipelineError(
            f"{what}: cannot write to {directory} ({error}); make room there or check its rights, then run the day again: "
            "nothing of it was published"
        ) from None

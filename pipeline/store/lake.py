"""The store: staged files, one atomic commit a day, and what is swept afterwards."""

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from pipeline.config import Dataset
from pipeline.contracts import Column, PipelineError
from pipeline.store.manifest import MANIFEST_NAME, DataFile, Manifest, read_manifest

IDENTITY_NAME = "_dataset.json"
FAILED = "_failed"


@dataclass(frozen=True, slots=True)
class Staged:
    """A version that is written but not published: only `checks.publish` can do that.

    Attributes:
        manifest: What will be committed, still without proof.
        run: The run that wrote it.
        directory: Where its files lie.
        prepare: Called after the proof and before the manifest is replaced (a vocabulary links its segment here).
        facts: What the stage learnt on the way and the UI shows; no part of the version.
    """

    manifest: Manifest
    run: str
    directory: Path
    prepare: Callable[[Manifest], Manifest] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


class Staging:
    """Files of one day of one asset while they are written: never-used names, created exclusively."""

    def __init__(self, *, asset: str, day: date, run: str, directory: Path) -> None:
        self.asset, self.day, self.run, self.directory = asset, day, run, directory
        self._next = 0
        self._files: list[DataFile] = []
        directory.mkdir(parents=True, exist_ok=True)

    def new_file(self) -> Path:
        """Creates the next empty file `<run>-<n>.parquet`."""
        while True:
            path = self.directory / f"{self.run}-{self._next}.parquet"
            self._next += 1
            try:
                path.open("xb").close()
            except FileExistsError:
                continue
            return path

    def add(self, path: Path, *, rows: int, role: str | None) -> None:
        """Declares a file to be complete; it is synced and its checksum taken."""
        with path.open("rb") as file:
            os.fsync(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._files.append(DataFile(path.name, rows, path.stat().st_size, digest, role))

    def finish(
        self,
        *,
        rows: int,
        columns: Sequence[Column],
        config: Mapping[str, Any],
        code: Mapping[str, int],
        inputs: Mapping[str, str],
        content_version: str | Mapping[str, str],
        counts: Mapping[str, Any],
        facts: Mapping[str, Any],
        size: int | None = None,
        prepare: Callable[[Manifest], Manifest] | None = None,
    ) -> Staged:
        """The staged version, ready to be proven."""
        manifest = Manifest(
            asset=self.asset,
            day=self.day,
            rows=rows,
            files=tuple(self._files),
            columns=[column.described() for column in columns],
            config=config,
            code=code,
            inputs=inputs,
            content_version=content_version,
            counts=counts,
            size=size,
        )
        return Staged(manifest, self.run, self.directory, prepare, facts)


class Store:
    """The lake under one root.

    Args:
        root: Folder of the store; made on the first write.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def directory(self, asset: str, day: date) -> Path:
        """The folder of a day of an asset."""
        return self.root / asset / f"day={day.isoformat()}"

    def manifest(self, asset: str, day: date) -> Manifest | None:
        """The published version of a day, or None."""
        return read_manifest(self.directory(asset, day) / MANIFEST_NAME)

    def days(self, asset: str) -> list[date]:
        """The published days of an asset, ascending."""
        found = (self.root / asset).glob(f"day=*/{MANIFEST_NAME}")
        return sorted(date.fromisoformat(path.parent.name.removeprefix("day=")) for path in found)

    def open_for(self, dataset: Dataset) -> None:
        """Makes the root, or makes sure that it belongs to this dataset.

        Raises:
            PipelineError: The root cannot be written to, or holds another dataset.
        """
        path = self.root / IDENTITY_NAME
        present = _identity(dataset)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            temporary = self.root / f"{IDENTITY_NAME}.{secrets.token_hex(4)}.tmp"
            write_synced(temporary, json.dumps(present, indent=1).encode())
            try:
                os.link(temporary, path)
            except FileExistsError:
                former = json.loads(path.read_bytes())
                if _compare_identity(former, present, path):
                    temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            raise PipelineError(
                f"{self.root}: the store cannot be written to ({error.strerror}); "
                "check [store] root and the rights on that folder"
            ) from None

    def stage(self, asset: str, day: date, *, run: str) -> Staging:
        """Opens a day for writing; nothing of it is visible before the commit."""
        safe_run = re.sub(r"[^A-Za-z0-9]", "", run)[:12] or "run"
        return Staging(asset=asset, day=day, run=safe_run, directory=self.directory(asset, day))

    def commit(self, staged: Staged, *, proof: Mapping[str, Any]) -> Manifest:
        """Replaces the manifest in one atomic step. Called by `checks.publish` alone."""
        manifest = staged.manifest
        if staged.prepare is not None:
            manifest = staged.prepare(manifest)
        manifest = replace(manifest, proof=proof)
        temporary = staged.directory / f"{MANIFEST_NAME}.{staged.run}-{secrets.token_hex(4)}.tmp"
        write_synced(temporary, json.dumps(manifest.to_json(), indent=1).encode())
        temporary.replace(staged.directory / MANIFEST_NAME)
        sync_folder(staged.directory)
        return manifest

    def failed_directory(self, run: str, asset: str, day: date) -> Path:
        """Where the files of a refused version go."""
        return self.root / FAILED / run / asset / f"day={day.isoformat()}"

    def move_aside(self, staged: Staged) -> Path:
        """Moves the files of a refused version to `_failed/<run>/` and says where."""
        target = self.failed_directory(staged.run, staged.manifest.asset, staged.manifest.day)
        target.mkdir(parents=True, exist_ok=True)
        for file in staged.manifest.files:
            (staged.directory / file.path).replace(target / file.path)
        write_synced(target / MANIFEST_NAME, json.dumps(staged.manifest.to_json(), indent=1).encode())
        return target

    def sweep(self, asset: str, day: date, *, keep_hours: float) -> list[str]:
        """Removes files of a day that no manifest names and that are older than `keep_hours`."""
        manifest = self.manifest(asset, day)
        named = {file.path for file in manifest.files} if manifest else set()
        oldest = time.time() - keep_hours * 3600
        swept: list[str] = []
        for path in self.directory(asset, day).iterdir():
            leftover = path.suffix in (".parquet", ".tmp") and path.name not in named
            if leftover and path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)
                swept.append(path.name)
        return sorted(swept)


def write_synced(path: Path, content: bytes) -> None:
    """Writes a small file so that it survives a crash."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Makes a rename in a folder survive a crash."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _identity(dataset: Dataset) -> dict[str, Any]:
    timestamp = dataset.columns.timestamp
    return {
        "name": dataset.name,
        "user_id": dataset.columns.user_id.type,
        "item_id": dataset.columns.item_id.type,
        "timestamp": timestamp.model_dump(exclude_none=True, by_alias=True),
        "start": dataset.partitions.start.isoformat(),
        "actions": list(dataset.action_names),
    }


def _compare_identity(former: dict[str, Any], present: dict[str, Any], path: Path) -> bool:
    """Whether the stored identity has to be replaced (actions were appended); refuses every other difference."""
    for key, now in present.items():
        before = former.get(key)
        appended = key == "actions" and now[: len(before)] == before
        if before != now and not appended:
            rule = "actions may only be appended" if key == "actions" else "take another [store] root"
            raise PipelineError(
                f"{path.parent}: the store was made with {key} = {before!r}, the dataset file says {now!r}; {rule}"
            )
    return former != present

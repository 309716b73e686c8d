"""The store: staged files, one atomic commit a day, and what is swept afterwards."""

import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.store.manifest import MANIFEST_NAME, Lineage, Manifest, read_lineage, read_manifest
from pipeline.store.staging import Staged, Staging, writing

IDENTITY_NAME = "_dataset.json"
FAILED = "_failed"
SCRATCH = "_scratch"


Signature = tuple[int, int, int]  # of a manifest: its inode, time and size


@dataclass(slots=True)
class _Known:
    """A manifest as it was when it was read last."""

    path: str
    signature: Signature | None = None
    lineage: Lineage | None = None
    manifest: Manifest | None = None

    def look(self) -> bool:
        """Whether it is as it was when it was looked at last; forgets what was read of it when it is not."""
        try:
            found = os.stat(self.path)  # noqa: PTH116 - a chain of years is looked at many times
        except (FileNotFoundError, NotADirectoryError):
            signature = None
        else:
            signature = (found.st_ino, found.st_mtime_ns, found.st_size)  # every commit is a new file
        if signature == self.signature:
            return True
        self.signature, self.lineage, self.manifest = signature, None, None
        return False


class Store:
    """The lake under one root.

    Args:
        root: Folder of the store; made on the first write.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.remembered: dict[str, Any] = {}  # what a process need not read twice, since it never changes on disk
        self.judged: dict[tuple[str, date], Any] = {}  # what `Currency` found, see there
        self._manifests: dict[tuple[str, date], _Known] = {}

    def directory(self, asset: str, day: date) -> Path:
        """The folder of a day of an asset."""
        return self.root / asset / f"day={day.isoformat()}"

    def manifest(self, asset: str, day: date) -> Manifest | None:
        """The published version of a day, or None."""
        known = self._known(asset, day)
        if known.signature is not None and known.manifest is None:
            known.manifest = read_manifest(Path(known.path))
        return known.manifest

    def lineage(self, asset: str, day: date) -> tuple[Signature | None, Lineage | None]:
        """What the check of a chain needs of a day, and what tells that version from another; None without one."""
        known = self._known(asset, day)
        if known.signature is not None and known.lineage is None:
            known.lineage = read_lineage(Path(known.path))
        return known.signature, known.lineage

    def changed(self, days: Mapping[tuple[str, date], Signature | None]) -> list[tuple[str, date]]:
        """Those of some days of assets that are no longer the version that they were."""
        known = self._manifests
        for day in days:
            known[day].look()
        return [day for day, signature in days.items() if known[day].signature != signature]

    def _known(self, asset: str, day: date) -> _Known:
        known = self._manifests.get((asset, day))
        if known is None:
            path = str(self.directory(asset, day) / MANIFEST_NAME)
            known = self._manifests[asset, day] = _Known(path)
        known.look()
        return known

    def days(self, asset: str) -> list[date]:
        """The published days of an asset, ascending."""
        try:
            folders = list(os.scandir(self.root / asset))
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = [folder for folder in folders if folder.name.startswith("day=")]
        published = [folder.name for folder in found if os.path.exists(f"{folder.path}/{MANIFEST_NAME}")]  # noqa: PTH110
        return sorted(date.fromisoformat(name.removeprefix("day=")) for name in published)

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
                former = _read_identity(path)
                if _compare_identity(former, present, path):
                    temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
            self._sweep_leftovers(dataset.store.keep_hours)
        except OSError as error:
            raise PipelineError(
                f"{self.root}: the store cannot be written to ({error.strerror}); "
                "check [store] root and the rights on that folder"
            ) from None

    def stage(self, asset: str, day: date, *, run: str) -> Staging:
        """Opens a day for writing; nothing of it is visible before the commit."""
        return Staging(
            asset=asset,
            day=day,
            run=safe_run(run),
            directory=self.directory(asset, day),
            aside=self.failed_directory(run, asset, day),
        )

    def commit(self, staged: Staged, *, proof: Mapping[str, Any]) -> Manifest:
        """Replaces the manifest in one atomic step. Called by `checks.publish` alone."""
        manifest = replace(staged.manifest, proof=proof)
        temporary = staged.directory / f"{MANIFEST_NAME}.{staged.run}-{secrets.token_hex(4)}.tmp"
        with writing(f"{manifest.asset} of {manifest.day}", staged.directory, temporary):
            write_synced(temporary, json.dumps(manifest.to_json(), indent=1).encode())
            self._keep_for_readers(manifest)
            temporary.replace(staged.directory / MANIFEST_NAME)
            sync_folder(staged.directory)
        return manifest

    def _keep_for_readers(self, new: Manifest) -> None:
        """Files of the version that is about to be replaced count as young from now on: somebody may be reading them."""
        try:
            former = self.manifest(new.asset, new.day)
        except PipelineError:  # a damaged one is replaced like any other
            return
        named = {file.path for file in new.files}
        for file in former.files if former else ():
            if file.path not in named and (path := self.directory(new.asset, new.day) / file.path).exists():
                os.utime(path)

    def scratch_directory(self, run: str, asset: str, day: date) -> Path:
        """A folder of one run for what does not fit into memory; the stage removes it."""
        return self.root / SCRATCH / f"{safe_run(run)}-{asset}-{day.isoformat()}"

    def failed_directory(self, run: str, asset: str, day: date) -> Path:
        """Where the files of a refused version go."""
        return self.root / FAILED / safe_run(run) / asset / f"day={day.isoformat()}"

    def move_aside(self, staged: Staged) -> Path:
        """Moves the files of a refused version to `_failed/<run>/` and says where."""
        target = self.failed_directory(staged.run, staged.manifest.asset, staged.manifest.day)
        target.mkdir(parents=True, exist_ok=True)
        for file in staged.manifest.files:
            if (staged.directory / file.path).exists():  # or somebody has removed it
                (staged.directory / file.path).replace(target / file.path)
        write_synced(target / MANIFEST_NAME, json.dumps(staged.manifest.to_json(), indent=1).encode())
        return target

    def sweep(self, asset: str, day: date, *, keep_hours: float) -> list[str]:
        """Removes files of a day that no manifest names and that are older than `keep_hours`."""
        manifest = self.manifest(asset, day)
        named = {file.path for file in manifest.files} if manifest else set()
        files = self.directory(asset, day).iterdir()
        return _remove_old([p for p in files if p.suffix in (".parquet", ".tmp") and p.name not in named], keep_hours)

    def _sweep_leftovers(self, keep_hours: float) -> None:
        """Removes what killed runs left beside the days: scratch folders, unlinked segments, temporary files."""
        leftovers = [
            *self.root.glob(f"{SCRATCH}/*"),
            *self.root.glob("*/_log/_staged-*"),
            *self.root.glob(f"{IDENTITY_NAME}.*"),
        ]
        _remove_old(leftovers, keep_hours)


def _remove_old(paths: Sequence[Path], keep_hours: float) -> list[str]:
    oldest = time.time() - keep_hours * 3600
    removed: list[str] = []
    for path in paths:
        try:
            if path.stat().st_mtime >= oldest:
                continue
        except FileNotFoundError:  # another run swept it
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        removed.append(path.name)
    return sorted(removed)


def safe_run(run: str) -> str:
    """The name of a run as it stands in file names: letters and digits, so that it cannot leave its folder."""
    return re.sub(r"[^A-Za-z0-9]", "", run)[:32] or "run"


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
        "timestamp": timestamp.model_dump(mode="json", exclude_defaults=True, by_alias=True),
        "start": dataset.partitions.start.isoformat(),
        "actions": list(dataset.action_names),
    }


def _read_identity(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise PipelineError(
            f"{path}: the dataset's identity cannot be read ({error}); restore the file from a backup"
        ) from None


def _compare_identity(former: dict[str, Any], present: dict[str, Any], path: Path) -> bool:
    """Whether the stored identity has to be replaced (actions were appended); refuses every other difference."""
    for key, now in present.items():
        before: Any = former.get(key)
        appended = key == "actions" and now[: len(before)] == before
        if before != now and not appended:
            rule = "actions may only be appended" if key == "actions" else "take another [store] root"
            raise PipelineError(
                f"{path.parent}: the store was made with {key} = {before!r}, the dataset file says {now!r}; {rule}"
            )
    return former != present

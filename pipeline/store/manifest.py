"""The manifest: what one day of one asset consists of, and what it was made from."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from pipeline.contracts import PipelineError

FORMAT = 1
MANIFEST_NAME = "_manifest.json"
HEAD = b'{\n "format": %d,' % FORMAT


def version_of(content_version: str | Mapping[str, str], role: str | None) -> str:
    """A content version, of one role where there are several."""
    if isinstance(content_version, str):
        return content_version
    if role is None:
        raise KeyError("this asset has one content version a role; say which")
    return content_version[role]


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file of a day.

    Attributes:
        path: Relative to the manifest.
        rows: Number of rows.
        bytes: Size on disk.
        sha256: Hex digest of its bytes.
        role: `opening` or `closing` in `user_state`, else None.
    """

    path: str
    rows: int
    bytes: int
    sha256: str
    role: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The entry in the manifest."""
        entry: dict[str, Any] = {
            "path": self.path,
            "rows": self.rows,
            "bytes": self.bytes,
            "sha256": self.sha256,
        }
        return entry if self.role is None else entry | {"role": self.role}


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a day is made of; the same recipe gives the same values.

    Attributes:
        config: The settings that can change a value.
        code: Name of a stage, source format or feature -> its version.
        inputs: Asset or raw file -> version, named as in a manifest.
    """

    config: Mapping[str, Any]
    code: Mapping[str, int]
    inputs: Mapping[str, str]

    def matches(self, manifest: "Manifest") -> bool:
        """Whether a published day was made of the same things."""
        return (
            dict(self.config) == dict(manifest.config)
            and dict(self.code) == dict(manifest.code)
            and dict(self.inputs) == dict(manifest.inputs)
        )


@dataclass(frozen=True, slots=True)
class Lineage:
    """What the check of a chain needs of a manifest.

    Attributes:
        inputs: Asset or raw file -> version, named as in a manifest.
        content_version: Hash of the values; one for each role in `user_state`.
    """

    inputs: Mapping[str, str]
    content_version: str | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Manifest:
    """A day of an asset, as published.

    Attributes:
        asset: Name of the asset, without key prefix.
        day: UTC day.
        rows: Rows of the day (in `user_state`: users in `opening`; in a vocabulary: distinct ids of the day).
        files: Data files in reading order.
        columns: Name, type, unit and meaning of every column.
        config: The settings that can change a value.
        code: Name of a stage, source format or feature -> its version.
        inputs: Asset (`asset`, `asset.role`, `asset.role@day`) or raw file (`raw_logs/<name>`) -> version.
        content_version: Hash of the values; one for each role in `user_state`.
        counts: Further figures of the day.
        proof: Run, time and figures of the proof that let the day out; empty while it is staged.
        size: In a vocabulary, the length of its log after this day.
        raw_files: In `events` and `rejected_events`: path, bytes, mtime_ns, sha256 and rows of every raw file;
            in files of several days also `day_rows` and `day_ends`, where the rows of the day lie.
    """

    asset: str
    day: date
    rows: int
    files: Sequence[DataFile]
    columns: Sequence[Mapping[str, Any]]
    config: Mapping[str, Any]
    code: Mapping[str, int]
    inputs: Mapping[str, str]
    content_version: str | Mapping[str, str]
    counts: Mapping[str, Any] = field(default_factory=dict)
    proof: Mapping[str, Any] = field(default_factory=dict)
    size: int | None = None
    raw_files: Sequence[Mapping[str, Any]] = ()

    def to_json(self) -> dict[str, Any]:
        """The manifest as it stands on disk."""
        entry: dict[str, Any] = {
            "format": FORMAT,
            "asset": self.asset,
            "day": self.day.isoformat(),
            "rows": self.rows,
            "files": [file.to_json() for file in self.files],
            "columns": [dict(column) for column in self.columns],
            "config": dict(self.config),
            "code": dict(self.code),
            "inputs": dict(self.inputs),
            "content_version": self.content_version,
            "counts": dict(self.counts),
            "proof": dict(self.proof),
        }
        if self.size is not None:
            entry["size"] = self.size
        if self.raw_files:
            entry["raw_files"] = [dict(file) for file in self.raw_files]
        return entry

    def version(self, role: str | None = None) -> str:
        """The content version, of one role where there are several."""
        return version_of(self.content_version, role)

    def of_role(self, role: str | None) -> list[DataFile]:
        """The files of one role, in reading order."""
        return [file for file in self.files if file.role == role]


def read_lineage(path: Path) -> Lineage | None:
    """Reads of a manifest what the check of a chain needs; None when there is none.

    Raises:
        PipelineError: See `read_manifest`.
    """
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise PipelineError(f"{path}: the manifest cannot be read ({error}); make this day again") from None
    first, stop = text.find(b'\n "inputs": {'), text.find(b',\n "counts": {')  # a line break is never part of a value
    if text.startswith(HEAD) and 0 < first < stop:  # as `Store.commit` writes it: not all of it need be parsed
        with suppress(ValueError, KeyError):
            entry = json.loads(b"{" + text[first:stop] + b"}")
            return Lineage(entry["inputs"], entry["content_version"])
    manifest = read_manifest(path)
    return None if manifest is None else Lineage(manifest.inputs, manifest.content_version)


def read_manifest(path: Path) -> Manifest | None:
    """Reads a manifest; None when there is none.

    Raises:
        PipelineError: It cannot be read, or its format is not known.
    """
    try:
        entry = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise PipelineError(f"{path}: the manifest cannot be read ({error}); make this day again") from None
    if entry.get("format") != FORMAT:
        raise PipelineError(
            f"{path}: found manifest format {entry.get('format')}, expected {FORMAT}; use the release that wrote it"
        )
    try:
        return Manifest(
            asset=entry["asset"],
            day=date.fromisoformat(entry["day"]),
            rows=entry["rows"],
            files=[DataFile(**file) for file in entry["files"]],
            columns=entry["columns"],
            config=entry["config"],
            code=entry["code"],
            inputs=entry["inputs"],
            content_version=entry["content_version"],
            counts=entry.get("counts", {}),
            proof=entry["proof"],
            size=entry.get("size"),
            raw_files=entry.get("raw_files", ()),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise PipelineError(f"{path}: the manifest is damaged ({error!r}); make this day again") from None

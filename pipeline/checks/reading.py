"""Reads what was written back from disk; the only thing that proofs look at."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline.checks.findings import Findings
from pipeline.config import Dataset
from pipeline.contracts import Column, Event, Feature
from pipeline.store import (
    POLARS_DTYPES,
    DataFile,
    Manifest,
    Store,
    file_sha256,
    manifest_schema,
    previous,
    read_files,
    require_current,
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A day of an asset that is to be proven: staged or published, it lies on disk either way."""

    manifest: Manifest
    store: Store
    dataset: Dataset
    features: Sequence[Feature]

    def rows(self, role: str | None = None) -> pl.LazyFrame:
        """Its rows as they lie on disk."""
        return _lazy(self.store, self.manifest, role)

    def file_rows(self, file: DataFile) -> pl.DataFrame:
        """The rows of one of its files."""
        directory = self.store.directory(self.manifest.asset, self.manifest.day)
        return read_files(directory, [file], manifest_schema(self.manifest)).collect()

    def input(self, asset: str) -> Manifest:
        """The published day of an input."""
        return require_current(self.store, asset, self.manifest.day, self.dataset)

    def events(self) -> pl.LazyFrame:
        """The day's published events."""
        return _lazy(self.store, self.input("events"), None)

    def closing_before(self) -> pl.LazyFrame | None:
        """`closing` of the day before; None on the first day."""
        if self.manifest.day == self.dataset.partitions.start:
            return None
        before = require_current(self.store, "user_state", previous(self.manifest.day), self.dataset)
        return _lazy(self.store, before, "closing")


def _lazy(store: Store, manifest: Manifest, role: str | None) -> pl.LazyFrame:
    directory = store.directory(manifest.asset, manifest.day)
    return read_files(directory, manifest.of_role(role), manifest_schema(manifest))


def prove_files(subject: Subject, findings: Findings) -> None:
    """Files are whole: there, of the recorded checksum and number of rows."""
    directory = subject.store.directory(subject.manifest.asset, subject.manifest.day)
    with findings.timed("checksums of the files"):
        damaged = [
            file.path
            for file in subject.manifest.files
            if not (directory / file.path).exists() or file_sha256(directory / file.path) != file.sha256
        ]
    findings.expect(f"files of {subject.manifest.asset} have their recorded checksums", expected=[], found=damaged)
    counted = [
        file.path for file in subject.manifest.files if file.path not in damaged and _rows(subject, file) != file.rows
    ]
    findings.expect(f"files of {subject.manifest.asset} have their recorded rows", expected=[], found=counted)


def _rows(subject: Subject, file: DataFile) -> int:
    directory = subject.store.directory(subject.manifest.asset, subject.manifest.day)
    return pl.scan_parquet(directory / file.path, glob=False).select(pl.len()).collect().item()


def prove_schema(
    frame: pl.DataFrame | pl.LazyFrame, columns: Sequence[Column], findings: Findings, *, name: str
) -> None:
    """The columns on disk are those declared, in order and type."""
    declared = [f"{column.name} {POLARS_DTYPES[column.dtype]}" for column in columns]
    present = [f"{column} {dtype}" for column, dtype in frame.collect_schema().items()]
    findings.expect(name, expected=declared, found=present)


def prove_manifest(subject: Subject, columns: Sequence[Column], inputs: Mapping[str, str], findings: Findings) -> None:
    """The manifest says what is true: the declared columns, and the inputs as they are published now."""
    asset = subject.manifest.asset
    declared = [column.described() for column in columns]
    findings.expect(
        f"the manifest of {asset} declares its columns", expected=True, found=declared == list(subject.manifest.columns)
    )
    recorded = dict(subject.manifest.inputs)
    other = sorted(name for name in {*inputs, *recorded} if inputs.get(name) != recorded.get(name))
    findings.expect(f"the manifest of {asset} records its inputs as they are", expected=[], found=other)


def range_problems(frame: pl.DataFrame, columns: Sequence[Column]) -> list[Mapping[str, Any]]:
    """Nulls, NaN and values outside the declared range, with the first row of each column."""
    problems: list[Mapping[str, Any]] = []
    for column in columns:
        values = frame[column.name]
        wrong = pl.lit(value=False)
        if not column.nullable:
            wrong |= pl.col(column.name).is_null()
        if values.dtype.is_float():
            wrong |= ~pl.col(column.name).is_finite()
        if column.minimum is not None:
            wrong |= pl.col(column.name) < column.minimum
        if column.maximum is not None:
            wrong |= pl.col(column.name) > column.maximum
        bad = frame.lazy().filter(wrong).head(1).collect()
        if bad.height:
            row = bad.row(0, named=True)
            limits = f"{column.minimum if column.minimum is not None else '-'}..{column.maximum if column.maximum is not None else '-'}"
            problems.append(
                {
                    "user_id": row.get("user_id"),
                    "row_id": row.get("row_id"),
                    "column": column.name,
                    "expected": f"{column.dtype} in {limits}",
                    "found": row[column.name],
                }
            )
    return problems


def events_by_user(rows: pl.LazyFrame, users: pl.Series, dataset: Dataset) -> Iterator[tuple[Any, list[Event]]]:
    """The events of some users as the oracle sees them, user by user."""
    extras = [column.name for column in dataset.extra_columns]
    names = ["row_id", "user_id", "item_id", pl.col("timestamp").to_physical(), "action", *extras]
    by_user: dict[Any, list[Event]] = {}
    for row_id, user_id, item_id, time_us, action, *values in (
        rows.filter(pl.col("user_id").is_in(users.implode())).select(names).collect().rows()
    ):
        extra = dict(zip(extras, values, strict=True))
        event = Event(row_id, user_id, item_id, time_us, action, dataset.action_names, extra)
        by_user.setdefault(user_id, []).append(event)
    yield from sorted(by_user.items())


def rows_by_user(rows: pl.LazyFrame, users: pl.Series) -> dict[Any, list[dict[str, Any]]]:
    """Rows of some users, in stored order."""
    by_user: dict[Any, list[dict[str, Any]]] = {}
    for row in rows.filter(pl.col("user_id").is_in(users.implode())).collect().iter_rows(named=True):
        by_user.setdefault(row["user_id"], []).append(row)
    return by_user


def states_by_user(rows: pl.LazyFrame, users: pl.Series) -> dict[Any, dict[str, Any]]:
    """The carried state of some users."""
    return {user: found[0] for user, found in rows_by_user(rows, users).items()}

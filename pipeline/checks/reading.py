"""Reads what was written back from disk; the only thing that proofs look at."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
import pyarrow.parquet as pq

from pipeline.checks.findings import Findings
from pipeline.checks.oracle import LOOP_ROWS
from pipeline.config import Dataset
from pipeline.contracts import Column, Event, Feature
from pipeline.store import (
    POLARS_DTYPES,
    ROW_GROUP_ROWS,
    DataFile,
    Manifest,
    Store,
    file_sha256,
    manifest_schema,
    read_blocks,
    read_files,
    require_current,
)
from pipeline.threads import ahead

T = TypeVar("T")
BLOCK_ROWS = 4 * ROW_GROUP_ROWS  # so many that the calls for a block cost little beside its rows


@dataclass(frozen=True, slots=True)
class Subject:
    """A day of an asset that is to be proven: staged or published, it lies on disk either way."""

    manifest: Manifest
    store: Store
    dataset: Dataset
    features: Sequence[Feature]

    def rows(self, role: str | None = None, *, of: Manifest | None = None) -> pl.LazyFrame:
        """The rows as they lie on disk, its own or those of another day or asset."""
        manifest = of or self.manifest
        directory = self.store.directory(manifest.asset, manifest.day)
        return read_files(directory, manifest.of_role(role), manifest_schema(manifest))

    def blocks(
        self, columns: Sequence[str], *, of: Manifest | None = None, user: int | str | None = None
    ) -> Iterator[pl.DataFrame]:
        """Streams some columns as they lie on disk, read ahead in a thread; the action as Enum of the declared ones.

        Args:
            columns: Their names.
            of: Another day or asset than its own.
            user: Only the rows of this user, `user_id` among the columns.
        """
        manifest, own = of or self.manifest, of is None
        names = {"action": self.dataset.action_names} if "action" in columns else {}
        directory = self.store.directory(manifest.asset, manifest.day)
        return ahead(
            # whoever reads the files that are to be proven takes their checksums as well
            read_blocks(
                directory,
                manifest.files,
                columns,
                block_rows=BLOCK_ROWS,
                names=names,
                verify=not own or user is not None,
                user=user,
            )
        )

    def input(self, asset: str) -> Manifest:
        """The published day of an input."""
        return require_current(self.store, asset, self.manifest.day, self.dataset)

    def paths(self) -> list[Path]:
        """Its files."""
        directory = self.store.directory(self.manifest.asset, self.manifest.day)
        return [directory / file.path for file in self.manifest.files]

    def events(self) -> pl.LazyFrame:
        """The day's published events."""
        return self.rows(of=self.input("events"))


class Checksums:
    """The checksums of the files of some days, on their way while others read the files."""

    def __init__(self, subjects: Sequence[Subject], thread: ThreadPoolExecutor) -> None:
        self._coming = [(subject, thread.submit(damaged_files, subject)) for subject in subjects]

    def prove(self, findings: Findings) -> bool:
        """Waits, notes whether every file is there with its recorded checksum and rows, and tells."""
        whole = True
        for subject, coming in self._coming:
            with findings.timed("checksums of the files, waited for"):
                damaged = coming.result()
            asset = subject.manifest.asset
            findings.expect(f"files of {asset} have their recorded checksums", expected=[], found=damaged)
            counted = [
                file.path
                for file in subject.manifest.files
                if file.path not in damaged and _rows(subject, file) != file.rows
            ]
            findings.expect(f"files of {asset} have their recorded rows", expected=[], found=counted)
            whole = whole and not damaged and not counted
        return whole


def of_whole_files(look: Callable[[Findings], T], findings: Findings, *subjects: Subject) -> T | None:
    """What was seen in the files of some days, if these are whole: there, of the recorded checksum and number of rows.

    The checksums are taken in a thread meanwhile, so that bytes are read from the disk once. Files that are not whole explain
    whatever is wrong with what was seen in them.

    Args:
        look: Decodes the files; what it notes counts only if they are whole.
        findings: Where to note.
        subjects: The days.
    """
    looked = Findings()
    with ThreadPoolExecutor(max_workers=1) as thread:
        sums = Checksums(subjects, thread)
        try:
            seen = look(looked)
        except Exception:
            if sums.prove(findings):
                raise  # the files are as they were written
            return None
        if not sums.prove(findings):
            return None
    findings.found += looked.found
    return seen


def prove_files(subject: Subject, findings: Findings) -> None:
    """Files are whole."""
    of_whole_files(lambda _: None, findings, subject)


def damaged_files(subject: Subject) -> list[str]:
    """Files that are gone or have another checksum than recorded."""
    directory = subject.store.directory(subject.manifest.asset, subject.manifest.day)
    return [
        file.path
        for file in subject.manifest.files
        if not (directory / file.path).exists() or file_sha256(directory / file.path) != file.sha256
    ]


def _rows(subject: Subject, file: DataFile) -> int:
    directory = subject.store.directory(subject.manifest.asset, subject.manifest.day)
    return pq.read_metadata(directory / file.path).num_rows


def prove_schemas(files: Sequence[Path], columns: Sequence[Column], findings: Findings, *, name: str) -> bool:
    """Every file has the columns that are declared, in order and type, and no others."""
    declared = [f"{column.name} {POLARS_DTYPES[column.dtype]}" for column in columns]
    for path in files:
        present = [f"{column} {dtype}" for column, dtype in pl.read_parquet_schema(path).items()]
        if present != declared:
            shown = [entry if entry in declared else f"{entry} in {path.name}" for entry in present]
            findings.expect(name, expected=declared, found=shown)
            return False
    findings.expect(name, expected=declared, found=declared)
    return True


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


def type_problems(frame: pl.DataFrame, columns: Sequence[Column]) -> list[Mapping[str, Any]]:
    """Columns of another type than declared, in whichever file; names are read as Enum."""
    return [
        {"column": column.name, "expected": str(POLARS_DTYPES[column.dtype]), "found": str(found)}
        for column, found in zip(columns, frame.dtypes, strict=True)
        if found != POLARS_DTYPES[column.dtype] and not (column.dtype == "string" and found == pl.Enum)
    ]


def range_problems(frame: pl.DataFrame, columns: Sequence[Column]) -> list[Mapping[str, Any]]:
    """Nulls, NaN and values outside the declared range, with the first row of each column."""
    problems: list[Mapping[str, Any]] = []
    for column in columns:
        values = frame[column.name]
        if _all_within(values, column):
            continue
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


def _all_within(values: pl.Series, column: Column) -> bool:
    """Whether the least and the greatest value settle that nothing is wrong, which takes no copy; NaN settles nothing."""
    if values.is_empty():
        return True
    if values.null_count():
        return False  # to be looked at
    if column.minimum is None and column.maximum is None and not values.dtype.is_float():
        return True
    if not values.dtype.is_numeric():
        return False
    array = values.to_numpy()
    low, high = float(array.min()), float(array.max())  # of an array with a NaN both are NaN
    if values.dtype.is_float() and not (math.isfinite(low) and math.isfinite(high)):
        return False
    return (column.minimum is None or low >= column.minimum) and (column.maximum is None or high <= column.maximum)


def rows_by_user(rows: pl.LazyFrame, users: pl.Series) -> Iterator[tuple[Any, Iterator[pl.DataFrame]]]:
    """The rows of each of some users who have any, in stored order, in pieces for the loop."""
    frame = rows.filter(pl.col("user_id").is_in(users.implode())).collect()
    by_user = {user: part for (user,), part in frame.partition_by("user_id", as_dict=True).items()}
    for user, part in sorted(by_user.items()):
        yield user, part.iter_slices(LOOP_ROWS)


def events_of(user: int | str, rows: pl.DataFrame, actions: Iterable[str], dataset: Dataset) -> list[Event]:
    """Events of one user as the oracle sees them.

    Args:
        user: The user_id.
        rows: row_id, item_id, timestamp and the extra columns [E].
        actions: The action of each.
        dataset: The declarations.
    """
    extras = [column.name for column in dataset.extra_columns]
    return list(
        map(
            Event,
            rows["row_id"].to_list(),
            repeat(user),
            rows["item_id"].to_list(),
            rows["timestamp"].to_physical().to_list(),
            actions,
            repeat(dataset.action_names),
            rows.select(extras).iter_rows(named=True) if extras else repeat({}),
        )
    )


def states_by_user(rows: pl.LazyFrame, users: pl.Series) -> dict[Any, dict[str, Any]]:
    """The carried state of some users."""
    found = rows.filter(pl.col("user_id").is_in(users.implode())).collect()
    return {row["user_id"]: row for row in found.iter_rows(named=True)}

"""Readers: published files, as lazy polars frames."""

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Literal

import polars as pl

from pipeline.contracts import PipelineError
from pipeline.store.currency import Currency
from pipeline.store.lake import Store
from pipeline.store.manifest import DataFile, Manifest

POLARS_DTYPES: dict[str, pl.DataType] = {
    "int64": pl.Int64(),
    "int32": pl.Int32(),
    "uint8": pl.UInt8(),
    "float32": pl.Float32(),
    "float64": pl.Float64(),
    "bool": pl.Boolean(),
    "string": pl.String(),
    "timestamp": pl.Datetime("us", "UTC"),
}


def read_files(directory: Path, files: Sequence[DataFile], schema: dict[str, pl.DataType]) -> pl.LazyFrame:
    """The rows of some files of a day, in manifest order."""
    if not files:
        return pl.LazyFrame(schema=schema)
    return pl.scan_parquet([directory / file.path for file in files], glob=False)


def latest_rows(directory: Path, files: Sequence[DataFile], schema: dict[str, pl.DataType]) -> pl.LazyFrame:
    """The latest row of every user, sorted by user_id.

    Args:
        directory: Where the files lie.
        files: The files of `closing`, oldest first; each holds a user at most once.
        schema: Their columns.
    """
    rows = read_files(directory, files, schema)
    return rows if len(files) < 2 else rows.unique("user_id", keep="last", maintain_order=True).sort("user_id")


def manifest_schema(manifest: Manifest) -> dict[str, pl.DataType]:
    """The columns that a manifest declares, as polars types."""
    return {column["name"]: POLARS_DTYPES[column["type"]] for column in manifest.columns}


def scan(
    root: str | Path,
    asset: str,
    start: date | str,
    end: date | str,
    *,
    missing: Literal["fail", "skip"] = "fail",
    allow_stale: bool = False,
    role: Literal["opening", "closing"] | None = None,
) -> pl.LazyFrame:
    """Reads the published days of an asset.

    Args:
        root: Root of the store.
        asset: For example `features`.
        start: First day, inclusive.
        end: Last day, inclusive.
        missing: `skip` leaves out days that are not published, instead of failing.
        allow_stale: Also reads days whose inputs were made again since.
        role: For `user_state`, which of its two tables.

    Returns:
        The rows of all days, day by day in stored order, with a first column `day` (Date).

    Raises:
        PipelineError: Days are missing or not current, or were made with different columns or code versions.
    """
    first, last = as_day(start), as_day(end)
    store, currency = Store(Path(root)), Currency(Store(Path(root)))
    absent: list[date] = []
    stale: dict[date, str] = {}
    manifests: list[Manifest] = []
    for offset in range((last - first).days + 1):
        day = first + timedelta(days=offset)
        manifest = store.manifest(asset, day)
        if manifest is None:
            absent.append(day)
            continue
        if problem := currency.problem(asset, day):
            stale[day] = problem
        manifests.append(manifest)
    if absent and missing == "fail":
        raise PipelineError(
            f'{asset} is missing for {_list(absent)} in {root}; make them, or pass missing="skip" to leave them out'
        )
    if stale and not allow_stale:
        raise PipelineError(
            f"{asset} is not current for {_list(list(stale))} in {root} ({next(iter(stale.values()))}); "
            "make them again, or pass allow_stale=True"
        )
    if not manifests:
        raise PipelineError(f"{asset} has no day from {first} to {last} in {root}")
    _require_role(manifests[-1], role)
    _refuse_mixture(asset, manifests)
    read = latest_rows if role == "closing" else read_files
    frames = [
        read(store.directory(asset, m.day), m.of_role(role), manifest_schema(m)).select(
            pl.lit(m.day).alias("day"), pl.all()
        )
        for m in manifests
    ]
    return pl.concat(frames)


def _require_role(manifest: Manifest, role: str | None) -> None:
    roles = [] if isinstance(manifest.content_version, str) else sorted(manifest.content_version)
    if roles and role not in roles:
        raise PipelineError(
            f'{manifest.asset} has the tables {" and ".join(roles)}: pass role="{roles[0]}" or another of them'
        )
    if role is not None and not roles:
        raise PipelineError(f'{manifest.asset} has one table: leave role out (found role="{role}")')


def _refuse_mixture(asset: str, manifests: Sequence[Manifest]) -> None:
    newest = manifests[-1]
    differing = [
        m.day
        for m in manifests
        if _shape(m) != _shape(newest)
        or m.config.get("features") != newest.config.get("features")
        # a day of events without files names no source format: only what both name can differ
        or any(m.code[name] != newest.code[name] for name in m.code.keys() & newest.code.keys())
    ]
    if differing:
        raise PipelineError(
            f"{asset} of {_list(differing)} has other columns or code versions than {newest.day}; make those days again"
        )


def _shape(manifest: Manifest) -> list[tuple[str, str, str]]:
    """What has to agree between days; the wording of a meaning may change."""
    return [(column["name"], column["type"], column["unit"]) for column in manifest.columns]


def as_day(day: date | str) -> date:
    """A day, or its text such as 2010-12-01."""
    return day if isinstance(day, date) else date.fromisoformat(day)


def _list(days: Sequence[date]) -> str:
    shown = ", ".join(day.isoformat() for day in days[:5])
    return shown if len(days) <= 5 else f"{shown} and {len(days) - 5} more days"

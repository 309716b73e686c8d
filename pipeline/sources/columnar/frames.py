"""What Parquet and Arrow files have in common: typed columns, nested ones among them."""

import calendar
import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from pipeline.contracts import PipelineError
from pipeline.sources.block import RawBlock

# Some of these polars refuses, of others it dies.
LACKING = (
    pa.types.is_decimal256, pa.types.is_interval, pa.types.is_union, pa.types.is_list_view, pa.types.is_large_list_view,
    pa.types.is_run_end_encoded,
)  # fmt: skip
CELL_BYTES = 16  # a text takes as much in memory even where the file stores it as a small dictionary code


def refuse_unreadable(schema: pa.Schema, *, file: str) -> None:
    """Refuses a column of a type that polars lacks.

    Raises:
        PipelineError: With the name and the type of the column.
    """
    for column in schema:
        if _is_readable(column.type):
            continue
        wide = any(map(pa.types.is_decimal256, _types_within(column.type)))
        advice = "with at most 38 digits, or as text" if wide else "as text or numbers"
        raise PipelineError(
            f"{file}: the column '{column.name}' holds {column.type}, which cannot be read; write it {advice}"
        )


def _is_readable(kind: pa.DataType) -> bool:
    if any(lacks(part) for part in _types_within(kind) for lacks in LACKING):
        return False
    try:
        pl.from_arrow(pa.nulls(0, kind))
    except pl.exceptions.PolarsError:  # a zone that is none
        return False
    return True


def _types_within(kind: pa.DataType) -> Iterator[pa.DataType]:
    yield kind
    if isinstance(kind, pa.DictionaryType):
        yield from _types_within(kind.value_type)
    for position in range(kind.num_fields):
        yield from _types_within(kind.field(position).type)


def typed_block(frame: pl.DataFrame, *, names: Sequence[str]) -> RawBlock:
    """A block of typed rows.

    Categories become their texts, maps become lists of keys and values, and a declared name with points that is no
    column is a path into struct columns, if it leads somewhere.

    Args:
        frame: The rows as the file holds them [R].
        names: The raw names that the dataset file declares.
    """
    plain = frame.with_columns(
        column.cast(_plain(column.dtype)) for column in frame if column.dtype != _plain(column.dtype)
    )

    def read_raw(rows: Sequence[int]) -> list[str]:
        found = within_calendar(plain[pl.Series(list(rows), dtype=pl.UInt32)])
        return [json.dumps(cells, default=str, ensure_ascii=False) for cells in found.iter_rows(named=True)]

    return RawBlock(
        frame=plain.with_columns(
            found.alias(name) for name in names if (found := at_path(plain, name)) is not None and name not in plain
        ),
        line=pl.repeat(None, frame.height, dtype=pl.Int64, eager=True).alias("line"),
        malformed=pl.repeat(False, frame.height, dtype=pl.Boolean, eager=True).alias("malformed"),
        read_raw=read_raw,
    )


def _plain(dtype: Any) -> Any:
    """The type with texts in the place of categories, and lists in that of maps."""
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return pl.String()
    if isinstance(dtype, pl.List):
        return pl.List(_plain(dtype.inner))
    if isinstance(dtype, pl.Array):
        return pl.Array(_plain(dtype.inner), dtype.size)
    if isinstance(dtype, pl.Struct):
        return pl.Struct({field.name: _plain(field.dtype) for field in dtype.fields})
    if isinstance(dtype, pl.Map):
        pair = {"key": _plain(dtype.key), "value": _plain(dtype.value)}
        return pl.List(pl.Struct(pair))
    return dtype


def at_path(frame: pl.DataFrame, name: str) -> pl.Series | None:
    """The column of that name, else what stands at that path into struct columns; None when nothing does."""
    if name in frame.columns:
        return frame[name]
    first, *rest = name.split(".")
    if first not in frame.columns:
        return None
    found = frame[first]
    for key in rest:
        if not isinstance(found.dtype, pl.Struct) or key not in [field.name for field in found.dtype.fields]:
            return None
        found = found.struct.field(key)
    return found


def without_path(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """The frame without the column of that name, else without what stands at that path into struct columns."""
    return frame.drop(name) if name in frame.columns else _without(frame, name.split("."))


def _without(frame: pl.DataFrame, path: Sequence[str]) -> pl.DataFrame:
    first, *rest = path
    if not rest:
        return frame.drop(first)
    left = _without(frame[first].struct.unnest(), rest)
    return frame.with_columns(left.to_struct(first)) if left.width else frame.drop(first)


def within_calendar(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows that Python can hold: of a column with times beyond its calendar, the numbers that the file holds."""
    return rows.with_columns(column.to_physical() for column in rows if not _fits_python(column))


def _fits_python(column: pl.Series) -> bool:
    if column.dtype.is_nested():
        return not any(name in str(column.dtype) for name in ("Date", "Duration"))
    if column.dtype == pl.Date:
        return bool(column.is_between(date.min, date.max).all())
    if not isinstance(column.dtype, pl.Datetime | pl.Duration) or column.dtype.time_unit == "ns":
        return True
    # A zone may move a time by up to a day; the width of the calendar is a bound for durations as well.
    ticks = 10**3 if column.dtype.time_unit == "ms" else 10**6
    first, last = (calendar.timegm(edge.timetuple()) + day for edge, day in ((date.min, 86_400), (date.max, -86_400)))
    return bool(column.to_physical().is_between(first * ticks, last * ticks).all())


def sha256_of(path: Path) -> str:
    """sha256 of a stored file, in hex."""
    with path.open("rb") as stored:
        return hashlib.file_digest(stored, "sha256").hexdigest()

"""From raw columns to the column that a declaration names: `from`, `sql` or `value`."""

import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs

from pipeline.config import Dataset, RawColumn
from pipeline.contracts import PipelineError, quoted_or
from pipeline.events.cells import clean
from pipeline.sources import RawBlock

ARITHMETIC = ("Plus", "Minus", "Multiply", "Mul", "Add", "Sub")  # of polars' tree of an expression


@dataclass(frozen=True, slots=True)
class Origin:
    """The cells of one declared column.

    Attributes:
        values: Series [rows], as the format delivers them or as the expression returns them; null where they are one of
            `null_values`.
        failed: bool [rows], rows on which the expression failed; None when there are none.
    """

    values: pl.Series
    failed: np.ndarray | None

    def really(self, missing: np.ndarray | None) -> np.ndarray | None:
        """The missing rows without those on which the expression failed."""
        return missing if missing is None or self.failed is None else missing & ~self.failed


def source_of(column: RawColumn) -> str:
    """What a declaration takes its values from, for sentences and for `rejected_events.column`."""
    return column.from_ or column.sql or "value"


def check_origins(schema: pl.Schema, dataset: Dataset, *, file: str) -> None:
    """Refuses declarations that are wrong in themselves, before any row is converted.

    Args:
        schema: The raw columns of a file, as `sql` expressions see them.
        dataset: The declarations.
        file: Name of the file, for the sentence.

    Raises:
        PipelineError: A column that the file lacks, or an expression that is no expression over its rows.
    """
    for name, column in dataset.declared_columns.items():
        for raw in (column.from_, getattr(column, "time_from", None)):
            if raw is not None and raw not in schema:
                raise PipelineError(
                    f"{file}: there is no column '{raw}', which {_table(name, dataset)} names; {quoted_or(raw, schema)}"
                )
        if column.sql is not None:
            _check_sql(column.sql, schema, where=f"{file}: the sql of {_table(name, dataset)}")


def _table(name: str, dataset: Dataset) -> str:
    return f"[extra] {name}" if name in dataset.extra else f"[columns] {name}"


def _check_sql(sql: str, schema: pl.Schema, *, where: str) -> None:
    try:
        expression = pl.sql_expr(sql)
    except pl.exceptions.PolarsError as error:
        raise PipelineError(f"{where} is not valid: {_first_line(error)}") from None
    unknown = [name for name in expression.meta.root_names() if name not in schema]
    if unknown:
        raise PipelineError(
            f"{where} uses the column '{unknown[0]}', which the file lacks; {quoted_or(unknown[0], schema)}"
        )
    if _looks_around(expression):
        raise PipelineError(
            f"{where} looks at more than one row (an aggregate or a window); use row-wise functions only"
        )
    try:
        pl.DataFrame(schema=schema).select(expression)
    except pl.exceptions.PolarsError as error:
        raise PipelineError(f"{where} does not fit the file's columns: {_first_line(error)}") from None


def _looks_around(expression: pl.Expr) -> bool:
    """Whether the value of a row depends on other rows, or the number of rows changes."""
    # polars calls COUNT and RANK separable by rows, and cannot tell for IN: its own syntax tree decides first.
    if _holds_aggregate(json.loads(expression.meta.serialize(format="json"))):
        return True
    try:
        return not expression.meta.is_row_separable()
    except pl.exceptions.PolarsError:
        return False


def _holds_aggregate(node: object) -> bool:
    if isinstance(node, dict):
        return any(
            key in ("Agg", "Over", "Explode") or (key not in ("Column", "Literal") and _holds_aggregate(part))
            for key, part in node.items()
        )
    return any(map(_holds_aggregate, node)) if isinstance(node, list) else node == "Len"


def take_origin(block: RawBlock, column: RawColumn) -> Origin:
    """The cells of one declared column, stripped and without `null_values` where it says so.

    Args:
        block: The raw rows.
        column: The declaration.
    """
    origin = _raw_origin(block, column)
    return Origin(clean(origin.values, column), origin.failed)


def _raw_origin(block: RawBlock, column: RawColumn) -> Origin:
    value = getattr(column, "value", None)
    if value is not None:
        return Origin(pl.repeat(value, block.frame.height, dtype=pl.String, eager=True), None)
    if column.from_ is not None:
        return Origin(block.frame[column.from_], None)
    assert column.sql is not None
    frame = block.sql_frame
    expression = pl.sql_expr(column.sql)
    roots = sorted(set(expression.meta.root_names()))
    needed = frame.select(roots) if roots else frame
    try:
        return Origin(evaluate(expression, needed), None)
    except pl.exceptions.PolarsError:
        return _one_by_one(needed, expression)


def evaluate(expression: pl.Expr, frame: pl.DataFrame) -> pl.Series:
    """The value of an expression in every row, with whole numbers of 128 bits where it calculates.

    Raises:
        PolarsError: It fails on a row.
    """
    serialized = expression.meta.serialize(format="json")
    if any(f'"{operator}"' in serialized for operator in ARITHMETIC):
        wide = pl.Expr.deserialize(io.StringIO(json.dumps(_widened(json.loads(serialized)))), format="json")
        try:
            return frame.with_columns(cs.integer().cast(pl.Int128)).with_columns(wide.alias("value"))["value"]
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            pass  # a function that does not take them, or a row that fails in any width
    return frame.with_columns(expression.alias("value"))["value"]  # a literal gets every row


def _widened(node: Any) -> Any:
    """The tree of an expression whose casts to BIGINT, and whose lengths of texts, are of 128 bits."""
    if isinstance(node, list):
        return [_widened(part) for part in node]
    if not isinstance(node, dict):
        return node
    if node == {"Literal": "Int64"}:
        return {"Literal": "Int128"}
    wide = {key: _widened(part) for key, part in node.items()}
    function = node.get("Function", {}).get("function", {}) if isinstance(node.get("Function"), dict) else {}
    if isinstance(function, dict) and function.get("StringExpr") in ("LenChars", "LenBytes"):
        return {"Cast": {"expr": wide, "dtype": {"Literal": "Int128"}, "options": "Strict"}}
    return wide


def _one_by_one(frame: pl.DataFrame, expression: pl.Expr) -> Origin:
    """Finds the rows on which an expression fails, by halves, over the distinct inputs only."""
    names = frame.columns
    distinct = frame.unique(maintain_order=True)
    results: list[tuple[pl.Series | None, int]] = []

    def search(part: pl.DataFrame) -> None:
        try:
            results.append((evaluate(expression, part), part.height))
        except pl.exceptions.PolarsError:
            if part.height == 1:
                results.append((None, 1))
                return
            half = part.height // 2
            search(part[:half])
            search(part[half:])

    search(distinct)
    dtypes = [series.dtype for series, _ in results if series is not None]
    dtype = pl.Int128() if pl.Int128 in dtypes else next(iter(dtypes), pl.String())
    values = pl.concat(
        [
            pl.Series("value", [None] * rows, dtype=dtype) if series is None else series.cast(dtype)
            for series, rows in results
        ]
    )
    failed = pl.concat([pl.repeat(series is None, rows, eager=True).alias("failed") for series, rows in results])
    keys = {name: f"{position}" for position, name in enumerate(names)}  # a raw column may be called value or failed
    answers = distinct.rename(keys).with_columns(values, failed)
    joined = frame.rename(keys).join(
        answers, on=list(keys.values()), how="left", maintain_order="left", nulls_equal=True
    )
    return Origin(joined["value"], joined["failed"].to_numpy())


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]

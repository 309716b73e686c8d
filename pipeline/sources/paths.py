"""Which raw columns a dataset file declares, some of which are paths into nested values."""

import polars as pl

from pipeline.config import Dataset, RawColumn
from pipeline.contracts import PipelineError


def declared_names(dataset: Dataset) -> tuple[str, ...]:
    """The raw columns that `from`, `time_from` and the `sql` of a dataset file name, each once, in declared order.

    Raises:
        PipelineError: When an expression cannot be read.
    """
    found: dict[str, None] = {}
    for name, column in dataset.declared_columns.items():
        plain = (column.from_, getattr(column, "time_from", None))
        found.update(dict.fromkeys([*(part for part in plain if part is not None), *_roots(name, column)]))
    return tuple(found)


def names_in_sql(dataset: Dataset) -> frozenset[str]:
    """The raw columns that the expressions of a dataset file use.

    Raises:
        PipelineError: When an expression cannot be read.
    """
    return frozenset(root for name, column in dataset.declared_columns.items() for root in _roots(name, column))


def within(name: str, column: str) -> str | None:
    """What a raw name names inside a column; None when it names something else.

    >>> within("events.ts", "events"), within("session", "events")
    ('ts', None)
    """
    return name.removeprefix(f"{column}.") if name.startswith(f"{column}.") else None


def _roots(name: str, column: RawColumn) -> list[str]:
    if column.sql is None:
        return []
    try:
        return pl.sql_expr(column.sql).meta.root_names()
    except pl.exceptions.PolarsError as error:
        raise PipelineError(f"column '{name}': sql cannot be read ({error}); mend the expression") from None

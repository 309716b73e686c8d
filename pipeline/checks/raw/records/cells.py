"""The cell of a declared column, as its conversion sees it."""

from collections.abc import Mapping
from typing import Any

from pipeline.checks.raw.values.numbers import BLANKS, is_null
from pipeline.config import RawColumn


class Refused(Exception):
    """A record that is refused, with the reason."""


def cell_of(cells: Mapping[str, Any], column: RawColumn, *, name: str | None = None) -> Any:
    """A cell, stripped when that is declared; None where it is missing or means so.

    Args:
        cells: Raw column -> value.
        column: The declaration.
        name: The raw column, when it is not the one that `from` names.
    """
    cell = cells.get(name or column.from_ or "")
    if column.strip and isinstance(cell, str):
        cell = cell.strip(BLANKS)
    return None if is_null(cell, column.null_values) else cell

"""Tables of one row a user, compared user by user."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from pipeline.contracts import Column


def lacking(users: pl.Series, found: pl.Series) -> list[Any]:
    """The users who are not among those found."""
    return [] if users.equals(found) else users.filter(~users.is_in(found.implode())).to_list()


def differences(expected: pl.DataFrame, found: pl.DataFrame, columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Users whose rows differ between two tables, with the first column that does."""
    if expected.equals(found):
        return []
    names = [column.name for column in columns]
    missing = expected.join(found.select("user_id"), on="user_id", how="anti")["user_id"].to_list()
    needless = found.join(expected.select("user_id"), on="user_id", how="anti")["user_id"].to_list()
    rows = [difference(user, "user_id", "a row", "none") for user in missing]
    rows += [difference(user, "user_id", "no row", "a row") for user in needless]
    both = expected.select(names).join(found.select(names), on="user_id", suffix="|found")
    for name in names[1:]:
        wrong = both.filter(pl.col(name).ne_missing(pl.col(f"{name}|found")))
        rows += [
            difference(row["user_id"], name, row[name], row[f"{name}|found"]) for row in wrong.iter_rows(named=True)
        ]
    return rows


def difference(user: object, column: str, expected: object, found: object) -> dict[str, Any]:
    """A value of a user that is not what it should be."""
    return {"user_id": user, "row_id": None, "column": column, "expected": expected, "found": found}

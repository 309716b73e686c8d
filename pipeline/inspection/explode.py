"""Whether records hold lists whose elements are the events."""

import polars as pl

from pipeline.inspection.words import name_score


def choose_list(frame: pl.DataFrame) -> tuple[str | None, str]:
    """The column whose elements are events, and what says so; without one, a remark when a list is there.

    Args:
        frame: Raw columns of a sample.
    """
    objects = [column.name for column in frame if _holds(column, objects=True)]
    if objects:
        chosen = max(objects, key=lambda name: (_names_in(frame[name]), -name.count(".")))
        if _names_in(frame[chosen]) > 0:
            return chosen, "a list of objects: each becomes a record"
    plain = [column.name for column in frame if _holds(column, objects=False)]
    items = [name for name in plain if name_score(name.rstrip("s"), "item_id") or name_score(name, "item_id")]
    single = [name for name in frame.columns if name not in plain and name_score(name, "item_id")]
    if items and not single:
        return items[0], "a list of items: each becomes a record"
    if objects or plain:
        names = ", ".join([*objects, *plain])
        return None, f"{names} holds lists; if their elements are the events, add [source.explode] column"
    return None, ""


def _holds(column: pl.Series, *, objects: bool) -> bool:
    """Whether the filled cells are lists, of objects or of anything else."""
    if isinstance(column.dtype, pl.List):
        return isinstance(column.dtype.inner, pl.Struct) == objects and bool((column.list.len() > 0).any())
    if column.dtype != pl.String:
        return False
    filled = column.drop_nulls().head(200).str.strip_chars()
    if filled.is_empty() or not filled.str.contains(r"^\[.*\]$").all():
        return False
    if not filled.str.contains(r"^\[\s*[^\s\]]").any():
        return False  # all of them are empty
    return bool(filled.str.contains(r"^\[\s*\{").any()) == objects


def _names_in(column: pl.Series) -> int:
    """How many keys of the elements are named like parts of an event."""
    if isinstance(column.dtype, pl.List):
        inner = column.dtype.inner
        keys = [field.name for field in inner.fields] if isinstance(inner, pl.Struct) else []
    else:
        keys = column.drop_nulls().head(50).str.extract_all(r'"[^"]+"\s*:').explode().drop_nulls().unique().to_list()
        keys = [key.rstrip(": ").strip('"') for key in keys]
    return sum(any(name_score(key, role) for role in ("item_id", "timestamp", "action")) for key in keys)

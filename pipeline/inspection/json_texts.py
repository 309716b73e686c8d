"""Objects that stand as JSON in the cells of texts, which no column can name, and the pattern that takes them apart."""

import re
from collections.abc import Sequence

import polars as pl

from pipeline.inspection.draft import to_toml
from pipeline.inspection.words import ROLE_WORDS, listed, name_score

LOOKED_AT = 200
MOST_KEYS = 4
KEY = re.compile(r'"([A-Za-z_]\w*)"\s*:\s*["\d-]')
MOST = 0.95  # of the cells have to match
NOWHERE = "\x01"  # a separator that does not occur, so that a cell is one element


def json_texts(frame: pl.DataFrame) -> tuple[dict[str, str], str]:
    """Where parts of events stand within texts.

    Args:
        frame: Raw columns of a sample; objects that can be named are opened in it.

    Returns:
        `[source.explode]` that takes them out, empty unless the item is among them and nowhere else; and a doubt.
    """
    for column in frame:
        cells = column.drop_nulls().head(LOOKED_AT).to_list() if column.dtype == pl.String else []
        if not cells or not all(cell.lstrip()[:1] == "{" and '"' in cell for cell in cells):
            continue
        if any(name.startswith(f"{column.name}.") for name in frame.columns):
            continue
        keys = [key for key in KEY.findall(cells[0]) if any(name_score(key, role) for role in ROLE_WORDS)]
        keys = [key for key in keys if keys.count(key) == 1][:MOST_KEYS]
        pattern = _pattern(keys, cells)
        holds = f"source: {column.name} holds JSON in text, whose fields no column can name"
        if not pattern:
            return {}, f"{holds}; a pattern in [source.explode] takes them out, with a separator that does not occur"
        says = {"column": column.name, "separator": NOWHERE, "pattern": pattern}
        named = listed([f"{column.name}.{key}" for key in keys])
        if any(name_score(key, "item_id") for key in keys) and not any(
            name_score(name, "item_id") for name in frame.columns
        ):
            return says, f"{holds}; the pattern of [source.explode] takes {named} out of it"
        verb = "is" if len(keys) == 1 else "are"
        return {}, f"{holds}; if {named} {verb} needed, write explode = {to_toml(says)} into [source]"
    return {}, ""


def _pattern(keys: Sequence[str], cells: Sequence[str]) -> str:
    parts = [rf'"{key}"\s*:\s*{_value(key, cells)}' for key in keys]
    pattern = f".*{'.*'.join(parts)}.*"
    if any("\n" in cell for cell in cells):
        pattern = f"(?s){pattern}"
    matching = sum(re.fullmatch(pattern, cell) is not None for cell in cells) if keys else 0
    return pattern if matching and matching >= MOST * len(cells) else ""


def _value(key: str, cells: Sequence[str]) -> str:
    """The pattern of a value: between quotes where it always stands so, since only there it may hold a comma."""
    text = re.compile(rf'"{key}"\s*:\s*"[^"\\]*"')
    return rf'"(?P<{key}>[^"]*)"' if all(map(text.search, cells)) else rf'"?(?P<{key}>[^",}}\]]*)'

"""Whether records hold lists whose elements are the events."""

import json
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import polars as pl

from pipeline.inspection.draft import to_toml
from pipeline.inspection.text_lists import TextList, text_list
from pipeline.inspection.words import is_measure, listed, name_score, words_of

EVENT_LISTS = frozenset(
    [
        *("events", "event", "actions", "hits", "clicks", "views", "impressions", "interactions", "orders", "lines"),
        *("steps", "log", "logs", "history", "plays", "visits"),
    ]
)
PLACES = frozenset(["url", "uri", "path", "page", "link"])  # lists of these are rather details
LOOKED_AT = 200
USER_AND_TIME = 2
TELLING = 40  # of a name's score: `sku`, and not `url`


@dataclass
class ListChoice:
    """What the lists in the cells are.

    Attributes:
        says: `[source.explode]`; empty when no list holds the events.
        reason: What says so.
        doubt: What else holds lists, and what to write if these are the events.
        note: A remark about lists that are hardly the events.
    """

    says: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    doubt: str = ""
    note: str = ""


def choose_list(frame: pl.DataFrame) -> ListChoice:
    """The column whose elements are events.

    Args:
        frame: Raw columns of a sample.
    """
    objects = [column.name for column in frame if _holds(column, objects=True)]
    if objects:
        chosen = max(objects, key=lambda name: (_names_in(frame[name]), -name.count(".")))
        if _names_in(frame[chosen]) > 0 and _are_events(frame, chosen):
            return ListChoice({"column": chosen}, "a list of objects: each becomes a record")
    plain = [column.name for column in frame if _holds(column, objects=False)]
    deep = [name for name in plain if _lists_of_lists(frame[name])]
    texts = {column.name: found for column in frame if column.name not in plain and (found := text_list(column))}
    items = [name for name in plain if _names_items(name) and name not in deep and not _holds_times(frame, name)]
    lists = {*objects, *plain, *texts}
    single = [
        name for name in frame.columns if name not in lists and name_score(name, "item_id") and _varies(frame[name])
    ]
    timed = [name for name in plain if name not in items and _holds_times(frame, name)]
    if items and timed and _run_in_parallel(frame, items[0], timed[0]):
        return ListChoice(doubt=_doubt_parallel(items[0], timed[0]))
    if items and not single:
        return ListChoice({"column": items[0]}, "a list of items: each becomes a record")
    fitting = sorted(
        (name for name in texts if _may_be_items(name)), key=lambda name: _past(name) - 2 * _marked(texts[name])
    )
    named = [name for name in fitting if _names_items(name)]
    chosen_text = next(iter(named or fitting), None)
    telling = bool(named) or _nothing_else(frame, lists) or (chosen_text is not None and _marked(texts[chosen_text]))
    if chosen_text is not None and not single and telling:
        found = texts[chosen_text]
        return ListChoice({"column": chosen_text, **found.says}, found.reason, found.doubt)
    note = ""
    if objects or plain or texts:
        names = [*objects, *plain, *texts]
        others = [name for name in names if _names_items(name) or name in objects] or names
        says = ", ".join(f"{key} = {to_toml(value)}" for key, value in _says_of(others[0], texts).items())
        note = (
            f"{listed(names)} {'holds' if len(names) == 1 else 'hold'} lists; if their elements are the events, add "
            f"[source.explode] {says}, and take {_element(frame, others[0], texts)} for the item"
        )
    return ListChoice(note=note)


def _says_of(name: str, texts: dict[str, TextList]) -> dict[str, str]:
    found = texts.get(name)
    return {"column": name, **({key: str(value) for key, value in found.says.items()} if found else {})}


def _element(frame: pl.DataFrame, name: str, texts: dict[str, TextList]) -> str:
    if name in texts:
        return f"{name}.item" if "pattern" in texts[name].says else name
    keys = sorted(_keys_in(frame[name]), key=lambda key: -name_score(key, "item_id"))
    return f"{name}.{keys[0]}" if keys else name


def _are_events(frame: pl.DataFrame, name: str) -> bool:
    """Whether the elements of a list of objects are events, and not details of one, such as the images of a review."""
    own = frame[name]
    if any(name_score(key, "timestamp") >= 20 for key in _keys_in(own)):
        return True
    words = set(words_of(_last(name)))
    if words & EVENT_LISTS or _names_items(name):
        return True
    outer = [column.name for column in frame if column.name != name and not column.dtype.is_nested()]
    single = any(name_score(column, "item_id") and _varies(frame[column]) for column in outer)
    return not single and any(name_score(key, "item_id") >= TELLING for key in _keys_in(own))


def _names_items(name: str) -> bool:
    """Whether a name is that of items, as `product_ids` and `article_ids_inview` are."""
    words = [word.removesuffix("s") for word in words_of(_last(name))]
    if PLACES & set(words):
        return False
    joined = ["".join(pair) for pair in pairwise(words)]
    singular = re.sub(r"s$", "", name)
    return bool(
        name_score(singular, "item_id")
        or name_score(name, "item_id")
        or any(name_score(word, "item_id") >= 40 for word in (*words, *joined))
        or set(words) & {"basket", "impression", "cart", "slate", "playlist"}
    )


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _nothing_else(frame: pl.DataFrame, lists: Set[str]) -> bool:
    """Whether besides lists there is hardly more than a user and a time, so that no other column can be the item."""
    others = [name for name in frame.columns if name not in lists and not is_measure(name) and _varies(frame[name])]
    return len(others) <= USER_AND_TIME


def _may_be_items(name: str) -> bool:
    if is_measure(name) or is_measure(re.sub(r"s$", "", name)):
        return False
    return not any(name_score(re.sub(r"s$", "", name), role) for role in ("user_id", "timestamp"))


def _past(name: str) -> int:
    return int(any(word.startswith(("hist", "past", "prev")) for word in words_of(name)))


def _marked(found: TextList) -> int:
    return int("clicked" in str(found.says.get("pattern", "")))


def _varies(column: pl.Series) -> bool:
    return not column.dtype.is_nested() and column.n_unique() > 1


def _holds(column: pl.Series, *, objects: bool) -> bool:
    """Whether the filled cells are lists, of objects or of anything else."""
    if isinstance(column.dtype, pl.List):
        return isinstance(column.dtype.inner, pl.Struct) == objects and bool((column.list.len() > 0).any())
    if column.dtype != pl.String:
        return False
    filled = column.drop_nulls().head(LOOKED_AT).str.strip_chars()
    if filled.is_empty() or not filled.str.contains(r"(?s)^\[.*\]$").all():
        return False
    if not filled.str.contains(r"^\[\s*[^\s\]]").any() or not all(map(_is_json, filled)):
        return False  # all of them are empty, or they are written otherwise
    return bool(filled.str.contains(r"^\[\s*\{").any()) == objects


def _is_json(cell: str) -> bool:
    try:
        json.loads(cell)
    except (ValueError, RecursionError):
        return False
    return True


def _keys_in(column: pl.Series) -> list[str]:
    """The keys of the elements of a list of objects."""
    if isinstance(column.dtype, pl.List):
        inner = column.dtype.inner
        return [field.name for field in inner.fields] if isinstance(inner, pl.Struct) else []
    keys = column.drop_nulls().head(50).str.extract_all(r'"[^"]+"\s*:').explode().drop_nulls().unique().to_list()
    return [key.rstrip(": ").strip('"') for key in keys]


def _names_in(column: pl.Series) -> int:
    """How many keys of the elements are named like parts of an event."""
    roles = ("item_id", "timestamp", "action")
    return sum(any(name_score(key, role) for role in roles) for key in _keys_in(column))


def _lists_of_lists(column: pl.Series) -> bool:
    if isinstance(column.dtype, pl.List):
        return isinstance(column.dtype.inner, pl.List | pl.Array)
    return bool(column.drop_nulls().head(LOOKED_AT).str.contains(r"^\s*\[\s*\[").any())


def _holds_times(frame: pl.DataFrame, name: str) -> bool:
    dtype = frame.schema[name]
    words = [word.removesuffix("s") for word in words_of(name)]
    temporal = isinstance(dtype, pl.List) and dtype.inner.is_temporal()  # type: ignore[union-attr]
    return temporal or any(name_score(word, "timestamp") for word in words)


def _run_in_parallel(frame: pl.DataFrame, one: str, other: str) -> bool:
    return _lengths(frame[one]) == _lengths(frame[other])


def _lengths(column: pl.Series) -> Sequence[int | None]:
    cells = column.head(LOOKED_AT)
    if isinstance(column.dtype, pl.List):
        return cells.list.len().to_list()
    return [None if cell is None else len(json.loads(cell)) for cell in cells]


def _doubt_parallel(items: str, times: str) -> str:
    return (
        f"source: {items} and {times} are lists that run in parallel, which [source.explode] does not cover; write the log "
        f'anew with an event a row, as polars does by frame.explode("{items}", "{times}"), and inspect that'
    )

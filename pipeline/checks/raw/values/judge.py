"""What a raw record means, in plain Python: typed values, or the reason why it is refused."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from pipeline.checks.raw.records.cells import Refused, cell_of
from pipeline.checks.raw.values.grammar import expression_of
from pipeline.checks.raw.values.numbers import BLANKS, INT64, NUMBER, integer_of, is_fraction, text_of
from pipeline.checks.raw.values.times import EPOCH, time_of
from pipeline.config import Dataset


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a record means.

    Attributes:
        reason: Why it is refused, as far as the columns that are judged tell; None when they give no reason.
        values: Canonical column -> value, for those that are judged; timestamp in us.
    """

    reason: str | None
    values: Mapping[str, Any]


def excluded_columns(dataset: Dataset) -> list[str]:
    """Columns that plain Python does not judge: `sql`, and time formats that are not known here."""
    columns = {"user_id": dataset.columns.user_id, "item_id": dataset.columns.item_id, "action": dataset.columns.action}
    excluded = [name for name, column in {**columns, **dataset.extra}.items() if column.sql is not None]
    timestamp = dataset.columns.timestamp
    if timestamp.sql is not None or (timestamp.format is not None and expression_of(timestamp.format) is None):
        excluded.append("timestamp")
    return excluded


def judge(cells: Mapping[str, Any] | None, dataset: Dataset, *, file_day: date | None) -> Verdict:
    """Types a record, column by column, in the order of the closed list of reasons.

    Args:
        cells: Raw column -> value; None for a record that cannot be cut.
        dataset: The declarations.
        file_day: The day in the name of the file; None where there is none.
    """
    if cells is None:
        return Verdict("malformed_line", {})
    excluded = excluded_columns(dataset)
    values: dict[str, Any] = {}
    late: list[str] = []
    try:
        for name, column in (("user_id", dataset.columns.user_id), ("item_id", dataset.columns.item_id)):
            if name in excluded:
                continue
            optional = name == "item_id" and dataset.columns.item_id.optional
            values[name] = _id(cell_of(cells, column), name, column.type, optional=optional, late=late)
        if "timestamp" not in excluded:
            values["timestamp"] = time_of(cells, dataset.columns.timestamp)
            _require_reach(values["timestamp"], dataset, file_day)
        if "action" not in excluded:
            values["action"] = _action(cells, dataset)
        if late:
            raise Refused(late[0])
        for name, extra in dataset.extra.items():
            if name not in excluded:
                values[name] = _extra(cell_of(cells, extra), extra.type, optional=extra.optional)
    except Refused as refusal:
        return Verdict(str(refusal), values)
    return Verdict(None, values)


def _id(cell: Any, name: str, kind: str, *, optional: bool, late: list[str]) -> Any:
    text = text_of(cell)
    if text is not None and kind == "int64":
        text = text.strip(BLANKS)
    if not text:
        if optional:
            return None
        raise Refused(f"missing_{name}")
    if kind == "string":
        if is_fraction(cell):
            raise Refused(f"malformed_{name}")
        return text
    number = integer_of(cell, text)
    if number is None:
        raise Refused(f"malformed_{name}")
    if number not in INT64:
        late.append("id_out_of_range")
    return number


def _require_reach(us: int, dataset: Dataset, file_day: date | None) -> None:
    if file_day is None:
        return
    before, after = dataset.source.neighbours
    day = (EPOCH + timedelta(microseconds=us)).date()
    if not file_day - timedelta(days=after) <= day <= file_day + timedelta(days=before):
        raise Refused("outside_day")


def _action(cells: Mapping[str, Any], dataset: Dataset) -> str:
    column = dataset.columns.action
    cell = column.value if column.value is not None else cell_of(cells, column)
    text = text_of(cell)
    if not text:
        raise Refused("missing_action")
    if is_fraction(cell):
        raise Refused("malformed_action")
    text = column.rename.get(text, text)
    if text not in dataset.action_names:
        raise Refused("unknown_action")
    return text


def _extra(cell: Any, kind: str, *, optional: bool) -> Any:
    text = text_of(cell)
    stripped = text if kind == "string" or text is None else text.strip(BLANKS)
    if not stripped:
        if optional:
            return None
        raise Refused("malformed_extra")
    if kind == "string" and not is_fraction(cell):
        return stripped
    value: Any = None
    if kind == "bool":
        value = {"true": True, "1": True, "false": False, "0": False}.get(stripped.lower())
    elif kind == "int64":
        number = integer_of(cell, stripped)
        value = number if number is not None and number in INT64 else None
    elif kind == "float64" and (isinstance(cell, float) or NUMBER.fullmatch(stripped)):
        number = float(cell if isinstance(cell, float) else stripped)
        value = number if math.isfinite(number) else None
    if value is None:
        raise Refused("malformed_extra")
    return value

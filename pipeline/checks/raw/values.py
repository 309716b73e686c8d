"""What a raw record means, in plain Python: typed values, or the reason why it is refused."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

from pipeline.config import Dataset, TimestampColumn

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
INT64 = range(-(2**63), 2**63)
MICROSECONDS = {"s": Decimal(10**6), "ms": Decimal(10**3), "us": Decimal(1), "ns": Decimal(1) / 1000}
INTEGER = re.compile(r"([+-]?[0-9]+)(?:\.0*)?")
PYTHON_DIRECTIVES = set("YmdHMSpIbBaAjyfz%")
SPELLED_OUT = {
    "%F": "%Y-%m-%d",
    "%T": "%H:%M:%S",
    "%R": "%H:%M",
    "%.f": ".%f",
    "%.3f": ".%f",
    "%.6f": ".%f",
    "%:z": "%z",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a record means.

    Attributes:
        reason: Why it is refused, as far as the columns that are judged tell; None when they give no reason.
        values: Canonical column -> value, for those that are judged; timestamp in us.
    """

    reason: str | None
    values: Mapping[str, Any]


class _Refused(Exception):
    pass


def excluded_columns(dataset: Dataset) -> list[str]:
    """Columns that plain Python does not judge: `sql`, and time formats that `datetime` does not know."""
    columns = {"user_id": dataset.columns.user_id, "item_id": dataset.columns.item_id, "action": dataset.columns.action}
    excluded = [name for name, column in {**columns, **dataset.extra}.items() if column.sql is not None]
    timestamp = dataset.columns.timestamp
    if timestamp.sql is not None or (timestamp.format is not None and _python_format(timestamp.format) is None):
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
            values[name] = _id(cells.get(column.from_ or ""), name, column.type, optional=optional, late=late)
        if "timestamp" not in excluded:
            values["timestamp"] = _timestamp(
                cells.get(dataset.columns.timestamp.from_ or ""), dataset.columns.timestamp
            )
            _require_reach(values["timestamp"], dataset, file_day)
        if "action" not in excluded:
            values["action"] = _action(cells, dataset)
        if late:
            raise _Refused(late[0])
        for name, extra in dataset.extra.items():
            if name not in excluded:
                values[name] = _extra(cells.get(extra.from_ or ""), extra.type, optional=extra.optional)
    except _Refused as refusal:
        return Verdict(str(refusal), values)
    return Verdict(None, values)


def _id(cell: Any, name: str, kind: str, *, optional: bool, late: list[str]) -> Any:
    if isinstance(cell, float) and not abs(cell) < 2**53:
        raise _Refused(f"malformed_{name}")
    text = _text(cell)
    if text is not None and kind == "int64":
        text = text.strip()
    if not text:
        if optional:
            return None
        raise _Refused(f"missing_{name}")
    if kind == "string":
        return text
    match = INTEGER.fullmatch(text)
    if match is None:
        raise _Refused(f"malformed_{name}")
    if int(match[1]) not in INT64:
        late.append("id_out_of_range")
    return int(match[1])


def _timestamp(cell: Any, declared: TimestampColumn) -> int:
    if isinstance(cell, datetime):
        moment = cell if cell.tzinfo else _localised(cell, declared)
        return _plausible((moment - EPOCH) // timedelta(microseconds=1))
    text = _text(cell)
    if text is None or not text.strip():
        raise _Refused("missing_timestamp")
    if declared.unit is not None:
        match = INTEGER.fullmatch(text.strip())
        if match is None or int(match[1]) not in INT64:
            raise _Refused("malformed_timestamp")
        return _plausible(int((Decimal(match[1]) * MICROSECONDS[declared.unit]).to_integral_value("ROUND_FLOOR")))
    known = _python_format(declared.format or "")
    assert known is not None
    if text.count(" ") != known.count(" ") or text[0].isspace():
        raise _Refused("malformed_timestamp")
    if ".%f" in known:
        text = re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", text)
        known = known if "." in text else known.replace(".%f", "")
    try:
        moment = datetime.strptime(text, known)  # noqa: DTZ007
    except ValueError:
        raise _Refused("malformed_timestamp") from None
    if moment.tzinfo is None:
        moment = _localised(moment, declared)
    return _plausible((moment - EPOCH) // timedelta(microseconds=1))


def _localised(naive: datetime, declared: TimestampColumn) -> datetime:
    zone = ZoneInfo(declared.timezone or "UTC")
    early, late = naive.replace(tzinfo=zone), naive.replace(tzinfo=zone, fold=1)
    if early.utcoffset() != late.utcoffset():  # an hour that exists twice, or not at all
        raise _Refused("malformed_timestamp")
    return early


def _plausible(us: int) -> int:
    tomorrow_ends = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=2)
    if not (EARLIEST - EPOCH) // timedelta(microseconds=1) <= us < (tomorrow_ends - EPOCH) // timedelta(microseconds=1):
        raise _Refused("implausible_timestamp")
    return us


def _require_reach(us: int, dataset: Dataset, file_day: date | None) -> None:
    if file_day is None:
        return
    before, after = dataset.source.neighbours
    day = (EPOCH + timedelta(microseconds=us)).date()
    if not file_day - timedelta(days=after) <= day <= file_day + timedelta(days=before):
        raise _Refused("outside_day")


def _action(cells: Mapping[str, Any], dataset: Dataset) -> str:
    column = dataset.columns.action
    text = column.value if column.value is not None else _text(cells.get(column.from_ or ""))
    if not text:
        raise _Refused("missing_action")
    if text not in dataset.action_names:
        raise _Refused("unknown_action")
    return text


def _extra(cell: Any, kind: str, *, optional: bool) -> Any:
    text = _text(cell)
    stripped = text if kind == "string" or text is None else text.strip()
    if not stripped:
        if optional:
            return None
        raise _Refused("malformed_extra")
    if kind == "string":
        return stripped
    if kind == "bool":
        known = {"true": True, "1": True, "false": False, "0": False}
        if stripped.lower() not in known:
            raise _Refused("malformed_extra")
        return known[stripped.lower()]
    if kind == "int64":
        match = INTEGER.fullmatch(stripped)
        if match is None or int(match[1]) not in INT64:
            raise _Refused("malformed_extra")
        return int(match[1])
    if isinstance(cell, float):
        return cell
    try:
        number = Decimal(stripped)
    except InvalidOperation:
        raise _Refused("malformed_extra") from None
    if not number.is_finite():
        raise _Refused("malformed_extra")
    return float(number)


def _text(cell: Any) -> str | None:
    """The text of a cell; numbers of typed formats by their digits."""
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return format(Decimal(cell), "f")
    return str(cell)


def _python_format(chrono: str) -> str | None:
    """The same format for `datetime.strptime`; None when it has no equal there."""
    known = chrono
    for written, spelled in SPELLED_OUT.items():
        known = known.replace(written, spelled)
    return known if set(re.findall(r"%(.)", known)) <= PYTHON_DIRECTIVES else None

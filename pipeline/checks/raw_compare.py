"""Sampled raw records against what was written of them."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline.checks.raw import RawRecord, Verdict, excluded_columns
from pipeline.config import Dataset
from pipeline.events import REASONS
from pipeline.store import POLARS_DTYPES

GIVEN_BY = {
    "user_id": {"missing_user_id", "malformed_user_id", "id_out_of_range"},
    "item_id": {"missing_item_id", "malformed_item_id", "id_out_of_range"},
    "timestamp": {"missing_timestamp", "malformed_timestamp", "implausible_timestamp", "outside_day"},
    "action": {"missing_action", "malformed_action", "unknown_action"},
}
Difference = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sampled:
    """A raw record and what plain Python makes of it.

    Attributes:
        record: As it stands in the file.
        file: Name of the file.
        verdict: What it means.
        row_id: Its number in the day; None where only the whole of a large log tells it.
        of_day: Whether it is a row of the day; None where that is not known.
    """

    record: RawRecord
    file: str
    verdict: Verdict
    row_id: int | None = None
    of_day: bool | None = True

    @property
    def where(self) -> Difference:
        """For the report of a difference."""
        known = {} if self.row_id is None else {"row_id": self.row_id}
        return {**known, "file": self.file, "line": self.record.line}


def compare_by_row_id(
    dataset: Dataset, written: pl.LazyFrame, rejected: pl.DataFrame, sampled: Sequence[Sampled]
) -> list[Difference]:
    """Compares records with what stands under their row_id.

    Args:
        dataset: The declarations.
        written: Rows of `events`, among them those of the records.
        rejected: `rejected_events`.
        sampled: Records of the day, with their row_id.
    """
    row_ids = pl.Series([one.row_id for one in sampled], dtype=pl.Int64).implode()
    chosen = written.filter(pl.col("row_id").is_in(row_ids)).with_columns(pl.col("timestamp").to_physical())
    accepted = {row["row_id"]: row for row in chosen.collect().iter_rows(named=True)}
    refused = {row["row_id"]: row for row in rejected.filter(pl.col("row_id").is_in(row_ids)).iter_rows(named=True)}
    differences: list[Difference] = []
    for one in sampled:
        if one.row_id in accepted:
            differences += _compare_accepted(accepted[one.row_id], one)
        elif one.row_id in refused:
            row = refused[one.row_id]
            differences += _compare_refused([row["reason"]], one, dataset)
            differences += [
                {**one.where, "column": name, "expected": value, "found": row[name]}
                for name, value in (("file", one.file), ("line", one.record.line))
                if row[name] != value
            ]
        else:
            differences.append({**one.where, "column": "row", "expected": "a row", "found": "none"})
    return differences


def compare_by_value(
    dataset: Dataset, written: pl.LazyFrame, rejected: pl.DataFrame, sampled: Sequence[Sampled]
) -> tuple[list[Difference], list[Sampled]]:
    """Compares records whose row_id is not known: they stand in `events` by their values, or among the refused.

    Args:
        dataset: The declarations.
        written: Rows of `events`, among them all with the values that are looked for.
        rejected: `rejected_events`.
        sampled: Records of the day, of other days, and such of which it is not known.

    Returns:
        What differs, and the records that could be compared.
    """
    refused = _Refused(rejected, dataset)
    by_lines = lines_tell(dataset)
    left = _written_values(written, sampled)
    differences: list[Difference] = []
    compared: list[Sampled] = []
    for one in sampled:
        reasons = refused.reasons(one)
        by_line = bool(reasons) and one.record.line is not None and by_lines
        if not one.of_day and not by_line:
            continue
        compared.append(one)
        values = tuple(one.verdict.values.values())
        if one.of_day is False:
            differences.append({**one.where, "column": "row", "expected": "in another day", "found": reasons[0]})
        elif one.verdict.reason is None and not by_line and left[values] > 0:
            left[values] -= 1  # of several equal records each has to be there
        elif reasons:
            differences += _compare_refused(reasons, one, dataset)
        elif one.verdict.reason is None:
            differences.append(
                {**one.where, "column": "row", "expected": str(dict(one.verdict.values)), "found": "none"}
            )
        else:
            differences.append({**one.where, "column": "reason", "expected": one.verdict.reason, "found": "none"})
    return differences, compared


def lines_tell(dataset: Dataset) -> bool:
    """Whether a line tells which record of a file is meant: all of a JSON document may stand on one."""
    return dataset.source.format != "json"


class _Refused:
    """The refused rows of a day by where they stand; where no line tells a record from others, also by its raw cells."""

    def __init__(self, rejected: pl.DataFrame, dataset: Dataset) -> None:
        self._of_elements = None if dataset.source.explode is None else _columns_of_elements(dataset)
        self._by_lines = lines_tell(dataset)
        self._rows: dict[tuple[str, int | None], list[tuple[str, str]]] = {}
        for file, line, reason, raw in rejected.select("file", "line", "reason", "raw").iter_rows():
            self._rows.setdefault((file, line), []).append((reason, raw))

    def reasons(self, one: Sampled) -> list[str]:
        """The reasons under which a record may have been refused."""
        cells, line = one.record.cells, one.record.line
        rows = self._rows.get((one.file, line), [])
        if line is not None and self._by_lines and self._of_elements is None:  # one record a line
            return [reason for reason, _ in rows]
        if cells is None:  # no cells: what is left of it is its reason
            return [reason for reason, _ in rows if reason == "malformed_line"]
        whole = ((reason, _cells(raw)) for reason, raw in rows if reason != "malformed_line")
        if not self._by_lines:
            texts = ((reason, _texts(raw)) for reason, raw in rows if reason != "malformed_line")
            found = (
                reason for reason, raw in texts if all(_told(raw, n, value) == value for n, value in cells.items())
            )
        elif line is None or self._of_elements is None:
            plain = {name: value for name, value in cells.items() if _is_alike_in_json(value)}
            found = (
                reason for reason, raw in whole if all(_cell(raw, n, value) == value for n, value in plain.items())
            )
        else:  # the records of a line differ in their elements alone
            names = self._of_elements
            found = (reason for reason, raw in whole if all(raw.get(n) == cells.get(n) for n in names))
        return list(dict.fromkeys(found))


def _columns_of_elements(dataset: Dataset) -> list[str]:
    """The declared raw columns that come from the elements of the exploded one."""
    assert dataset.source.explode is not None
    exploded = dataset.source.explode.column
    return [name for name in dataset.raw_columns if f"{name}.".startswith(f"{exploded}.")]


def _cells(raw: str) -> Mapping[str, Any]:
    try:
        cells = json.loads(raw)
    except ValueError:
        return {}
    return cells if isinstance(cells, dict) else {}


def _texts(raw: str) -> Mapping[str, Any]:
    """The cells of a JSON object, numbers as they are written."""
    try:
        return json.loads(raw, parse_int=str, parse_float=str)
    except ValueError:
        return {}


def _told(cells: Mapping[str, Any], name: str, default: str | None) -> str | None:
    """The text of a cell; a record that is shown without a cell misses it, and one that nests it tells nothing."""
    found = _cell(cells, name, default if "." in name else None)
    if isinstance(found, bool):
        return "true" if found else "false"
    return default if isinstance(found, dict | list) else found


def _cell(cells: Mapping[str, Any], name: str, default: Any) -> Any:
    """A cell of a JSON object, by its name or by a path; the default where there is none, which tells nothing."""
    if name in cells:
        return cells[name]
    head, dot, rest = name.partition(".")
    inner = cells.get(head)
    return _cell(inner, rest, default) if dot and isinstance(inner, dict) else default


def _is_alike_in_json(value: object) -> bool:
    """Whether a value of Parquet is written in JSON in one way only."""
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def values_looked_for(dataset: Dataset, sampled: Iterable[Sampled]) -> tuple[str, pl.Series] | None:
    """A column and its values which every row of `events` has that any of the records can be; None for any row."""
    values = _accepted_values(sampled)
    if not values or not values[0]:
        return "user_id", pl.Series(dtype=POLARS_DTYPES[dataset.columns.user_id.type])
    key = next((name for name in ("user_id", "timestamp") if name in values[0]), None)
    if key is None:
        return None
    dtype = POLARS_DTYPES[dataset.columns.user_id.type] if key == "user_id" else pl.Int64()
    return key, pl.Series([one[key] for one in values], dtype=dtype)


def _accepted_values(sampled: Iterable[Sampled]) -> list[Mapping[str, Any]]:
    return [one.verdict.values for one in sampled if one.of_day is not False and one.verdict.reason is None]


def _written_values(rows: pl.LazyFrame, sampled: Iterable[Sampled]) -> Counter[tuple[Any, ...]]:
    """How often the judged values of those rows of `events` occur that any of the records can be."""
    values = _accepted_values(sampled)
    if not values or not values[0]:
        return Counter()
    names = list(values[0])
    rows = rows.with_columns(pl.col("timestamp").to_physical()).select(names)
    for key in {"user_id", "timestamp"} & set(
        names
    ):  # a row that differs from all of them in one value is none of them
        wanted = pl.Series([one[key] for one in values], dtype=rows.collect_schema()[key])
        rows = rows.filter(pl.col(key).is_in(wanted.implode()))
    written: Counter[tuple[Any, ...]] = Counter()
    for *found, count in rows.group_by(names).agg(pl.len().alias("_count")).collect().iter_rows():
        written[tuple(found)] += count
    return written


def _compare_accepted(row: Mapping[str, Any], one: Sampled) -> list[Difference]:
    if one.verdict.reason is not None:
        return [{**one.where, "column": "reason", "expected": one.verdict.reason, "found": "accepted"}]
    return [
        {**one.where, "column": name, "expected": value, "found": row[name]}
        for name, value in one.verdict.values.items()
        if row[name] != value
    ]


def _compare_refused(reasons: Sequence[str], one: Sampled, dataset: Dataset) -> list[Difference]:
    """Records that are equal are refused for the same reason; without a line it is not certain that they are equal."""
    agree = [_agrees(reason, one.verdict.reason, dataset) for reason in reasons]
    if any(agree) if one.record.line is None or not lines_tell(dataset) else all(agree):
        return []
    wrong = reasons[agree.index(False)]
    return [{**one.where, "column": "reason", "expected": one.verdict.reason or "accepted", "found": wrong}]


def _agrees(reason: str, judged: str | None, dataset: Dataset) -> bool:
    """A reason that only a column gives which is not judged here is taken as it is, unless an earlier one applies."""
    if reason == judged or (reason == "duplicate" and judged is None):
        return True
    excluded = excluded_columns(dataset)
    unjudged = set().union(*(GIVEN_BY.get(name, {"malformed_extra"}) for name in excluded)) if excluded else set()
    earlier = judged is None or (reason in REASONS and REASONS.index(reason) < REASONS.index(judged))
    return reason in unjudged and earlier

"""Which day a raw record belongs to, in plain Python."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from pipeline.checks.raw.values.judge import Verdict, judge
from pipeline.config import Columns, Dataset, IdColumn, ItemColumn

DAY_US = 86_400_000_000


def day_number(day: date) -> int:
    """Days since 1970-01-01."""
    return (day - date(1970, 1, 1)).days


def plausible(verdict: Verdict, latest_us: int | None) -> Verdict:
    """A verdict by the limit that held when the day was made; `judge` knows only that of now.

    Args:
        verdict: What `judge` says.
        latest_us: The first implausible instant; None when nothing lay beyond it.
    """
    time_us = verdict.values.get("timestamp")
    if latest_us is None or time_us is None or time_us < latest_us:
        return verdict
    return Verdict("implausible_timestamp", {k: v for k, v in verdict.values.items() if k in ("user_id", "item_id")})


def time_of_record(dataset: Dataset, latest_us: int | None) -> Callable[[Mapping[str, Any] | None], int | None]:
    """A function from the cells of a record to its usable time in us; None where there is none.

    A record has a time whatever else is wrong with it, so that no other column is judged.
    """
    unread = {"sql": "0", "type": "string"}
    columns = Columns.model_construct(
        user_id=IdColumn.model_validate(unread),
        item_id=ItemColumn.model_validate(unread),
        timestamp=dataset.columns.timestamp,
        action=dataset.columns.action.model_copy(update={"from_": None, "sql": None, "value": dataset.action_names[0]}),
    )
    only_time = dataset.model_copy(update={"columns": columns, "extra": {}})

    def time_us(cells: Mapping[str, Any] | None) -> int | None:
        verdict = plausible(judge(cells, only_time, file_day=None), latest_us)
        return verdict.values.get("timestamp") if verdict.reason is None else None

    return time_us


def owners(times_us: Sequence[int | None], dataset: Dataset, *, file_day: date | None) -> list[int]:
    """The day that each record of a file belongs to, as a number; see section 3 of the contract.

    Args:
        times_us: Usable times of all records of the file, in file order; None where there is none.
        dataset: The declarations, for `neighbours` and `start`.
        file_day: The day in the name of the file; None where there is none.
    """
    days = [None if time_us is None else time_us // DAY_US for time_us in times_us]
    if file_day is not None:
        own = day_number(file_day)
        before, after = dataset.source.neighbours
        return [day if day is not None and own - after <= day <= own + before else own for day in days]
    nearest = next((day for day in days if day is not None), day_number(dataset.partitions.start))
    owned = []
    for day in days:
        nearest = nearest if day is None else day
        owned.append(nearest)
    return owned

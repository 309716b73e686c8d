"""Writes `[columns]`, `[actions]` and what could be `[extra]` into the draft."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from pipeline.config.tables import RESERVED
from pipeline.inspection.columns import (
    UNKNOWN,
    Role,
    choose_action,
    choose_id,
    choose_time,
    doubt_no_action,
)
from pipeline.inspection.composed import counted_time, time_of_parts, time_with_hour, yearless_time
from pipeline.inspection.draft import Draft, to_toml
from pipeline.inspection.facts import Facts, look_at
from pipeline.inspection.id_cells import action_settings, id_settings
from pipeline.inspection.readings import Reading, sql_name
from pipeline.inspection.times import is_clock, joined_time, sniff_time

MOST_EXTRAS = 12
QUANTITY = re.compile("quantity|qty|amount|count")


def say_columns(
    draft: Draft,
    frame: pl.DataFrame,
    facts: Mapping[str, Facts],
    *,
    inside: str | None,
    sampled: int,
    actions: Sequence[str],
) -> Reading | None:
    """Chooses the columns and writes how they are read.

    Args:
        draft: Gets the tables.
        frame: Raw columns.
        facts: What each of them looks like.
        inside: The list whose elements are the events; None when records are events.
        sampled: Rows of `frame` that were sampled; behind them stand those that a pass refused.
        actions: The actions that a pass counted; () before it.

    Returns:
        How the time is read; None when no column is one.
    """
    readings = {}
    for name, fact in facts.items():
        if sampled < frame.height:
            # The refused rows are no fair share of the log.
            fair = look_at(frame[name].head(sampled))
            fact.filled, fact.numbers_rows = fair.filled, fair.numbers_rows
        if fact.nested:
            continue
        cells = frame[name]
        if fact.spelt and cells.dtype == pl.String:
            cells = cells.set(cells.is_in(list(fact.spelt)).fill_null(value=False), None)
        found = sniff_time(cells)
        if found is not None:
            readings[name] = found
    readings.update(time_of_parts(frame))
    time = choose_time(frame, facts, readings, inside=inside)
    taken: list[str | None] = [time.column, *(name for name in readings if readings[name].text)]
    clocks = [name for name, fact in facts.items() if not fact.nested and is_clock(frame[name]) is not None]
    time_from = _say_time(draft, time, readings, frame, facts, clocks)
    action = choose_action(facts, [*taken, time_from], inside=inside)
    taken += [*clocks, action.column]
    user = choose_id("user_id", facts, taken, inside=inside)
    item = choose_id("item_id", facts, [*taken, user.column], inside=inside)
    if action.column is None:
        action.doubts.append(doubt_no_action(action, facts, [*taken, user.column, item.column]))
    _say_id(draft, "user_id", user, facts)
    _say_id(draft, "item_id", item, facts)
    draft.tables["columns"] = {
        key: draft.tables["columns"][key]
        for key in ("user_id", "item_id", "timestamp")
        if key in draft.tables["columns"]
    }
    frequent = [] if action.column is None else list(look_at(frame[action.column].head(sampled)).frequent)
    _say_action(draft, action, facts, actions or frequent)
    used = {time.column, time_from, action.column, user.column, item.column}
    _remark_others(draft, [fact for name, fact in facts.items() if name not in used])
    return readings.get(time.column or "")


def _say_time(
    draft: Draft,
    role: Role,
    readings: dict[str, Reading],
    frame: pl.DataFrame,
    facts: Mapping[str, Facts],
    clocks: Sequence[str],
) -> str | None:
    """Writes `timestamp`; returns the column with the clock when it is another one."""
    if role.column is not None and role.column not in readings and not facts[role.column].nested:
        counted = yearless_time(frame, role.column) or counted_time(frame, role.column)
        if counted is not None:
            readings[role.column], role.doubts = counted, []
    for doubt in role.doubts:
        draft.doubt(doubt)
    if role.column is None or role.column not in readings:
        draft.say("columns", "timestamp", {"from": role.column or UNKNOWN, "unit": "s"}, role.reason)
        return None
    reading, time_from = readings[role.column], None
    origin: dict[str, Any] = {} if "sql" in reading.says else {"from": role.column}
    if reading.date_only:
        for name in clocks:
            joined = joined_time(frame[role.column], frame[name], reading)
            if joined is not None:
                reading, time_from = joined, name
                origin = {"from": role.column, "time_from": name}
                break
        hourly = time_with_hour(frame, role.column, reading) if time_from is None else None
        if hourly is not None:
            reading, origin = hourly, {}
        elif time_from is None:
            draft.doubt(
                "timestamp: it is a day without a clock, so that all events of a day are at its midnight, in file order"
            )
    if "from" in origin and any(facts[name].blanks for name in origin.values()):
        origin["strip"] = True
    elif facts[role.column].blanks:
        name = sql_name(role.column)
        reading.says["sql"] = reading.says["sql"].replace(name, f"TRIM({name})")
    reason = role.reason if reading is readings[role.column] else reading.reason
    draft.say("columns", "timestamp", {**origin, **reading.says}, reason)
    for doubt in reading.doubts:
        draft.doubt(doubt)
    return time_from


def _say_id(draft: Draft, name: str, role: Role, facts: Mapping[str, Facts]) -> None:
    for doubt in role.doubts:
        draft.doubt(doubt)
    if role.column is None:
        draft.say("columns", name, {"from": UNKNOWN, "type": "string"}, role.reason)
        return
    says, why, doubts = id_settings(facts[role.column])
    draft.say("columns", name, {"from": role.column, **says}, f"{role.reason}; {why}")
    for doubt in doubts:
        draft.doubt(doubt)
    missing = facts[role.column].missing
    if name == "item_id" and missing:
        draft.doubt("item_id: rows without an item are refused; optional = true accepts them, with item_index 0")


def _say_action(draft: Draft, role: Role, facts: Mapping[str, Facts], actions: Sequence[str]) -> None:
    for doubt in role.doubts:
        draft.doubt(doubt)
    if role.column is None:
        draft.say("columns", "action", {"value": "event"}, role.reason)
        draft.say("actions", "names", ["event"])
        signed = [
            f.name for f in facts.values() if f.negative and f.integers == 1.0 and QUANTITY.search(f.name.lower())
        ]
        for name in signed[:1]:
            sql = f"CASE WHEN CAST({sql_name(name)} AS BIGINT) < 0 THEN 'return' ELSE 'purchase' END"
            draft.remark("columns", f'if a {name} below 0 is a return, with names = ["purchase", "return"]:')
            draft.remark("columns", f"action = {to_toml({'sql': sql})}")
        return
    says, why = action_settings(facts[role.column])
    draft.say(
        "columns", "action", {"from": role.column, **says}, "; ".join(part for part in (role.reason, why) if part)
    )
    names = [cell.strip() if says.get("strip") else cell for cell in actions]
    missing = says.get("null_values", [])
    draft.say("actions", "names", list(dict.fromkeys(name for name in names if name not in missing)))


def _remark_others(draft: Draft, others: Sequence[Facts]) -> None:
    """Offers the columns that were not used as extra ones."""
    shown = [fact for fact in others if not fact.nested and not fact.temporal and fact.distinct > 0][:MOST_EXTRAS]
    if not shown:
        return
    draft.remark("extra", "[extra]    columns that are not used; uncomment what features shall see")
    used: set[str] = set()
    for fact in shown:
        kind = "float64" if fact.fractions > 0 and fact.fractions + fact.integers == 1.0 else "string"
        if fact.integers == 1.0 and fact.pointed:
            kind = "float64"
        elif fact.integers == 1.0 and fact.beyond is None and fact.padded is None:
            kind = "int64"
        key = re.sub(r"[^a-z0-9]+", "_", fact.name.lower()).strip("_")
        if fact.name == "":
            continue
        if not re.fullmatch(r"[a-z][a-z0-9_]*", key) or key in used or key in RESERVED or key.startswith("action_"):
            key = f"raw_{key or 'column'}"
        key = next(name for name in (key, *(f"{key}_{number}" for number in range(2, 99))) if name not in used)
        used.add(key)
        says = {"from": fact.name, "type": kind, **({"optional": True} if fact.missing else {})}
        draft.remark("extra", f"{key} = {to_toml(says)}")

"""Which column is the user, the item, the time and the action, and how each of them is to be read."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.inspection.facts import MOST_FREQUENT, Facts
from pipeline.inspection.times import Reading
from pipeline.inspection.words import ACTION_NAMES, NO_ACTIONS, NOBODY_CODES, NOBODY_WORDS, listed, name_score

MOST_ACTIONS = 50
LONGEST_ACTION = 60
MANY_IDS = 20
MUCH = 0.1  # of the rows; an id with more of them may stand for nobody
UNKNOWN = "?"  # a raw column that no file has: a run stops and says so


@dataclass
class Role:
    """The column that was taken for a role.

    Attributes:
        column: The raw column; None when none fits.
        reason: What says so.
        others: Columns that fit as well, the likelier first.
        doubts: What a person has to decide.
    """

    column: str | None
    reason: str = ""
    others: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


def choose_time(facts: Mapping[str, Facts], readings: Mapping[str, Reading], *, inside: str | None) -> Role:
    """The column with the time of the event; `inside` is the list whose elements are the events."""

    def score(name: str) -> float:
        reading = readings[name]
        kind = 0 if reading.date_only else 60 if reading.text else 30
        named = name_score(name, "timestamp")
        # A number that may be a time by its value alone is rather an id when its name says so.
        is_id = not reading.text and not named and max(name_score(name, "user_id"), name_score(name, "item_id")) > 0
        return named + kind + 10 * reading.share - 100 * is_id + _inside(name, inside)

    ranked = sorted(readings, key=lambda name: -score(name))
    if not ranked:
        numbers = [name for name in facts if name_score(name, "timestamp")]
        doubt = (
            f"timestamp: no column reads as a time; {listed(numbers or list(facts))} may hold one that needs sql, and "
            'unit = "s" is only a placeholder'
        )
        return Role(numbers[0] if numbers else None, "no column reads as a time", doubts=[doubt])
    first, *others = ranked
    role = Role(first, readings[first].reason, others)
    if others and score(others[0]) >= score(first) - 15:
        role.doubts.append(f"timestamp: {listed(others)} can be read as the time as well; {first} was taken")
    return role


def choose_action(facts: Mapping[str, Facts], taken: Sequence[str | None], *, inside: str | None) -> Role:
    """The column with the action, when there is one; `inside` is the list whose elements are the events."""

    def fits(fact: Facts) -> bool:
        most = MOST_ACTIONS if name_score(fact.name, "action") < 90 else MOST_FREQUENT
        few = 0 < fact.distinct <= most and fact.longest <= LONGEST_ACTION
        number = fact.fractions > 0 or fact.commas > 0
        return few and not fact.nested and not fact.temporal and not number and fact.name not in taken

    def score(fact: Facts) -> int:
        known = _known_actions(fact) >= 0.5 * max(1, len(fact.frequent))
        named = name_score(fact.name, "action")
        return named + (100 if known else 0) + (_inside(fact.name, inside) if named or known else 0)

    fitting = [fact for fact in facts.values() if fits(fact)]
    ranked = [fact for fact in sorted(fitting, key=lambda fact: -score(fact)) if score(fact) > 0]
    if ranked:
        others = [fact.name for fact in ranked[1:]]
        role = Role(ranked[0].name, "named like an action, few values", others)
        if not name_score(ranked[0].name, "action"):
            role.reason = "its values are names of actions"
        if ranked[0].integers == 1.0:
            code = next(iter(ranked[0].frequent))
            role.doubts.append(f'action: its names are numbers; rename = {{ "{code}" = "view" }} gives one a name')
        if others:
            role.doubts.append(f"action: {listed(others)} may be the action as well; {role.column} was taken")
        return role
    few = [fact for fact in fitting if 2 <= fact.distinct <= 12 and fact.distinct * 20 < fact.rows]
    few = [fact for fact in few if not NO_ACTIONS & set(re.split(r"[^a-z]+", fact.name.lower()))]
    few.sort(key=lambda fact: -_known_actions(fact))
    return Role(None, "no column looks like an action", [fact.name for fact in few])


def doubt_no_action(role: Role, facts: Mapping[str, Facts], taken: Sequence[str | None]) -> str:
    """What a person has to decide where no column was taken for the action.

    Args:
        role: What `choose_action` returned.
        facts: All columns.
        taken: Columns that are something else.
    """
    doubt = "action: no column names one, so that every row is an 'event'"
    many = [fact for fact in facts.values() if fact.distinct > MOST_ACTIONS and fact.name not in taken]
    named = max(many, key=lambda fact: name_score(fact.name, "action"), default=None)
    if named is not None and name_score(named.name, "action") >= 60:
        most = MOST_FREQUENT if name_score(named.name, "action") >= 90 else MOST_ACTIONS
        doubt = (
            f"action: {named.name} is named like one, but its {named.distinct:,} values are more than the {most} that "
            "can be told apart, so that every row is an 'event'; write sql that names a few kinds of them"
        )
    few = [name for name in role.others if name not in taken]
    if few:
        has = "has" if len(few) == 1 else "have"
        doubt += f'; {listed(few)} {has} few values: if they are actions, write action = {{ from = "{few[0]}" }} and names = [...]'
    return doubt


def choose_id(role: str, facts: Mapping[str, Facts], taken: Sequence[str | None], *, inside: str | None) -> Role:
    """The column with the id of the user, or of the item; `inside` is the list whose elements are the events."""
    noun = role.removesuffix("_id")
    fitting = [fact for fact in facts.values() if fact.id_like and fact.name not in taken]
    # What is named like an id is one, also where it looks like a number with a fraction, but for floats.
    fractions = [fact for fact in facts.values() if fact.type == "String" and max(fact.fractions, fact.commas) >= 0.05]
    named = [fact for fact in fitting if name_score(fact.name, role) > 0]
    named += [fact for fact in fractions if name_score(fact.name, role) >= 60 and fact.name not in taken]

    def score(fact: Facts) -> float:
        # What numbers the rows, as the key of a table does, is hardly a user or an item.
        return (
            fact.filled * (name_score(fact.name, role) + _inside(fact.name, inside)) / (2 if fact.numbers_rows else 1)
        )

    named.sort(key=lambda fact: -score(fact))
    if named:
        first, *others = named
        names = listed([fact.name for fact in others[:3]])
        found = Role(first.name, f"named like the {noun}", [fact.name for fact in others[:3]])
        if others:
            found.reason += f"; {names} may be meant as well"
        if others and role == "user_id":
            found.doubts.append(f"{role}: {names} may be meant as well; {first.name} was taken{_gaps(first, others)}")
        return found
    ids = [fact for fact in fitting if fact.distinct > 1 or fact.rows < 3] or fitting
    ids = [fact for fact in ids if not fact.numbers_rows] or ids
    if not ids:
        doubt = f"{role}: no column looks like the {noun}; write its name in place of {UNKNOWN}"
        return Role(None, f"no column looks like the {noun}", doubts=[doubt])
    if role == "user_id":
        chosen, why = ids[0], "the first id-like column"
    else:
        # Ratings and groups of items, such as categories, come behind the item and have far fewer values.
        filled = [fact for fact in ids if fact.missing <= 0.02 * fact.rows] or ids
        most = max(fact.distinct for fact in filled)
        chosen = next(fact for fact in filled if fact.distinct * 10 >= most)
        why = "the next id-like column with many values"
    others = [fact.name for fact in ids if fact is not chosen][:6]
    also = f"; {listed(others)} may be it" if others else ""
    doubt = f"{role}: no name says it; {chosen.name} was taken, {why}{also}"
    return Role(chosen.name, why, others, [doubt])


def id_settings(fact: Facts) -> tuple[dict[str, Any], str, list[str]]:
    """How ids are to be read.

    Returns:
        Keys besides `from`, the reason for the type, and doubts.
    """
    says: dict[str, Any] = {"type": "int64"}
    doubts: list[str] = []
    text = fact.type in ("String", "Categorical", "Enum")
    if fact.type in ("Boolean",):
        says["type"], why = "string", "true and false are no numbers"
    elif fact.beyond is not None:
        says["type"], why = "string", f"{fact.beyond} is beyond int64"
    elif fact.padded is not None:
        says["type"], why = "string", f"int64 would lose the leading zero of {fact.padded}"
    elif fact.integers == 1.0 or not text:
        why = "whole numbers" + (", some written 1.0" if fact.pointed else "")
    elif fact.integers > 0.99 and not fact.coded:
        why = f"whole numbers, but for cells such as {fact.other[0]!r}"
        doubts.append(
            f"{fact.name}: cells such as {listed(list(fact.other))} are no numbers, and their rows are refused; "
            'type = "string" keeps them'
        )
    else:
        mixed = "numbers and others, such as " if fact.integers > 0 else "such as "
        says["type"], why = "string", mixed + ", ".join(repr(cell) for cell in fact.other[:2])
    if says["type"] == "string" and fact.blanks:
        says["strip"] = True
        doubts.append(
            f"{fact.name}: cells have blanks around them, which strip = true cuts off; without it they tell ids apart"
        )
    if fact.rounded is not None:
        doubts.append(
            f"{fact.name}: cells such as {fact.rounded} are long numbers that a spreadsheet rounded, and different ids "
            "have become one; export the log again, with the ids as text"
        )
    spelt = [cell for cell in fact.spelt if cell.strip()]
    nobody = [cell for cell in _nobody(fact) if cell not in fact.spelt]
    if nobody:
        share = sum(fact.frequent[cell] for cell in nobody) / fact.rows
        missing = ", ".join(f'"{cell}"' for cell in [*spelt, *nobody])
        doubts.append(
            f"{fact.name}: {share:.0%} of the rows looked at have {' or '.join(map(repr, nobody))}, which may stand for "
            f"nobody; null_values = [{missing}] takes it for missing"
        )
    if spelt:
        says["null_values"] = [cell.strip() if says.get("strip") else cell for cell in spelt]
        why += f"; taken for missing: {', '.join(map(repr, spelt))}"
    return says, why, doubts


def action_settings(fact: Facts) -> tuple[dict[str, Any], str]:
    """How actions are to be read: keys besides `from`, and the reason."""
    says: dict[str, Any] = {}
    if fact.blanks:
        says["strip"] = True
    spelt = [cell for cell in fact.spelt if cell not in ("-", "?", "none", "None") and cell not in fact.frequent]
    if spelt:
        says["null_values"] = spelt
    return says, f"missing is spelt {listed(spelt)}" if spelt else ""


def _nobody(fact: Facts) -> list[str]:
    """Frequent cells that may stand for all whom the log does not know."""
    frequent = [cell for cell, rows in fact.frequent.items() if rows > MUCH * fact.rows]
    codes = NOBODY_CODES if fact.distinct >= MANY_IDS else frozenset()  # among a few ids, 0 is one like others
    return [cell for cell in frequent if cell.strip().lower() in NOBODY_WORDS | codes]


def _known_actions(fact: Facts) -> int:
    return sum(cell.strip().lower() in ACTION_NAMES for cell in fact.frequent)


def _gaps(chosen: Facts, others: Sequence[Facts]) -> str:
    """That a column lacks values, and which other one does not."""
    if chosen.filled > 0.99:
        return ""
    full = [fact.name for fact in others if fact.missing == 0]
    besides = f", and {full[0]} is always filled" if full else ""
    return f", though {1 - chosen.filled:.0%} of its cells are missing{besides}"


def _inside(name: str, column: str | None) -> int:
    """What speaks for a column because it is one of the elements of the exploded list."""
    return 20 if column is not None and (name == column or name.startswith(f"{column}.")) else 0

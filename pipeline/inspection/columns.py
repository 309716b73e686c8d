"""Which column is the user, the item, the time and the action, and how each of them is to be read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.inspection.facts import MOST_FREQUENT, Facts
from pipeline.inspection.times import Reading
from pipeline.inspection.words import ACTION_NAMES, name_score

MOST_ACTIONS = 50
LONGEST_ACTION = 60
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
        doubt = f"timestamp: no column reads as a time; {_listed(numbers or list(facts))} may hold one that needs sql"
        return Role(numbers[0] if numbers else None, "no column reads as a time", doubts=[doubt])
    first, *others = ranked
    role = Role(first, readings[first].reason, others)
    if others and score(others[0]) >= score(first) - 15:
        role.doubts.append(f"timestamp: {_listed(others)} can be read as the time as well; {first} was taken")
    return role


def choose_action(facts: Mapping[str, Facts], taken: Sequence[str | None], *, inside: str | None) -> Role:
    """The column with the action, when there is one; `inside` is the list whose elements are the events."""

    def fits(fact: Facts) -> bool:
        most = MOST_ACTIONS if name_score(fact.name, "action") < 90 else MOST_FREQUENT
        few = 0 < fact.distinct <= most and fact.longest <= LONGEST_ACTION
        return few and not fact.nested and not fact.temporal and fact.fractions == 0 and fact.name not in taken

    def score(fact: Facts) -> int:
        known = sum(cell.strip().lower() in ACTION_NAMES for cell in fact.frequent) >= 0.5 * max(1, len(fact.frequent))
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
            role.doubts.append(f"action: {_listed(others)} may be the action as well; {role.column} was taken")
        return role
    few = [fact.name for fact in fitting if 2 <= fact.distinct <= 12 and fact.distinct * 20 < fact.rows]
    doubt = "action: no column names one, so that every row is an 'event'"
    if few:
        doubt += f'; {_listed(few)} has few values: if they are actions, write action = {{ from = "{few[0]}" }} and names = [...]'
    return Role(None, "no column looks like an action", few, [doubt])


def choose_id(role: str, facts: Mapping[str, Facts], taken: Sequence[str | None], *, inside: str | None) -> Role:
    """The column with the id of the user, or of the item; `inside` is the list whose elements are the events."""
    noun = role.removesuffix("_id")
    fitting = [fact for fact in facts.values() if fact.id_like and fact.name not in taken]
    # What is named like an id is one, also where it looks like a number with a fraction, but for floats.
    fractions = [fact for fact in facts.values() if fact.type == "String" and fact.fractions >= 0.05]
    named = [fact for fact in fitting if name_score(fact.name, role) > 0]
    named += [fact for fact in fractions if name_score(fact.name, role) >= 60 and fact.name not in taken]
    named.sort(key=lambda fact: -name_score(fact.name, role) - _inside(fact.name, inside))
    if named:
        first, *others = [fact.name for fact in named]
        found = Role(first, f"named like the {noun}", others[:3])
        if others:
            found.reason += f"; {_listed(others[:3])} may be meant as well"
        return found
    ids = [fact for fact in fitting if fact.distinct > 1 or fact.rows < 3] or fitting
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
    also = f"; {_listed(others)} may be it" if others else ""
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
            f"{fact.name}: cells such as {_listed(list(fact.other))} are no numbers, and their rows are refused; "
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
    spelt = [cell for cell in fact.spelt if cell.strip()]
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
    return says, f"missing is spelt {_listed(spelt)}" if spelt else ""


def _inside(name: str, column: str | None) -> int:
    """What speaks for a column because it is one of the elements of the exploded list."""
    return 20 if column is not None and (name == column or name.startswith(f"{column}.")) else 0


def _listed(names: Sequence[str]) -> str:
    if len(names) > 6:
        names = [*names[:6], f"{len(names) - 6} others"]
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1] if names else "none"

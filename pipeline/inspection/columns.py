"""Which column is the user, the item, the time and the action, and how each of them is to be read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.inspection.facts import MOST_FREQUENT, Facts
from pipeline.inspection.times import Reading
from pipeline.inspection.words import (
    ACTION_NAMES,
    NO_ACTIONS,
    is_measure,
    listed,
    name_score,
    words_of,
)

MOST_ACTIONS = 50
LONGEST_ACTION = 60
MANY_ROWS = 20
FEW_TO_ONE = 20  # records of one user, at most, where another column numbers them
NEAR = 15  # between scores of columns, that leaves a doubt
DAY_US = 86_400_000_000
IDS = (["id"], ["ids"], ["key"], ["code"])  # last words of names
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
        like_id = max(name_score(name, "user_id"), name_score(name, "item_id")) > 0 or words_of(name)[-1:] in IDS
        is_id = not reading.text and not named and like_id
        beside = NEAR if _inside(name, home) else 0
        return named + kind + 10 * reading.share - 100 * is_id + max(_inside(name, inside), beside)

    # An envelope has a time of its own, when it was sent or stored; that of the event stands beside the user.
    users = [name for name in facts if name_score(name, "user_id")]
    home = max(users, key=lambda name: name_score(name, "user_id"), default="").rpartition(".")[0] or None
    ranked = sorted(readings, key=lambda name: -score(name))
    if not ranked:
        named = [name for name in facts if name_score(name, "timestamp")]
        named.sort(key=lambda name: -name_score(name, "timestamp"))
        return Role(named[0] if named else None, "no column reads as a time", doubts=[_doubt_no_time(named, facts)])
    first, *others = ranked
    if readings[first].date_only:
        # The same days with a clock say more.
        clocked = (
            name for name in others if name_score(name, "timestamp") and _same_days(readings[name], readings[first])
        )
        finer = next(clocked, first)
        others = [name for name in ranked if name != finer]
        first = finer
    role = Role(first, readings[first].reason, others)
    if others and score(others[0]) >= score(first) - NEAR:
        role.doubts.append(f"timestamp: {listed(others)} can be read as the time as well; {first} was taken")
    return role


def _same_days(clocked: Reading, dates: Reading) -> bool:
    edges = ((clocked.first_us, dates.first_us), (clocked.last_us, dates.last_us))
    return not clocked.date_only and all(abs(one - other) <= 2 * DAY_US for one, other in edges)


def _doubt_no_time(named: Sequence[str], facts: Mapping[str, Facts]) -> str:
    if named:
        cells = list(facts[named[0]].frequent)[:2]
        such = (
            f", in which cells such as {' or '.join(map(repr, cells))} are no time that is known here" if cells else ""
        )
        return (
            f"timestamp: no column reads as a time; {listed(named)} may hold one{such}: sql can rewrite it, and "
            'unit = "s" is only a placeholder'
        )
    return (
        "timestamp: no column reads as a time, and none is named like one; if the log has no times, "
        'timestamp = { sql = "\'2020-01-01\'", format = "%Y-%m-%d", timezone = "UTC" } with start and end = '
        '"2020-01-01" puts all rows on one day, in file order, and every time_diff is 0'
    )


def choose_action(facts: Mapping[str, Facts], taken: Sequence[str | None], *, inside: str | None) -> Role:
    """The column with the action, when there is one; `inside` is the list whose elements are the events."""

    def fits(fact: Facts) -> bool:
        most = MOST_ACTIONS if name_score(fact.name, "action") < 90 else MOST_FREQUENT
        few = 0 < fact.distinct <= most and fact.longest <= LONGEST_ACTION
        number = fact.fractions > 0 or fact.commas > 0
        other = fact.nested or fact.temporal or fact.numbers_rows or fact.name in taken
        return few and not other and not number

    def score(fact: Facts) -> int:
        known = _known_actions(fact) >= 0.5 * max(1, len(fact.frequent))
        named = name_score(fact.name, "action")
        if not known and named < 60 and (fact.distinct == 1 or NO_ACTIONS & set(words_of(fact.name))):
            return 0
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
    few = [fact for fact in fitting if _flagged(fact) or (2 <= fact.distinct <= 12 and fact.distinct * 20 < fact.rows)]
    few = [fact for fact in few if _flagged(fact) or not is_measure(fact.name)]
    few = [fact for fact in few if not NO_ACTIONS & set(words_of(fact.name))]
    few.sort(key=lambda fact: (-_known_actions(fact), _flagged(fact) is None))
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
    many = [fact for fact in many if words_of(fact.name)[-1:] not in IDS]
    named = max(many, key=lambda fact: name_score(fact.name, "action"), default=None)
    if named is not None and name_score(named.name, "action") >= 60:
        most = MOST_FREQUENT if name_score(named.name, "action") >= 90 else MOST_ACTIONS
        doubt = (
            f"action: {named.name} is named like one, but its {named.distinct:,} values are more than the {most} that "
            "can be told apart, so that every row is an 'event'; write sql that names a few kinds of them"
        )
    few = [name for name in role.others if name not in taken]
    if few:
        flagged = _flagged(facts[few[0]])
        if flagged:
            return (
                f'{doubt}; if {few[0]} tells two kinds apart, write action = {{ from = "{few[0]}", rename = {{ "1" = '
                f'"{flagged}", "0" = "impression" }} }} and names = ["impression", "{flagged}"]'
            )
        has = "has" if len(few) == 1 else "have"
        doubt += f'; {listed(few)} {has} few values: if they are actions, write action = {{ from = "{few[0]}" }} and names = [...]'
    return doubt


def _without_keys(ids: list[Facts]) -> list[Facts]:
    """The ids without those that numbered the records of an exploded log, unless what is left hardly varies."""
    records = max((fact.distinct for fact in ids if fact.numbers_records), default=0)
    others = [fact for fact in ids if not fact.numbers_records]
    return others if any(fact.distinct * FEW_TO_ONE >= records for fact in others) else ids


def _flagged(fact: Facts) -> str | None:
    """The action that a column of 0 and 1 says to have happened, by its name."""
    if set(fact.frequent) != {"0", "1"}:
        return None
    words = (word for word in words_of(fact.name.split(".")[-1]) if word not in ("is", "has"))
    return next((word.removesuffix("ed") for word in words if word.removesuffix("ed") in ACTION_NAMES), None)


def choose_id(role: str, facts: Mapping[str, Facts], taken: Sequence[str | None], *, inside: str | None) -> Role:
    """The column with the id of the user, or of the item; `inside` is the list whose elements are the events."""
    noun = role.removesuffix("_id")
    fitting = [fact for fact in facts.values() if fact.id_like and fact.name not in taken]
    # What is named like an id is one, also where it looks like a number with a fraction, but for floats.
    fractions = [fact for fact in facts.values() if fact.type == "String" and max(fact.fractions, fact.commas) >= 0.05]
    named = [fact for fact in fitting if name_score(fact.name, role) > 0]
    named += [fact for fact in fractions if name_score(fact.name, role) >= 60 and fact.name not in taken]

    def score(fact: Facts) -> float:
        # What numbers the rows, as the key of a table does, is hardly a user or an item, and nor is what never changes.
        alone = fact.distinct == 1 and fact.rows >= MANY_ROWS
        bonus = _inside(fact.name, inside) if name_score(fact.name, role) else 0
        named = name_score(fact.name, role) + (bonus if role == "item_id" else -bonus)
        return fact.filled * named / (3 if alone else 2 if fact.numbers_rows else 1)

    named.sort(key=lambda fact: -score(fact))
    elements = facts.get(inside) if inside is not None and role == "item_id" else None
    if elements in fitting and not any(_inside(fact.name, inside) for fact in named):
        return Role(inside, "the elements of the list", [fact.name for fact in named[:3]])
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
    if role == "user_id":  # the elements of a list are hardly its owner
        ids = [fact for fact in ids if not _inside(fact.name, inside)] or ids
    other = "item_id" if role == "user_id" else "user_id"
    ids = [fact for fact in ids if not is_measure(fact.name) and not name_score(fact.name, "timestamp")] or ids
    unnamed = [fact for fact in ids if not name_score(fact.name, other)]
    ids = _without_keys(unnamed) if role == "user_id" else unnamed or ids
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

"""How the cells of the chosen columns are read: the type of an id, blanks, and what spells "missing"."""

import re
from typing import Any

from pipeline.inspection.draft import to_toml
from pipeline.inspection.facts import Facts
from pipeline.inspection.readings import sql_name
from pipeline.inspection.words import NOBODY_CODES, NOBODY_WORDS, listed, name_score

MANY_IDS = 20
QUERY = re.compile(r"[?&](\w+)=")
MUCH = 0.1  # of the rows; an id with more of them may stand for nobody


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
        says["type"], why = (
            "string",
            f"int64 would lose the leading {'plus' if fact.padded[0] == '+' else 'zero'} of {fact.padded}",
        )
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
    keyed = [cell for cell in fact.frequent if QUERY.search(cell)]
    if len(keyed) > 0.5 * len(fact.frequent):
        key = max(QUERY.findall(keyed[0]), key=lambda key: name_score(key, "item_id"))
        sql = f"SPLIT_PART(SPLIT_PART({sql_name(fact.name)}, '{key}=', 2), '&', 1)"
        doubts.append(
            f"{fact.name}: cells such as {keyed[0][:80]!r} hold keys; if one of them is the id, sql = {to_toml(sql)} takes it out"
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

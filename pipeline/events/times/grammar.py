"""What text follows a time format, which is all that is accepted.

- What is no field stands for itself, blanks too; `%%` is a percent sign. Digits are 0-9.
- `%Y` has four digits, `%y` two (70-99 are 1970-1999), `%j` three; `%e` `%k` `%l` a digit, or a blank, then a digit.
  No digit and no number may stand directly after these three, nor (and no point) after a fraction with a point.
- `%m` `%d` `%H` `%I` `%M` `%S` have two digits, or one where no digit and no number stands directly before or after
  the field; `%-m` is `%m`. There is no second 60.
- `%b` (or `%h`) `%a` are the first three letters of English names, `%B` `%A` all of them, `%p` `%P` AM or PM, in any
  case; the weekday has to be the right one.
- `%.f` is nothing, or a point and one to nine digits; `%.3f` `%.6f` `%.9f` a point and that many digits, `%3f` `%6f`
  `%9f` the digits alone. `%z` (or `%:z`, `%#z`) is `Z`, `+HH:MM` or `+HHMM`, or with a minus.
- `%F` `%T` `%R` `%D` and `%+` are `%Y-%m-%d`, `%H:%M:%S`, `%H:%M`, `%m/%d/%y` and `%FT%T%.f%z`.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from pipeline.contracts import PipelineError

FIELD = re.compile(r"%(\.?[369]?f|[:#]?z|-?[A-Za-z%+])|(.)", re.DOTALL)
SHORTHANDS = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y", "+": "%Y-%m-%dT%H:%M:%S%.f%z"}
SAYS = {
    **dict.fromkeys("Yy", "year"), **dict.fromkeys("mbhB", "month"), **dict.fromkeys("de", "day"), "j": "month day",
    **dict.fromkeys("Hk", "hour"), **dict.fromkeys("Il", "hour half"), **dict.fromkeys("pP", "am_pm"), "M": "minute",
    "S": "second", **dict.fromkeys((".f", ".3f", ".6f", ".9f", "3f", "6f", "9f"), "fraction"),
    **dict.fromkeys("aA", "weekday"), **dict.fromkeys(("z", ":z", "#z"), "offset"),
}  # fmt: skip
CLOCKS = [{"hour", "minute"}, {"hour", "minute", "second"}, {"hour", "minute", "second", "fraction"}]
NAMES = {
    "B": "january|february|march|april|may|june|july|august|september|october|november|december",
    **dict.fromkeys("bh", "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"),
    "A": "monday|tuesday|wednesday|thursday|friday|saturday|sunday", "a": "mon|tue|wed|thu|fri|sat|sun",
    **dict.fromkeys("pP", "am|pm"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Grammar:
    """A format taken apart.

    Attributes:
        parts: Every field as (its letters, its text), every other character as ("", the character).
        chrono: The format as chrono reads it.
        pattern: Regular expression of all of the text.
        finer: Regular expression of text with nanoseconds to floor; None where there can be none.
    """

    parts: tuple[tuple[str, str], ...]
    chrono: str
    pattern: str
    finer: str | None


@lru_cache
def grammar_of(format_: str, *, file: str) -> Grammar:
    """Takes a format apart.

    Args:
        format_: As declared.
        file: Name of the raw file, for the sentence.

    Raises:
        PipelineError: It holds an unknown field, or gives no date and time, or gives a part of it twice.
    """
    long = FIELD.sub(lambda part: SHORTHANDS.get(part[1] or "", part[0]), format_)
    parts = [((part[1] or "").removeprefix("-"), part[0]) for part in FIELD.finditer(long)]
    unknown = [text for name, text in parts if name not in (*SAYS, "%") and text[0] == "%"]
    told = " ".join(SAYS.get(name, "") for name, _ in parts).split()
    clock = {"hour", "minute", "second", "fraction"}.intersection(told)
    sound = (
        len(told) == len(set(told)) and {"year", "month", "day"} <= set(told) and ("half" in told) == ("am_pm" in told)
    )
    sound &= clock in CLOCKS or not (clock or "offset" in told)
    starts = [*(name[:1] in set("YyjeklmdHIMS369") if name else text in "0123456789" for name, text in parts), False]
    ends = [starts[n] or name[:1] == "." for n, (name, _) in enumerate(parts)]
    # Of what may be shorter than chrono reads at most, nobody could tell where it ends.
    sound &= not any(name and name[0] in ".ekl" and starts[n + 1] for n, (name, _) in enumerate(parts))
    sound &= re.search(r"%\.[369]?f\.", long) is None
    if unknown or not sound:
        found = f"holds {unknown[0]}, which is no field here" if unknown else "does not give one date and time"
        says = f'{file}: format = "{format_}" in [columns] timestamp {found}'
        raise PipelineError(f'{says}; write it as in "%Y-%m-%d %H:%M:%S"')
    chrono, pattern, finer = "", "", ""
    for n, (name, text) in enumerate(parts):
        piece, fine = _pattern(name, text, alone=not (starts[n + 1] or (n and ends[n - 1])))
        chrono += {"offset": "%#z", "": text}.get(SAYS.get(name, ""), f"%{name}")
        pattern += piece
        finer += fine or piece
    return Grammar(tuple(parts), chrono, f"(?-u)^{pattern}$", f"(?-u)^{finer}$" if finer != pattern else None)


def read_by_grammar(text: pl.Series, grammar: Grammar) -> tuple[pl.Series, int]:
    """Reads whatever text follows the format.

    Args:
        text: String [rows].
        grammar: The format.

    Returns:
        Int64 [rows] us, without a zone where the format holds none, null where the text does not follow the format;
        and how many rows lost nanoseconds.
    """
    us = text.str.to_datetime(grammar.chrono, time_unit="us", strict=False).to_physical()
    # Chrono alone is lenient: about blanks, signs, widths and second 60; polars, with %y, about any garbage.
    beside = ~text.str.contains(grammar.pattern).fill_null(value=False)
    if beside.any():
        us = us.set(beside, None)
    floored = int((text.str.contains(grammar.finer) & us.is_not_null()).sum()) if grammar.finer else 0
    return us, floored


def _pattern(name: str, text: str, *, alone: bool) -> tuple[str, str | None]:
    """What a field matches, and what it matches when nanoseconds are lost."""
    if name in NAMES:
        return f"(?i:{NAMES[name]})", None
    if name in ("", "%"):
        return pl.escape_regex(text[0]), None
    if SAYS[name] == "offset":
        return "(?:Z|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9])", None
    if SAYS[name] == "fraction":
        point, digits = (r"\." if name[0] == "." else ""), name.strip(".f")
        fine = f"{point}[0-9]{{6}}[0-9]*[1-9][0-9]*" if digits in ("", "9") else None
        return (f"{point}[0-9]{{{digits}}}" if digits else r"(?:\.[0-9]{1,9})?"), fine
    if name in "Yyj":
        return f"[0-9]{{{ {'Y': 4, 'y': 2, 'j': 3}[name] }}}", None
    first = {"S": "[0-5]", "e": "[ 0-9]", "k": "[ 0-9]", "l": "[ 0-9]"}.get(name, "[0-9]")
    return f"{first}{'?' if alone and name in 'mdHIMS' else ''}[0-9]", None

"""A dataset file in the making: what every key says and why, and what remains open."""

import json
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

TABLES = (
    *("", "partitions", "source", "source.csv", "source.fixed_width", "source.regex", "source.json", "source.explode"),
    *("columns", "actions", "extra", "quality", "store"),
)
WIDTH = 120
CONTROL = re.compile(r"[\x00-\x1f\x7f]")  # no TOML comment may hold one
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass
class Draft:
    """Keys of a dataset file with the reasons for them.

    Attributes:
        tables: Name of a table ("" for the top level) -> key -> value.
        reasons: Table and key -> why the key says that.
        remarks: Table -> comment lines above its keys.
        doubts: What a person has to look at.
    """

    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    reasons: dict[tuple[str, str], str] = field(default_factory=dict)
    remarks: dict[str, list[str]] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)

    def say(self, table: str, key: str, value: Any, reason: str = "") -> None:
        """Sets a key; a second time replaces the first."""
        self.tables.setdefault(table, {})[key] = value
        self.reasons[table, key] = reason

    def remark(self, table: str, text: str) -> None:
        """Adds a comment line above the keys of a table."""
        if text and text not in self.remarks.setdefault(table, []):
            self.remarks[table].append(text)

    def doubt(self, text: str) -> None:
        """Adds something that a person has to look at."""
        if text and text not in self.doubts:
            self.doubts.append(text)

    def get(self, table: str, key: str) -> Any:
        """What a key says; None when it is not set."""
        return self.tables.get(table, {}).get(key)

    def render(self, heading: str) -> str:
        """The dataset file as TOML.

        Args:
            heading: The comment at its top.
        """
        lines = _comment(heading)
        if self.doubts:
            lines += ["#", "# Not certain, look at these:"]
            for doubt in self.doubts:
                lines += _comment(f"- {doubt}", indent="  ")
        for table in TABLES:
            keys, remarks = self.tables.get(table, {}), self.remarks.get(table, [])
            if not keys and not remarks:
                continue
            lines.append("")
            if table and keys:
                lines.append(f"[{table}]")
            for key, value in keys.items():
                lines += _entry(f"{_key(key)} = {to_toml(value)}", self.reasons.get((table, key), ""))
            for remark in remarks:
                lines += _comment(remark)
        return "\n".join(lines) + "\n"


def _entry(said: str, reason: str) -> list[str]:
    reason = CONTROL.sub("?", reason)
    if not reason:
        return [said]
    if len(said) + len(reason) + 6 <= WIDTH:
        return [f"{said}    # {reason}"]
    return [*_comment(reason), said]


def _comment(text: str, *, indent: str = "") -> list[str]:
    return textwrap.wrap(
        CONTROL.sub("?", text),
        width=WIDTH,
        initial_indent="# ",
        subsequent_indent=f"# {indent}",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def to_toml(value: Any) -> str:
    r"""A value as TOML; tables inline.

    >>> print(to_toml({"from": "user id", "type": "int64", "null_values": ["\\N"]}))
    { from = "user id", type = "int64", null_values = ['\N'] }
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {to_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(to_toml(item) for item in value) + "]"
    if isinstance(value, date):
        return f'"{value.isoformat()}"'
    if isinstance(value, str):
        if re.search(r'[\\"]', value) and value.isprintable() and "'" not in value:
            return f"'{value}'"
        if "\\" in value and value.isprintable() and "'''" not in value and not value.endswith("'"):
            return f"'''{value}'''"
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)

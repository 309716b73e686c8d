"""Formats with a record on every line, whatever stands in it: fixed_width and regex."""

import re
from collections.abc import Callable, Iterable

from pipeline.checks.raw.records.lines import Lines
from pipeline.checks.raw.values.taking import Cells
from pipeline.config import FixedWidth, Regex


class LineCutter:
    """Cuts single lines into cells."""

    quote = b""

    def __init__(self, cut: Callable[[str], Cells | None], nulls: Iterable[str], *, has_header: bool = False) -> None:
        """Cuts by a function.

        Args:
            cut: A line without its end -> column -> text; None when it does not fit.
            nulls: Texts that mean "missing".
            has_header: Whether the first line is no record.
        """
        self.has_header = has_header
        self._cut, self._nulls = cut, {None, "", *nulls}

    def read_header(self, parts: list[bytes]) -> None:
        """The header says nothing that is not declared."""

    def whole(self, line: bytes, lines: Lines) -> list[bytes]:  # noqa: ARG002
        """A line is a record."""
        return [line]

    def count(self, lines: list[bytes]) -> tuple[int, int]:
        """A line is a record."""
        return len(lines), len(lines)

    def values(self, parts: list[bytes]) -> Cells | None:
        """Column -> cell."""
        try:
            found = self._cut(parts[0].decode("utf-8").removesuffix("\r"))
        except UnicodeDecodeError:
            return None
        return found and {name: None if text in self._nulls else text for name, text in found.items()}


def fixed_width_cutter(settings: FixedWidth) -> LineCutter:
    """Cells are characters from the first to the last position of a column, without the blanks around them."""
    shortest = max(first for first, _ in settings.columns.values())

    def cut(line: str) -> Cells | None:
        if len(line) < shortest:
            return None
        return {name: line[first - 1 : last].strip(" \t") for name, (first, last) in settings.columns.items()}

    return LineCutter(cut, settings.null_values, has_header=settings.has_header)


def regex_cutter(settings: Regex) -> LineCutter:
    """Cells are the named groups of a pattern that matches the whole line."""
    pattern = re.compile(settings.pattern)

    def cut(line: str) -> Cells | None:
        match = pattern.fullmatch(line)
        return None if match is None else match.groupdict()

    return LineCutter(cut, settings.null_values)

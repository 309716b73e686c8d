"""CSV as Python's `csv` reads it, strictly: a record may go over several lines while a quoted cell is open."""

import contextlib
import csv
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.checks.raw.records.lines import Lines
from pipeline.checks.raw.values.taking import Cells
from pipeline.config import BLANKS, Csv

csv.field_size_limit(2**31 - 1)


class CsvCutter:
    """Cuts the lines of a CSV file into records and cells."""

    def __init__(self, settings: Csv) -> None:
        self._settings = settings
        self.quote = settings.quote_char.encode()
        self.has_header = settings.has_header
        self._names: Sequence[str] = settings.columns or ()
        self._nulls = {"", *settings.null_values}
        self._dialect: dict[str, Any] = {"delimiter": settings.separator, "strict": True}
        self._dialect |= {"quotechar": settings.quote_char} if self.quote else {"quoting": csv.QUOTE_NONE}

    def read_header(self, parts: list[bytes]) -> None:
        """The names of the columns, unless they are declared."""
        names = self._row([part.decode("utf-8", errors="replace") for part in parts])
        if self._settings.typed_header:
            names = [name.partition(":")[0] for name in names]
        self._names = self._settings.columns or names

    def whole(self, line: bytes, lines: Lines) -> list[bytes]:
        """A record that csv refuses ends where it does so."""
        parts = [line]
        if self.quote and self.quote in line:
            with contextlib.suppress(csv.Error):
                next(csv.reader(_open_cell(parts, lines), **self._dialect))
        return parts

    def count(self, lines: list[bytes]) -> tuple[int, int]:
        """How many records end within some lines, and with which line the next one begins."""
        records = begun = 0
        ran_out = False

        def texts() -> Iterator[str]:
            nonlocal ran_out
            yield from map(_text, lines)
            ran_out = True

        reader = csv.reader(texts(), **self._dialect)
        while not ran_out:
            try:
                for _ in reader:
                    records, begun = records + 1, reader.line_num
            except csv.Error:
                if not ran_out:
                    records, begun = records + 1, reader.line_num
        return records, begun

    def values(self, parts: list[bytes]) -> Cells | None:
        """Column -> cell."""
        try:
            row = self._row([part.decode("utf-8") for part in parts])
        except (csv.Error, UnicodeDecodeError, StopIteration):
            return None
        if len(row) != len(self._names):
            return None
        return {name: None if cell in self._nulls else cell for name, cell in zip(self._names, row, strict=True)}

    def _row(self, lines: list[str]) -> list[str]:
        last = lines.pop().removesuffix("\r")
        if self._settings.separator == BLANKS:
            return re.findall(r"[^ \t]+", last)
        if len(self._settings.separator) > 1:
            return last.split(self._settings.separator)
        return next(csv.reader([*(line + "\n" for line in lines), last], **self._dialect))


def _open_cell(parts: list[bytes], lines: Lines) -> Iterator[str]:
    """Hands csv one line after the other, for as long as a quoted cell is open."""
    yield _text(parts[0]) + "\n"
    while (line := lines.next()) is not None:
        parts.append(line)
        yield _text(line) + "\n"


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").removesuffix("\r")

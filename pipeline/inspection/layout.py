"""How the lines of a text file are cut: separator, quotes, header, comments, or one of the other layouts."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.config import BLANKS
from pipeline.inspection.fixed import fixed_columns
from pipeline.inspection.header import Header, is_value, sniff_header
from pipeline.inspection.json_records import first_records, is_object, records_path
from pipeline.inspection.line_patterns import JSON_BEHIND, json_behind, line_pattern
from pipeline.inspection.no_layout import ends_with_cr, is_python_dict
from pipeline.inspection.words import name_score

# In the order in which they are believed when several cut every line alike.
SEPARATORS = ("\t", "::", "\x01", "\x1f", "||", "|", ";", ",", "^", "~", BLANKS)
SPOKEN = {
    "\t": "tab",
    "\x01": "the character 1",
    "\x1f": "the character 31",
    ",": "comma",
    ";": "semicolon",
    BLANKS: "blanks",
}
LINES = 1000
EVEN = 0.9  # of the lines have to be cut into the same number of cells


@dataclass
class Layout:
    """How a text file is cut.

    Attributes:
        format: csv, fixed_width, regex, ndjson or json.
        table: Keys of `[source.<format>]` other than the defaults.
        reasons: Key -> why.
        found: What was found, in words.
        names: The columns in file order, where lines have cells.
        invented: Whether `names` were invented, since the file has none.
        doubts: What else is plausible.
    """

    format: str
    table: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    found: str = ""
    names: list[str] = field(default_factory=list)
    invented: bool = False
    doubts: list[str] = field(default_factory=list)

    def say(self, key: str, value: Any, reason: str) -> None:
        """Sets a key of the format's table."""
        self.table[key] = value
        self.reasons[key] = reason


def sniff_layout(text: str, *, whole: bool) -> Layout | None:
    """The layout of a text file; None when no layout cuts its lines evenly.

    Args:
        text: Its beginning, as text.
        whole: Whether that is all of it.
    """
    text = text.removeprefix("\ufeff")
    # A document may stand on one line, however long.
    begin = text if whole else text[: text.rfind("\n") + 1]
    found = _sniff_json(begin or text, whole=whole)
    if found is not None:
        return found
    text = begin
    if ends_with_cr(text) or re.match(r"\s*(?:<\?xml|<!DOCTYPE)", text):
        return None
    lines = [line.rstrip("\r") for line in text.split("\n", 20 * LINES)[: 20 * LINES]]
    lines = [line for line in lines if line][:LINES]
    comment, lines = _without_comments(lines)
    if not lines or (lines[0].lstrip()[:1] == "{" and all(map(is_python_dict, lines[:3]))):
        return None
    fields = _w3c_fields(text) if comment == "#" else []
    found = (
        _sniff_lines(lines) or _sniff_cells(text, lines, comment) or _sniff_json_behind(lines) or _sniff_fixed(lines)
    )
    if found is not None and found.invented and len(fields) == len(found.names):
        found.names, found.invented = fields, False
        found.say("columns", fields, "as the line #Fields: names them")
        found.found = found.found.replace("no header", "named by #Fields:")
    if found is not None and comment:
        found.say("comment", comment, f"lines that begin with {comment} hold remarks")
    return found


def _sniff_json(text: str, *, whole: bool) -> Layout | None:
    begin = text.lstrip()
    if begin[:1] == "{":
        lines = [line for line in text.split("\n")[:LINES] if line.strip()]
        objects = [is_object(line) for line in lines]
        if sum(objects) >= EVEN * len(objects) and not (len(objects) == 1 and whole and _wraps_records(lines[0])):
            return Layout("ndjson", found="one JSON object a line")
    elif re.match(r"\[\s*[\{\]]", begin) is None:
        return None
    path = records_path(begin)
    if path is None:
        return None
    layout = Layout("json", found=f"one JSON document, {f'records at {path}' if path else 'a list of objects'}")
    if path:
        layout.say("records", path, "the first list of objects in the document")
    return layout


def _wraps_records(line: str) -> bool:
    """Whether a single object is an envelope around records: these name their user, or it holds nothing that could."""
    record = next(first_records(line), None)
    if record is None:
        return False
    own = [key for key, value in json.loads(line).items() if not isinstance(value, list | dict)]
    return not own or any(name_score(key, "user_id") for key in json.loads(record))


def _without_comments(lines: list[str]) -> tuple[str, list[str]]:
    """The sign with which lines of remarks begin ("" for none), and the lines without them."""
    for sign in ("#", "//", "%", "--"):
        first = [line for line in lines[:50] if line.startswith(sign)]
        rest = [line for line in lines if not line.startswith(sign)]
        if not first or not lines[0].startswith(sign) or len(rest) < len(lines) / 2:
            continue
        # A single such line that is cut like the others is a header.
        alike = any(
            first[0].count(mark) == rest[0].count(mark) > 0 for mark in (*SEPARATORS[:-1], " ") if mark in first[0]
        )
        if not (len(first) == 1 and alike):
            return sign, rest
    return "", lines


def _w3c_fields(text: str) -> list[str]:
    """The names of the columns of a log in the W3C format, as IIS and CloudFront write it; [] of others."""
    match = re.search(r"^#Fields:[ \t]*(.+?)\r?$", text[:100_000], re.MULTILINE)
    names = match[1].split() if match else []
    return names if len(set(names)) == len(names) else []


def _sniff_lines(lines: Sequence[str]) -> Layout | None:
    found = line_pattern(lines, share=EVEN)
    if found is None:
        return None
    pattern, words = found
    layout = Layout("regex", found=words, names=list(re.compile(pattern).groupindex))
    layout.say("pattern", pattern, "other lines are refused")
    return layout


def _sniff_json_behind(lines: Sequence[str]) -> Layout | None:
    if sum(json_behind(line) is not None for line in lines) < EVEN * len(lines):
        return None
    layout = Layout("regex", found="words, and a JSON object behind them", names=["before", "record"])
    layout.say("pattern", JSON_BEHIND, "other lines are refused")
    return layout


def _sniff_cells(text: str, lines: Sequence[str], comment: str) -> Layout | None:
    cuts = [cut for cut in (_cut_evenly(text, lines, mark, comment) for mark in SEPARATORS) if cut is not None]
    wide = [cut for cut in cuts if len(cut.rows[0]) >= 3] or cuts
    if not wide:
        return None
    # What gives a header of known names is believed before all else, then the order above.
    chosen = max(wide, key=lambda cut: (cut.header.known, cut.separator != BLANKS, -SEPARATORS.index(cut.separator)))
    header, cells = chosen.header, len(chosen.rows[0])
    spoken = SPOKEN.get(chosen.separator, f"'{chosen.separator}'")
    layout = Layout("csv", found=f"{cells} columns with {spoken} between")
    for other in wide:
        if other is not chosen and len(other.rows[0]) >= cells and other.separator != BLANKS:
            layout.doubts.append(
                f"separator: {SPOKEN.get(other.separator, other.separator)} would cut every line evenly as well, "
                f"into {len(other.rows[0])} columns"
            )
    if chosen.separator != ",":
        layout.say("separator", chosen.separator, f"cuts {chosen.even:.0%} of the lines into {cells} cells")
    if chosen.plain_quotes:
        layout.say("quote_char", "", chosen.plain_quotes)
    _say_header(layout, header)
    if '"' in text and not chosen.plain_quotes:
        layout.found += ", quotes around cells"
    return layout


def _say_header(layout: Layout, header: Header) -> None:
    layout.names, layout.invented = header.names, not header.there
    layout.found += ", a header" if header.there else ", no header"
    if not header.there:
        layout.say("has_header", False, header.reason)
        named = "in file order, as the header below the first lines names them"
        invented = "names given here, in file order; change them as you like"
        layout.say("columns", header.names, named if header.known else invented)
    elif header.typed:
        layout.say("typed_header", True, header.reason)
    elif header.renamed:
        layout.say("columns", header.names, header.reason)
    layout.doubts += header.doubts


@dataclass
class _Cut:
    separator: str
    rows: list[list[str]]
    even: float
    plain_quotes: str
    header: Header


def _cut_evenly(text: str, lines: Sequence[str], separator: str, comment: str) -> _Cut | None:
    """The rows that a separator gives, when it cuts most lines into the same number of cells."""
    found = _rows(text, lines, separator, comment)
    if found is None:
        return None
    rows, plain_quotes = found
    counts = Counter(len(row) for row in rows)
    cells, often = counts.most_common(1)[0]
    if cells < 2 or often < EVEN * len(rows):
        return None
    if separator == BLANKS and not any(is_value(cell) for row in rows for cell in row):
        return None  # prose
    objects = [record for line in lines if (record := json_behind(line)) is not None]
    mark = " " if separator == BLANKS else separator
    if len(objects) >= EVEN * len(lines) and any(mark in record for record in objects):
        return None  # it would cut objects to pieces
    header = sniff_header(rows, cells)
    return _Cut(separator, [row for row in rows if len(row) == cells], often / len(rows), plain_quotes, header)


def _rows(text: str, lines: Sequence[str], separator: str, comment: str) -> tuple[list[list[str]], str] | None:
    """Rows of cells, and why quotes are plain text ("" when they enclose cells)."""
    if separator == BLANKS:
        return [line.split() for line in lines], "blanks separate, and quotes are plain text then"
    if separator not in text:
        return None
    if len(separator) > 1:
        return [line.split(separator) for line in lines], "needed with a separator of several characters"
    plain = [line.split(separator) for line in lines]
    if '"' not in text:
        return plain, ""
    quoted = _quoted_rows(text, separator, comment)
    if quoted is None or _unevenness(quoted) > _unevenness(plain):
        return plain, "quotes stand within cells as plain text, and are not always closed"
    return quoted, ""


def _quoted_rows(text: str, separator: str, comment: str) -> list[list[str]] | None:
    rows: list[list[str]] = []
    try:
        # newline="" as the csv module wants it: a line end within quotes belongs to the cell.
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True):
            if row and not (comment and row[0].startswith(comment)):
                rows.append(row)
            if len(rows) == LINES:
                break
    except csv.Error:
        # The last record of a cut sample may be open; one that breaks off early has plain quotes.
        broke_late = len(rows) > LINES // 2 or text.count("\n") < len(rows) + 3
        return rows if rows and broke_late else None
    return rows or None


def _unevenness(rows: list[list[str]]) -> float:
    return 1 - Counter(len(row) for row in rows).most_common(1)[0][1] / len(rows)


def _sniff_fixed(lines: Sequence[str]) -> Layout | None:
    found = fixed_columns(lines)
    if found is None:
        return None
    columns, has_header = found
    layout = Layout("fixed_width", found=f"{len(columns)} columns at fixed places")
    layout.names, layout.invented = list(columns), not has_header
    layout.say(
        "columns",
        {name: list(span) for name, span in columns.items()},
        "places that are blank in every line separate them",
    )
    if has_header:
        layout.say("has_header", True, "the first line names the columns")
    layout.doubts.append("fixed_width: compare the places of the columns with a few lines")
    return layout

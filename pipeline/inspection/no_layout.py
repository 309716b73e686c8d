"""What is the matter with a text whose lines no layout cuts, and what to do."""

import ast
import json
import re

from pipeline.inspection.json_records import is_list, is_object, stands_on_several_lines

HEADING = re.compile(r"[\w.-]+:")
PYTHON_DICTS = (
    "write them anew: python -c 'import ast, json, sys; [print(json.dumps(ast.literal_eval(line))) for line in sys.stdin]' "
    "< FILE > NEW.ndjson"
)


def why_no_layout(text: str) -> str:
    """What is the matter with a text for which no layout was found, and what to do."""
    lines = [line for line in text.removeprefix("\ufeff").splitlines() if line.strip()]
    if not lines:
        return "the file holds blank lines alone; give one that holds records"
    if re.fullmatch(r"[\s\[\]{}]+", text.strip()):
        return f"the file holds {text.strip()[:20]!r} alone, which is no record; give one that holds records"
    if ends_with_cr(text):
        return r"its lines end with CR alone, which no reader cuts; write LF instead: tr '\r' '\n' < FILE > NEW"
    if re.match(r"<(?:\?xml|!DOCTYPE|html|[A-Za-z]\w*[ />])", lines[0].strip()):
        return "this is XML or HTML, which no reader knows; export the log as CSV or JSON"
    if HEADING.fullmatch(lines[0].strip()) and not all(HEADING.fullmatch(line.strip()) for line in lines):
        return of_headings(lines[0].strip())
    if stands_on_several_lines(text):
        return "its JSON objects stand on several lines each; write one a line: jq -c . FILE > NEW.ndjson"
    if is_list(lines[0]):
        return "its lines are JSON lists, whose cells have no names; write them as CSV: jq -r @csv FILE > NEW.csv"
    if (orient := of_columns(text)) is not None:
        return (
            "this JSON holds columns and no records, as pandas writes them; write it anew: python -c 'import pandas; "
            f'pandas.read_json("FILE", orient="{orient}", dtype=False, convert_dates=False).to_json("NEW.ndjson", orient="records", lines=True)\''
        )
    if is_python_dict(lines[0]):
        return "its lines are Python dicts, and no JSON; " + PYTHON_DICTS
    if (
        all(re.fullmatch(r"\s*\d+(?:\s+\d+)*\s*", line) for line in lines)
        and len({len(line.split()) for line in lines}) > 1
    ):
        return (
            "its lines hold numbers, and not equally many; if each is a user and then the items, declare format = "
            '"regex", [source.regex] pattern = \'(?P<user>\\S+)\\s+(?P<items>.*)\' and [source.explode] column = "items", '
            'separator = " "; an event also needs a time'
        )
    if all(re.fullmatch(r"\s*[\w.-]+\s*", line) for line in lines):
        return "each line holds one value alone; an event needs at least a user, an item and a time"
    return (
        f"no layout cuts its lines evenly, the first is {lines[0][:80]!r}; declare "
        'format = "regex" with a pattern, or "fixed_width", as docs/dataset-file.md explains'
    )


def of_headings(heading: str) -> str:
    """What is the matter with lines such as `1:` above records, and what to do."""
    return (
        f"lines such as {heading!r} stand above records and tell something of them, perhaps the item; no format carries it "
        'down, so write it into each record first: awk -F: \'NF == 2 && $2 == "" { head = $1; next } '
        '{ print head "," $0 }\' FILE > NEW.csv'
    )


def ends_with_cr(text: str) -> bool:
    """Whether lines end with CR alone."""
    return "\n" not in text and "\r" in text.strip()


def of_columns(text: str) -> str | None:
    """How pandas calls the layout of a document of columns, such as {"user": {"0": 7, "1": 8}}; None for others."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not found:
        return None
    data = found.get("data")
    if "columns" in found and isinstance(data, list) and data and isinstance(data[0], list):
        return "split"
    columns = list(found.values())
    numbered = all(isinstance(column, dict) and len(column) > 1 and "".join(column).isdigit() for column in columns)
    return "columns" if numbered else None


def is_python_dict(line: str) -> bool:
    """Whether a line is a dict as Python writes it, and no JSON."""
    try:
        return not is_object(line) and isinstance(ast.literal_eval(line.strip()), dict)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False

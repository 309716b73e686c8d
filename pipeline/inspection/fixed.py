"""Columns at fixed places: runs of places that are blank in every line stand between them."""

import re
from collections.abc import Sequence

from pipeline.inspection.words import mentions_role

MOST_WIDTH = 1000


def fixed_columns(lines: Sequence[str]) -> tuple[dict[str, tuple[int, int]], bool] | None:
    """The columns of lines without separators.

    Args:
        lines: Lines of the file, without line ends.

    Returns:
        Name -> first and last place, from 1, and whether the first line names them; None when lines are not alike.
    """
    width = max(map(len, lines))
    if len(lines) < 3 or width > MOST_WIDTH or sum(len(line) >= 0.7 * width for line in lines) < 0.9 * len(lines):
        return None
    blank = [all(at >= len(line) or line[at] in " \t" for line in lines) for at in range(width)]
    spans = _runs(blank)
    if len(spans) < 3:
        return None
    spans = _widened(spans, lines)
    first = [lines[0][begin - 1 : end].strip() for begin, end in spans]
    has_header = any(map(mentions_role, first)) and not any(re.fullmatch(r"[\d.:-]+", name) for name in first)
    names = first if has_header and len(set(first)) == len(first) else [f"column_{n + 1}" for n in range(len(spans))]
    return dict(zip(names, spans, strict=True)), has_header


def _widened(spans: Sequence[tuple[int, int]], lines: Sequence[str]) -> list[tuple[int, int]]:
    """The columns with the blanks between them, since longer cells than those of the sample stand there.

    The blanks belong to the column before them, unless the next one is written from the right.
    """
    left = []
    for begin, end in spans:
        filled = [line for line in lines if line[begin - 1 : end].strip()]
        left.append(sum(line[begin - 1] not in " \t" for line in filled) > 0.9 * len(filled))
    found, begin = [], spans[0][0]
    for at, (_, last) in enumerate(spans):
        end = last
        if at + 1 < len(spans) and left[at + 1]:
            end = spans[at + 1][0] - 1
        elif at + 1 == len(spans) and left[at]:
            end = MOST_WIDTH
        found.append((begin, end))
        begin = end + 1
    return found


def _runs(blank: Sequence[bool]) -> list[tuple[int, int]]:
    """First and last place, from 1, of the runs that are not blank."""
    found, begin = [], None
    for at, is_blank in enumerate([*blank, True]):
        if not is_blank and begin is None:
            begin = at
        elif is_blank and begin is not None:
            found.append((begin + 1, at))
            begin = None
    return found

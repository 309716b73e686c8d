"""Regex: every line is a record that matches one pattern, whose named groups are the columns."""

import re
from dataclasses import replace

import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.sources.block import RawFile
from pipeline.sources.lines import Cut, find_lines, line_texts, present, spread
from pipeline.sources.text import HeldText
from pipeline.sources.text_reader import TextReader

ONE_CHARACTER = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)  # escapes and classes
POSSESSIVE = re.compile(r"(?:[*+?]|\{\d*,?\d*\})\+")
VERBOSE = re.compile(r"\(\?[a-zA-Z]*x")
ESCAPE = re.compile(r"\\.", re.DOTALL)
OPERATORS = re.compile(r"\[|&&|--|~~")
WHOLE = "1"  # the group around the pattern, which has no name but its number


class RegexReader(TextReader):
    """The blocks of a file whose lines match `[source.regex] pattern` as a whole; one that does not is malformed.

    A group that took no part in the match, or matched nothing, is a missing value.
    """

    def __init__(self, *, file: RawFile, dataset: Dataset, block_bytes: int) -> None:
        declared = dataset.source.regex
        assert declared is not None
        super().__init__(
            file=file, dataset=dataset, declared=declared, table="regex", has_header=False, block_bytes=block_bytes
        )
        self._pattern = whole_line_pattern(declared.pattern, where=f"{file.name}: [source.regex] pattern")
        nulls = sorted({"", *declared.null_values})
        self._cells = [present(pl.col(name), nulls) for name in re.compile(declared.pattern).groupindex]

    def _cut(self, text: HeldText) -> Cut:
        found = find_lines(text.held, comment=self._declared.comment)
        readable = ~found.malformed
        groups = line_texts(text.held, found, readable).str.extract_groups(self._pattern).struct.unnest()
        malformed = found.malformed.copy()
        malformed[readable] = groups[WHOLE].is_null().to_numpy()
        return Cut(spread(groups.select(self._cells), readable), replace(found, malformed=malformed))


def whole_line_pattern(pattern: str, *, where: str) -> str:
    r"""A pattern as polars needs it to match whole texts only, in a group of its own.

    >>> whole_line_pattern("(?P<user>[0-9]+)", where="")
    '\\A((?P<user>[0-9]+))\\z'

    Raises:
        PipelineError: When Rust's regular expressions, which are those of polars, do not know it, or take it for
            something else than Python's do.
    """
    whole = rf"\A({pattern})\z"
    reason = _ambiguity(pattern)
    if not reason:
        try:
            pl.Series([], dtype=pl.String).str.extract_groups(whole)
        except pl.exceptions.PolarsError as error:
            reason = str(error).strip().split("\n")[-1].removeprefix("error: ")
    if reason:
        raise PipelineError(
            f"{where} is not known to the regular expressions of Rust, which read the log ({reason}); write it without "
            "look-around, back-references, possessive repetition and verbose mode, and [ within a class as \\["
        )
    return whole


def _ambiguity(pattern: str) -> str:
    """Why a pattern means one thing in Python and another in Rust; "" when it does not."""
    outside = ONE_CHARACTER.sub("x", pattern)
    if POSSESSIVE.search(outside):
        return "possessive repetition is a repetition of a repetition there"
    if VERBOSE.search(outside):
        return "verbose mode also drops blanks within a class there"
    for part in ONE_CHARACTER.findall(pattern):
        found = OPERATORS.search(ESCAPE.sub("x", part), 1)
        if found is not None:
            return f"{found[0]} is an operator within a class there"
    return ""

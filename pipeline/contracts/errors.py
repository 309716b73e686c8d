"""The one exception that carries a sentence for the user."""

from collections.abc import Iterable
from difflib import get_close_matches


class PipelineError(Exception):
    """Something the user can mend.

    The message is one sentence: it names the file, column, row or partition, says what was found, what was
    expected and what to do. Commands print it alone; under Dagster it is the description of the Failure.
    """


def quoted_or(word: str, known: Iterable[str]) -> str:
    """A hint with the nearest known name, or with all of them.

    >>> quoted_or("chunk_row", ["chunk_rows", "threads"])
    "did you mean 'chunk_rows'?"
    >>> quoted_or("zzz", ["a", "b"])
    "known are 'a', 'b'"
    """
    names = list(known)
    near = get_close_matches(word, names, n=1)
    if near:
        return f"did you mean '{near[0]}'?"
    return "known are " + ", ".join(f"'{name}'" for name in names)

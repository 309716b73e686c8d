"""NDJSON and JSON documents: records are objects, and the names of columns may be paths into them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pipeline.checks.raw.records.explode import Exploder
from pipeline.checks.raw.records.json_document import records_of
from pipeline.checks.raw.records.json_values import read_object
from pipeline.checks.raw.records.lines import Lines, split
from pipeline.checks.raw.records.stored import Readable
from pipeline.checks.raw.values.taking import Taker


class NdjsonCutter:
    """Reads single lines as objects."""

    quote = b""
    has_header = False

    def read_header(self, parts: list[bytes]) -> None:
        """There is none."""

    def whole(self, line: bytes, lines: Lines) -> list[bytes]:  # noqa: ARG002
        """A line is a record."""
        return [line]

    def count(self, lines: list[bytes]) -> tuple[int, int]:
        """A line is a record."""
        return len(lines), len(lines)

    def values(self, parts: list[bytes]) -> dict[str, Any] | None:
        """Key -> value."""
        try:
            return read_object(parts[0].decode("utf-8"))
        except UnicodeDecodeError:
            return None


def ndjson_lines(stream: Readable) -> Lines:
    """The lines of an NDJSON file."""
    return Lines(stream, blanks=b" \t\r")


def read_document(stream: Readable, taker: Taker, *, name: str, path: Sequence[str]) -> None:
    """Takes the records of a JSON document; see `records_of`."""
    for line, text in records_of(stream, name=name, path=path):
        taker.take(line, lambda text=text: None if text is None else read_object(text))


def texts_of_lines(stream: Readable) -> Iterator[bytes]:
    """The text of a file in pieces of whole lines."""
    lines = ndjson_lines(stream)
    while block := lines.block():
        yield block


def texts_of_document(stream: Readable, *, name: str, path: Sequence[str]) -> Iterator[bytes]:
    """The texts of the records of a document."""
    for _, text in records_of(stream, name=name, path=path):
        if text is not None:
            yield b" ".join(text.encode("utf-8", "surrogatepass").split(b"\n"))


def literal_names(texts: Iterable[bytes], names: Iterable[str], exploder: Exploder | None) -> set[str]:
    """Those of some names that any object of a file has for a key, so that they are no paths in this file.

    Args:
        texts: Pieces of the file, a record a line.
        names: The names to look for.
        exploder: How a record becomes several.
    """
    wanted = {name: _of_element(name, exploder) for name in names}
    inside = [part.encode() for name, key in wanted.items() for part in {name, key or name}]
    found: set[str] = set()

    def is_odd(text: bytes) -> bool:
        return b"\\" in text or any(part in text for part in inside)

    for text in texts:
        if len(found) == len(wanted):
            break
        for line in filter(is_odd, split(text)) if is_odd(text) else ():
            values = NdjsonCutter().values([line])
            found.update(wanted.keys() & (values or {}).keys())
            elements = exploder.elements(values) if exploder is not None and values is not None else None
            for element in elements or ():
                found.update(name for name, key in wanted.items() if isinstance(element, dict) and key in element)
    return found


def _of_element(name: str, exploder: Exploder | None) -> str | None:
    """The key of an element that a name means; None when it means none."""
    if exploder is None or not name.startswith(f"{exploder.column}."):
        return None
    return name.removeprefix(f"{exploder.column}.")

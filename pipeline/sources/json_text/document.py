"""JSON: one document that holds the list of records."""

from collections.abc import Iterator
from typing import Any

from pipeline.contracts import PipelineError
from pipeline.sources.json_text.reader import JsonRecordReader
from pipeline.sources.json_text.scan import TOO_DEEP, JsonScanner
from pipeline.sources.json_text.table import JsonRun
from pipeline.sources.json_text.values import is_sound
from pipeline.sources.stream import ByteStream

KINDS = {"[": "a list", "{": "an object", '"': "a text", "t": "true", "f": "false", "n": "null"}


class JsonDocumentReader(JsonRecordReader):
    """The blocks of a JSON document: a list of objects, or an object with that list at `[source.json] records`.

    An element that is no object, or one that is nested deeper than `MAX_NESTING`, is malformed.

    Raises:
        PipelineError: Also when the document is cut or no JSON, or when there is no list where it is declared.
    """

    def _runs(self, stream: ByteStream) -> Iterator[JsonRun]:
        scanner = JsonScanner(stream, block_bytes=self.block_bytes)
        records = self.dataset.source.json_.records
        yield from self._within(scanner, records.split(".") if records else [])
        if scanner.peek():
            scanner.refuse("something follows the document")

    def _within(self, scanner: JsonScanner, path: list[str]) -> Iterator[JsonRun]:
        if not path:
            yield from self._list(scanner)
            return
        if scanner.peek() != "{":
            self._refuse_place(scanner)
        found = False
        for key in scanner.members():
            if key != path[0]:
                scanner.skip()
                continue
            if found:
                raise PipelineError(
                    f"{self.file.name}: the key '{key}', which [source.json] records names, is there a second time on "
                    f"line {scanner.line()}; bring a document that has it once"
                )
            found = True
            yield from self._within(scanner, path[1:])
        if not found:
            raise PipelineError(
                f"{self.file.name}: there is no key '{path[0]}' on the way to the list that [source.json] records = "
                f'"{self.dataset.source.json_.records}" names; correct it'
            )

    def _list(self, scanner: JsonScanner) -> Iterator[JsonRun]:
        if scanner.peek() != "[":
            self._refuse_place(scanner)
        run, begun = _Run(), scanner.taken
        for _ in scanner.elements():
            line = scanner.line()
            run.add(line, *scanner.value())
            if scanner.taken - begun >= self.block_bytes:
                yield run.closed()
                run, begun = _Run(), scanner.taken
        if run.records:
            yield run.closed()

    def _refuse_place(self, scanner: JsonScanner) -> None:
        records = self.dataset.source.json_.records
        mark = scanner.peek()
        if not mark:
            scanner.refuse("expected a list of records")
        where = f'[source.json] records = "{records}"' if records else "the document"
        raise PipelineError(
            f"{self.file.name}: expected a list of records at {where}, found {KINDS.get(mark, 'a number')} "
            f"on line {scanner.line()}; name the way to the list in [source.json] records, with points between the keys"
        )


class _Run:
    """Records on their way into a `JsonRun`."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any] | None] = []
        self._lines: list[int] = []
        self._texts: list[str] = []

    def add(self, line: int, value: Any, text: str) -> None:
        sound = value is not TOO_DEEP and isinstance(value, dict) and is_sound(value, text)
        self.records.append(value if sound else None)
        self._lines.append(line)
        self._texts.append(text)

    def closed(self) -> JsonRun:
        texts = self._texts
        return JsonRun(self.records, self._lines, lambda rows: [texts[row] for row in rows])

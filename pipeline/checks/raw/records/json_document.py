"""A JSON document that holds a list of records, read piece by piece: it may be far larger than the memory."""

import codecs
import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import NoReturn

from pipeline.checks.raw.records import stored
from pipeline.checks.raw.records.json_values import refuse_constant
from pipeline.checks.raw.records.stored import Readable
from pipeline.contracts import PipelineError

BLANK = re.compile(r"[ \t\r\n]*")
NEXT_OBJECT = re.compile(r"[ \t\r\n]*,[ \t\r\n]*(?=\{)")
SCALAR = re.compile(r"[^][{}:,\" \t\r\n]+")
CLOSERS = {"[": "]", "{": "}"}
NEAR_THE_END = 16  # characters: what is cut off of a number, a word or an escape is shorter
CHECKER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=refuse_constant)


class _Cut(Exception):
    """A value that does not end within the text at hand."""


def records_of(stream: Readable, *, name: str, path: Sequence[str]) -> Iterator[tuple[int, str | None]]:
    """The elements of the list in a document, in order.

    Args:
        stream: The document, in UTF-8.
        name: Of the file, for sentences.
        path: The keys that lead to the list; none when the document is the list.

    Yields:
        The line on which an element begins, and its text; None when Python gives up on its nesting.

    Raises:
        PipelineError: The document is cut, or no JSON, or holds no list there.
    """
    document = _Document(stream, name)
    for key in path:
        if document.peek() != "{":
            document.fail(f"expected an object with the key '{key}'")
        document.enter_object(key)
    if document.peek() != "[":
        document.fail("expected the list of records")
    document.step()
    more = document.peek() != "]"
    while more:
        document.peek()
        yield document.line, document.value()
        yield from document.objects_at_hand()
        more = document.separated("]")
    document.step()
    for key in reversed(path):
        while document.separated("}"):
            if document.key() == key:
                document.fail(f"the key '{key}' stands twice in one object")
            document.pass_value()
        document.step()
    if document.peek():
        document.fail("expected the end of the document")


class _Document:
    """The text of a document from some place on.

    Attributes:
        line: Of that place, from 1.
    """

    def __init__(self, stream: Readable, name: str) -> None:
        self.line = 1
        self._columns_before = 0  # of the line that the text at hand begins in
        self._stream, self._name = stream, name
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at, self._ended = "", 0, False

    def fail(self, problem: str) -> NoReturn:
        """Stops with a sentence."""
        raise PipelineError(
            f"{self._name}: line {self.line}, column {self._columns() + 1} of the JSON document: {problem}; "
            "bring the complete file, or correct [source.json] records, and run the day again"
        )

    def peek(self) -> str:
        """The next character that is no blank; "" at the end."""
        while True:
            self._go(BLANK.match(self._text, self._at).end())  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def step(self) -> None:
        """Goes past the character that `peek` gave."""
        self._go(self._at + 1)

    def separated(self, closer: str) -> bool:
        """Goes past a comma; False when the container ends instead."""
        found = self.peek()
        if found not in (",", closer):
            self.fail(f"expected , or {closer}, found {found or 'the end of the file'}")
        if found == ",":
            self.step()
        return found == ","

    def key(self) -> str:
        """Goes past a key and its colon."""
        if self.peek() != '"':
            self.fail("expected a key")
        key = json.loads(self.value() or "")
        if self.peek() != ":":
            self.fail("expected a colon")
        self.step()
        return key

    def enter_object(self, key: str) -> None:
        """Goes into the object that begins here, up to the value of a key."""
        self.step()
        if self.peek() != "}":
            while self.key() != key:
                self.pass_value()
                if not self.separated("}"):
                    break
            else:
                return
        self.fail(f"the object that ends here has no key '{key}'")

    def value(self) -> str | None:
        """The text of the value that comes next, after going past it; None when Python gives up on its nesting."""
        self.peek()
        while True:
            try:
                end = self._end_of_value()
                text = self._text[self._at : end]
                self._go(end)
                return text
            except _Cut:
                self._more()
            except RecursionError:
                self.pass_value()
                return None

    def objects_at_hand(self) -> Iterator[tuple[int, str]]:
        """The objects that follow and need no closer look, each behind a comma, with their lines."""
        text, at, line = self._text, self._at, self.line
        with contextlib.suppress(ValueError, RecursionError):
            while comma := NEXT_OBJECT.match(text, at):
                end = CHECKER.raw_decode(text, comma.end())[1]
                begin = line + text.count("\n", at, comma.end())
                line = begin + text.count("\n", comma.end(), end)
                self._at, self.line, at = end, line, end
                yield begin, text[comma.end() : end]

    def pass_value(self) -> None:
        """Goes past the value that comes next, however large and deep it is."""
        closers: list[str] = []
        is_deep = False
        while True:
            first = self.peek()
            try:
                if is_deep and first in CLOSERS:
                    raise _Cut
                self._go(self._end_of_value())
            except (_Cut, RecursionError) as error:
                is_deep = is_deep or isinstance(error, RecursionError)
                if first not in CLOSERS:
                    self._more()
                    continue
                self.step()
                closers.append(CLOSERS[first])
                if self.peek() != closers[-1]:
                    if first == "{":
                        self.key()
                    continue
                closers.pop()
                self.step()
            while closers and not self.separated(closers[-1]):
                closers.pop()
                self.step()
            if not closers:
                return
            if closers[-1] == "}":
                self.key()

    def _end_of_value(self) -> int:
        """Where the value that begins here ends in the text at hand."""
        scalar = SCALAR.match(self._text, self._at)
        try:
            if scalar is None:
                return CHECKER.raw_decode(self._text, self._at)[1]
            if scalar.end() == len(self._text) and not self._ended:
                raise _Cut
            CHECKER.decode(scalar[0])
        except json.JSONDecodeError as error:
            at_hand = len(self._text) if self._ended else len(self._text) - NEAR_THE_END
            if not self._ended and (error.msg.startswith("Unterminated") or error.pos >= at_hand):
                raise _Cut from None
            if scalar is None:
                self._go(min(error.pos, len(self._text)))
            self.fail("expected more JSON, but the file ends" if self._at == len(self._text) else "this is no JSON")
        except ValueError as error:
            self.fail(str(error))
        return scalar.end()

    def _more(self) -> bool:
        """Reads on; what lies behind is dropped. False at the end of the file."""
        size = max(stored.BLOCK_BYTES, len(self._text) - self._at)
        packed = self._stream.read(size)
        try:
            text = self._decoder.decode(packed, final=not packed)
        except UnicodeDecodeError:
            self.fail("what follows is no UTF-8")
        self._columns_before = self._columns()
        self._text, self._at = self._text[self._at :] + text, 0
        self._ended = not packed
        return not self._ended

    def _go(self, to: int) -> None:
        self.line += self._text.count("\n", self._at, to)
        self._at = to

    def _columns(self) -> int:
        """How many characters of the line lie behind."""
        newline = self._text.rfind("\n", 0, self._at)
        return self._at - newline - 1 if newline >= 0 else self._columns_before + self._at

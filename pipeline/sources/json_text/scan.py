"""Walks through a JSON document without holding more of it than the value in hand."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from pipeline.contracts import PipelineError
from pipeline.sources.json_text.values import DECODER, MAX_NESTING
from pipeline.sources.stream import ByteStream

BLANK = re.compile(r"[ \t\n\r]*")
BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{}]', re.DOTALL)
# What is left of a literal, a number or an escape whose rest has not been read yet is shorter.
LONGEST_TOKEN = 16
TOO_DEEP = object()


class JsonScanner:
    """The text of a document from the value in hand on, and where that is.

    Raises:
        PipelineError: The document is cut, no JSON or no UTF-8; the sentence says on which line.
    """

    def __init__(self, stream: ByteStream, *, block_bytes: int) -> None:
        self._file = stream.file.name
        self._texts = _decoded(stream, block_bytes)
        self._block_bytes = block_bytes
        self._held, self._at, self._ended = "", 0, False
        self._line, self._line_start = 1, 0  # of what is in hand; where its line starts, in `_held` or before it
        self.taken = 0  # characters that are dealt with
        self._more()
        self._held = self._held.removeprefix("\ufeff")

    def line(self) -> int:
        """The line of the next value or mark, from 1."""
        self.peek()
        return self._line

    def peek(self) -> str:
        """The next character that is not blank; "" at the end."""
        while True:
            found = BLANK.match(self._held, self._at)
            self._move(found.end())  # type: ignore[union-attr]
            if self._at < len(self._held):
                return self._held[self._at]
            if self._ended:
                return ""
            self._more()

    def take(self, marks: str) -> str:
        """Goes behind the next character, which has to be one of `marks`."""
        found = self.peek()
        if not found or found not in marks:
            self.refuse(f"expected {' or '.join(marks)}")
        self._move(self._at + 1)
        return found

    def value(self) -> tuple[Any, str]:
        """Goes behind the next value; gives it, or `TOO_DEEP`, and its text."""
        self.peek()
        while True:
            try:
                found, end = DECODER.raw_decode(self._held, self._at)
            except RecursionError:
                return TOO_DEEP, self._text_to(self._behind_brackets())
            except json.JSONDecodeError as error:
                if self._ended or not self._may_be_cut(error):
                    self.refuse(error.msg, at=error.pos)
            except ValueError as error:
                self.refuse(str(error))
            else:
                # More digits may follow, behind a point or an exponent whose digits have not been read yet.
                if isinstance(found, dict | list) or end + 2 < len(self._held) or self._ended:
                    return found, self._text_to(end)
            self._more()

    def skip(self, depth: int = 0) -> None:
        """Goes behind the next value, however large it is."""
        if self.peek() not in ("[", "{"):
            self.value()
            return
        try:
            self._move(DECODER.raw_decode(self._held, self._at)[1])
        except RecursionError:
            self._move(self._behind_brackets())
        except ValueError:  # not all of it is held, or it is wrong somewhere
            if depth > MAX_NESTING:
                self._move(self._behind_brackets())
                return
            for _ in self.members() if self.peek() == "{" else self.elements():
                self.skip(depth + 1)

    def elements(self) -> Iterator[None]:
        """Goes through a list: each time to the next element, which has to be taken before the next step."""
        self.take("[")
        if self.peek() == "]":
            self.take("]")
            return
        while True:
            yield
            if self.take(",]") == "]":
                return

    def members(self) -> Iterator[str]:
        """Goes through an object: each time behind the next key, whose value has to be taken before the next step."""
        self.take("{")
        if self.peek() == "}":
            self.take("}")
            return
        while True:
            if self.peek() != '"':
                self.refuse("expected a key in double quotes")
            key, _ = self.value()
            self.take(":")
            yield key
            if self.take(",}") == "}":
                return

    def refuse(self, what: str, *, at: int | None = None) -> NoReturn:
        """Raises the sentence for what is wrong where the scanner stands."""
        self._move(self._at if at is None else at)
        cut = " where the file ends" if self._ended and not self._held[self._at :].strip() else ""
        raise PipelineError(
            f"{self._file}: the JSON document is cut or no JSON on line {self._line}, column "
            f"{self._at - self._line_start + 1}{cut} ({what}); bring the complete file, or write [source] format = "
            '"ndjson" if each line is an object of its own'
        )

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        """Whether an error may be owed to the end of what is held."""
        return error.msg.startswith("Unterminated string") or error.pos > len(self._held) - LONGEST_TOKEN

    def _behind_brackets(self) -> int:
        """The end of the list or object in hand, found by its brackets alone."""
        depth, at = 0, self._at
        while True:
            for found in BRACKET.finditer(self._held, at):
                mark = found[0]
                if mark == '"':  # the rest of the string is not held
                    break
                at = found.end()
                depth += (mark in "[{") - (mark in "]}")
                if depth == 0:
                    return at
            if self._ended:
                self.refuse("a bracket is not closed", at=len(self._held))
            at -= self._at
            self._more()
            at += self._at

    def _text_to(self, end: int) -> str:
        text = self._held[self._at : end]
        self._move(end)
        return text

    def _move(self, to: int) -> None:
        lines = self._held.count("\n", self._at, to)
        if lines:
            self._line += lines
            self._line_start = self._held.rindex("\n", self._at, to) + 1
        self.taken += to - self._at
        self._at = to

    def _more(self) -> None:
        # A long value is parsed again each time: doubling keeps that linear in its length.
        wanted = max(self._block_bytes, len(self._held) - self._at)
        found = [self._held[self._at :]]
        while wanted > 0 and not self._ended:
            try:
                text = next(self._texts, None)
            except UnicodeDecodeError:
                self.refuse("bytes that are no UTF-8 in what follows")
            self._ended = text is None
            found.append(text or "")
            wanted -= len(found[-1])
        self._line_start -= self._at
        self._held, self._at = "".join(found), 0


def _decoded(stream: ByteStream, size: int) -> Iterator[str]:
    """The text of a document in UTF-8, piece by piece."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for piece in stream.pieces(size):
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)

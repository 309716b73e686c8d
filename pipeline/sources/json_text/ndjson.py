"""NDJSON: one JSON object a line."""

from collections.abc import Iterator, Sequence

import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.sources.block import RawFile
from pipeline.sources.json_text.flat import Shape, find_shape
from pipeline.sources.json_text.reader import JsonRecordReader
from pipeline.sources.json_text.table import JsonRun
from pipeline.sources.json_text.values import parse_json
from pipeline.sources.lines import find_lines, line_texts, spread
from pipeline.sources.stream import ByteStream
from pipeline.sources.text import HeldText

BLANKS = " \t\r"


class NdjsonReader(JsonRecordReader):
    """The blocks of an NDJSON file.

    A line that is no JSON object in UTF-8, or one that is nested deeper than `MAX_NESTING`, is malformed; blank lines
    are no records. A complete last line without newline is counted as `last_record_without_newline`.

    Raises:
        PipelineError: Also when the file begins like a JSON document and nothing says that it is NDJSON.
    """

    def __init__(self, *, file: RawFile, dataset: Dataset, block_bytes: int) -> None:
        super().__init__(file=file, dataset=dataset, block_bytes=block_bytes)
        explode = dataset.source.explode
        self._list_key = None if explode is None else explode.column
        self._may_have_shape = explode is None or (
            explode.separator is None and explode.pattern is None and "." not in explode.column
        )
        self._shape: Shape | None = None

    def _runs(self, stream: ByteStream) -> Iterator[JsonRun]:
        line = 1
        for text, newline_added in self._texts(stream):
            yield self._run(text, line, newline_added=newline_added)
            line += text.count(b"\n")

    def _run(self, text: bytes, first_line: int, *, newline_added: bool) -> JsonRun:
        found = find_lines(text, comment=None)
        readable = ~found.malformed
        lines = spread(line_texts(text, found, readable).to_frame("line"), readable)["line"]
        rows = (lines.str.strip_chars(BLANKS) != "").fill_null(value=True).to_numpy()
        lines, start, end = lines.filter(pl.Series(rows)), found.start[rows], found.end[rows]
        if self._shape is None and self._may_have_shape:
            self._shape = find_shape(lines, list_key=self._list_key)
        is_flat = None
        if self._shape is not None:
            flat = lines.str.contains(self._shape.whole()).fill_null(value=False)
            is_flat = flat.to_numpy() if flat.any() else None
        others = lines if is_flat is None else lines.filter(pl.Series(~is_flat))
        records = [None if line is None else parse_json(line, dict) for line in others]
        last_is_object = (is_flat is not None and bool(is_flat[-1])) or bool(records and records[-1] is not None)

        def read_raw(wanted: Sequence[int]) -> list[str]:
            raws = (text[start[row] : end[row]] for row in wanted)
            return [raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace") for raw in raws]

        return JsonRun(
            records=records,
            lines=found.line[rows] + first_line,
            read_raw=read_raw,
            newline_missing=newline_added and len(end) > 0 and int(end[-1]) == len(text) and last_is_object,
            shape=None if is_flat is None else self._shape,
            flat=None if is_flat is None else lines.filter(pl.Series(is_flat)),
            is_flat=is_flat,
        )

    def _texts(self, stream: ByteStream) -> Iterator[tuple[bytes, bool]]:
        """Runs of whole lines, and whether the last newline is not in the file."""
        text = HeldText(stream, encoding="utf-8", table="ndjson", block_bytes=self.block_bytes)
        text.more()
        text.drop_mark()
        self._refuse_document(text)
        while True:
            size = text.held.rfind(b"\n") + 1
            if size:
                yield text.held[:size], text.newline_added
                text.drop(size)
            if text.ended:
                return
            text.more()

    def _refuse_document(self, text: HeldText) -> None:
        while not text.held.strip() and not text.ended:
            text.more()
        if self.dataset.source.format is None and text.held.lstrip().startswith(b"["):
            raise PipelineError(
                f"{self.file.name}: the file begins with '[' like a JSON document, not with the object of a line; write "
                '[source] format = "json"'
            )

"""Counts the records of a raw file from its bytes, and cuts out a few of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.checks.raw.records.arrow_records import column_names, read_arrow
from pipeline.checks.raw.records.csv_records import CsvCutter
from pipeline.checks.raw.records.json_records import (
    NdjsonCutter,
    literal_names,
    ndjson_lines,
    read_document,
    texts_of_document,
    texts_of_lines,
)
from pipeline.checks.raw.records.line_records import fixed_width_cutter, regex_cutter
from pipeline.checks.raw.records.lines import Lines, read_lines
from pipeline.checks.raw.records.naming import exploder_of, names_in_question, taker_of
from pipeline.checks.raw.records.stored import (
    BLOCK_BYTES,
    COMPRESSIONS,
    Hashed,
    Readable,
    as_utf8,
    compression_of,
    unpacked,
)
from pipeline.checks.raw.values.taking import Reading, Taker, Wanted
from pipeline.config import Dataset, Source

FORMATS = {
    **dict.fromkeys(("csv", "tsv", "txt"), "csv"),
    **dict.fromkeys(("parquet", "pq"), "parquet"),
    **dict.fromkeys(("arrow", "ipc", "feather"), "arrow"),
}


def raw_format(name: str, declared: str | None) -> str:
    """The format of a raw file, as declared or by its extension."""
    if declared is not None:
        return declared
    parts = name.lower().rsplit("/", 1)[-1].split(".")
    if parts[-1] in COMPRESSIONS:
        parts.pop()
    return FORMATS.get(parts[-1], "ndjson")


def read_records(path: Path, *, dataset: Dataset, wanted: Wanted) -> Reading:
    """Counts the records of a file and reads the wanted ones.

    Args:
        path: The raw file.
        dataset: The declarations.
        wanted: What to cut out.

    Raises:
        PipelineError: The file is a JSON document that is cut, no JSON, or without its list of records.
    """
    source = dataset.source
    kind = raw_format(path.name, source.format)
    in_question = names_in_question(path, dataset, wanted, kind)
    if kind in ("parquet", "arrow"):
        taker = taker_of(path, dataset, wanted, kind, borne=column_names(path, kind))
        needed = in_question | ({source.explode.column} if source.explode is not None else set())
        taker.reading.sha256 = read_arrow(path, taker, kind=kind, needed=needed)
        return taker.reading
    borne: set[str] = set()
    if in_question and kind in ("ndjson", "json"):
        with _opened(path, source) as (stream, _):
            texts = _json_texts(stream, path, source, kind)
            borne = literal_names(texts, in_question, exploder_of(dataset, kind, borne=()))
    taker = taker_of(path, dataset, wanted, kind, borne=borne)
    with _opened(path, source) as (stream, hashed):
        _read_text(stream, taker, path, source, kind)
        while hashed.read(BLOCK_BYTES):
            pass
        taker.reading.sha256 = hashed.hexdigest()
    return taker.reading


@contextmanager
def _opened(path: Path, source: Source) -> Iterator[tuple[Readable, Hashed]]:
    """The unpacked bytes of a file, and the stored ones beneath."""
    with path.open("rb") as stored:
        hashed = Hashed(stored)
        try:
            yield unpacked(hashed, compression_of(path.name, source.compression)), hashed
        finally:
            hashed.close()


def _read_text(stream: Readable, taker: Taker, path: Path, source: Source, kind: str) -> None:
    if kind == "json":
        read_document(stream, taker, name=path.name, path=_keys(source))
    elif kind == "ndjson":
        read_lines(ndjson_lines(stream), NdjsonCutter(), taker)
    else:
        if kind == "csv":
            settings, cutter = source.csv, CsvCutter(source.csv)
        elif kind == "fixed_width":
            assert source.fixed_width is not None
            settings, cutter = source.fixed_width, fixed_width_cutter(source.fixed_width)
        else:
            assert source.regex is not None
            settings, cutter = source.regex, regex_cutter(source.regex)
        read_lines(Lines(as_utf8(stream, settings.encoding), comment=settings.comment), cutter, taker)


def _json_texts(stream: Readable, path: Path, source: Source, kind: str) -> Iterator[bytes]:
    if kind == "json":
        return texts_of_document(stream, name=path.name, path=_keys(source))
    return texts_of_lines(stream)


def _keys(source: Source) -> list[str]:
    return source.json_.records.split(".") if source.json_.records else []

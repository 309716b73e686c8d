"""From samples to a draft: each sniffer is asked once, and its answer is written down with its reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from pipeline.config.presets import with_preset
from pipeline.contracts import PipelineError
from pipeline.inspection.bytes import binary_format, sniff_encoding
from pipeline.inspection.cells import read_cells
from pipeline.inspection.declare import say_columns
from pipeline.inspection.draft import Draft
from pipeline.inspection.explode import choose_list
from pipeline.inspection.facts import Facts, look_at
from pipeline.inspection.header import without_headers
from pipeline.inspection.id_cells import id_settings
from pipeline.inspection.json_texts import json_texts
from pipeline.inspection.layout import Layout, sniff_layout
from pipeline.inspection.no_layout import why_no_layout
from pipeline.inspection.presets import find_preset
from pipeline.inspection.sample import Sample
from pipeline.sources import FORMATS
from pipeline.sources.stream import compression_of, split_extension


@dataclass
class Evidence:
    """What is known of a log.

    Attributes:
        samples: Samples of its files; the first one decides the layout.
        refused: Rows that a pass over the log refused, raw.
        plain_quotes: A pass found that quotes are plain text.
        hive: Key of folders such as `country=de` -> its values for the files that were sampled.
        actions: Actions that a pass found, the most frequent first; () before it.
        use_preset: Whether presets are looked at.
    """

    samples: Sequence[Sample]
    refused: list[pl.DataFrame] = field(default_factory=list)
    plain_quotes: bool = False
    hive: Mapping[str, Sequence[str]] = field(default_factory=dict)
    actions: Sequence[str] = ()
    use_preset: bool = True


@dataclass
class Proposal:
    """A draft without path and days, and what the sample said about these.

    Attributes:
        draft: The draft.
        first_us: The earliest time of the sample; None when there is none.
        last_us: The latest.
        preset: The preset in use.
    """

    draft: Draft
    first_us: int | None = None
    last_us: int | None = None
    preset: str | None = None


def propose(evidence: Evidence) -> Proposal:
    """Asks all sniffers.

    Raises:
        PipelineError: No layout fits, or the file cannot be read.
    """
    sample, draft = evidence.samples[0], Draft()
    layout, source = _layout(sample, evidence, draft)
    cells = [read_cells(sample, source, layout.names)]
    beneath = cells[0]
    chosen = choose_list(beneath.frame)
    taken_out, doubt = json_texts(beneath.frame)
    draft.doubt(doubt)
    if not chosen.says and taken_out:
        chosen.says, chosen.reason = taken_out, "each of its cells is one record, taken apart by the pattern"
    column = chosen.says.get("column")
    if column is not None:
        source["explode"] = chosen.says
        for key, value in chosen.says.items():
            draft.say("source.explode", key, value, chosen.reason if key == "column" else "")
        cells = []
    draft.doubt(chosen.doubt)
    draft.remark("source", chosen.note)
    for other in evidence.samples[len(cells) :]:
        try:
            cells.append(read_cells(other, source, layout.names))
        except PipelineError as error:
            draft.doubt(f"{other.file.name}: {error}")
    if not cells:  # not even the first sample can be exploded
        draft.tables.pop("source.explode", None)
        source.pop("explode", None)
        column, cells = None, [beneath]
    frame = pl.concat([part.frame for part in cells], how="diagonal_relaxed")
    if frame.height == 0:
        behind = "the file holds no records behind its header" if sample.whole and len(cells[0].frame.columns) else ""
        cut = f"not one line of the sample can be cut as {layout.found}, and no other layout fits better"
        found = behind if behind and not cells[0].malformed else cut
        raise PipelineError(f"{sample.file.name}: {found}; give a file with records, or declare the layout by hand")
    records, typed = without_headers(frame)
    if typed and records.height:
        draft.doubt(f"rows that name the types of the columns are refused; the sample holds {typed}")
    sampled = _with_hive(records if records.height else frame, evidence.hive)
    frame = _with_refused(sampled, evidence.refused)
    proposal = Proposal(draft)
    preset = find_preset(sample, layout, source, frame.columns) if evidence.use_preset else None
    if preset is not None:
        _say_preset(draft, *preset)
        proposal.preset = preset[0]
    facts = {name: look_at(frame[name]) for name in frame.columns}
    if column is not None:
        for name in facts.keys() & set(beneath.frame.columns):
            facts[name].numbers_records = look_at(beneath.frame[name]).numbers_rows
    beside = Draft() if proposal.preset else draft  # a preset says itself what its columns are
    reading = say_columns(
        beside, frame, facts, inside=column, sampled=sampled.height, actions=evidence.actions
    )  # fmt: skip
    if reading is not None:
        proposal.first_us, proposal.last_us = reading.first_us, reading.last_us
    if proposal.preset:
        _say_beside_preset(draft, proposal.preset, facts, evidence.actions, layout)
    return proposal


def _layout(sample: Sample, evidence: Evidence, draft: Draft) -> tuple[Layout, dict[str, Any]]:
    """The layout, and `[source]` without a path; both are written into the draft."""
    name = sample.file.path.name
    by_name = compression_of(name, None)
    if sample.packed != by_name:
        draft.say("source", "compression", sample.packed, f"by its first bytes; the name says {by_name}")
    kind = binary_format(sample.head)
    if kind is not None:
        layout, encoding = Layout(kind, found="by its first bytes"), None
    else:
        encoding = sniff_encoding(sample.head, sample.places)
        text = sample.head.decode(encoding.name, "replace")
        found = sniff_layout(text, whole=sample.whole)
        if found is None:
            raise PipelineError(f"{sample.file.name}: {why_no_layout(text)}")
        layout = found
        if encoding.name != "utf-8" and layout.format in ("csv", "fixed_width", "regex"):
            layout.say("encoding", encoding.name, encoding.reason)
        draft.doubt(encoding.doubt)
    if evidence.plain_quotes and layout.format == "csv" and "quote_char" not in layout.table:
        layout.say("quote_char", "", "read with quotes, more lines could not be cut: they are plain text")
    if FORMATS.get(split_extension(name)[0]) != layout.format:
        draft.say("source", "format", layout.format, "the extension does not tell it")
    draft.remark("source", f"{layout.format}: {layout.found}")
    if encoding is not None:
        ends = "CR LF" if b"\r\n" in sample.head or b"\r\0\n" in sample.head else "LF"
        packed = f", packed with {sample.packed}" if sample.packed != "none" else ""
        draft.remark("source", f"text in {encoding.name}{_mark(sample.head)}, lines end with {ends}{packed}")
    for key, value in layout.table.items():
        draft.say(f"source.{layout.format}", key, value, layout.reasons[key])
    for doubt in layout.doubts:
        draft.doubt(doubt)
    source: dict[str, Any] = {"format": layout.format}
    if layout.table:
        source[layout.format] = dict(layout.table)
    return layout, source


def _mark(head: bytes) -> str:
    return " with a byte order mark" if head.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")) else ""


def _with_hive(frame: pl.DataFrame, hive: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """The rows with the keys of their folders, for the sample in turns, since no row of it tells its folder."""
    rows = frame.height
    return frame.with_columns(
        pl.Series(key, [values[at % len(values)] for at in range(rows)], dtype=pl.String)
        for key, values in hive.items()
        if key not in frame.columns
    )


def _with_refused(frame: pl.DataFrame, refused: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The sample with rows that a pass refused, but for those that are like a header."""
    for rows in refused:
        kept = without_headers(rows)[0].select(name for name in rows.columns if name in frame.columns)
        frame = pl.concat([frame, kept], how="diagonal_relaxed")
    return frame


def _say_preset(draft: Draft, name: str, reason: str) -> None:
    """Leaves in the draft only what the preset does not say."""
    declared = with_preset({"preset": name})
    for table in [table for table in draft.tables if table.startswith("source.")]:
        beneath = declared["source"].get(table.partition(".")[2], {})
        kept = {
            key: value
            for key, value in draft.tables[table].items()
            if key not in ("columns", "has_header", "quote_char") and beneath.get(key) != value
        }
        draft.tables[table] = kept
    draft.tables = {table: keys for table, keys in draft.tables.items() if keys}
    draft.tables.get("source", {}).pop("format", None)
    draft.doubts = [doubt for doubt in draft.doubts if doubt.startswith("encoding")]
    draft.say("", "preset", name, f"recognised by {reason}")
    said = []
    for column, keys in declared["columns"].items():
        origin = keys.get("from") or keys.get("sql") or repr(keys.get("value"))
        said.append(f"{column} = {origin}")
    draft.remark("columns", f"from the preset, as pipeline/config/presets/{name}.toml says: {', '.join(said)}")


def _say_beside_preset(
    draft: Draft, preset: str, facts: Mapping[str, Facts], actions: Sequence[str], layout: Layout
) -> None:
    """What this copy of a well-known log has, and the preset does not say: actions, and spellings of "missing"."""
    declared = with_preset({"preset": preset})
    names = declared["actions"]["names"]
    more = [name for name in actions if name not in names]
    if more:
        draft.say("actions", "names", [*names, *more], f"the preset lacks {', '.join(more)[:80]}")
    for role in ("user_id", "item_id"):
        column, given = declared["columns"][role], declared["source"].get("csv", {}).get("columns", [])
        name = column.get("from", "")
        if layout.invented and name in given:
            name = layout.names[given.index(name)]
        fact = facts.get(name)
        if fact is None:
            continue
        found, why, _ = id_settings(fact)
        says = {"type": "string"} if (found["type"], column["type"]) == ("string", "int64") else {}
        if found.get("null_values") and "null_values" not in column:
            says["null_values"] = found["null_values"]
        if says:
            draft.say("columns", role, says, f"beside the preset; {why}")

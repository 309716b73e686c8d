"""Whether a log is one of the well-known layouts of `pipeline/config/presets`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from pipeline.config import PRESETS, Dataset
from pipeline.config.presets import with_preset
from pipeline.contracts import PipelineError
from pipeline.events.convert import ACCEPTED, RANK, convert_block
from pipeline.events.origin import check_origins
from pipeline.events.times.unit_doctor import UnitDoctor
from pipeline.inspection.cells import read_cells
from pipeline.inspection.layout import Layout
from pipeline.inspection.sample import Sample
from pipeline.inspection.words import plain
from pipeline.sources import RawBlock

# Without a header, columns of numbers look alike in many logs: the name of the file has to say it as well.
FILE_NAMES = {
    "gowalla": r"loc-gowalla.*|gowalla.*",
    "lastfm_1k": r"userid-timestamp-artid-.*",
    "mind": r"behaviors\..*",
    "movielens_100k": r"u\.data|u[1-5ab]\.(base|test)",
    "movielens_dat": r"ratings\.dat",
    "taobao": r"userbehavior\..*",
    "yoochoose": r"yoochoose-(clicks|test).*",
}
MOST = 0.95  # of the sample's rows, but for missing ids, have to be accepted


def find_preset(
    sample: Sample, layout: Layout, source: Mapping[str, Any], columns: Sequence[str]
) -> tuple[str, str] | None:
    """The preset that reads a log, and what says so.

    Args:
        sample: The sample.
        layout: How its text is cut; of binary formats the format alone.
        source: `[source]` as it was found.
        columns: The raw columns, elements of lists included.
    """
    for name in PRESETS:
        declared = with_preset({"preset": name})
        reason = _shaped_alike(name, declared, sample, layout, columns)
        if reason is not None and _reads(declared, sample, source):
            return name, reason
    return None


def _shaped_alike(
    name: str, declared: Mapping[str, Any], sample: Sample, layout: Layout, columns: Sequence[str]
) -> str | None:
    source = declared.get("source", {})
    if source.get("format") != layout.format or (layout.format != "csv" and name in FILE_NAMES):
        return None
    csv, file = source.get("csv", {}), sample.file.path.name.lower()
    if layout.format == "csv":
        found = layout.table
        alike = all(
            csv.get(key, default) == found.get(key, default)
            for key, default in (("separator", ","), ("typed_header", False))
        )
        if not alike or csv.get("has_header", True) == layout.invented:
            return None
        given = csv.get("columns")
        if given is not None and layout.invented:
            hinted = re.fullmatch(rf"(?:{FILE_NAMES.get(name, '(?!)')})(?:\.(?:gz|bz2|zst|xz))?", file)
            return (
                f"the name of the file, and {len(given)} columns"
                if hinted and len(given) == len(layout.names)
                else None
            )
        if given is not None:
            same = [plain(text) for text in given] == [plain(text) for text in layout.names]
            return f"its header: {', '.join(layout.names)[:80]}" if same else None
    elif source.get("explode", {}).get("column") is None and any(name.startswith("events.") for name in columns):
        return None
    wanted = list(_raw_names(declared))
    shown = ", ".join(wanted[:5]) + (", ..." if len(wanted) > 5 else "")
    return f"its columns {shown}" if wanted and set(wanted) <= set(columns) else None


def _raw_names(declared: Mapping[str, Any]) -> Iterator[str]:
    for column in (*declared["columns"].values(), *declared.get("extra", {}).values()):
        yield from (column[key] for key in ("from", "time_from") if key in column)
        if "sql" in column:
            yield from pl.sql_expr(column["sql"]).meta.root_names()


def _reads(declared: Mapping[str, Any], sample: Sample, source: Mapping[str, Any]) -> bool:
    """Whether a preset accepts the rows of a sample, but for actions that it does not know."""
    settings = dict(declared["source"])
    for key in ("encoding", "comment"):
        if key in source.get("csv", {}):
            settings["csv"] = {**settings.get("csv", {}), key: source["csv"][key]}
    names = settings.get("csv", {}).get("columns") or ()
    try:
        cells = read_cells(sample, settings, names)
        dataset = Dataset.model_validate(
            {
                **{key: value for key, value in declared.items() if key != "preset"},
                "name": "sample",
                "partitions": {"start": "2000-01-01"},
                "source": {**settings, "path": "-"},
                "store": {"root": "-"},
            }
        )
        rows = cells.frame.height
        nothing = pl.repeat(False, rows, dtype=pl.Boolean, eager=True)
        block = RawBlock(cells.frame, pl.repeat(None, rows, dtype=pl.Int64, eager=True), nothing, lambda _: [])
        check_origins(block.sql_frame.schema, dataset, file="sample")
        doctor = UnitDoctor(dataset.columns.timestamp, "sample", "")
        rank = convert_block(block, dataset, doctor).rank
        doctor.judge()
    except PipelineError:
        return False
    tolerated = (ACCEPTED, RANK["missing_user_id"], RANK["missing_item_id"], RANK["unknown_action"])
    return rows > 0 and sum(int((rank == value).sum()) for value in tolerated) >= MOST * rows

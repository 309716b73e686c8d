"""What the UI shows of a day of an asset."""

import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from pipeline.contracts import PipelineError

if TYPE_CHECKING:
    import polars as pl

    from pipeline.stages import Outcome, Work
    from pipeline.store import Manifest

PREVIEW_ROWS = 5
CELL_CHARACTERS = 80
GIB = 2**30


def day_metadata(table: str, outcome: "Outcome", work: "Work") -> dict[str, Any]:
    """The metadata of one materialised day.

    Args:
        table: Name of the asset; `rejected_events` is the companion of an outcome of `events`.
        outcome: What became of the day.
        work: What the run works with.
    """
    manifest = outcome.companion if table == "rejected_events" else outcome.manifest
    assert manifest is not None
    path = work.store.directory(table, manifest.day) / "_manifest.json"
    metadata: dict[str, Any] = {
        "status": "reused" if outcome.reused else "made",
        "dagster/row_count": manifest.rows,
        "dagster/partition_row_count": manifest.rows,
        "dagster/column_schema": column_schema(manifest),
        "dagster/uri": path.parent.as_uri(),
        **_figures(table, manifest, work),
    }
    if not outcome.reused:
        metadata |= _effort(outcome, manifest)
    return metadata | {
        "preview": dg.MetadataValue.md(_preview(table, manifest, work)),
        "manifest": dg.MetadataValue.path(str(path)),
    }


def column_schema(manifest: "Manifest") -> dg.TableSchema:
    """The columns of a day with what they mean."""
    columns = [
        dg.TableColumn(
            column["name"],
            column["type"],
            description=column["meaning"] + (f" [{column['unit']}]" if column["unit"] else ""),
        )
        for column in manifest.columns
    ]
    return dg.TableSchema(columns=columns)


def _figures(table: str, manifest: "Manifest", work: "Work") -> dict[str, Any]:
    counts = manifest.counts
    if table == "events":
        notes = ("other_day", "outside_partitions", "ties", "duplicates")
        return {
            "rows_in": counts["in"],
            "rows_out": manifest.rows,
            "rows_refused": sum(counts["rejected"].values()),
            "refused_by_reason": dg.MetadataValue.json(dict(counts["rejected"])),
            "events_by_action": dg.MetadataValue.json(dict(counts["by_action"])),
            **{name: counts[name] for name in notes if name in counts},
        }
    if table == "rejected_events":
        return {
            "rows_in": counts["in"],
            "rows_out": manifest.rows,
            "refused_by_reason": dg.MetadataValue.json(dict(counts["by_reason"])),
        }
    events = work.store.manifest("events", manifest.day)
    rows = {"rows_in": None if events is None else events.rows, "rows_out": manifest.rows}
    if table in ("user_vocabulary", "item_vocabulary"):
        known = "users" if table == "user_vocabulary" else "items"
        return {**rows, known: counts["ids"], "new_ids": counts["new_ids"], "size": manifest.size}
    if table == "user_state":
        return {**rows, **{name: counts[name] for name in ("users", "new_users", "closing_rows")}}
    items = work.store.manifest("item_vocabulary", manifest.day)
    return {
        **rows,
        "users": counts["users"],
        "items": None if items is None else items.rows,
        "chunks": counts["chunks"],
    }


def _effort(outcome: "Outcome", manifest: "Manifest") -> dict[str, Any]:
    """What making the day took."""
    rows = outcome.manifest.counts.get("in", manifest.rows)
    return {
        "seconds_to_make": round(outcome.make_s, 3),
        "seconds_to_prove": round(outcome.prove_s, 3),
        "events_per_second": round(rows / max(outcome.make_s, 1e-9)),
        "peak_memory_gib": round(peak_memory() / GIB, 3),
        "device": str(outcome.facts.get("device", "cpu")),
    }


def peak_memory() -> int:
    """The most memory that this process has had at once so far, in bytes."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError, ValueError):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _preview(table: str, manifest: "Manifest", work: "Work") -> str:
    """The first rows of the day as a Markdown table."""
    try:
        frame = first_rows(table, manifest, work)
    except (OSError, PipelineError) as error:
        return f"no preview: {error}"
    if not frame.height:
        return "no new ids" if manifest.size is not None else "no rows"
    return markdown_table(frame.columns, frame.rows())


def first_rows(table: str, manifest: "Manifest", work: "Work") -> "pl.DataFrame":
    """The first rows of the day; of a vocabulary the first ids that were new, of the state its `closing`."""
    import polars as pl

    from pipeline.store import manifest_schema, read_files
    from pipeline.vocabularies import segment_paths

    if manifest.size is None:
        role = "closing" if table == "user_state" else None
        directory = work.store.directory(table, manifest.day)
        return read_files(directory, manifest.of_role(role), manifest_schema(manifest)).head(PREVIEW_ROWS).collect()
    new_ids = manifest.counts["new_ids"]
    if not new_ids:
        return pl.DataFrame()
    log = pl.scan_parquet(segment_paths(work.store, table), glob=False)
    return log.slice(manifest.size - new_ids, min(new_ids, PREVIEW_ROWS)).collect()


def markdown_table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    r"""Rows as a Markdown table.

    >>> print(markdown_table(["id", "raw"], [[1, "a|b"]]))
    | id | raw |
    |---|---|
    | 1 | a\|b |
    """
    lines = [_line(names), "|" + "---|" * len(names), *(_line(row) for row in rows)]
    return "\n".join(lines)


def _line(cells: Sequence[object]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(value: object) -> str:
    text = " ".join(str("" if value is None else value).split()).replace("|", "\\|")
    return text if len(text) <= CELL_CHARACTERS else text[: CELL_CHARACTERS - 1] + "…"


def table_value(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> dg.TableMetadataValue:
    """Rows as a table of the UI.

    Args:
        columns: Name -> type: string, int, float or bool.
        rows: Values by column name; what is missing or of another type is shown as text.
    """
    plain = (str, int, float, bool)
    records = [
        dg.TableRecord(
            {name: row.get(name) if isinstance(row.get(name), plain) else _shown(row.get(name)) for name in columns}
        )
        for row in rows
    ]
    schema = dg.TableSchema(columns=[dg.TableColumn(name, dtype) for name, dtype in columns.items()])
    return dg.MetadataValue.table(records=records, schema=schema)


def _shown(value: object) -> str:
    return "" if value is None else str(value)

"""What the UI shows of a day of an asset."""

from typing import TYPE_CHECKING, Any

import dagster as dg

from pipeline.contracts import PipelineError
from pipeline.memory import peak_bytes
from pipeline.reports.pages import charts, refused_examples, table_value, verdict

if TYPE_CHECKING:
    import polars as pl

    from pipeline.stages import Outcome, Work
    from pipeline.store import Manifest

PREVIEW_ROWS = 5
GIB = 2**30


def day_metadata(table: str, outcome: "Outcome", work: "Work") -> dict[str, Any]:
    """The metadata of one materialised day; the UI shows it in this order, and draws the numbers over the days.

    Args:
        table: Name of the asset; `rejected_events` is the companion of an outcome of `events`.
        outcome: What became of the day.
        work: What the run works with.
    """
    manifest = outcome.companion if table == "rejected_events" else outcome.manifest
    assert manifest is not None
    path = work.store.directory(table, manifest.day) / "_manifest.json"
    right = verdict(table, manifest, work.store)
    proofs = right.pop("proofs")
    figures = _figures(table, manifest, work)
    metadata: dict[str, Any] = {
        "status": "reused" if outcome.reused else "made",
        **right,
        **charts(table, manifest),
        **figures,
    }
    if table in ("events", "rejected_events"):
        metadata["refused_rows"] = refused_examples(manifest, work.store)
    if not outcome.reused:
        metadata |= _effort(outcome, figures["rows_in"] or 0)
    return metadata | {
        "preview": _preview(table, manifest, work),
        "proofs": proofs,
        "manifest": dg.MetadataValue.path(str(path)),
        "dagster/row_count": manifest.rows,
        "dagster/column_schema": column_schema(manifest),
        "dagster/uri": path.parent.as_uri(),
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
        refused = sum(counts["rejected"].values())
        return {
            "rows_in": counts["in"],
            "rows_out": manifest.rows,
            "rows_refused": refused,
            "refused_percent": round(100 * refused / max(1, counts["in"]), 3),
            "refused_by_reason": dg.MetadataValue.json(dict(counts["rejected"])),
            "ties": counts["ties"],
            "duplicates": counts["duplicates"],
            # a line of zeros is not worth a plot
            **{name: counts[name] for name in ("other_day", "outside_partitions") if counts.get(name)},
        }
    if table == "rejected_events":
        return {"rows_in": counts["in"], "rows_out": manifest.rows}
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


def _effort(outcome: "Outcome", rows_in: int) -> dict[str, Any]:
    """What making the day took."""
    return {
        "seconds_to_make": round(outcome.make_s, 3),
        "seconds_to_prove": round(outcome.prove_s, 3),
        "events_per_second": round(rows_in / max(outcome.make_s, 1e-9)),
        "peak_memory_gib": round(peak_bytes() / GIB, 3),
        **_expected(outcome),
        "device": str(outcome.facts.get("device", "cpu")),
    }


def _expected(outcome: "Outcome") -> dict[str, float]:
    """The peak that was planned, where a stage plans."""
    expected = outcome.facts.get("expected_peak_bytes")
    return {} if expected is None else {"expected_peak_gib": round(expected / GIB, 3)}


def _preview(table: str, manifest: "Manifest", work: "Work") -> dg.TableMetadataValue | str:
    """The first rows of the day."""
    try:
        frame = first_rows(table, manifest, work)
    except (OSError, PipelineError) as error:
        return f"no preview: {error}"
    if not frame.height:
        return "no new ids" if manifest.size is not None else "no rows"
    return table_value(frame.to_dicts(), frame.columns)


def first_rows(table: str, manifest: "Manifest", work: "Work") -> "pl.DataFrame":
    """The first rows of the day; of a vocabulary the first ids that were new, of the state the users of its newest file."""
    import polars as pl

    from pipeline.store import manifest_schema, read_files
    from pipeline.vocabularies import segment_paths

    if manifest.size is None:
        files = manifest.of_role("closing")[-1:] if table == "user_state" else manifest.of_role(None)
        directory = work.store.directory(table, manifest.day)
        return read_files(directory, files, manifest_schema(manifest)).head(PREVIEW_ROWS).collect()
    new_ids = manifest.counts["new_ids"]
    if not new_ids:
        return pl.DataFrame()
    log = pl.scan_parquet(segment_paths(work.store, table), glob=False)
    return log.slice(manifest.size - new_ids, min(new_ids, PREVIEW_ROWS)).collect()

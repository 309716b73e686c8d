"""The page of a day: is it right, what does it look like, what was refused and why."""

import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from pipeline.contracts import PipelineError
from pipeline.reports.plots import bar_chart
from pipeline.reports.proofs import coverage, coverage_line, of_manifest

if TYPE_CHECKING:
    from pipeline.store import Manifest, Store

PROVEN = ("events", "user_vocabulary", "item_vocabulary", "user_state", "features")
EXAMPLES = 2  # of each reason
CELL_CHARACTERS = 120
LINE_CHARACTERS = 72


def verdict(table: str, manifest: "Manifest", store: "Store") -> dict[str, Any]:
    """Whether a day is right, from what the manifests record: no data file is read.

    Args:
        table: Name of the asset.
        manifest: Its published day.
        store: Where it lies.

    Returns:
        Metadata: a sentence, for `features` also a line for each asset that they are made of, and the proofs one by one.
    """
    shown = _proven(table, manifest, store)
    proof = of_manifest(shown, status="published")
    when = datetime.fromisoformat(shown.proof["time"])
    text = (
        f"They looked at what was read back from disk, before it was published ({when:%Y-%m-%d %H:%M} UTC, "
        f"{shown.proof['seconds']} s). {coverage(proof.figures)}"
    )
    broken = "  \n".join(textwrap.wrap(text, LINE_CHARACTERS))  # the widest table below would stretch a line of its own
    answer = f"**Yes: all {proof.proofs} proofs passed.**  \n{broken}"
    lines = [{name: row[name] for name in ("proof", "expected", "found")} for row in proof.findings]
    report: dict[str, Any] = {"is_it_right": dg.MetadataValue.md(answer)}
    if table == "features":
        report["is_the_whole_day_right"] = table_value(_whole_day(manifest, store))
    return report | {"proofs": table_value(lines)}


def _proven(table: str, manifest: "Manifest", store: "Store") -> "Manifest":
    """Whose proof it was: refused rows are proven together with `events`."""
    events = store.manifest("events", manifest.day) if table == "rejected_events" else None
    return events or manifest


def _whole_day(features: "Manifest", store: "Store") -> list[dict[str, Any]]:
    """A line for each asset that the features of a day are made of."""
    lines = []
    for asset in PROVEN:
        manifest = features if asset == "features" else store.manifest(asset, features.day)
        if manifest is not None:
            proof = of_manifest(manifest, status="published")
            passed = f"{proof.proofs_passed} of {proof.proofs}"
            lines.append({"asset": asset, "proofs_passed": passed, **coverage_line(proof.figures)})
    return lines


def charts(table: str, manifest: "Manifest") -> dict[str, Any]:
    """What the day's rows look like.

    Args:
        table: Name of the asset.
        manifest: Its published day.
    """
    counts, figures = manifest.counts, manifest.proof["figures"]
    drawn: dict[str, Mapping[str, int]] = {}
    if table == "events":
        hours = figures.get("events_by_hour", ())
        drawn = {
            "plot_events_by_hour_utc": {f"{hour:02}": count for hour, count in enumerate(hours)},
            "plot_events_by_action": counts["by_action"],
            "plot_refused_by_reason": _largest_first(counts["rejected"]),
        }
    elif table == "rejected_events":
        drawn = {"plot_refused_by_reason": _largest_first(counts["by_reason"])}
    elif table == "features":
        drawn = {"plot_time_diff": figures.get("time_diff", {})}
    return {name: dg.MetadataValue.md(bar_chart(bars)) for name, bars in drawn.items() if any(bars.values())}


def refused_examples(day: "Manifest", store: "Store") -> dg.TableMetadataValue | str:
    """The refused rows by reason, the first of each with its raw text.

    Args:
        day: A day of `events` or `rejected_events`.
        store: Where it lies.
    """
    import polars as pl

    from pipeline.store import manifest_schema, read_files

    refused = store.manifest("rejected_events", day.day)
    if refused is None or not refused.rows:
        return "none"
    lines = []
    try:
        rows = read_files(store.directory("rejected_events", refused.day), refused.files, manifest_schema(refused))
        for reason, count in _largest_first(refused.counts["by_reason"]).items():
            found = rows.filter(pl.col("reason") == reason).head(EXAMPLES).collect()
            lines += [
                {"reason": reason, "rows": count, **{name: row[name] for name in ("column", "file", "line", "raw")}}
                for row in found.iter_rows(named=True)
            ]
    except (OSError, PipelineError, pl.exceptions.PolarsError) as error:
        return f"no examples: {error}"
    return table_value(lines)


def _largest_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))


def table_value(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None, *, longest: int = CELL_CHARACTERS
) -> dg.TableMetadataValue:
    """Rows as a table of the UI, which shows a cell as it is: what stands in a log neither formats nor fetches.

    Args:
        rows: Values by column name.
        columns: Names and order; by default those of all rows. A column without any value is left out.
        longest: Characters of a cell; what is cut ends in three dots.
    """
    names = columns or list(dict.fromkeys(name for row in rows for name in row))
    used = [name for name in names if any(row.get(name) not in (None, "") for row in rows)]
    records = [dg.TableRecord({name: _cell(row.get(name), longest) for name in used}) for row in rows]
    types = {name: _type([row[name] for row in rows if row.get(name) is not None]) for name in used}
    # Not in a comprehension: Dagster looks at the variables of who makes its records, which kills Python 3.13.0 there.
    schema = dg.TableSchema(columns=list(map(dg.TableColumn, types, types.values())))
    return dg.MetadataValue.table(records=records, schema=schema)


def _type(values: Sequence[object]) -> str:
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float")):
        if all(isinstance(value, kind) for value in values):
            return name
    return "string"


def _cell(value: object, longest: int) -> str | int | float | bool:
    if isinstance(value, int | float):
        return value
    if isinstance(value, datetime):
        value = value.replace(tzinfo=None)
    text = "" if value is None else " ".join(str(value).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"

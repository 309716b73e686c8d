"""`python -m pipeline_tests.bench.ingestion`: a day from CSV to `events`, beside polars that only converts it."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from pipeline_tests.bench import machine, report
from pipeline_tests.bench.logs import write_logs
from pipeline_tests.bench.measure import ROOT, Command, interleaved, medians

PACKAGE = "pipeline_tests.bench"
MODULES = (f"{PACKAGE}.competitors.polars_csv", f"{PACKAGE}.ours_events", f"{PACKAGE}.inspect_csv")
PAGE = """# From CSV to events

Written by `make bench`; do not edit.

One generated day of {events:,} events as one CSV file of {size:.2f} GB: user_id, item_id, timestamp (ms), action.

- polars_csv: `scan_csv(...).sink_parquet(...)` of the four columns with declared types, packed with lz4 as our `events` are. It validates,
  counts and sorts nothing.
- ours_events: the stage `events`: every record cut and counted, every cell typed or refused with a reason, days assigned, rows
  sorted by user and time, written and hashed; and then the independent count of the proof.
- inspect_csv: the command `inspect` as a user runs it, imports included: the verdict (`--quick`), and with everything counted.

Medians of {runs} runs, each in a process of its own, interleaved.

{table}
{notes}
`events` took {made:.2f} times as long as polars_csv, with the independent count {whole:.2f} times, and {memory:.2f} times its memory.
The verdict of `inspect` took {verdict:.2f} of the time of polars_csv.

## Measured on

{machine}
- command: `python -m {package}.ingestion --events {events} --runs {runs}`
- date: {date} (UTC)
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark; see `--help`."""
    parser = argparse.ArgumentParser(prog=f"python -m {PACKAGE}.ingestion", description="Measures the way in from CSV.")
    parser.add_argument("--events", type=int, default=50_000_000, help="rows of the generated day")
    parser.add_argument("--runs", type=int, default=3, help="rounds; every figure is a median over them")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks-csv.md", help="the page to write")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        text = _measured(Path(folder), events=options.events, runs=options.runs)
    options.out.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{text}\nwritten to {options.out}\n")


def _measured(folder: Path, *, events: int, runs: int) -> str:
    raw = folder / "raw.csv"
    write_logs(folder / "raw.parquet", events=events)
    pl.scan_parquet(folder / "raw.parquet").sink_csv(raw)
    (folder / "raw.parquet").unlink()
    commands = []
    for module in MODULES:
        name = module.rpartition(".")[2]
        commands.append(Command(name, (sys.executable, "-m", module, str(raw), str(folder / name)), folder / name))
    lines = interleaved(commands, runs=runs)
    middle = {name: medians(own) for name, own in lines.items()}
    polars, ours, verdict = (middle[name] for name in ("polars_csv", "ours_events", "inspect_csv"))
    times = report.ratios(lines, reference="polars_csv")
    return PAGE.format(
        events=events,
        size=raw.stat().st_size / 1e9,
        runs=runs,
        table=report.table(lines, reference="polars_csv"),
        notes=report.notes(lines),
        made=ours["stages"]["events"] / polars["wall_s"],
        whole=times["ours_events"],
        memory=ours["peak_bytes"] / polars["peak_bytes"],
        verdict=verdict["stages"]["the verdict"] / polars["wall_s"],
        machine="\n".join(f"- {name}: {value}" for name, value in machine.described().items()),
        package=PACKAGE,
        date=datetime.now(UTC).date(),
    )


if __name__ == "__main__":
    main()

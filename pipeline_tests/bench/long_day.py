"""A day of very many events against a short one: time per event and peak memory, with all proofs and without."""

import sys
from collections.abc import Callable
from pathlib import Path

from pipeline_tests.bench import report
from pipeline_tests.bench.figures import figures_of_long_day
from pipeline_tests.bench.logs import write_logs
from pipeline_tests.bench.measure import Command, interleaved

WORKS = {"the whole graph with all proofs": "ours", "the whole graph without proofs": "ours_unproven"}
TEXT = "{long:,} events in a day against {short:,}, both with as many users. Medians of {runs} runs."


def measured(folder: Path, *, events: int, short_events: int, runs: int, say: Callable[[str], None]) -> str:
    """The section of the page.

    Args:
        folder: For logs and stores.
        events: Rows of the long day.
        short_events: Rows of the short day.
        runs: Rounds.
        say: Gets lines of progress.
    """
    commands, pairs = [], {}
    for size in (events, short_events):
        say(f"generating {size:,} events")
        (folder / str(size)).mkdir(parents=True)
        write_logs(folder / str(size) / "raw.parquet", events=size)
    for what, module in WORKS.items():
        pairs[what] = (f"{what}, {events:,}", f"{what}, {short_events:,}")
        for name, size in zip(pairs[what], (events, short_events), strict=True):
            raw, out = folder / str(size) / "raw.parquet", folder / str(size) / module
            argv = (sys.executable, "-m", f"pipeline_tests.bench.{module}", str(raw), str(out))
            commands.append(Command(name, argv, out))
    lines = interleaved(commands, runs=runs)
    text = TEXT.format(long=events, short=short_events, runs=runs)
    reference = pairs["the whole graph without proofs"][1]
    return report.section(
        f"{events:,} events in a day", text, figures_of_long_day(lines, pairs=pairs), lines, reference
    )

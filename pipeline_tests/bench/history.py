"""A day after a long history of many users, against the same day after an empty one: the whole graph, with all proofs.

The history is made by the stages themselves, proofs included; every measured run gets its own copy of that store.
"""

import sys
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from pipeline.contracts import PipelineError
from pipeline.stages import CHAIN, run_days
from pipeline_tests.bench import report
from pipeline_tests.bench.dataset import write_dataset
from pipeline_tests.bench.figures import figures_of_history
from pipeline_tests.bench.logs import ACTIONS, DAY, MIDNIGHT_MS, SECONDS_A_DAY, write_logs
from pipeline_tests.bench.measure import Command, interleaved
from pipeline_tests.bench.ours import open_work

MODULE = "pipeline_tests.bench.history_day"
SMALL_DAY = 2_000
ON_FIRST_DAY = 0.9
RETURNING = 0.8
TEXT = """{events:,} events on a day after {days:,} earlier ones, which left {users:,} users behind (nine in ten came on the first day, the rest with
{small:,} events a day), against the same events after one empty day. {returning:.0%} of the day's users had been there before.
Medians of {runs} runs. The history took {seconds:,.0f} s to make and prove; a small day {a_day:.2f} s."""


def measured(folder: Path, *, events: int, days: int, users: int, runs: int, say: Callable[[str], None]) -> str:
    """The section of the page.

    Args:
        folder: For logs and stores.
        events: Rows of the day that is measured.
        days: Days before it.
        users: Users that these left behind.
        runs: Rounds.
        say: Gets lines of progress.
    """
    day_log = folder / "raw" / f"{DAY}.parquet"
    day_log.parent.mkdir(parents=True)
    write_logs(day_log, events=events)
    say(f"history: {days:,} days, {users:,} users")
    write_history(day_log, days=days, users=users)
    commands = []
    long, short = f"after {days:,} days", "after an empty day"
    first_day = build(folder / "long", folder / "raw", days=days, last=1)
    took = first_day + build(folder / "long", folder / "raw", days=days, last=days)
    say(f"history: made in {took:,.0f} s")
    build(folder / "short", folder / "raw", days=1, last=1, skip=(DAY - timedelta(days=1),))
    for name, store in ((long, folder / "long"), (short, folder / "short")):
        out = folder / f"{store.name}-day"
        commands.append(Command(name, (sys.executable, "-m", MODULE, str(store), str(out)), out))
    lines = interleaved(commands, runs=runs)
    text = TEXT.format(
        events=events,
        days=days,
        users=users,
        small=SMALL_DAY,
        returning=RETURNING,
        runs=runs,
        seconds=took,
        a_day=(took - first_day) / max(days - 1, 1),
    )
    figures = figures_of_history(lines, long=long, short=short)
    return report.section(f"A day after a history of {days:,} days", text, figures, lines, short)


def write_history(day_log: Path, *, days: int, users: int, seed: int = 1) -> None:
    """Writes a log for each of the `days` days before `DAY`, beside the log of that day.

    Args:
        day_log: The log of `DAY`; most of its users are among those of the history.
        days: How many.
        users: Distinct users of all these days together.
        seed: The same seed gives the same rows.
    """
    rng = np.random.default_rng(seed)
    day_users = pl.scan_parquet(day_log).select(pl.col("user_id").unique().sort()).collect().to_series().to_numpy()
    returning = rng.permutation(day_users)[: min(users, round(RETURNING * len(day_users)))]
    step = max(2, int(day_users[-1] - day_users[0]) // users)  # so that their ids lie among those of the day
    others = np.setdiff1d(day_users[0] + step * np.arange(users) + rng.integers(0, step, users), day_users)
    pool = rng.permutation(np.concatenate([returning, rng.permutation(others)[: users - len(returning)]]))
    items = pl.scan_parquet(day_log).select(pl.col("item_id").unique().sort()).collect().to_series().to_numpy()
    known = users if days == 1 else round(ON_FIRST_DAY * users)
    _write_small_day(rng, day_log, days, pool[:known], items)
    borders = np.linspace(known, users, days).astype(np.int64)
    for ago, start, end in zip(range(days - 1, 0, -1), borders[:-1], borders[1:], strict=True):
        again = pool[rng.integers(0, start, max(SMALL_DAY - (end - start), 0))]
        _write_small_day(rng, day_log, ago, np.concatenate([pool[start:end], again]), items)


def build(folder: Path, raw: Path, *, days: int, last: int, skip: tuple[date, ...] = ()) -> float:
    """Makes the events and the chain of the first `last` of the `days` days before `DAY`; returns the seconds.

    Raises:
        PipelineError: A day could not be made.
    """
    began = time.perf_counter()
    folder.mkdir(exist_ok=True)
    first = DAY - timedelta(days=days)
    write_dataset(folder, raw=raw / "{date}.parquet", start=first, skip=skip)
    work = open_work(folder)
    to_make = [
        day for day in (first + timedelta(days=n) for n in range(last)) if not work.store.manifest("user_state", day)
    ]
    for asset in ("events", *CHAIN):
        for _, outcome in run_days(asset, to_make, work):
            if isinstance(outcome, PipelineError):
                raise outcome
    return time.perf_counter() - began


def _write_small_day(rng: np.random.Generator, day_log: Path, ago: int, users: np.ndarray, items: np.ndarray) -> None:
    rows = len(users)
    day = DAY - timedelta(days=ago)
    second = np.sort(rng.integers(0, SECONDS_A_DAY, rows))
    pl.DataFrame(
        {
            "user_id": rng.permutation(users),
            "item_id": items[rng.integers(0, len(items), rows)],
            "timestamp": MIDNIGHT_MS - 86_400_000 * ago + 1000 * second,
            "action": pl.Series(ACTIONS).gather(rng.integers(0, len(ACTIONS), rows)),
        }
    ).write_parquet(day_log.parent / f"{day}.parquet", compression="zstd")

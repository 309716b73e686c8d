"""Generates one day of raw logs as one Parquet file, in time order, with heavy users and many ties."""

import tempfile
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import polars as pl

DAY = date(2025, 3, 10)
MIDNIGHT_MS = int(datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC).timestamp()) * 1000
ACTIONS = ("view", "favorite", "cart", "purchase")
ACTION_SHARES = (0.87, 0.03, 0.07, 0.03)
USERS = 100_000
ITEMS = 50_000
SECONDS_A_DAY = 86_400
DOUBLE_CLICKS = 0.1
SLICE_ROWS = 10_000_000


def write_logs(
    path: Path, *, events: int, users: int = USERS, items: int = ITEMS, seed: int = 0, slice_rows: int = SLICE_ROWS
) -> None:
    """Writes `events` rows: user_id int64, item_id int64, timestamp int64 (ms, whole seconds, UTC), action string.

    Every user has at least one event where `events` allows it; the others go to users by a log-normal weight, so that
    the heaviest has hundreds of times the median. A tenth of the events happen in the second of the same user's event
    before. Ids are sparse, as a shop's are: nine digits for users, eight for items. Rows are in time order, and in
    random order within a second. Memory is bounded: the day is made in slices of time.

    Args:
        path: The Parquet file to write.
        events: Rows, all of them on `DAY`.
        users: Distinct users.
        items: Items to draw from.
        seed: The same seed gives the same rows.
        slice_rows: About how many rows are made at a time.
    """
    rng = np.random.default_rng(seed)
    rows_a_second = rng.multinomial(events, _shares_of_seconds())
    rows_before = rows_a_second.cumsum() - rows_a_second
    user_ids = _sparse_ids(rng, n=users, first=500_000_000, span=100_000_000)
    item_ids = _sparse_ids(rng, n=items, first=10_000_000, span=80_000_000)
    user_weights, item_weights = rng.lognormal(0, 1.5, users), 1 / np.arange(1, items + 1) ** 0.8
    everybody = rng.permutation(users)[:events]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        slices = np.split(np.arange(SECONDS_A_DAY), np.flatnonzero(np.diff(rows_before // slice_rows)) + 1)
        for number, seconds in enumerate(slices):
            second = np.repeat(seconds, rows_a_second[seconds])
            # Everybody comes once, spread over the day as its events are.
            first, last = rows_before[seconds[0]], rows_before[seconds[0]] + len(second)
            certain = everybody[len(everybody) * first // events : len(everybody) * last // events]
            user = rng.permutation(
                np.concatenate([certain, _draw(rng, weights=user_weights, n=len(second) - len(certain))])
            )
            user, second = _in_time(rng, *_double_clicked(rng, user, second))
            pl.DataFrame(
                {
                    "user_id": user_ids[user],
                    "item_id": item_ids[_draw(rng, weights=item_weights, n=len(second))],
                    "timestamp": MIDNIGHT_MS + 1000 * second,
                    "action": pl.Series(ACTIONS).gather(rng.choice(len(ACTIONS), size=len(second), p=ACTION_SHARES)),
                }
            ).write_parquet(Path(folder) / f"{number:06}.parquet")
        pl.scan_parquet(sorted(Path(folder).iterdir())).sink_parquet(path, compression="zstd")


def _shares_of_seconds() -> np.ndarray:
    """float64 [86400], sums to 1: a third spread over the day, the others around noon and evening."""
    hour = (np.arange(SECONDS_A_DAY) + 0.5) / 3600
    bell = sum(
        share * np.exp(-(((hour - around + wrapped) / 2.5) ** 2) / 2)
        for around, share in ((12.5, 0.4), (20.0, 0.6))
        for wrapped in (-24, 0, 24)
    )
    shares = 1 / 3 / SECONDS_A_DAY + 2 / 3 * bell / bell.sum()
    return shares / shares.sum()


def _double_clicked(rng: np.random.Generator, user: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """User and second, by user and time; a tenth of the events moved to the same user's event before."""
    by_user = np.lexsort((second, user))
    user, second = user[by_user], second[by_user]
    again = np.flatnonzero((user[1:] == user[:-1]) & (rng.random(max(len(user) - 1, 0)) < DOUBLE_CLICKS)) + 1
    second[again] = second[again - 1]
    return user, second


def _in_time(rng: np.random.Generator, user: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    shuffled = rng.permutation(len(second))
    in_time = shuffled[np.argsort(second[shuffled], kind="stable")]
    return user[in_time], second[in_time]


def _draw(rng: np.random.Generator, *, weights: np.ndarray, n: int) -> np.ndarray:
    cumulative = weights.cumsum()
    return np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right").clip(max=len(weights) - 1)


def _sparse_ids(rng: np.random.Generator, *, n: int, first: int, span: int) -> np.ndarray:
    return first + rng.permutation(rng.choice(span, size=n, replace=False, shuffle=False)).astype(np.int64)

"""Generates one day of raw logs as one Parquet file, in time order, with heavy users and many ties."""

from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import polars as pl

DAY = date(2025, 3, 10)
ACTIONS = ("view", "cart", "purchase")
ACTION_SHARES = (0.90, 0.07, 0.03)
USERS = 100_000
ITEMS = 50_000
SECONDS_A_DAY = 86_400
DOUBLE_CLICKS = 0.1


def write_logs(path: Path, *, events: int, users: int = USERS, items: int = ITEMS, seed: int = 0) -> None:
    """Writes `events` rows: user_id int64, item_id int64, timestamp int64 (ms, whole seconds, UTC), action string.

    Every user has at least one event where `events` allows it; the others go to users by a log-normal weight, so that
    the heaviest has hundreds of times the median. A tenth of the events happen in the second of the same user's event
    before. Ids are sparse, as a shop's are: nine digits for users, eight for items. Rows are in time order, and in
    random order within a second.

    Args:
        path: The Parquet file to write.
        events: Rows, all of them on `DAY`.
        users: Distinct users.
        items: Items to draw from.
        seed: The same seed gives the same rows.
    """
    rng = np.random.default_rng(seed)
    everybody = rng.permutation(users)[:events]
    user = np.concatenate([everybody, _draw(rng, weights=rng.lognormal(0, 1.5, users), n=events - len(everybody))])
    item = _draw(rng, weights=1 / np.arange(1, items + 1) ** 0.8, n=events)
    second = _seconds(rng, n=events)

    by_user = np.lexsort((second, user))
    user, second = user[by_user], second[by_user]
    again = np.flatnonzero((user[1:] == user[:-1]) & (rng.random(events - 1) < DOUBLE_CLICKS)) + 1
    second[again] = second[again - 1]

    shuffled = rng.permutation(events)
    in_time = shuffled[np.argsort(second[shuffled], kind="stable")]
    midnight_ms = int(datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC).timestamp()) * 1000
    pl.DataFrame(
        {
            "user_id": _sparse_ids(rng, n=users, first=500_000_000, span=100_000_000)[user[in_time]],
            "item_id": _sparse_ids(rng, n=items, first=10_000_000, span=80_000_000)[item],
            "timestamp": midnight_ms + 1000 * second[in_time],
            "action": pl.Series(ACTIONS).gather(rng.choice(len(ACTIONS), size=events, p=ACTION_SHARES)),
        }
    ).write_parquet(path, compression="zstd")


def _draw(rng: np.random.Generator, *, weights: np.ndarray, n: int) -> np.ndarray:
    cumulative = weights.cumsum()
    return np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right").clip(max=len(weights) - 1)


def _seconds(rng: np.random.Generator, *, n: int) -> np.ndarray:
    """Seconds since midnight, int64 [n]: a third spread over the day, the others around noon and evening."""
    hour = rng.choice([12.5, 20.0], size=n, p=[0.4, 0.6]) + rng.normal(0, 2.5, n)
    spread = rng.random(n) < 1 / 3
    hour[spread] = rng.random(int(spread.sum())) * 24
    return (hour % 24 * 3600).astype(np.int64).clip(max=SECONDS_A_DAY - 1)


def _sparse_ids(rng: np.random.Generator, *, n: int, first: int, span: int) -> np.ndarray:
    return first + rng.permutation(rng.choice(span, size=n, replace=False, shuffle=False)).astype(np.int64)

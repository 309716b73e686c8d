"""What a day looks like, counted while a proof has its rows in hand; a person sees at a glance what no rule forbids."""

from collections.abc import Mapping

import numpy as np

HOURS = 24
HOUR_US = 3_600_000_000
GAP_BORDERS_S = {
    "under 1 s": 1,
    "1 s - 10 s": 10,
    "10 s - 1 min": 60,
    "1 min - 10 min": 600,
    "10 min - 1 h": 3_600,
    "1 h - 1 day": 86_400,
    "1 day - 1 week": 604_800,
}
GAPS = ("first event", "same instant", *GAP_BORDERS_S, "1 week or more")


def count_hours(since_us: np.ndarray) -> np.ndarray:
    """Events in each hour of the day, int64 [24].

    Args:
        since_us: Microseconds since midnight UTC, int64 [rows], within the day.
    """
    return np.bincount(since_us // HOUR_US, minlength=HOURS)


def count_gaps(gap_s: np.ndarray, firsts: int) -> np.ndarray:
    """Events by the time since the same user's previous one, int64 [len(GAPS)].

    Args:
        gap_s: Seconds, float32 [rows], 0 or more.
        firsts: How many of them have no previous event.
    """
    below = [int(np.count_nonzero(gap_s < border)) for border in GAP_BORDERS_S.values()]
    zeros = int(np.count_nonzero(gap_s == 0))
    bins = np.diff([0, zeros, *below, len(gap_s)])
    return np.array([firsts, zeros - firsts, *bins[1:]], dtype=np.int64)


def by_gap(counts: np.ndarray) -> Mapping[str, int]:
    """The counts of `count_gaps` under their names."""
    return dict(zip(GAPS, counts.tolist(), strict=True))

"""Which users are proven one by one: a seeded sample, and those in whom errors like to hide."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

SAMPLE_USERS = 200
SAMPLE_SHARE = 0.001
USERS_A_KIND = 20
EVENTS_OF_HEAVIEST = 200_000  # so that a day of giants does not take the loop an hour; the heaviest is always proven


@dataclass(frozen=True, slots=True)
class Sample:
    """The users to prove.

    Attributes:
        users: user_id [S], ascending.
        population: Users of the day.
        random: How many were drawn at random.
        kinds: Kind of user -> how many of it were added on purpose.
    """

    users: pl.Series
    population: int
    random: int
    kinds: Mapping[str, int]

    def figures(self, rows: int) -> dict[str, Any]:
        """What the metadata says about the sample.

        Args:
            rows: Events of the sampled users.
        """
        missed = 0.0 if self.random >= self.population else 1 - 0.05 ** (1 / max(1, self.random))
        return {
            "users": self.population,
            "users_proven": self.users.len(),
            "users_at_random": self.random,
            "rows_proven": rows,
            "kinds": dict(self.kinds),
            "share_missed_at_5_percent": round(missed, 6),
        }


def choose_users(
    counts: pl.DataFrame, *, seed: str, tied: pl.Series, at_borders: pl.Series, seen_before: pl.Series
) -> Sample:
    """Chooses the users of a day to prove.

    Args:
        counts: user_id and events, one row a user of the day, ascending by user_id.
        seed: The partition key: the same day gives the same sample.
        tied: Users with events at the same instant.
        at_borders: First and last users of the chunks.
        seen_before: Users with an opening.
    """
    users = counts["user_id"]
    size = min(users.len(), max(SAMPLE_USERS, math.ceil(SAMPLE_SHARE * users.len())))
    draw = random.Random(seed)
    drawn = users.gather(sorted(draw.sample(range(users.len()), size)))
    first_seen = users.filter(~users.is_in(seen_before.implode()))
    by_weight = counts.top_k(USERS_A_KIND, by=["events", "user_id"]).sort("events", "user_id", descending=[True, False])
    within = int((by_weight["events"].cum_sum() <= EVENTS_OF_HEAVIEST).sum())
    heaviest = by_weight["user_id"].head(max(1, within))
    kinds = {
        "at_chunk_borders": _some(at_borders, draw),
        "heaviest": heaviest,
        "tied": _some(tied, draw),
        "seen_before": _some(users.filter(users.is_in(seen_before.implode())), draw),
        "seen_first": _some(first_seen, draw),
    }
    chosen = pl.concat([drawn, *(kind.cast(users.dtype) for kind in kinds.values())]).unique().sort()
    return Sample(chosen, users.len(), size, {kind: found.len() for kind, found in kinds.items()})


def _some(users: pl.Series, draw: random.Random) -> pl.Series:
    distinct = users.unique().sort()
    if distinct.len() <= USERS_A_KIND:
        return distinct
    return distinct.gather(sorted(draw.sample(range(distinct.len()), USERS_A_KIND)))

"""Which users are proven one by one: a seeded sample, and those in whom errors like to hide."""

import bisect
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

SAMPLE_USERS = 200
SAMPLE_SHARE = 0.001
USERS_A_KIND = 20
KINDS = ("at_chunk_borders", "heaviest", "tied", "seen_before", "seen_first")
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


class Draw:
    """Draws the users of a day while they pass by, so that the day is read once.

    The random users are fixed beforehand, by their places among all users of the day. Of each kind the users with the
    lowest priorities are kept: random ones, or for the heaviest the number of their events.

    Args:
        seed: The partition key: the same day gives the same sample, however its users are cut into calls.
        population: Users of the day.
    """

    def __init__(self, *, seed: str, population: int) -> None:
        self._population = population
        self._size = min(population, max(SAMPLE_USERS, math.ceil(SAMPLE_SHARE * population)))
        self._places = np.array(sorted(random.Random(seed).sample(range(population), self._size)), dtype=np.int64)
        self._priorities = {kind: np.random.default_rng(list(f"{seed} {kind}".encode())) for kind in KINDS}
        self._at_random: list[Any] = []
        self._kept: dict[str, list[tuple[float, Any, int]]] = {kind: [] for kind in KINDS}
        self.passed = 0

    def offer(self, users: pl.Series, events_U: np.ndarray, marks: Mapping[str, np.ndarray]) -> list[int]:
        """Lets the next users pass by.

        Args:
            users: user_id [U], ascending.
            events_U: Their events, int64 [U].
            marks: Kind -> whether a user is of it, bool [U]; every user may be among the heaviest.

        Returns:
            The positions of those who are in the sample for now: a later user may take the place of one of a kind.
        """
        first, behind = np.searchsorted(self._places, [self.passed, self.passed + users.len()])
        taken = {int(place) for place in self._places[first:behind] - self.passed}
        self._at_random += [users[place] for place in sorted(taken)]
        self.passed += users.len()
        for kind, kept in self._kept.items():
            priority_U = -events_U if kind == "heaviest" else self._priorities[kind].random(users.len())
            limit = kept[-1][0] if len(kept) == USERS_A_KIND else math.inf
            better_U = priority_U < limit
            if kind != "heaviest":
                better_U &= marks.get(kind, False)
            places = np.flatnonzero(better_U)
            lowest = np.argsort(priority_U[places], kind="stable")[:USERS_A_KIND]
            for place in places[lowest]:
                entry = (float(priority_U[place]), users[int(place)], int(events_U[place]))
                if len(kept) < USERS_A_KIND or entry[0] < kept[-1][0]:
                    bisect.insort(kept, entry)
                    del kept[USERS_A_KIND:]
                    if entry in self._proven(kind):
                        taken.add(int(place))
        return sorted(taken)

    def chosen(self) -> set[Any]:
        """The users in the sample for now."""
        return {*self._at_random, *(user for kind in KINDS for _, user, _ in self._proven(kind))}

    def sample(self, like: pl.Series) -> Sample:
        """The sample, when all users have passed by.

        Args:
            like: A series of users, for their type.
        """
        kinds = {kind: len(self._proven(kind)) for kind in KINDS}
        return Sample(pl.Series(sorted(self.chosen()), dtype=like.dtype), self._population, self._size, kinds)

    def _proven(self, kind: str) -> list[tuple[float, Any, int]]:
        """Those of a kind that are proven; of the heaviest only so many, and who is beyond the limit stays beyond it."""
        kept = self._kept[kind]
        if kind != "heaviest":
            return kept
        weights = np.cumsum([events for _, _, events in kept])
        return kept[: max(1, int((weights <= EVENTS_OF_HEAVIEST).sum()))]


def choose_users(
    counts: pl.DataFrame, *, seed: str, tied: pl.Series, at_borders: pl.Series, seen_before: pl.Series
) -> Sample:
    """Chooses the users of a day to prove, where all of them are at hand.

    Args:
        counts: user_id and events, one row a user of the day, ascending by user_id.
        seed: The partition key: the same day gives the same sample.
        tied: Users with events at the same instant.
        at_borders: First and last users of the chunks.
        seen_before: Users with an opening.
    """
    users = counts["user_id"]
    draw = Draw(seed=seed, population=users.len())
    seen = users.is_in(seen_before.implode()).to_numpy()
    marks = {
        "at_chunk_borders": users.is_in(at_borders.implode()).to_numpy(),
        "tied": users.is_in(tied.implode()).to_numpy(),
        "seen_before": seen,
        "seen_first": ~seen,
    }
    draw.offer(users, counts["events"].to_numpy(), marks)
    return draw.sample(users)

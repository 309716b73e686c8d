"""Makes the sample: one week of the behaviour log of a made-up shop, one CSV file a day.

    python data/sample/make_sample.py            # writes data/sample/raw/
    python data/sample/make_sample.py FOLDER     # writes FOLDER/

The output is the same, byte for byte, on every machine and Python version: randomness comes from `random()`
alone (the one method whose sequence Python promises to keep), and numbers are made with + - * / only, never with
exp or log.

Of the contract's reasons for refusal one cannot occur here: `malformed_item_id`, since any text is a string id.
`malformed_action` can, because the dataset file makes the action from a number by a CAST.
"""

import argparse
import csv
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from random import Random

HEADER = ["ts", "customer", "sku", "event_code", "price", "search"]
VIEW, CART, PURCHASE = "1", "2", "3"
DAY_MS = 86_400_000
DAYS = [date(2025, 3, 3) + timedelta(days=n) for n in range(7)]
OUTAGE = date(2025, 3, 6)  # the collector was down: a file with a header and nothing else
BUSY = [1.0, 0.9, 1.0, 1.0, 1.1, 1.3, 1.2]  # Monday .. Sunday
HOURS = [3, 2, 1, 1, 1, 2, 5, 9, 12, 14, 15, 17, 20, 18, 15, 14, 15, 18, 22, 27, 30, 25, 15, 7]  # UTC
USERS, ITEMS = 620, 450

# Neighbours that floats merge: float32 from 2**24 on, float64 from 2**53 on; and the largest id there is.
AWKWARD_USERS = [2**53, 2**53 + 1, 2**24, 2**24 + 1, 2**63 - 1]
# Different ids that a careless cast to a number, or to one case, would merge.
AWKWARD_ITEMS = ["71053", "85123A", "85123a", "071053", "0071053", "GIFT-20", "gift-20", "POST"]
SEARCHES = ["mug", "mug, blue", '12" plate', "café au lait bowl", "Größe 42", "lantern", "birthday, 40th"]

# Refused rows, day by day. `duplicate` counts the surplus copies.
DIRTY = {
    date(2025, 3, 3): {
        "malformed_line": 2, "missing_user_id": 3, "malformed_user_id": 1, "missing_item_id": 1,
        "malformed_timestamp": 1, "unknown_action": 2, "malformed_extra": 1, "duplicate": 3,
    },
    date(2025, 3, 4): {
        "malformed_line": 1, "missing_user_id": 2, "missing_timestamp": 1, "implausible_timestamp": 2,
        "outside_day": 2, "missing_action": 1, "malformed_action": 1, "unknown_action": 1,
        "id_out_of_range": 1, "duplicate": 2,
    },
    date(2025, 3, 5): {
        "missing_user_id": 4, "malformed_user_id": 2, "missing_item_id": 2, "outside_day": 1,
        "malformed_action": 2, "malformed_extra": 2, "duplicate": 4,
    },
    date(2025, 3, 7): {
        "malformed_line": 1, "missing_user_id": 1, "malformed_timestamp": 2, "outside_day": 4,
        "unknown_action": 1, "id_out_of_range": 2, "duplicate": 2,
    },
    date(2025, 3, 8): {
        "malformed_line": 2, "missing_user_id": 2, "malformed_user_id": 1, "missing_item_id": 1,
        "missing_timestamp": 1, "malformed_timestamp": 1, "implausible_timestamp": 1, "outside_day": 1,
        "missing_action": 1, "malformed_action": 1, "unknown_action": 1, "id_out_of_range": 1,
        "malformed_extra": 1, "duplicate": 5,
    },
    date(2025, 3, 9): {
        "missing_user_id": 3, "missing_item_id": 1, "missing_timestamp": 2, "implausible_timestamp": 1,
        "missing_action": 2, "unknown_action": 2, "malformed_extra": 1, "duplicate": 2,
    },
}  # fmt: skip

Item = tuple[str, str]
"""Its id and its price."""
Row = list[str]
"""The cells of a record, in the order of the header."""


def midnight_ms(day: date) -> int:
    """The first millisecond of a UTC day, since 1970-01-01."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000


def below(rng: Random, bound: int) -> int:
    """A whole number in 0 .. bound - 1."""
    return int(rng.random() * bound)


def heavy(rng: Random, median: float, most: int) -> int:
    """A whole number with a heavy tail (log-logistic), cut at `most`."""
    u = rng.random()
    return min(int(median * u / (1 - u)), most)


def weighted(rng: Random, cumulative: Sequence[float]) -> int:
    """A position, by cumulative weights."""
    return min(bisect_right(cumulative, rng.random() * cumulative[-1]), len(cumulative) - 1)


def make_users(rng: Random) -> list[int]:
    """User ids, the most active first: old short ids, newer long ones, and a partner's 19-digit ones."""
    ids: dict[int, None] = {}
    while len(ids) < USERS:
        if len(ids) == 2:
            ids.update(dict.fromkeys(AWKWARD_USERS))  # near the top, so that they surely occur
        kind = rng.random()
        if kind < 0.65:
            new = 12_000 + below(rng, 7_000)
        elif kind < 0.88:
            new = 1_000_000_000 + below(rng, 4_000_000_000)
        else:
            new = (1_800_000_000 + below(rng, 90_000_000)) * 2**31 + below(rng, 2**31)
        ids[new] = None
    return list(ids)


def make_items(rng: Random) -> list[Item]:
    """The items, the most popular first."""
    ids = dict.fromkeys(AWKWARD_ITEMS)
    while len(ids) < ITEMS:
        number = str(20_000 + below(rng, 70_000))
        kind = rng.random()
        if kind < 0.25:
            number += "ABCDEFabc"[below(rng, 9)]
        elif kind < 0.32:
            number = "00" + number[:3]
        ids[number] = None
    cents = [85 + heavy(rng, 400, 25_000) for _ in ids]
    return [(item, f"{c // 100}.{c % 100:02d}") for item, c in zip(ids, cents, strict=True)]


def make_session(rng: Random, user: int, ms: int, items: list[Item], popular: list[float]) -> list[Row]:
    """The rows of one visit: views, listings that log several items at one instant, carts, purchases."""
    rows: list[Row] = []
    basket: list[Item] = []

    def log(item: tuple[str, str], code: str, search: str = "") -> None:
        rows.append([str(ms), str(user), item[0], code, item[1], search])

    item = items[weighted(rng, popular)]
    for _ in range(1 + heavy(rng, 3.5, 120)):
        if rng.random() > 0.25:  # else: looks at the same item again
            item = items[weighted(rng, popular)]
        search = SEARCHES[below(rng, len(SEARCHES))] if rng.random() < 0.04 else ""
        kind = rng.random()
        if kind < 0.06:
            shown = dict.fromkeys(items[weighted(rng, popular)] for _ in range(2 + below(rng, 4)))
            for one in shown:
                log(one, VIEW, search)
        elif kind < 0.08:  # "buy now"
            log(item, CART)
            log(item, PURCHASE)
        else:
            log(item, VIEW, search)
            if rng.random() < 0.13 and item not in basket:
                ms += 1 + heavy(rng, 4_000, 60_000)
                log(item, CART)
                basket.append(item)
        # Mostly seconds; bursts of a few ms from pages that load in the background.
        ms += 1 + heavy(rng, 12, 400) if rng.random() < 0.1 else 300 + heavy(rng, 9_000, 1_500_000)
    if basket and rng.random() < 0.45:
        for one in basket:
            log(one, PURCHASE)
    return rows


def make_events(rng: Random) -> list[Row]:
    """All rows without fault. No two are equal in all cells."""
    users, items = make_users(rng), make_items(rng)
    popular = list(accumulate(1 / (rank + 3) for rank in range(ITEMS)))
    hours = list(accumulate(HOURS))
    joined = [0 if rng.random() < 0.6 else below(rng, len(DAYS)) for _ in users]
    rows: dict[tuple[str, ...], None] = {}
    for number, day in enumerate(DAYS):
        for rank, user in enumerate(users):
            if joined[rank] > number or rng.random() > min(0.95, (0.14 + 9 / (rank + 9)) * BUSY[number]):
                continue
            for _ in range(1 + heavy(rng, 0.15 + 8 / (rank + 6), 6)):
                ms = midnight_ms(day) + weighted(rng, hours) * 3_600_000 + below(rng, 3_600_000)
                for row in make_session(rng, user, ms, items, popular):
                    rows[tuple(row)] = None
    # By hand: both edges of a day, and two rows that differ in the price alone, so are no duplicates.
    last, first = midnight_ms(date(2025, 3, 5)) - 1, midnight_ms(date(2025, 3, 5))
    for ms, price in ((last, "2.55"), (first, "2.55"), (first, "2.49")):
        rows[(str(ms), str(users[0]), "85123A", VIEW, price, "")] = None
    return [list(row) for row in rows]


def spoil(row: Row, reason: str, variant: int, day: date) -> Row:
    """A copy of a good row that is refused for `reason`, as broken clients and uploads would spoil it."""
    ms, user, item, _, price, _ = row

    def but(**cells: str) -> Row:
        return [cells.get(name, cell) for name, cell in zip(HEADER, row, strict=True)]

    variants: dict[str, list[Row]] = {
        # A line cut short; a search with a comma that nobody quoted.
        "malformed_line": [[ms, user, item[:3]], [ms, user, item, VIEW, price, "mug", " blue"]],
        # The second, an empty heartbeat, has more than one fault: the first in the list of reasons counts.
        "missing_user_id": [but(customer=""), [""] * len(HEADER)],
        "malformed_user_id": [but(customer=f"guest-{variant}"), but(customer="15311.5")],
        "missing_item_id": [but(sku="")],
        "missing_timestamp": [but(ts="")],
        "malformed_timestamp": [but(ts=f"{day}T10:11:12Z"), but(ts=ms[:8] + "x" + ms[8:])],
        # Seconds where milliseconds are due (1970); a clock that ran over (2106).
        "implausible_timestamp": [but(ts=ms[:-3]), but(ts="4294967295000")],
        # Uploaded a day late, or two.
        "outside_day": [but(ts=str(int(ms) - DAY_MS)), but(ts=str(int(ms) - 2 * DAY_MS))],
        "missing_action": [but(event_code="")],
        "malformed_action": [but(event_code="undefined")],
        "unknown_action": [but(event_code="9"), but(event_code="0")],
        # One more than int64 holds; -1 as an unsigned number.
        "id_out_of_range": [but(customer=str(2**63)), but(customer=str(2**64 - 1))],
        "malformed_extra": [but(price=price.replace(".", ",")), but(price="n/a")],
        "duplicate": [row],
    }
    return variants[reason][variant % len(variants[reason])]


def arrival_ms(rng: Random, ms: int) -> int:
    """When the collector gets an event: soon after, or minutes later from a phone that was offline."""
    return ms + (heavy(rng, 60_000, 1_200_000) if rng.random() < 0.02 else heavy(rng, 40, 2_000))


def make_day(rng: Random, day: date, good: list[Row]) -> list[Row]:
    """The rows of a day's file: the good ones and the day's faults, in the order of arrival."""
    records: list[tuple[int, Row]] = [(arrival_ms(rng, int(row[0])), row) for row in good]
    for reason, count in DIRTY[day].items():
        base = good[below(rng, len(good))]
        for variant in range(count):
            # The first two duplicates of a day are copies of one row: three equal rows, of which one stays.
            if reason != "duplicate" or variant > 1:
                base = good[below(rng, len(good))]
            records.append((arrival_ms(rng, int(base[0]) + 1), spoil(base, reason, variant, day)))
    return [row for _, row in sorted(records, key=lambda record: record[0])]


def write_sample(folder: Path) -> None:
    """Writes one file a day into `folder`, which is created where missing."""
    rng = Random(20250303)
    by_day: dict[date, list[Row]] = {day: [] for day in DAYS}
    for row in make_events(rng):
        day = datetime.fromtimestamp(int(row[0]) // 1000, tz=UTC).date()
        # Visits that run into the outage, or past the end of the week, are cut.
        if day in by_day and day != OUTAGE:
            by_day[day].append(row)
    folder.mkdir(parents=True, exist_ok=True)
    for day, good in by_day.items():
        rows = make_day(rng, day, good) if good else []
        with (folder / f"{day}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([HEADER, *rows])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make the sample log.")
    default = Path(__file__).parent / "raw"
    parser.add_argument("folder", nargs="?", type=Path, default=default, help="where to write")
    write_sample(parser.parse_args().folder)

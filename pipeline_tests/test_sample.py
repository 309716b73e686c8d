"""The shipped sample: reproducible, and holding what it says it holds, as counted by plain Python alone."""

import csv
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from pipeline.config import load_dataset

SAMPLE = Path(__file__).parents[1] / "data" / "sample"
RAW = SAMPLE / "raw"
DAYS = [f"2025-03-0{n}" for n in range(3, 10)]

# day -> rows, accepted rows, users and items among the accepted
COUNTS = {
    "2025-03-03": (2421, 2407, 99, 348),
    "2025-03-04": (2972, 2958, 91, 369),
    "2025-03-05": (2661, 2644, 96, 374),
    "2025-03-06": (0, 0, 0, 0),
    "2025-03-07": (3476, 3463, 114, 398),
    "2025-03-08": (4636, 4616, 148, 404),
    "2025-03-09": (3968, 3954, 144, 402),
}
# reason -> refused rows of each day; malformed_item_id cannot occur, since any text is a string id
REFUSED = {
    "malformed_line": (2, 1, 0, 0, 1, 2, 0),
    "missing_user_id": (3, 2, 4, 0, 1, 2, 3),
    "malformed_user_id": (1, 0, 2, 0, 0, 1, 0),
    "missing_item_id": (1, 0, 2, 0, 0, 1, 1),
    "missing_timestamp": (0, 1, 0, 0, 0, 1, 2),
    "malformed_timestamp": (1, 0, 0, 0, 2, 1, 0),
    "implausible_timestamp": (0, 2, 0, 0, 0, 1, 1),
    "outside_day": (0, 2, 1, 0, 4, 1, 0),
    "missing_action": (0, 1, 0, 0, 0, 1, 2),
    "malformed_action": (0, 1, 2, 0, 0, 1, 0),
    "unknown_action": (2, 1, 0, 0, 1, 1, 2),
    "id_out_of_range": (0, 1, 0, 0, 2, 1, 0),
    "malformed_extra": (1, 0, 2, 0, 0, 1, 1),
    "duplicate": (3, 2, 4, 0, 2, 5, 2),
}


def rows_of(day):
    with (RAW / f"{day}.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["ts", "customer", "sku", "event_code", "price", "search"]
    return rows


def day_of(ts):
    return datetime.fromtimestamp(int(ts) // 1000, tz=UTC).date().isoformat()


def is_price(text):
    whole, _, cents = text.partition(".")
    return whole.isdigit() and len(cents) == 2 and cents.isdigit()


def reason_of(cells, day):
    """The first reason of the contract's list that applies, `duplicate` left aside."""
    if len(cells) != 6:
        return "malformed_line"
    ts, customer, sku, code, price, _ = cells
    tests = {
        "missing_user_id": lambda: customer == "",
        "malformed_user_id": lambda: not customer.isdigit(),
        "missing_item_id": lambda: sku == "",
        "missing_timestamp": lambda: ts == "",
        "malformed_timestamp": lambda: not ts.isdigit(),
        "implausible_timestamp": lambda: not "1990" < day_of(ts) < "2100",
        "outside_day": lambda: day_of(ts) != day,
        "missing_action": lambda: code == "",
        "malformed_action": lambda: not code.isdigit(),
        "unknown_action": lambda: code not in ("1", "2", "3"),
        "id_out_of_range": lambda: int(customer) >= 2**63,
        "malformed_extra": lambda: not is_price(price),
    }
    return next((reason for reason, applies in tests.items() if applies()), None)


def split_rows(day):
    """The accepted rows of a day, in file order, and a count of the refused ones by reason."""
    accepted, refused, seen = [], Counter(), set()
    for cells in rows_of(day):
        reason = reason_of(cells, day) or ("duplicate" if tuple(cells) in seen else None)
        if reason is None:
            accepted.append(cells)
            seen.add(tuple(cells))
        else:
            refused[reason] += 1
    return accepted, refused


@pytest.fixture(scope="module")
def accepted():
    """All accepted rows, day by day in file order."""
    return {day: split_rows(day)[0] for day in DAYS}


def test_script_reproduces_the_files(tmp_path):
    subprocess.run([sys.executable, SAMPLE / "make_sample.py", tmp_path / "new"], check=True)
    made = {file.name: file.read_bytes() for file in (tmp_path / "new").iterdir()}
    assert sorted(made) == [f"{day}.csv" for day in DAYS]
    assert made == {file.name: file.read_bytes() for file in RAW.iterdir()}
    assert sum(map(len, made.values())) < 1_500_000


def test_script_needs_nothing_but_the_standard_library(tmp_path):
    subprocess.run([sys.executable, "-I", "-S", SAMPLE / "make_sample.py", tmp_path], check=True)
    assert len(list(tmp_path.iterdir())) == 7


@pytest.mark.parametrize("day", DAYS)
def test_rows_users_and_items_of_a_day(day, accepted):
    good = accepted[day]
    users, items = {row[1] for row in good}, {row[2] for row in good}
    assert (len(rows_of(day)), len(good), len(users), len(items)) == COUNTS[day]


@pytest.mark.parametrize("day", DAYS)
def test_refused_rows_of_a_day(day):
    refused = split_rows(day)[1]
    at = DAYS.index(day)
    assert refused == {reason: counts[at] for reason, counts in REFUSED.items() if counts[at]}
    # Well below [quality] max_rejected_share, to which duplicates do not count.
    assert refused.total() - refused["duplicate"] <= 0.005 * len(rows_of(day))


def test_totals(accepted):
    good = [row for day in DAYS for row in accepted[day]]
    assert len(good) == 20_042
    assert len({row[1] for row in good}) == 410
    assert len({row[2] for row in good}) == 450
    assert Counter(row[3] for row in good) == {"1": 16_965, "2": 1_969, "3": 1_108}


def test_ids_that_a_careless_cast_would_merge(accepted):
    good = [row for day in DAYS for row in accepted[day]]
    users, items = {int(row[1]) for row in good}, {row[2] for row in good}
    assert {2**24, 2**24 + 1, 2**53, 2**53 + 1, 2**63 - 1} <= users
    assert len({user for user in users if user > 2**53}) == 42
    assert {"71053", "071053", "0071053", "85123A", "85123a", "GIFT-20", "gift-20", "POST"} <= items


def test_ties(accepted):
    at_instant = defaultdict(list)
    for day in DAYS:
        for ts, customer, sku, code, _, _ in accepted[day]:
            at_instant[customer, ts].append((sku, code))
    tied = [events for events in at_instant.values() if len(events) > 1]
    assert sum(map(len, tied)) == 4_473
    assert sum(len({sku for sku, _ in events}) > 1 for events in tied) == 1_026  # several items
    assert sum(len({code for _, code in events}) > 1 for events in tied) == 339  # several actions
    assert sum(len(set(events)) == 1 for events in tied) == 1  # equal but for the price, so no duplicate


def test_users_who_come_back_and_users_of_one_day(accepted):
    days_of = defaultdict(list)
    for at, day in enumerate(DAYS):
        for user in {row[1] for row in accepted[day]}:
            days_of[user].append(at)
    assert Counter(map(len, days_of.values())) == {1: 216, 2: 134, 3: 42, 4: 11, 5: 4, 6: 3}
    across_outage = [days for days in days_of.values() if days[0] < 3 < days[-1]]
    assert len(across_outage) == 118


def test_heavy_tails_rhythm_and_disorder(accepted):
    good = [row for day in DAYS for row in accepted[day]]
    users, items = Counter(row[1] for row in good), Counter(row[2] for row in good)
    assert [count for _, count in users.most_common(3)] == [522, 397, 364]
    assert [count for _, count in items.most_common(3)] == [1262, 994, 680]
    assert sum(count == 1 for count in users.values()) == 31
    hours = Counter(int(row[0]) // 3_600_000 % 24 for row in good)
    assert (hours[3], hours[20]) == (6, 2_347)
    times = [[int(row[0]) for row in accepted[day]] for day in DAYS]
    assert [sum(b < a for a, b in pairwise(t)) for t in times] == [134, 157, 140, 0, 181, 289, 210]
    # Both edges of a day: the first millisecond and the last.
    assert Counter(int(row[0]) % 86_400_000 for row in good).items() >= {0: 2, 86_399_999: 1}.items()


def test_dataset_file_declares_the_raw_columns():
    dataset = load_dataset(SAMPLE / "dataset.toml")
    columns = dataset.columns
    origins = (columns.user_id.from_, columns.item_id.from_, columns.timestamp.from_, dataset.extra["price"].from_)
    assert origins == ("customer", "sku", "ts", "price")
    assert dataset.action_names == ("view", "cart", "purchase")
    assert (dataset.partitions.start.isoformat(), dataset.last_day().isoformat()) == (DAYS[0], DAYS[-1])
    assert dataset.root == SAMPLE.parent.resolve() / "out" / "sample"

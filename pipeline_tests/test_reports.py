"""What the pages of a day and of many days say, without a server."""

from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest

from pipeline.asset_checks import MAX_ROWS, check_result
from pipeline.checks.distributions import by_gap, count_gaps, count_hours
from pipeline.checks.findings import Findings, Proof, show_both
from pipeline.config import Dataset
from pipeline.reports.plots import bar_chart
from pipeline.reports.proofs import DayProof, coverage, of_proof
from pipeline_tests.datasets import make_dataset

FIGURES = {
    "users": 1000, "users_proven": 231, "users_at_random": 200, "rows_proven": 4000, "rows_covered": 20_000,
    "share_missed_at_5_percent": 0.014867,
    "kinds": {"at_chunk_borders": 2, "heaviest": 20, "tied": 0, "seen_before": 20, "seen_first": 20},
}  # fmt: skip


@pytest.fixture
def dataset(tmp_path: Any) -> Dataset:
    return make_dataset(tmp_path)


def days(count: int, *, failing: set[int]) -> list[DayProof]:
    """Days with 14 proofs each, of which the failing ones have one that does not hold."""
    made = []
    for number in range(count):
        findings = Findings()
        wrong = {"user_id": 7, "row_id": 3, "column": "time_diff", "expected": 1.0, "found": 2.0}
        findings.expect_none("values of sampled users = the loop", [wrong] if number in failing else [])
        for other in range(13):
            findings.expect(f"proof {other}", expected=1_000, found=1_000)
        day = date(2025, 1, 1) + timedelta(number)
        made.append(of_proof(Proof("features", day, tuple(findings.found), FIGURES, 0.1), status="made"))
    return made


def rows(result: Any, name: str) -> list[dict[str, Any]]:
    return [dict(record.data) for record in result.metadata[name].records]


def test_a_year_has_a_line_a_day_and_the_failing_days_come_first(dataset: Dataset) -> None:
    result = check_result(dataset, "features", "proof", days(365, failing={200, 300}))
    lines = rows(result, "per_day")
    assert [line["day"] for line in lines[:3]] == ["2025-07-20", "2025-10-28", "2025-01-01"]
    assert len(lines) == 365
    assert lines[0] == {
        "day": "2025-07-20", "right": False, "status": "made", "proofs_passed": "13 of 14", "rows": 20_000,
        "one_by_one": "231 of 1,000 users", "could_be_missed": "1.49 % of users",
    }  # fmt: skip
    said = "values of sampled users = the loop: 1 or more that differ, first user_id 7, row_id 3: time_diff is 2.0, expected 1.0"
    first, second = (f"features of {day}: {said}" for day in ("2025-07-20", "2025-10-28"))
    assert not result.passed
    assert result.description == f"2 of 365 days failed: {first}; {second}"
    assert [line["wrong"] for line in rows(result, "failures")] == [first, second]
    assert [line["day"] for line in rows(result, "first_rows_that_differ")] == ["2025-07-20", "2025-10-28"]


def test_a_table_that_is_cut_says_so(dataset: Dataset) -> None:
    lines = rows(check_result(dataset, "features", "proof", days(365, failing={200})), "per_day_and_proof")
    assert len(lines) == MAX_ROWS + 1
    assert (lines[0]["day"], lines[0]["passed"], lines[1]["passed"]) == ("2025-07-20", False, True)
    assert lines[-1]["day"] == f"... and {365 * 14 - MAX_ROWS:,} more lines; every day's own page has its own"


def test_right_days_read_as_one_sentence(dataset: Dataset) -> None:
    many = check_result(dataset, "features", "proof", days(3, failing=set()))
    assert many.description == "All 3 days, 2025-01-01 to 2025-01-03, are right: all 42 proofs passed (3 made)."
    (one,) = days(1, failing=set())
    said = check_result(dataset, "features", "proof", [one]).description
    assert said == f"2025-01-01 is right: all 14 proofs passed (made). {coverage(FIGURES)}"


def test_the_sample_in_words() -> None:
    assert coverage(FIGURES) == (
        "The plain loop went through 231 of 1,000 users and their 4,000 events: 200 drawn at random, and on purpose 2 at "
        "the borders of chunks, 20 with the most events, 20 seen on earlier days, 20 never seen before. Were 1.49 % of "
        "users or more wrong, it would have been seen with a probability of 95 %. The other proofs looked at all 20,000 rows."
    )
    everybody = {**FIGURES, "users": 98, "users_proven": 98, "users_at_random": 98, "share_missed_at_5_percent": 0.0}
    assert "all 98 users and their 4,000 events: no user could be missed" in coverage(everybody)
    assert coverage({}) == ""


def test_events_are_counted_by_hour_and_by_gap() -> None:
    hour_us = 3_600_000_000
    since_us = np.array([0, hour_us - 1, hour_us, 24 * hour_us - 1])
    assert count_hours(since_us).tolist() == [2, 1, *[0] * 21, 1]
    gap_s = np.array([0, 0, 0.5, 1, 9.5, 10, 59, 60, 600, 3600, 86_399, 86_400, 604_800, 1e9], dtype=np.float32)
    assert by_gap(count_gaps(gap_s, 1)) == {
        "first event": 1, "same instant": 1, "under 1 s": 1, "1 s - 10 s": 2, "10 s - 1 min": 2, "1 min - 10 min": 1,
        "10 min - 1 h": 1, "1 h - 1 day": 2, "1 day - 1 week": 1, "1 week or more": 2,
    }  # fmt: skip
    assert count_gaps(gap_s[:0], 0).sum() == count_hours(since_us[:0]).sum() == 0


def test_a_chart_of_24_hours_is_shown_at_once() -> None:
    chart = bar_chart({f"{hour:02}": 10**11 + hour for hour in range(24)})
    assert len(chart) < 1_000


def test_millions_of_new_ids_do_not_fill_the_manifest() -> None:
    ids = list(range(100_000))
    assert show_both(ids, ids) == ("0, 1, 2, ... (100,000 in all)",) * 2
    assert show_both(ids, [*ids[:500], -1, *ids[501:]]) == ("500 at place 501 of 100,000", "-1 at place 501 of 100,000")
    assert show_both(True, False) == ("yes", "no")
    assert show_both(48_762, 48_761) == ("48,762", "48,761")

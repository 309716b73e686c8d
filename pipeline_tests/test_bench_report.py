"""The page of the benchmark: its arithmetic on literal numbers."""

import math

import pytest

from pipeline_tests.bench import report
from pipeline_tests.bench.figures import (
    FEATURES,
    TWO_STEPS,
    UNPROVEN,
    WHOLE,
    Figure,
    competitors,
    figures_of_day,
    figures_of_history,
    figures_of_long_day,
    works,
)

STAGES = ("events", "user_vocabulary", "item_vocabulary", "user_state", "features")


def _line(wall_s: float, peak_gb: float, **more: object) -> dict:
    return {
        "rows": 1000,
        "import_s": 0.1,
        "wall_s": wall_s,
        "cpu_s": 2 * wall_s,
        "peak_bytes": peak_gb * 10**9,
        **more,
    }


def _by_stage(*seconds: float) -> dict[str, float]:
    return dict(zip(STAGES, seconds, strict=True))


@pytest.fixture
def lines() -> dict[str, list[dict]]:
    """Two rounds, the second on a machine that is half as fast for everybody but `lean`."""
    rounds = (1.0, 2.0)
    return {
        "ours": [
            _line(
                s * 14.0,
                1.25,
                stages=_by_stage(s * 4.0, s * 0.5, s * 0.5, s * 1.0, s * 4.0),
                proofs=_by_stage(s * 2.0, s * 0.0, s * 0.0, s * 0.5, s * 1.5),
                cpu=_by_stage(7.0, 1.0, 1.0, 2.0, 7.0),
                parts={name: {} for name in STAGES} | {"events": {"checksums": s * 0.5, "raw records": s * 1.25}},
            )
            for s in rounds
        ],
        "ours_unproven": [
            _line(
                s * 10.0,
                0.9,
                stages=_by_stage(s * 4.0, s * 0.5, s * 0.5, s * 1.0, s * 4.0),
                cpu=_by_stage(5.0, 1.0, 1.0, 2.0, 6.0),
            )
            for s in rounds
        ],
        "fast": [_line(s * 5.0, 3.0) for s in rounds],
        "lean": [_line(16.0, 1.0) for s in rounds],
        "slice": [_line(s * 0.1, 0.1, scaled_to=10_000, scaled_wall_s=s * 100.0) for s in rounds],
    }


def test_ours_stands_by_what_was_done(lines: dict) -> None:
    found = works(lines)
    assert list(found) == [TWO_STEPS, FEATURES, UNPROVEN, WHOLE, "fast", "lean", "slice"]
    assert [line["wall_s"] for line in found[TWO_STEPS]] == [8.0, 16.0]
    assert [line["wall_s"] for line in found[FEATURES]] == [4.0, 8.0]
    assert [line["wall_s"] for line in found[UNPROVEN]] == [10.0, 20.0]
    assert [line["wall_s"] for line in found[WHOLE]] == [14.0, 28.0]
    assert [line["cpu_s"] for line in found[TWO_STEPS]] == [11.0, 11.0]
    assert found[TWO_STEPS][0]["peak_bytes"] == 0.9e9
    assert competitors(found) == ["fast", "lean"]  # not the slice, which did not compute the day


def test_figures_of_a_small_day(lines: dict) -> None:
    figures = figures_of_day(lines, events=5_000_000)
    assert [figure.row() for figure in figures] == [
        "| events + features, without proofs: time / fast | at most 1.3 (aim 0.9) | 1.60 | **not met** |",
        "| events + features, without proofs: peak memory | at most 1 GB | 0.90 GB | met |",
        "| user_state: time / features | at most 0.25 | 0.25 | met |",
    ]


def test_figures_of_a_large_day(lines: dict) -> None:
    figures = figures_of_day(lines, events=50_000_000)
    assert [figure.row() for figure in figures] == [
        "| events + features, without proofs: time / fast | at most 0.8 (aim 0.5) | 1.60 | **not met** |",
        "| events + features, without proofs: peak memory | at most 1 GB | 0.90 GB | met |",
        # lean is within 1.2 times our peak; 16 / 8 and 16 / 16, the median of the two rounds
        "| competitors of at most 1.2 times that peak: time / ours | at least 1.5 | 1.50 | met |",
        "| the whole graph with all proofs: time / fast | at most 1.8 (aim 1.2) | 2.80 | **not met** |",
        "| the whole graph with all proofs: peak memory | at most 1.2 GB | 1.25 GB | **not met** |",
        "| features alone, from events: time / fast | at most 0.35 | 0.80 | **not met** |",
        "| all proofs: share of the whole graph's time | at most 20 % (aim 10 %) | 28.57 % | **not met** |",
    ]


def test_a_lean_competitor_that_is_too_fast_is_seen_and_a_fat_one_is_not(lines: dict) -> None:
    lines["lean"] = [_line(11.0, 1.08), _line(22.0, 1.08)]
    assert figures_of_day(lines, events=50_000_000)[2].found == pytest.approx(11 / 8)
    lines["lean"] = [_line(11.0, 1.081), _line(22.0, 1.081)]
    figure = figures_of_day(lines, events=50_000_000)[2]
    assert math.isinf(figure.found)
    assert figure.row().endswith("| at least 1.5 | none | met |")


def test_a_limit_is_kept_or_not() -> None:
    assert [Figure("x", found, 1.3).met for found in (1.29, 1.3, 1.31)] == [True, True, False]
    assert [Figure("x", found, 1.5, at_least=True).met for found in (1.49, 1.5, 1.51)] == [False, True, True]


def test_a_day_after_a_history_is_compared_within_rounds() -> None:
    lines = {
        "long": [_line(3.0, 1.0), _line(8.0, 1.0), _line(2.4, 1.0)],
        "short": [_line(s, 1.0) for s in (2.0, 4.0, 2.0)],
    }
    (figure,) = figures_of_history(lines, long="long", short="short")
    assert (figure.found, figure.met) == (1.5, False)


def test_a_long_day_is_compared_by_event() -> None:
    long, short = _line(440.0, 0.9), _line(10.0, 0.72)
    lines = {"long": [{**long, "rows": 200_000_000}], "short": [{**short, "rows": 5_000_000}]}
    figures = figures_of_long_day(lines, pairs={"all": ("long", "short")})
    assert [figure.row() for figure in figures] == [
        "| all: time per event / that of the short day | at most 1.2 | 1.10 | met |",
        "| all: peak memory / that of the short day | at most 1.1 | 1.25 | **not met** |",
    ]


def test_section_of_a_day(lines: dict) -> None:
    text = report.day_section(
        lines, events=50_000_000, compared="Equal.", left_out={"pandas": "it takes more than 600 s"}
    )
    assert "\n## 50,000,000 events in a day\n\nMedians of 2 runs. Equal.\n" in text
    assert "| fast | 7.50 | 5.00 to 10.00 | 1.00 | 15.00 | 3.00 GB | 0.10 |" in text
    assert f"| {TWO_STEPS} | 12.00 | 8.00 to 16.00 | 1.60 | 11.00 | 0.90 GB | 0.10 |" in text
    assert "| slice (scaled) | 150.00 | 100.00 to 200.00 | 20.00 | - | 0.10 GB | 0.10 |" in text
    assert "- slice ran on the first 1,000 rows (0.15 s); the time of its loop is scaled to 10,000 rows.\n" in text
    assert "- pandas is left out: it takes more than 600 s.\n" in text
    assert "| `events` | 6.00 | 3.00 | raw records 1.88, checksums 0.75, all else 0.38 |" in text
    assert "| together | 15.00 | 6.00 | |" in text
    assert "Proofs and publications take 29 % of the time of the whole graph." in text


def test_stages_and_kernels_are_reported() -> None:
    line = _line(2.0, 1.0, stages={"events": 0.5, "features": 1.5}, proofs={"events": 0.25, "features": 0.75})
    assert report.notes({"ours": [line]}) == (
        "\n- ours, to make: events 0.50 s, features 1.50 s.\n- ours, to prove and publish: events 0.25 s, features 0.75 s.\n"
    )
    kernels = {"name": "kernels", "rows": 1000, "kernels": {"core": {"kernel_s": 0.01, "oracle_s": 2.0}}}
    assert "| core | 0.0100 | 2.00 | 200 |" in report.kernel_table([kernels])

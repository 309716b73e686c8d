"""The figures that the pipeline has to reach, and whether it does."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from pipeline_tests.bench.measure import Line, medians, ratios, wall_s

TWO_STEPS = "ours: events + features, no proofs"
FEATURES = "ours: features from events, no proofs"
UNPROVEN = "ours: whole graph, no proofs"
WHOLE = "ours: whole graph, all proofs"
LARGE = 50_000_000
GB = 10**9
LEAN = 1.2


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure to reach.

    Attributes:
        what: What was measured.
        found: The measured value; infinite where nothing stands in the way.
        limit: What has to be reached.
        aim: What is hoped for.
        unit: Behind the values.
        at_least: The limit is a lower one.
    """

    what: str
    found: float
    limit: float
    aim: float | None = None
    unit: str = ""
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the limit is kept."""
        return self.found >= self.limit if self.at_least else self.found <= self.limit

    def row(self) -> str:
        """A row of the table."""
        bound = f"{'at least' if self.at_least else 'at most'} {self.limit:g}{self.unit}"
        aim = f" (aim {self.aim:g}{self.unit})" if self.aim is not None else ""
        found = "none" if math.isinf(self.found) else f"{self.found:.2f}{self.unit}"
        return f"| {self.what} | {bound}{aim} | {found} | {'met' if self.met else '**not met**'} |"


def works(lines: Mapping[str, Sequence[Line]]) -> dict[str, list[Line]]:
    """The lines of a day by what was done: those of the competitors as they are, ours by work."""
    proven, unproven = lines["ours"], lines["ours_unproven"]
    found = {
        TWO_STEPS: [_part_of(line, "events", "features") for line in unproven],
        FEATURES: [_part_of(line, "features") for line in unproven],
        UNPROVEN: [_part_of(line, *line["stages"]) for line in unproven],
        WHOLE: list(proven),
    }
    return found | {name: list(own) for name, own in lines.items() if name not in ("ours", "ours_unproven")}


def competitors(lines: Mapping[str, Sequence[Line]]) -> list[str]:
    """Those of some works that computed the whole day and are not ours, the fastest first."""
    names = [name for name, own in lines.items() if not name.startswith("ours") and "scaled_to" not in own[0]]
    return sorted(names, key=lambda name: medians(lines[name])["wall_s"])


def figures_of_day(lines: Mapping[str, Sequence[Line]], *, events: int) -> list[Figure]:
    """The figures for a day of so many events.

    Args:
        lines: Name -> what each run printed: `ours`, `ours_unproven` and at least one competitor.
        events: Rows of the day.
    """
    by_work = works(lines)
    rivals = competitors(by_work)
    times = ratios(by_work, reference=rivals[0])
    peaks = {name: medians(own)["peak_bytes"] / GB for name, own in by_work.items()}
    two_steps = "events + features, without proofs"
    compared = f"time / {rivals[0]}"
    if events < LARGE:
        stages = [line["stages"] for line in lines["ours_unproven"]]
        return [
            Figure(f"{two_steps}: {compared}", times[TWO_STEPS], 1.3, 0.9),
            Figure(f"{two_steps}: peak memory", peaks[TWO_STEPS], 1.0, unit=" GB"),
            Figure("user_state: time / features", median(own["user_state"] / own["features"] for own in stages), 0.25),
        ]
    slower = ratios(by_work, reference=TWO_STEPS)
    lean = min((slower[name] for name in rivals if peaks[name] <= LEAN * peaks[TWO_STEPS]), default=math.inf)
    return [
        Figure(f"{two_steps}: {compared}", times[TWO_STEPS], 0.8, 0.5),
        Figure(f"{two_steps}: peak memory", peaks[TWO_STEPS], 1.0, unit=" GB"),
        Figure(f"competitors of at most {LEAN:g} times that peak: time / ours", lean, 1.5, at_least=True),
        Figure(f"the whole graph with all proofs: {compared}", times[WHOLE], 1.8, 1.2),
        Figure("the whole graph with all proofs: peak memory", peaks[WHOLE], 1.2, unit=" GB"),
        Figure(f"features alone, from events: {compared}", times[FEATURES], 0.35),
        Figure("all proofs: share of the whole graph's time", 100 * proofs_share(lines["ours"]), 20, 10, unit=" %"),
    ]


def figures_of_history(lines: Mapping[str, Sequence[Line]], *, long: str, short: str) -> list[Figure]:
    """A day after a long history against the same day after an empty one."""
    times = ratios(lines, reference=short)
    return [Figure("the whole graph with all proofs: time / the same day after an empty one", times[long], 1.3)]


def figures_of_long_day(lines: Mapping[str, Sequence[Line]], *, pairs: Mapping[str, tuple[str, str]]) -> list[Figure]:
    """A long day against a short one: time per event, and peak memory.

    Args:
        lines: Name -> what each run printed.
        pairs: What was done -> the names of the long day and of the short one.
    """
    figures = []
    for what, (long, short) in pairs.items():
        per_event = [
            (wall_s(one) / one["rows"]) / (wall_s(other) / other["rows"])
            for one, other in zip(lines[long], lines[short], strict=True)
        ]
        peaks = medians(lines[long])["peak_bytes"] / medians(lines[short])["peak_bytes"]
        figures.append(Figure(f"{what}: time per event / that of the short day", median(per_event), 1.2))
        figures.append(Figure(f"{what}: peak memory / that of the short day", peaks, 1.1))
    return figures


def proofs_share(proven: Sequence[Line]) -> float:
    """The share of proofs and publications in the time of all stages."""
    return median(
        sum(line["proofs"].values()) / (sum(line["stages"].values()) + sum(line["proofs"].values())) for line in proven
    )


def _part_of(line: Line, *stages: str) -> Line:
    return {
        **{key: line[key] for key in ("rows", "import_s", "peak_bytes")},
        "wall_s": sum(line["stages"][stage] for stage in stages),
        "cpu_s": sum(line["cpu"][stage] for stage in stages),
    }

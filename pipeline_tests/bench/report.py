"""The measured lines as tables for the terminal and as a page for docs/."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pipeline_tests.bench import machine
from pipeline_tests.bench.figures import (
    GB,
    Figure,
    competitors,
    figures_of_day,
    proofs_share,
    works,
)
from pipeline_tests.bench.measure import Line, medians, ratios, wall_s

PAGE = """# Benchmarks

Written by `make bench`; do not edit.

One generated day of events ({users:,} users, up to {items:,} items, a second's resolution, many ties), from one raw Parquet file to
the {columns} core columns of features as Parquet (zstd level 1): ids numbered densely, ties broken by input order. Before anything
was timed, the outputs were compared, bit for bit. Every figure is the median of some runs, each in a process of its own; runs
were interleaved, since a machine's speed changes from minute to minute. A ratio is the median of the ratios within one round.
Imports are not part of the time. The competitors only compute: none of them checks a row, or carries anything to the next day.

{about}

Ours stands in four rows: the two steps that do what the competitors do, one of them alone, and the whole graph (with vocabularies and
`user_state`, which make the next day possible) without and with its proofs. The peak memory of the first three is that of
the whole graph without proofs, which they were part of. 1 GB is 10^9 bytes.
{sections}
## Measured on

{machine}
- command: `{command}`
- date: {date} (UTC)
"""


def table(lines: Mapping[str, Sequence[Line]], *, reference: str) -> str:
    """A Markdown table, one row a command, in ascending order of time.

    Args:
        lines: Name -> what each run printed.
        reference: The command that the ratios are relative to.
    """
    times = ratios(lines, reference=reference)
    rows = [
        f"| | seconds | range | times {reference} | cpu seconds | peak memory | import |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    middle = {name: medians(own) for name, own in lines.items()}
    for name in sorted(lines, key=lambda name: wall_s(middle[name])):
        walls = [wall_s(line) for line in lines[name]]
        line = middle[name]
        scaled = "scaled_to" in line
        rows.append(
            f"| {name}{' (scaled)' if scaled else ''} | {wall_s(line):.2f} | {min(walls):.2f} to {max(walls):.2f} "
            f"| {times[name]:.2f} | {'-' if scaled else format(line['cpu_s'], '.2f')} "
            f"| {line['peak_bytes'] / GB:.2f} GB | {line['import_s']:.2f} |"
        )
    return "\n".join(rows)


def notes(lines: Mapping[str, Sequence[Line]]) -> str:
    """Sentences on stages and slices, one a line; empty when there are none."""
    sentences = []
    for name, own in lines.items():
        line = medians(own)
        for key, what in (("stages", "to make"), ("proofs", "to prove and publish")):
            if key in line:
                stages = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in line[key].items())
                sentences.append(f"- {name}, {what}: {stages}.")
        if "scaled_to" in line:
            sentences.append(
                f"- {name} ran on the first {line['rows']:,.0f} rows ({line['wall_s']:.2f} s); the time of its loop "
                f"is scaled to {line['scaled_to']:,.0f} rows."
            )
    return "\n" + "\n".join(sentences) + "\n" if sentences else ""


def figures_table(figures: Sequence[Figure]) -> str:
    """A Markdown table of figures to reach."""
    return "\n".join(["| figure to reach | | measured | |", "|---|---|--:|---|", *(figure.row() for figure in figures)])


def stages_table(proven: Sequence[Line], unproven: Sequence[Line]) -> str:
    """A Markdown table of our stages: seconds to make (in the runs without proofs), and to prove, by part."""
    made, line = medians(unproven)["stages"], medians(proven)
    rows = ["| stage | make, s | prove and publish, s | of which |", "|---|--:|--:|---|"]
    for stage, seconds in line["proofs"].items():
        parts = sorted(line["parts"][stage].items(), key=lambda part: -part[1])
        rest = max(0.0, seconds - sum(spent for _, spent in parts))  # parts may run side by side
        shown = ", ".join(f"{part} {spent:.2f}" for part, spent in [*parts, ("all else", rest)])
        rows.append(f"| `{stage}` | {made[stage]:.2f} | {seconds:.2f} | {shown} |")
    rows.append(f"| together | {sum(made.values()):.2f} | {sum(line['proofs'].values()):.2f} | |")
    share = f"Proofs and publications take {100 * proofs_share(proven):.0f} % of the time of the whole graph."
    return "\n".join([*rows, "", share])


def day_section(lines: Mapping[str, Sequence[Line]], *, events: int, compared: str, left_out: Mapping[str, str]) -> str:
    """A section on a day of one size.

    Args:
        lines: Name -> what each run printed: `ours`, `ours_unproven` and the competitors.
        events: Rows of the day.
        compared: What was compared with what, as a sentence.
        left_out: Competitor -> why it cannot do a day of this size, as half a sentence.
    """
    by_work = works(lines)
    runs = len(lines["ours"])
    return "\n".join(
        [
            f"\n## {events:,} events in a day\n",
            f"Medians of {runs} {'runs' if runs > 1 else 'run'}. {compared}\n",
            figures_table(figures_of_day(lines, events=events)),
            "",
            table(by_work, reference=competitors(by_work)[0]),
            notes({name: own for name, own in by_work.items() if "scaled_to" in own[0]}),
            *(f"- {name} is left out: {why}." for name, why in left_out.items()),
            "",
            stages_table(lines["ours"], lines["ours_unproven"]),
        ]
    )


def section(
    title: str, text: str, figures: Sequence[Figure], lines: Mapping[str, Sequence[Line]], reference: str
) -> str:
    """A section on some runs of ours against each other."""
    parts = [f"\n## {title}\n", text, "", figures_table(figures), "", table(lines, reference=reference)]
    return "\n".join([*parts, notes(lines)])


def kernel_table(lines: Sequence[Line]) -> str:
    """A Markdown section on the kernels against their oracles; `lines` hold `kernels`: feature -> seconds of both."""
    rows = [
        "\n## Kernels against their own oracles\n",
        f"On the same {medians(lines)['rows']:,.0f} rows, sorted and in memory.\n",
        "| feature | kernel, s | oracle, s | oracle / kernel |",
        "|---|--:|--:|--:|",
    ]
    for feature, seconds in medians(lines)["kernels"].items():
        kernel_s, oracle_s = seconds["kernel_s"], seconds["oracle_s"]
        rows.append(f"| {feature} | {kernel_s:.4f} | {oracle_s:.2f} | {oracle_s / kernel_s:,.0f} |")
    return "\n".join(rows) + "\n"


def page(
    sections: Sequence[str], *, about: Mapping[str, str], users: int, items: int, columns: int, command: str
) -> str:
    """The whole of docs/benchmarks.md.

    Args:
        sections: As `day_section`, `section` and `kernel_table` give them.
        about: Competitor -> what it is.
        users: Users of the generated day.
        items: Its items.
        columns: Columns that everybody writes.
        command: The command line, without paths of this machine.
    """
    return PAGE.format(
        users=users,
        items=items,
        columns=columns,
        about="\n".join(f"- {name}: {what}" for name, what in about.items()),
        sections="\n".join(sections),
        machine="\n".join(f"- {name}: {value}" for name, value in machine.described().items()),
        command=command,
        date=datetime.now(UTC).date(),
    )

"""The measured lines as a table for the terminal and as a page for docs/."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pipeline_tests.bench import machine
from pipeline_tests.bench.logs import ITEMS, USERS
from pipeline_tests.bench.measure import Line, medians, ratios, wall_s

PAGE = """# Benchmarks

Written by `make bench`; do not edit.

One generated day of {events:,} events ({users:,} users, up to {items:,} items, a second's resolution, many ties), from one raw
Parquet file to the core columns of features as Parquet (zstd level 1). Before anything was timed, the outputs were compared:
{compared}.
Every figure is the median of {runs} runs, each in a process of its own; runs were interleaved, since a machine's speed
changes from minute to minute. The ratio is the median of the ratios within one round. Imports are not part of
the time.

{table}
{notes}{parts}{kernels}
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
            f"| {line['peak_bytes'] / 2**20:,.0f} MiB | {line['import_s']:.2f} |"
        )
    return "\n".join(rows)


def notes(lines: Mapping[str, Sequence[Line]]) -> str:
    """Sentences on stages and slices, one a line; empty when there are none."""
    sentences = []
    for name, own in lines.items():
        line = medians(own)
        if "stages" in line:
            stages = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in line["stages"].items())
            sentences.append(f"- {name}, by stage: {stages}.")
        if "scaled_to" in line:
            sentences.append(
                f"- {name} ran on the first {line['rows']:,.0f} rows ({line['wall_s']:.2f} s); the time of its loop "
                f"is scaled to {line['scaled_to']:,.0f} rows."
            )
    return "\n" + "\n".join(sentences) + "\n" if sentences else ""


def parts_table(lines: Mapping[str, Sequence[Line]]) -> str:
    """A Markdown section on the parts of a command that tells them (`stages`, `proofs`) beside the others' whole job."""
    told = [name for name, own in lines.items() if "proofs" in own[0]]
    others = [name for name in lines if name not in told]
    if not told or not others:
        return ""
    rows = [
        "\n## Part by part\n",
        "The others only compute; this is how many times as long as each part they take. Medians.\n",
        "| | seconds | " + " | ".join(others) + " |",
        "|---|--:|" + "--:|" * len(others),
    ]
    for name in told:
        line = medians(lines[name])
        made, proved = line["stages"], line["proofs"]
        parts = {
            "the two steps `events` + `features`, without proofs": made["events"] + made["features"],
            "the whole graph, without proofs": sum(made.values()),
            "all proofs and publications": sum(proved.values()),
            "the whole graph with all proofs": sum(made.values()) + sum(proved.values()),
        }
        for part, seconds in parts.items():
            compared = " | ".join(f"{wall_s(medians(lines[other])) / seconds:.2f}" for other in others)
            rows.append(f"| {part} | {seconds:.2f} | {compared} |")
        shown = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in proved.items())
        rows.append(f"\nSeconds to prove and publish each stage: {shown}.")
    return "\n".join(rows) + "\n"


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
    lines: Mapping[str, Sequence[Line]],
    *,
    reference: str,
    kernel_lines: Sequence[Line],
    compared: str,
    events: int,
    command: str,
) -> str:
    """The whole of docs/benchmarks.md.

    Args:
        lines: Name -> what each run printed.
        reference: The command that the ratios are relative to.
        kernel_lines: What the kernel benchmark printed, empty when there is none.
        compared: What was compared with what, as the end of a sentence.
        events: Rows of the generated day.
        command: The command line, without paths of this machine.
    """
    return PAGE.format(
        events=events,
        users=min(USERS, events),
        items=ITEMS,
        runs=len(next(iter(lines.values()))),
        compared=compared,
        table=table(lines, reference=reference),
        notes=notes(lines),
        parts=parts_table(lines),
        kernels=kernel_table(kernel_lines) if kernel_lines else "",
        machine="\n".join(f"- {name}: {value}" for name, value in machine.described().items()),
        command=command,
        date=datetime.now(UTC).date(),
    )

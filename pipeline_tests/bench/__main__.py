"""`python -m pipeline_tests.bench`: generates a day, proves that all outputs are the same, then measures.

`pipeline_tests.bench.ours` and `pipeline_tests.bench.kernels` are run by name with the same protocol as the
competitors; `kernels` prints `rows` and `kernels`: feature -> {"kernel_s", "oracle_s"}.
"""

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pipeline_tests.bench import report
from pipeline_tests.bench.logs import write_logs
from pipeline_tests.bench.measure import ROOT, Command, Line, interleaved, run_once, same_output

PACKAGE = "pipeline_tests.bench"
OURS = f"{PACKAGE}.ours"
KERNELS = f"{PACKAGE}.kernels"
COMPETITORS = {
    f"{PACKAGE}.competitors.polars_script": "polars",
    f"{PACKAGE}.competitors.duckdb_script": "duckdb",
    f"{PACKAGE}.competitors.plain_loop": "pyarrow",
    f"{PACKAGE}.competitors.torch_scalars": "torch",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark; see `--help`."""
    parser = argparse.ArgumentParser(prog=f"python -m {PACKAGE}", description="Measures the pipeline and others.")
    parser.add_argument("--events", type=int, default=5_000_000, help="rows of the generated day")
    parser.add_argument("--runs", type=int, default=3, help="rounds; every figure is a median over them")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.md", help="the page to write")
    parser.add_argument("--workdir", type=Path, help="folder for logs and outputs; default: a temporary one")
    options = parser.parse_args(arguments)
    if options.events < 1 or options.runs < 1:
        parser.error("--events and --runs must be at least 1")
    with tempfile.TemporaryDirectory() as temporary:
        workdir = (options.workdir or Path(temporary)).absolute()
        workdir.mkdir(parents=True, exist_ok=True)
        text = _measured(workdir, events=options.events, runs=options.runs)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text, encoding="utf-8")
    _say(f"written to {options.out}")


def _measured(workdir: Path, *, events: int, runs: int) -> str:
    raw = workdir / "raw.parquet"
    _say(f"generating {events:,} events")
    write_logs(raw, events=events)

    commands = [_command(module, raw) for module in (OURS, *COMPETITORS) if _present(module)]
    compared = _prove_same(commands)
    _say(compared)

    lines = interleaved(commands, runs=runs)
    reference = "ours" if "ours" in lines else "polars_script"
    kernel_lines: list[Line] = []
    if _present(KERNELS):
        kernel_lines = [run_once(_command(KERNELS, raw)) for _ in range(runs)]
    _say("", report.table(lines, reference=reference), report.notes(lines))
    if kernel_lines:
        _say(report.kernel_table(kernel_lines))
    return report.page(
        lines,
        reference=reference,
        kernel_lines=kernel_lines,
        compared=compared,
        events=events,
        command=f"python -m {PACKAGE} --events {events} --runs {runs}",
    )


def _present(module: str) -> bool:
    if importlib.util.find_spec(module) is None:
        _say(f"skipped {module}: there is no such module yet")
        return False
    needed = COMPETITORS.get(module)
    if needed is not None and importlib.util.find_spec(needed) is None:
        _say(f"skipped {module}: {needed} is not installed; pip install '.[bench]' brings it")
        return False
    return True


def _command(module: str, raw: Path) -> Command:
    name = module.rpartition(".")[2]
    out = raw.parent / name
    return Command(name=name, argv=(sys.executable, "-m", module, str(raw), str(out)), out=out)


def _prove_same(commands: Sequence[Command]) -> str:
    """Runs every command once, untimed, and compares its output with that of the first that computes all rows."""
    found = {command.name: (command, run_once(command)) for command in commands}
    reference, reference_line = next(pair for pair in found.values() if "scaled_to" not in pair[1])
    sentences = []
    for command, line in found.values():
        if command is reference:
            continue
        first_rows = line["rows"] if "scaled_to" in line else None
        rows = same_output(_features(reference, reference_line), _features(command, line), first_rows=first_rows)
        sentences.append(f"{command.name} equals {reference.name} in all {rows:,} rows that it computes")
    return "; ".join(sentences)


def _features(command: Command, line: Line) -> Path:
    return command.out / line.get("output", ".")


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

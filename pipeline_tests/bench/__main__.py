"""`python -m pipeline_tests.bench`: generates days, proves that all outputs are the same, then measures.

The scripts that it runs, ours and those of the competitors, follow `protocol`. `kernels` prints `rows` and `kernels`:
feature -> {"kernel_s", "oracle_s"}.
"""

import argparse
import ast
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline_tests.bench import history, long_day, report
from pipeline_tests.bench.compare import CORE, same_output
from pipeline_tests.bench.logs import ITEMS, USERS, write_logs
from pipeline_tests.bench.measure import ROOT, Command, LeftOutError, Line, interleaved, run_once

PACKAGE = "pipeline_tests.bench"
OURS = (f"{PACKAGE}.ours", f"{PACKAGE}.ours_unproven")
KERNELS = f"{PACKAGE}.kernels"
COMPETITORS = {
    f"{PACKAGE}.competitors.polars_window": "polars",
    f"{PACKAGE}.competitors.polars_stream": "polars",
    f"{PACKAGE}.competitors.polars_sort": "polars",
    f"{PACKAGE}.competitors.duckdb_lag": "duckdb",
    f"{PACKAGE}.competitors.duckdb_1gb": "duckdb",
    f"{PACKAGE}.competitors.pandas_groupby": "pandas",
    f"{PACKAGE}.competitors.torch_frame": "torch",
    f"{PACKAGE}.competitors.plain_loop": "pyarrow",
    f"{PACKAGE}.competitors.torch_scalars": "torch",
}
LIMIT_S = 600.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark; see `--help`. The page is written anew after every section."""
    options = _options(arguments)
    modules = [module for module in COMPETITORS if _present(module)]
    sections: list[str] = []
    if options.workdir is not None:
        options.workdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.workdir) as folder:
        for section in _sections(options, modules, Path(folder).absolute()):
            _say(section)
            sections.append(section)
            text = report.page(
                sections,
                about={_name(module): _summary(module) for module in modules},
                users=USERS,
                items=ITEMS,
                columns=len(CORE),
                command=_command_line(options),
            )
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(text, encoding="utf-8")
    _say(f"written to {options.out}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {PACKAGE}", description="Measures the pipeline and others.")
    add = parser.add_argument
    add("--events", type=int, nargs="+", default=[5_000_000, 50_000_000], help="rows of the generated days")
    add("--runs", type=int, nargs="+", default=[5, 3], help="rounds of each; every figure is a median over them")
    add("--history", type=int, nargs="?", const=700, metavar="DAYS", help="also: a day after so many others (700)")
    add("--history-users", type=int, default=10_000_000, metavar="USERS", help="users that those days leave behind")
    add("--long", type=int, nargs="?", const=200_000_000, metavar="EVENTS", help="also: a day of so many (200 million)")
    add("--out", type=Path, default=ROOT / "docs" / "benchmarks.md", help="the page to write")
    add("--workdir", type=Path, help="where logs and outputs lie until the end; default: the temporary folder")
    options = parser.parse_args(arguments)
    if min(*options.events, *options.runs, options.history or 1, options.history_users, options.long or 1) < 1:
        parser.error("every number must be at least 1")
    if len(options.events) != len(options.runs):
        parser.error("--runs needs as many numbers as --events")
    return options


def _command_line(options: argparse.Namespace) -> str:
    words = ["--events", *options.events, "--runs", *options.runs]
    if options.history:
        words += ["--history", options.history, "--history-users", options.history_users]
    if options.long:
        words += ["--long", options.long]
    return " ".join([f"python -m {PACKAGE}", *map(str, words)])


def _sections(options: argparse.Namespace, modules: Sequence[str], folder: Path) -> Iterator[str]:
    for number, (events, runs) in enumerate(zip(options.events, options.runs, strict=True)):
        yield _day(folder / str(number), modules, events=events, runs=runs)
        shutil.rmtree(folder / str(number))
    events, runs = options.events[0], options.runs[0]
    if options.history:
        days, users = options.history, options.history_users
        yield history.measured(folder / "history", events=events, days=days, users=users, runs=runs, say=_say)
        shutil.rmtree(folder / "history")
    if options.long:
        long_runs = options.runs[-1]
        yield long_day.measured(folder / "long", events=options.long, short_events=events, runs=long_runs, say=_say)
        shutil.rmtree(folder / "long")
    write_logs(folder / "raw.parquet", events=min(events, 1_000_000))
    yield report.kernel_table([run_once(_command(KERNELS, folder / "raw.parquet")) for _ in range(runs)])


def _day(folder: Path, modules: Sequence[str], *, events: int, runs: int) -> str:
    """A day of `events` rows: outputs compared, then everybody measured."""
    folder.mkdir()
    raw = folder / "raw.parquet"
    _say(f"generating {events:,} events")
    write_logs(raw, events=events)
    left_out: dict[str, str] = {}
    commands = [_command(module, raw) for module in (*OURS, *modules)]
    compared = _prove_same(commands, left_out)
    _say(compared)
    able = [command for command in commands if command.name not in left_out]
    lines = interleaved(able, runs=runs, left_out=left_out)
    return report.day_section(lines, events=events, compared=compared, left_out=left_out)


def _prove_same(commands: Sequence[Command], left_out: dict[str, str]) -> str:
    """Runs every command once, untimed, and compares its output with that of the first, which is ours.

    Returns:
        A sentence on what was compared.
    """
    reference = commands[0]
    reference_features = _features(reference, run_once(reference))
    rows_compared: dict[int, list[str]] = {}
    for command in commands[1:]:
        try:
            line = run_once(command)
        except LeftOutError as error:
            left_out[command.name] = str(error)
        else:
            first_rows = line["rows"] if "scaled_to" in line else None
            rows = same_output(reference_features, _features(command, line), first_rows=first_rows)
            rows_compared.setdefault(rows, []).append(command.name)
        shutil.rmtree(command.out, ignore_errors=True)
    shutil.rmtree(reference.out)
    equal = "; ".join(f"{', '.join(names)} in {rows:,} rows" for rows, names in rows_compared.items())
    return f"Equal to {reference.name}, bit for bit: {equal}."


def _present(module: str) -> bool:
    if importlib.util.find_spec(COMPETITORS[module]) is not None:
        return True
    _say(f"skipped {_name(module)}: {COMPETITORS[module]} is not installed; pip install '.[bench]' brings it")
    return False


def _name(module: str) -> str:
    return module.rpartition(".")[2]


def _summary(module: str) -> str:
    """The first line of a module's docstring, without importing it."""
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    text = ast.get_docstring(ast.parse(Path(found.origin).read_text(encoding="utf-8")))
    assert text is not None
    return text.splitlines()[0]


def _command(module: str, raw: Path) -> Command:
    out = raw.parent / _name(module)
    argv = (sys.executable, "-m", module, str(raw), str(out))
    return Command(_name(module), argv, out, limit_s=LIMIT_S if module in COMPETITORS else None)


def _features(command: Command, line: Line) -> Path:
    return command.out / line.get("output", ".")


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

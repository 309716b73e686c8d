"""Runs commands interleaved, each in a process of its own, and compares what they wrote."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

ROOT = Path(__file__).parents[2]
CORE = {
    "row_id": pl.Int64,
    "user_id": pl.Int64,
    "item_id": pl.Int64,
    "timestamp": pl.Datetime("us", "UTC"),
    "user_index": pl.Int32,
    "item_index": pl.Int32,
    "time_diff": pl.Float32,
    "is_first": pl.Boolean,
    "action_view": pl.UInt8,
    "action_cart": pl.UInt8,
    "action_purchase": pl.UInt8,
}
CORE_COLUMNS = tuple(CORE)
Line = dict[str, Any]


class OutputsDifferError(Exception):
    """Two outputs are not the same; the message names the first difference."""


@dataclass(frozen=True, slots=True)
class Command:
    """A measured process.

    Attributes:
        name: How the tables call it.
        argv: What to run, in the repository root; its last line of output is one JSON object.
        out: The folder that it writes; emptied before every run.
    """

    name: str
    argv: tuple[str, ...]
    out: Path


def run_once(command: Command) -> Line:
    """Runs a command in an emptied folder and returns the JSON object that it printed.

    Raises:
        RuntimeError: The command failed or printed no JSON object; with the end of what it said.
    """
    shutil.rmtree(command.out, ignore_errors=True)
    finished = subprocess.run(command.argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise RuntimeError(f"{command.name} ended with {finished.returncode}: {finished.stderr[-2000:]}")
    try:
        line = json.loads(finished.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        raise RuntimeError(f"{command.name} printed no JSON line: {finished.stdout[-2000:]!r}") from None
    return line


def interleaved(commands: Sequence[Command], *, runs: int) -> dict[str, list[Line]]:
    """Runs all commands `runs` times, in rounds, since a machine's speed changes from minute to minute.

    Every round begins with another command, so that none always comes after the same one.

    Returns:
        Name of the command -> its JSON objects, one a round, in the order of rounds.
    """
    lines: dict[str, list[Line]] = {command.name: [] for command in commands}
    for round_number in range(runs):
        first = round_number % len(commands)
        for command in (*commands[first:], *commands[:first]):
            lines[command.name].append(run_once(command))
    return lines


def wall_s(line: Line) -> float:
    """Seconds for the whole day: scaled where only a slice was computed."""
    return line.get("scaled_wall_s", line["wall_s"])


def medians(lines: Sequence[Line]) -> Line:
    """The median of every number that the runs of one command printed, also inside tables such as `stages`."""
    first = lines[0]
    result: Line = {}
    for key, value in first.items():
        if isinstance(value, dict):
            result[key] = medians([line[key] for line in lines])
        elif isinstance(value, int | float) and not isinstance(value, bool):
            result[key] = median(line[key] for line in lines)
        else:
            result[key] = value
    return result


def ratios(lines: Mapping[str, Sequence[Line]], *, reference: str) -> dict[str, float]:
    """How many times as long as `reference` each command took: the median over rounds of the ratio in that round."""
    return {
        name: median(wall_s(line) / wall_s(other) for line, other in zip(own, lines[reference], strict=True))
        for name, own in lines.items()
    }


def same_output(dir_a: Path, dir_b: Path, *, first_rows: int | None = None) -> int:
    """Compares the core columns of two outputs, sorted by row_id, exactly: floats by their bits.

    Args:
        dir_a: Folder of Parquet files.
        dir_b: Another one.
        first_rows: Compare only the rows whose `row_id` is below it.

    Returns:
        The number of rows compared.

    Raises:
        OutputsDifferError: The first difference: files, schema, rows, or row_id, column and both values.
    """
    a, b = _read(dir_a, first_rows), _read(dir_b, first_rows)
    if len(a) != len(b):
        raise OutputsDifferError(f"{dir_a} holds {len(a)} rows, {dir_b} holds {len(b)}")
    for name in CORE_COLUMNS:
        differs = np.flatnonzero(_bits(a[name]) != _bits(b[name]))
        if len(differs):
            row = int(differs[0])
            raise OutputsDifferError(
                f"{len(differs)} rows differ in {name}, the first at row_id {a['row_id'][row]}: "
                f"{a[name][row]!r} in {dir_a}, {b[name][row]!r} in {dir_b}"
            )
    return len(a)


def _read(folder: Path, first_rows: int | None) -> pl.DataFrame:
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise OutputsDifferError(f"{folder} holds no Parquet file")
    frame = pl.concat([pl.read_parquet(file) for file in files])
    for name, dtype in CORE.items():
        found = frame.schema.get(name)
        if found != dtype:
            raise OutputsDifferError(f"{folder}: column {name} is {found or 'missing'}, expected {dtype}")
        if frame[name].null_count():
            raise OutputsDifferError(f"{folder}: column {name} holds {frame[name].null_count()} nulls")
    frame = frame.select(CORE_COLUMNS)
    if first_rows is not None:
        frame = frame.filter(pl.col("row_id") < first_rows)
    frame = frame.sort("row_id")
    twice = frame["row_id"].diff().eq(0).arg_max() if len(frame) else None
    if twice and frame["row_id"][twice] == frame["row_id"][twice - 1]:
        raise OutputsDifferError(f"{folder}: row_id {frame['row_id'][twice]} occurs twice")
    return frame


def _bits(column: pl.Series) -> np.ndarray:
    values = column.to_numpy()
    return values.view(np.int32) if column.dtype == pl.Float32 else values

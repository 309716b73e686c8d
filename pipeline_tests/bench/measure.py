"""Runs commands interleaved, each in a process of its own."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[2]
OUT_OF_MEMORY = re.compile("MemoryError|out of memory|allocate memory|memory allocation", re.IGNORECASE)
Line = dict[str, Any]


class LeftOutError(Exception):
    """A competitor cannot do the job on this machine; the message says why, as half a sentence."""


@dataclass(frozen=True, slots=True)
class Command:
    """A measured process.

    Attributes:
        name: How the tables call it.
        argv: What to run, in the repository root; its last line of output is one JSON object.
        out: The folder that it writes; emptied before every run.
        limit_s: The seconds that a competitor may take; None for what has to succeed.
    """

    name: str
    argv: tuple[str, ...]
    out: Path
    limit_s: float | None = None


def run_once(command: Command) -> Line:
    """Runs a command in an emptied folder and returns the JSON object that it printed.

    Raises:
        LeftOutError: It has a limit and needs more time, or more memory than there is.
        RuntimeError: It failed or printed no JSON object; with the end of what it said.
    """
    shutil.rmtree(command.out, ignore_errors=True)
    os.sync()  # what the run before left to be written is not written in this one's time
    try:
        finished = subprocess.run(
            command.argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=command.limit_s
        )
    except subprocess.TimeoutExpired:
        raise LeftOutError(f"it takes more than {command.limit_s:g} s") from None
    if finished.returncode != 0:
        if command.limit_s is not None and finished.returncode == -signal.SIGKILL:
            raise LeftOutError("the system ended it, since it needs more memory than there is")
        said = (line for line in finished.stderr.splitlines() if not line.startswith(" "))  # but for lines of source
        complaint = next(filter(OUT_OF_MEMORY.search, said), None)
        if command.limit_s is not None and complaint is not None:
            raise LeftOutError(f"it needs more memory than it may have ({complaint[:200]})")
        raise RuntimeError(f"{command.name} ended with {finished.returncode}: {finished.stderr[-2000:]}")
    try:
        line = json.loads(finished.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        raise RuntimeError(f"{command.name} printed no JSON line: {finished.stdout[-2000:]!r}") from None
    return line


def interleaved(
    commands: Sequence[Command], *, runs: int, left_out: dict[str, str] | None = None
) -> dict[str, list[Line]]:
    """Runs all commands `runs` times, in rounds, since a machine's speed changes from minute to minute.

    Every round begins with another command, so that none always comes after the same one. Output is removed at once.

    Args:
        commands: What to run.
        runs: Number of rounds.
        left_out: Gets the name of a competitor that fails in a round, with the reason.

    Returns:
        Name of the command -> its JSON objects, one a round, in the order of rounds.
    """
    failed: dict[str, str] = {} if left_out is None else left_out
    lines: dict[str, list[Line]] = {command.name: [] for command in commands}
    for round_number in range(runs):
        first = round_number % len(commands)
        for command in (*commands[first:], *commands[:first]):
            if command.name not in failed:
                try:
                    lines[command.name].append(run_once(command))
                except LeftOutError as error:
                    failed[command.name] = str(error)
            shutil.rmtree(command.out, ignore_errors=True)
    return {name: own for name, own in lines.items() if name not in failed}


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

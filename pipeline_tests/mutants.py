"""Breaks the code in known ways, one at a time; every break has to turn a test red.

`python -m pipeline_tests.mutants` tries all, `--third 0|1|2` a third of them. A mutant that survives is a fault of the
suite; one that no longer applies is a fault of this list.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

MEMORY_DISK = Path("/dev/shm")
REPOSITORY = Path(__file__).parents[1]
COPIED = ("pipeline", "pipeline_tests", "data", "docs", "pyproject.toml", "workspace.yaml", "README.md", "Makefile")


@dataclass(frozen=True)
class Mutant:
    """One way to be wrong.

    Attributes:
        name: What is broken.
        file: Below `pipeline/`.
        old: Text that stands there exactly once.
        new: What takes its place.
        tests: The tests of which one has to fail.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTANTS = (
    Mutant(
        "unstable sort",
        "events/order.py",
        "return torch.sort(torch.from_numpy(narrow_E), stable=True).indices.numpy()",
        "return len(key_E) - 1 - torch.sort(torch.from_numpy(narrow_E[::-1].copy()), stable=True).indices.numpy()",
        ("test_events_sort.py",),
    ),
    Mutant(
        "tie-break dropped: rows of an instant in any order",
        "checks/oracle.py",
        "key=lambda event: (event.timestamp_us, event.row_id)",
        "key=lambda event: (event.timestamp_us, -event.row_id)",
        ("test_publish.py", "test_golden.py"),
    ),
    Mutant(
        "time dropped from the sort key",
        "events/order.py",
        "_order(users.rebased << times.bits | times.rebased, users.bits + times.bits)",
        "_order(users.rebased, users.bits)",
        ("test_events_sort.py",),
    ),
    Mutant(
        "float32 before subtraction",
        "features/core.py",
        "    diff_us_E = torch.empty_like(chunk.time_us_E)\n    torch.sub(chunk.time_us_E[1:], chunk.time_us_E[:-1], out=diff_us_E[1:])",
        "    diff_us_E = torch.empty_like(chunk.time_us_E)\n"
        "    rounded_E = chunk.time_us_E.to(torch.float32)\n"
        "    diff_us_E[1:] = (rounded_E[1:] - rounded_E[:-1]).to(torch.int64)",
        ("test_features_core.py", "test_laws.py"),
    ),
    Mutant(
        "float32 before division",
        "features/core.py",
        "diff_us_E.to(torch.float64).div_(us_per_s)",
        "diff_us_E.to(torch.float32).div_(us_per_s)",
        ("test_features_core.py", "test_laws.py"),
    ),
    Mutant(
        "segment border off by one",
        "chunks.py",
        "np.add(changes, 1, out=starts[1:])",
        "np.add(changes, 0, out=starts[1:])",
        ("test_chunks.py",),
    ),
    Mutant(
        "carry lost at a chunk border: users cut in two",
        "chunks.py",
        "        if at_end:\n            borders = np.append",
        "        if True:\n            borders = np.append",
        ("test_splitting.py",),
    ),
    Mutant(
        "carry lost at a day border",
        "outputs.py",
        'opening=read_state(store, state, "opening")',
        'opening=read_state(store, state, "opening").clear()',
        ("test_splitting.py",),
    ),
    Mutant(
        "searchsorted without an equality test",
        "vocabularies/lookup.py",
        "table = np.full(high - low + 1, UNKNOWN, dtype=np.int32)",
        "table = np.full(high - low + 1, FIRST_KNOWN, dtype=np.int32)",
        ("test_vocabularies.py",),
    ),
    Mutant(
        "vocabulary order by first appearance",
        "vocabularies/make.py",
        ".drop_nulls().unique()).collect().to_series().sort()",
        ".drop_nulls().unique(maintain_order=True)).collect().to_series()",
        ("test_splitting.py", "test_vocabularies.py"),
    ),
    Mutant(
        "absent users dropped",
        "state.py",
        'pl.concat([known.join(changed, on="user_id", how="anti"), changed])',
        "pl.concat([known.clear(), changed])",
        ("test_splitting.py",),
    ),
    Mutant(
        "state keyed by index",
        "outputs.py",
        "opening = carried_tensors(feature, inputs.opening, users,",
        "opening = carried_tensors(feature, inputs.opening, inputs.users.index_of(users).cast(users.dtype),",
        ("test_splitting.py",),
    ),
    Mutant(
        "one-hot columns swapped",
        "features/core.py",
        "for code, name in enumerate(chunk.action_names)",
        "for code, name in enumerate(reversed(chunk.action_names))",
        ("test_features_core.py",),
    ),
    Mutant(
        "last chunk not written",
        "outputs.py",
        "            staging.write(table)\n            content.update(table)\n            done += table.height",
        "            if done + table.height < events.rows:\n                staging.write(table)\n                content.update(table)\n"
        "            done += table.height",
        ("test_splitting.py",),
    ),
    Mutant(
        "manifest before data: published, then proven",
        "checks/publish.py",
        "        proof = _prove(staged.manifest, _manifest(companion), segment, dataset, features, store, sample, deep=False)",
        "        store.commit(staged, proof={})\n"
        "        proof = _prove(staged.manifest, _manifest(companion), segment, dataset, features, store, sample, deep=False)",
        ("test_publish.py",),
    ),
    Mutant(
        "refused rows not counted",
        "events/reading.py",
        "self._rows_in[present] += counts",
        "self._rows_in[present] += np.bincount(place, rank[positions] == 255, len(self.days))[present].astype(np.int64)",
        ("test_events_days.py",),
    ),
    Mutant(
        "oracle sample empty",
        "checks/sampling.py",
        "    return Sample(chosen, users.len(), size,",
        "    return Sample(chosen.head(0), users.len(), size,",
        ("test_publish.py",),
    ),
    Mutant(
        "the loop looks at nothing",
        "checks/features.py",
        'differences += compare(expected, found, columns, user_id=user, row_ids=[row["row_id"] for row in found])',
        "pass",
        ("test_publish.py",),
    ),
    Mutant(
        "proof does not read the files",
        "checks/reading.py",
        "file_sha256(directory / file.path) != file.sha256",
        "False",
        ("test_publish.py",),
    ),
    Mutant(
        "the independent count believes the reader",
        "checks/raw_oracle.py",
        'if reading.records != entry["rows"]:',
        "if False:",
        ("test_planted_errors.py",),
    ),
    Mutant(
        "an index is given twice",
        "vocabularies/log.py",
        "first = FIRST_KNOWN + known.ids.len()",
        "first = FIRST_KNOWN + max(0, known.ids.len() - 1)",
        ("test_vocabularies.py", "test_splitting.py"),
    ),
    Mutant(
        "a stale day counts as current",
        "store/currency.py",
        "if used is not None and used.version(role) != version:",
        "if used is None:",
        ("test_store.py", "test_splitting.py"),
    ),
)


UNBROKEN = Mutant(
    "nothing", "__init__.py", "", "", tuple(sorted({test for mutant in MUTANTS for test in mutant.tests}))
)


def survives(mutant: Mutant) -> str | None:
    """Runs the tests on a broken copy; the reason why the mutant counts as alive, or None."""
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as name:
        copy = Path(name)
        for entry in COPIED:
            source = REPOSITORY / entry
            if source.is_dir():
                shutil.copytree(source, copy / entry, ignore=shutil.ignore_patterns("__pycache__", "out"))
            elif source.exists():
                shutil.copy(source, copy / entry)
        broken = copy / "pipeline" / mutant.file
        text = broken.read_text(encoding="utf-8")
        if mutant is not UNBROKEN and text.count(mutant.old) != 1:
            return f"its text stands {text.count(mutant.old)} times in pipeline/{mutant.file}: mend the list"
        if mutant is not UNBROKEN:
            broken.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "--hypothesis-profile=no_shrinking",
        ]
        tests = [f"pipeline_tests/{test}" for test in mutant.tests]
        done = subprocess.run(
            [*command, *tests],
            cwd=copy,
            env={"PYTHONPATH": str(copy), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode == 1:
        return None
    return f"pytest ended with {done.returncode}: {done.stdout.strip().splitlines()[-1:] or done.stderr[-300:]}"


def main() -> int:
    """Tries the mutants and prints one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--third", type=int, choices=(0, 1, 2), help="try only this third")
    parser.add_argument("--only", help="try mutants whose name holds this text")
    chosen = parser.parse_args()
    mutants = MUTANTS if chosen.third is None else MUTANTS[chosen.third :: 3]
    if survives(UNBROKEN) is None:
        sys.stdout.write("the tests fail although nothing is broken: mend them first\n")
        return 1
    alive = 0
    for mutant in mutants:
        if chosen.only and chosen.only not in mutant.name:
            continue
        began = time.perf_counter()
        reason = survives(mutant)
        alive += reason is not None
        verdict = "killed" if reason is None else f"SURVIVES ({reason})"
        sys.stdout.write(f"{mutant.name}: {verdict}, {time.perf_counter() - began:.1f} s\n")
        sys.stdout.flush()
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())

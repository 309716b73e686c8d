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
        "np.arange(len(key_E))\n    packed_E.sort()\n    packed_E &= (1 << bits) - 1\n    return packed_E",
        "np.arange(len(key_E))[::-1]\n    packed_E.sort()\n    packed_E &= (1 << bits) - 1\n    return len(key_E) - 1 - packed_E",
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
        "_order(users.rebased << times.bits | times.rebased)",
        "_order(users.rebased)",
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
        "chunks/cut.py",
        "np.add(changes, 1, out=starts[1:])",
        "np.add(changes, 0, out=starts[1:])",
        ("test_chunks.py",),
    ),
    Mutant(
        "carry lost at a chunk border: a piece of a user taken for a whole one",
        "outputs/engine.py",
        "before[name][:1] = tensor",
        "before[name][:1] = before[name][:1]",
        ("test_splitting.py", "test_device.py"),
    ),
    Mutant(
        "carry lost at a day border",
        "outputs/make.py",
        'yield chunk, opening.up_to(chunk.frame["user_id"][-1])',
        'yield chunk, opening.up_to(chunk.frame["user_id"][-1]).clear()',
        ("test_splitting.py",),
    ),
    Mutant(
        "a buffer that is written again is handed out",
        "chunks/transfer.py",
        "return buffer.to(self.device, copy=True)",
        "return buffer.to(self.device)",
        ("test_device.py",),
    ),
    Mutant(
        "what a device had no memory for is half forgotten",
        "outputs/engine.py",
        "waiting += reversed(halves(chunk))",
        "waiting += halves(chunk)[:1]",
        ("test_device.py",),
    ),
    Mutant(
        "searchsorted without an equality test",
        "vocabularies/slots.py",
        "np.where(self._values[positions] == wanted, self._numbers[positions], self._absent)",
        "self._numbers[positions]",
        ("test_vocabulary_pieces.py",),
    ),
    Mutant(
        "vocabulary order by first appearance",
        "vocabularies/day.py",
        "return _unique([found, *waiting]).drop_nulls().sort()",
        "return _unique([found, *waiting]).drop_nulls()",
        ("test_splitting.py", "test_vocabulary_pieces.py"),
    ),
    Mutant(
        "absent users dropped",
        "state/make.py",
        "for file in self._files[:first]:",
        "for file in self._files[:0]:",
        ("test_state_history.py",),
    ),
    Mutant(
        "the oldest row of a user wins",
        "state/closing.py",
        "for file in reversed(self._files):",
        "for file in self._files:",
        ("test_state_closing.py",),
    ),
    Mutant(
        "what is merged is believed",
        "checks/state.py",
        "elif parts.merged is not None:",
        "elif False:",
        ("test_state_history.py",),
    ),
    Mutant(
        "state keyed by index",
        "outputs/engine.py",
        "carried_tensors(feature, opening, users,",
        "carried_tensors(feature, opening, self._users.index_of(users).cast(users.dtype),",
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
        "outputs/make.py",
        "            staging.write(table)\n            content.update(table)\n            rows += table.height",
        "            if rows + table.height < events.rows:\n                staging.write(table)\n                content.update(table)\n"
        "            rows += table.height",
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
        "self._rows_in[taken.days] += taken.rows",
        "self._rows_in[taken.days] += [sum(rank[taken.positions[taken.day == self._numbers[n]]] == 255) for n in taken.days]",
        ("test_events_days.py",),
    ),
    Mutant(
        "oracle sample empty",
        "checks/sampling.py",
        "return Sample(pl.Series(sorted(self.chosen()), dtype=like.dtype),",
        "return Sample(pl.Series(sorted(self.chosen())[:0], dtype=like.dtype),",
        ("test_publish.py", "test_proof_passes.py"),
    ),
    Mutant(
        "the loop looks at nothing",
        "checks/features.py",
        'differences += compare_columns(expected, found, columns, user_id=user, row_ids=found["row_id"])',
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
        "features are not compared with events",
        "checks/features.py",
        "if recorded is None or recorded.get(name) != present.get(name)",
        "if False",
        ("test_planted_errors.py",),
    ),
    Mutant(
        "a proof forgets the block before: first row of a block",
        "checks/feature_rows.py",
        "            before_us[0] = self._last[1]",
        "            before_us[0] = time_us[0]",
        ("test_proof_passes.py",),
    ),
    Mutant(
        "user_index is judged in first rows only",
        "checks/feature_rows.py",
        "        same = not changed.any() and",
        "        same = True or",
        ("test_planted_errors.py", "test_proof_passes.py"),
    ),
    Mutant(
        "a proof takes 0 for -0",
        "checks/invariants.py",
        "np.flatnonzero(gap_s.view(np.uint32) != found.view(np.uint32))",
        "np.flatnonzero(gap_s != found)",
        ("test_planted_errors.py", "test_proof_passes.py"),
    ),
    Mutant(
        "order is not looked at where a block ends",
        "checks/event_rows.py",
        "self.unordered += self._last >= first",
        "pass",
        ("test_planted_errors.py", "test_proof_passes.py"),
    ),
    Mutant(
        "a row_id may come twice",
        "checks/row_ids.py",
        "not self._strange and bool((self._seen == (ALL_BITS if self._in_bits else 1)).all())",
        "not self._strange",
        ("test_planted_errors.py", "test_proof_passes.py"),
    ),
    Mutant(
        "the sum of a user's gaps starts again in every block",
        "checks/invariants.py",
        "            sum_R[0] += self._open[3]",
        "            pass",
        ("test_proof_passes.py",),
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
        "first = FIRST_KNOWN + length\n",
        "first = FIRST_KNOWN + max(0, length - 1)\n",
        ("test_vocabularies.py", "test_splitting.py"),
    ),
    Mutant(
        "a stale day counts as current",
        "store/currency.py",
        "if used.lineage is not None and version_of(used.lineage.content_version, role) != version:",
        "if used.lineage is None:",
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

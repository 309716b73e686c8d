"""Proofs about `user_state`: nobody is forgotten, nothing is invented."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.checks.closing import Parts, all_rows, blocks_of, not_linked, rows_of, some_users
from pipeline.checks.differences import difference, differences, lacking
from pipeline.checks.findings import Findings
from pipeline.checks.oracle import compare
from pipeline.checks.reading import (
    Subject,
    damaged_files,
    prove_files,
    prove_manifest,
    prove_schemas,
    range_problems,
    states_by_user,
)
from pipeline.checks.sampled_rows import HELD_ROWS
from pipeline.checks.sampling import Sample, choose_users
from pipeline.checks.state_loop import fold_users
from pipeline.contracts import Column
from pipeline.state import state_columns, state_recipe
from pipeline.store import (
    POLARS_DTYPES,
    ContentHash,
    DataFile,
    Manifest,
    previous,
    read_blocks,
    read_files,
    require_current,
    row_hash_sum,
)

ABSENT_USERS = 200
ABSENT_GROUPS = 4  # row groups that they are drawn from
USERS_AT_ONCE = 1 << 20
EVENTS_AT_ONCE = 1 << 20
MASK_128 = (1 << 128) - 1


def prove_state(subject: Subject, findings: Findings, *, deep: bool) -> dict[str, Any]:
    """Proves a day of carried state.

    A day that is about to be published is proven by what it adds to the day before: the files that it takes over are
    that day's. Of a published day all of `closing` is read.

    Args:
        subject: The day.
        findings: Where to note.
        deep: Folds the sampled users from the first day on, instead of from yesterday's `closing`.
    """
    manifest = subject.manifest
    before = _day_before(subject)
    counts = _count_users(subject)
    parts = None if manifest.proof else Parts.of(manifest, before, users=counts.height)
    kept = [] if parts is None else parts.kept
    taken_over = {file.path for file in kept} - {
        file.path for file in not_linked(kept, manifest, before, subject.store)
    }
    own = [file for file in manifest.files if file.path not in taken_over]
    prove_files(replace(subject, manifest=replace(manifest, files=own)), findings)
    if parts is not None and before is not None:
        _prove_former(subject, before, findings)
    if any(not finding.passed for finding in findings.found):
        return {}
    columns = state_columns(subject.features, subject.dataset)
    recipe = state_recipe(day=manifest.day, dataset=subject.dataset, features=subject.features, store=subject.store)
    proof = _StateProof(subject, findings, columns, before, parts)
    sums = proof.prove_own_files(own)
    if sums is None:
        return {}
    prove_manifest(subject, columns, recipe.inputs, findings)
    proof.prove_closing(counts.height, proof.prove_day(counts["user_id"]), sums)
    absent = proof.prove_absent(counts["user_id"])
    none = counts["user_id"].head(0)
    seen_before = proof.read("opening").select("user_id").collect().to_series()
    sample = choose_users(counts, seed=str(manifest.day), tied=none, at_borders=none, seen_before=seen_before)
    with findings.timed("the loop over sampled users"):
        sampled = counts.filter(pl.col("user_id").is_in(sample.users.implode())).sort("events")
        giants = sampled.filter(pl.col("events").cum_sum() > HELD_ROWS)["user_id"]
        wrong, rows = proof.fold_sample(sample, giants, deep=deep)
    name = "closing = the loop from the first day on" if deep else "closing = the loop from opening over the day"
    findings.expect_none(name, wrong)
    return sample.figures(rows) | {"absent_users_proven": absent}


@dataclass(frozen=True, slots=True)
class _DaySums:
    """What the day's users had and have.

    Attributes:
        opened: How many of them were seen before.
        left: The sum of the hashes of their former rows.
        came: The sum of the hashes of their rows now.
    """

    opened: int
    left: int
    came: int


@dataclass(frozen=True, slots=True)
class _StateProof:
    """The proofs of one day."""

    subject: Subject
    findings: Findings
    columns: list[Column]
    before: Manifest | None
    parts: Parts | None

    @property
    def folder(self) -> Path:
        return self.subject.store.directory("user_state", self.subject.manifest.day)

    @property
    def folder_before(self) -> Path:
        return self.subject.store.directory("user_state", previous(self.subject.manifest.day))

    @property
    def former(self) -> Sequence[DataFile]:
        return self.before.of_role("closing") if self.before else []

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return {column.name: POLARS_DTYPES[column.dtype] for column in self.columns}

    @property
    def closing(self) -> Sequence[DataFile]:
        return self.subject.manifest.of_role("closing")

    @property
    def of_the_day(self) -> Sequence[DataFile]:
        """The files that hold the latest rows of the day's users."""
        return self.closing if self.parts is None else self.parts.new

    def read(self, role: str) -> pl.LazyFrame:
        return read_files(self.folder, self.subject.manifest.of_role(role), self.schema)

    def prove_own_files(self, own: Sequence[DataFile]) -> dict[str, int] | None:
        """Every row of the files that the day wrote itself.

        Returns:
            File of `closing` -> the sum of the hashes of its rows; None when no more can be proven about them.
        """
        findings, sums = self.findings, dict[str, int]()
        for role in ("opening", "closing"):
            files = [file for file in own if file.role == role]
            if not prove_schemas(
                [self.folder / file.path for file in files],
                self.columns,
                findings,
                name=f"columns of {role} are as declared",
            ):
                return None
            problems, misstated, ascending = [], [], True
            with findings.timed("reading back"):
                for file in files:
                    highest, total = None, 0
                    for rows, wrong in blocks_of(self.folder / file.path, list(self.schema)):
                        problems += range_problems(rows, self.columns)
                        users = rows["user_id"]
                        ascending &= bool((users.shift(-1) > users).fill_null(value=True).all())
                        ascending &= highest is None or highest < users[0]
                        highest, misstated = users[-1], misstated + wrong
                        total += row_hash_sum(rows) if role == "closing" and not problems else 0
                    sums[file.path] = total
            findings.expect_none(f"values of {role} are within their declared ranges", problems)
            findings.expect(f"{role} ascends by user_id, one row a user", expected=True, found=ascending)
            findings.expect(f"row groups of {role} state the users that they hold", expected=[], found=misstated)
        return sums if all(finding.passed for finding in findings.found) else None

    def prove_day(self, users: pl.Series) -> _DaySums:
        """`opening`, and that `closing` has the day's users."""
        findings, manifest = self.findings, self.subject.manifest
        content, differing, absent, opened, left, came = ContentHash(), [], [], 0, 0, 0
        with findings.timed("the day's users, before and after"):
            for start in range(0, users.len(), USERS_AT_ONCE):
                some = users[start : start + USERS_AT_ONCE]
                should_open = rows_of(self.folder_before, self.former, some, self.schema)
                opening = self.read("opening").slice(opened, should_open.height).collect()
                differing += differences(should_open, opening, self.columns)
                content.update(opening)
                now = rows_of(self.folder, self.of_the_day, some, self.schema)
                absent += [difference(user, "user_id", "a row", "none") for user in lacking(some, now["user_id"])]
                opened, left, came = (
                    opened + should_open.height,
                    left + row_hash_sum(should_open),
                    came + row_hash_sum(now),
                )
        needless = self.read("opening").slice(opened).head(1).collect()["user_id"].to_list()
        differing += [difference(user, "user_id", "no row", "a row") for user in needless]
        written = sum(file.rows for file in manifest.of_role("opening"))
        findings.expect("rows = users in opening", expected=written, found=manifest.rows)
        findings.expect_none("opening = yesterday's closing of the day's users", differing)
        findings.expect_none("closing has a row for every user of the day", absent)
        findings.expect(
            "version of opening is that of its rows", expected=manifest.version("opening"), found=content.hexdigest()
        )
        return _DaySums(opened, left, came)

    def prove_closing(self, users: int, day: _DaySums, sums: dict[str, int]) -> None:
        """All of `closing`: by what the day adds to the day before, and row by row where that cannot be told."""
        findings, manifest, before, parts = self.findings, self.subject.manifest, self.before, self.parts
        rows: int = manifest.counts["closing_rows"]
        counted = {"users": users, "new_users": users - day.opened, "closing_rows": rows}
        findings.expect("users as recorded", expected=counted, found=dict(manifest.counts))
        rows_before: int = before.counts["closing_rows"] if before else 0
        version_before = int(before.version("closing"), 16) if before else 0
        if before is not None and [column["name"] for column in before.columns] != list(self.schema):
            _, version_before = _total(self.folder_before, self.former, self.schema)
        findings.expect(
            "version of closing = yesterday's, without the rows that left, with those that came",
            expected=f"{(version_before - day.left + day.came) & MASK_128:032x}",
            found=manifest.version("closing"),
        )
        findings.expect(
            "rows of closing = yesterday's + users without opening",
            expected=rows_before + users - day.opened,
            found=rows,
        )
        with findings.timed("all rows of closing"):
            if parts is None:
                found, total = _total(self.folder, self.closing, self.schema)
                findings.expect(
                    "version of closing is the sum over its rows",
                    expected=[rows, manifest.version("closing")],
                    found=[found, f"{total:032x}"],
                )
            elif parts.merged is not None:
                expected, total = _total(self.folder_before, parts.sources, self.schema)
                findings.expect(
                    "a merged file holds the latest rows of those that it replaces",
                    expected=[expected, f"{total:032x}"],
                    found=[parts.merged.rows, f"{sums[parts.merged.path] & MASK_128:032x}"],
                )

    def prove_absent(self, users: pl.Series) -> int:
        """A sample of the users who are absent today; how many were looked at."""
        draw = random.Random(str(self.subject.manifest.day))
        chosen = [draw.random() for _ in range(ABSENT_GROUPS)]
        with self.findings.timed("users absent today"):
            known = some_users(self.folder_before, self.former, chosen, self.schema["user_id"])
            absent = known.filter(~known.is_in(users.implode()))
            size = min(absent.len(), ABSENT_USERS)
            absent = absent.gather(sorted(draw.sample(range(absent.len()), size)))
            then = rows_of(self.folder_before, self.former, absent, self.schema)
            now = rows_of(self.folder, self.closing, absent, self.schema)
            differing = differences(then, now, self.columns)
        self.findings.expect_none("closing of users absent today is unchanged", differing)
        return size

    def fold_sample(self, sample: Sample, giants: pl.Series, *, deep: bool) -> tuple[list[dict[str, Any]], int]:
        """The carried values that the loop does not confirm, and how many events it went through.

        Args:
            sample: The users.
            giants: Those of them whose events are not held together with those of the others.
            deep: Goes through all days.
        """
        latest = rows_of(self.folder, self.of_the_day, sample.users, self.schema)
        found = {row["user_id"]: row for row in latest.iter_rows(named=True)}
        openings = None if deep else states_by_user(self.read("opening"), sample.users)
        wrong: list[dict[str, Any]] = []
        seen = 0
        for user, state, events in fold_users(self.subject, sample.users, giants, openings):
            seen += events
            written = found.get(user)
            if written is None:
                wrong.append(difference(user, "user_id", "a row", "none"))
                continue
            wrong += compare([state], [written], self.columns[1:], user_id=user, row_ids=[None])
        return wrong, seen


def _day_before(subject: Subject) -> Manifest | None:
    if subject.manifest.day == subject.dataset.partitions.start:
        return None
    return require_current(subject.store, "user_state", previous(subject.manifest.day), subject.dataset)


def _count_users(subject: Subject) -> pl.DataFrame:
    """user_id and events of every user of the day, ascending."""
    events = subject.input("events")
    blocks = read_blocks(
        subject.store.directory("events", events.day), events.files, ["user_id"], block_rows=EVENTS_AT_ONCE
    )
    dtype = POLARS_DTYPES[subject.dataset.columns.user_id.type]
    counts = [pl.DataFrame(schema={"user_id": dtype, "events": pl.Int64})]
    for block in blocks:
        runs = block["user_id"].rle().struct
        counts.append(pl.DataFrame({"user_id": runs.field("value"), "events": runs.field("len").cast(pl.Int64)}))
    return pl.concat(counts).group_by("user_id").agg(pl.col("events").sum()).sort("user_id")


def _prove_former(subject: Subject, before: Manifest, findings: Findings) -> None:
    """The files that the day looks its users up in, and takes over, are as they were written: footers have no checksum."""
    folder = subject.store.directory("user_state", before.day)
    with findings.timed("checksums of yesterday's closing"):
        damaged = damaged_files(replace(subject, manifest=replace(before, files=before.of_role("closing"))))
    found = [str(folder / path) for path in damaged]
    findings.expect("files of yesterday's closing have their recorded checksums", expected=[], found=found)


def _total(folder: Path, files: Sequence[DataFile], schema: dict[str, pl.DataType]) -> tuple[int, int]:
    """How many users some files hold, and the sum of the hashes of their latest rows."""
    rows = total = 0
    for block in all_rows(folder, files, schema):
        rows += block.height
        total += row_hash_sum(block)
    return rows, total & MASK_128

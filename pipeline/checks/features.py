"""Proofs about `features`: the same rows as `events`, and the values that the loop gives."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from pipeline.checks.blocks import side_by_side
from pipeline.checks.distributions import by_gap
from pipeline.checks.feature_rows import ACTION_CODE, FeatureRows, Past
from pipeline.checks.findings import FIRST_DIFFERENCES, Findings
from pipeline.checks.invariants import Difference, codes_of_one_hots, moved_rows, wrong_one_hots
from pipeline.checks.oracle import LOOP_ROWS, Loop, compare_columns, uncollected
from pipeline.checks.reading import Subject, events_of, of_whole_files, prove_manifest, prove_schemas, states_by_user
from pipeline.checks.reverse import ReverseLookUp
from pipeline.checks.sampled_rows import SampledRows
from pipeline.checks.sampling import Draw, Sample
from pipeline.config import Dataset
from pipeline.features import output_columns
from pipeline.outputs import feature_columns, features_recipe
from pipeline.store import Manifest
from pipeline.vocabularies import DayIds

IDENTITY = ("row_id", "user_id", "item_id", "timestamp")


def prove_features(subject: Subject, findings: Findings) -> dict[str, Any]:
    """Proves a day of features against its events, with one pass over its rows.

    Args:
        subject: The day.
        findings: Where to note.
    """
    proof = of_whole_files(lambda looked: _look_at_rows(subject, looked, findings), findings, subject)
    return {} if proof is None else proof.prove(findings)


def _look_at_rows(subject: Subject, looked: Findings, findings: Findings) -> "_Proof | None":
    """Looks at every row once; None when the day is not such that this would make sense."""
    columns = feature_columns(subject.features, subject.dataset)
    prove_schemas(subject.paths(), columns, looked, name="columns are as declared")
    recipe = features_recipe(
        day=subject.manifest.day, dataset=subject.dataset, features=subject.features, store=subject.store
    )
    prove_manifest(subject, columns, recipe.inputs, looked)
    events = subject.input("events")
    looked.expect("as many rows as events", expected=events.rows, found=subject.manifest.rows)
    if not all(finding.passed for finding in looked.found):
        return None
    with findings.timed("ids of the day in the vocabularies"):
        proof = _Proof(subject, events)
    only_events = _only_in_events(subject.dataset)
    pairs = _beside(
        subject.blocks([column.name for column in columns]),
        subject.blocks(only_events, of=events) if only_events else None,
    )
    for frame, beside in findings.waiting("reading back, waited for", pairs):
        with findings.timed("every row"):
            proof.rows.add(frame, beside)
    proof.rows.finish()
    return proof


class _Proof:
    """What the pass over all rows is given, and what follows from it."""

    def __init__(self, subject: Subject, events: Manifest) -> None:
        self._subject, self._events = subject, events
        self._opening = subject.rows("opening", of=subject.input("user_state"))
        past = self._opening.select("user_id", "core.last_timestamp_us").collect()
        self._past_users = past["user_id"]
        self._population = subject.input("user_vocabulary").rows
        self._draw = Draw(seed=str(subject.manifest.day), population=self._population)
        self._sampled = SampledRows(self._draw)
        self.rows = FeatureRows(
            columns=feature_columns(subject.features, subject.dataset),
            action_names=subject.dataset.action_names,
            past=Past(past["user_id"], past["core.last_timestamp_us"].to_numpy()),
            look_up={name: _look_up(subject, name) for name in ("user", "item")},
            borders=_borders(subject.manifest),
            sampled=self._sampled,
        )

    def prove(self, findings: Findings) -> dict[str, Any]:
        """Notes what was found, and goes through the sampled users with the loop."""
        rows, manifest = self.rows, self._subject.manifest
        moved, wrong_actions = self._compare_with_events(findings)
        findings.expect_none("same rows as events, in the same order", moved)
        findings.expect_none("values are within their declared ranges", rows.problems)
        findings.expect_none("the one-hot marks the action and nothing else", wrong_actions)
        findings.expect_none("every time_diff and is_first = shifted timestamps", rows.wrong_times)
        findings.expect_none("time_diff adds up to each user's time span", rows.totals.wrong)
        findings.expect_none("indices are those of the vocabularies", rows.wrong_indices)
        findings.expect(
            "events an action = sum of its one-hot",
            expected=list(self._events.counts["by_action"].values()),
            found=rows.hot.tolist(),
        )
        findings.expect("users = rows of user_vocabulary", expected=self._population, found=rows.users)
        findings.expect(
            "is_first = users without opening", expected=rows.users - self._past_users.len(), found=rows.firsts
        )
        findings.expect(
            "content version is that of the rows on disk", expected=manifest.version(), found=rows.content.hexdigest()
        )
        figures: dict[str, Any] = {"rows_covered": manifest.rows}
        if not moved and not wrong_actions:  # else the loop would not be given the events
            sample = self._draw.sample(self._past_users)
            with findings.timed("the loop over sampled users"), uncollected():
                differences, proven = self._loop(sample)
            findings.expect_none("values of sampled users = the loop", differences)
            figures |= sample.figures(proven)
        return figures | {"time_diff": by_gap(rows.gaps)}

    def _compare_with_events(self, findings: Findings) -> tuple[list[Difference], list[Difference]]:
        """What differs from the events in identity and kept columns, and in the action.

        Each column has the hash that the proof of `events` recorded of the same column, as it read it back from disk: then
        all values are the same, in the same rows. Otherwise both are read side by side, to tell where they differ.
        """
        dataset = self._subject.dataset
        kept = [column.name for column in dataset.extra_columns if dataset.extra[column.name].keep]
        names = [*IDENTITY, *kept]
        recorded: Mapping[str, str] | None = self._events.proof.get("figures", {}).get("column_hashes")
        present = self.rows.content.columns() | self.rows.actions.columns() | self.rows.beside.columns()
        compared = (*names, *_only_in_events(dataset), "action")
        differing = [name for name in compared if recorded is None or recorded.get(name) != present.get(name)]
        if not self.rows.one_hots and "action" not in differing:
            differing.append("action")
        if not differing:
            return [], []
        with findings.timed("finding where events differ"):
            moved, wrong_actions = self._differences(names)
        if recorded is not None:  # none that is found would mean that the events on disk are no longer those proven
            hashes = [
                {"column": name, "expected": recorded.get(name), "found": present.get(name)} for name in differing
            ]
            moved = moved or [entry for entry in hashes if entry["column"] != "action"]
            wrong_actions = wrong_actions or [entry for entry in hashes if entry["column"] == "action"]
        return moved, wrong_actions

    def _differences(self, names: list[str]) -> tuple[list[Difference], list[Difference]]:
        subject, actions = self._subject, self._subject.dataset.action_names
        moved: list[Difference] = []
        wrong_actions: list[Difference] = []
        hots = [f"action_{name}" for name in actions]
        for events, features in side_by_side(
            subject.blocks([*names, "action"], of=self._events), subject.blocks([*names, *hots])
        ):
            moved += moved_rows(events, features, names)
            wrong_actions += wrong_one_hots(events, features, actions)
            if len(moved) + len(wrong_actions) >= FIRST_DIFFERENCES:
                break
        return moved, wrong_actions

    def _loop(self, sample: Sample) -> tuple[list[Difference], int]:
        """The loop over sampled users, from the opening state over the day's events."""
        subject = self._subject
        columns = output_columns(subject.features, subject.dataset)
        names = ["row_id", *(column.name for column in columns)]
        openings = states_by_user(self._opening, sample.users)
        differences: list[Difference] = []
        proven = 0
        for user, held in self._sampled.of_users(sample.users):
            loop = Loop(subject.features, openings.get(user))
            pieces = self._read_again(user) if held is None else held
            for rows in (part for piece in pieces for part in piece.iter_slices(LOOP_ROWS)):
                actions = map(subject.dataset.action_names.__getitem__, rows[ACTION_CODE].to_list())
                expected = loop.step(events_of(user, rows, actions, subject.dataset))
                found = {name: rows[name].to_list() for name in names}
                differences += compare_columns(expected, found, columns, user_id=user, row_ids=found["row_id"])
                proven += rows.height
        return differences, proven

    def _read_again(self, user: int | str) -> Iterator[pl.DataFrame]:
        """The rows of a user who has too many to hold them, as `SampledRows` would."""
        subject, actions = self._subject, self._subject.dataset.action_names
        columns = [column.name for column in feature_columns(subject.features, subject.dataset)]
        only_events = _only_in_events(subject.dataset)
        for frame, beside in _beside(
            subject.blocks(columns, user=user),
            subject.blocks(["user_id", *only_events], of=self._events, user=user) if only_events else None,
        ):
            codes = codes_of_one_hots(frame, actions)
            assert codes is not None, "the loop would not run"
            yield frame.hstack([pl.Series(ACTION_CODE, codes), *beside.select(only_events).iter_columns()])


def _beside(
    rows: Iterator[pl.DataFrame], events: Iterator[pl.DataFrame] | None
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Rows of features, with those of events at the same positions where these are needed."""
    return ((frame, pl.DataFrame()) for frame in rows) if events is None else side_by_side(rows, events)


def _only_in_events(dataset: Dataset) -> list[str]:
    """Extra columns that features do not keep; the loop needs them all the same."""
    return [column.name for column in dataset.extra_columns if not dataset.extra[column.name].keep]


def _borders(manifest: Manifest) -> np.ndarray:
    """First and last row of every file, counted over all files, ascending int64."""
    ends = np.cumsum([file.rows for file in manifest.files if file.rows], dtype=np.int64)
    return np.unique(np.concatenate([np.append(0, ends[:-1]), ends - 1])) if len(ends) else ends


def _look_up(subject: Subject, name: str) -> ReverseLookUp:
    day = subject.manifest.day
    return ReverseLookUp(DayIds.read(subject.store, f"{name}_vocabulary", day, subject.dataset))

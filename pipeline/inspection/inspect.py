"""From files to a proposed dataset file: sample, propose, read all of it, and look again where the sample was wrong."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

from pipeline.config import Dataset, load_dataset
from pipeline.contracts import PipelineError
from pipeline.inspection.counts import Counts, count
from pipeline.inspection.figures import DEFAULT_SHARE, say_counts, say_sample_days, set_days
from pipeline.inspection.header import TYPES
from pipeline.inspection.places import Place, expand, place_of, share_of_days, undated
from pipeline.inspection.propose import Evidence, Proposal, propose
from pipeline.inspection.sample import raw_file, take_sample
from pipeline.inspection.words import name_score
from pipeline.sources import RawFile, find_files

MOST_PASSES = 4
NO_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
NAME = re.compile(r"[A-Za-z0-9_.-]*[A-Za-z0-9][A-Za-z0-9_.-]*")  # not `..`, which as a store is a folder above
# Names that many logs bear: two datasets of one name would share a store.
COMMON_NAME = re.compile(
    r"(?:access|access_log|data|dataset|day|dump|event|events|export|file|input|log|logs|output|part|raw|records|sample|"
    r"test|train)?[-_.\d]*(?:part[-_.\d].*)?",
    re.IGNORECASE,
)


def inspect_log(
    paths: Sequence[Path], *, folder: Path, name: str | None, quick: bool, report: Callable[[str], None]
) -> str:
    """Proposes a dataset file for an unknown log.

    Args:
        paths: Files, or folders of files, of one log.
        folder: Where the dataset file is to lie; its paths are relative to it.
        name: Name of the dataset; None takes that of the files.
        quick: Whether to stop at the sample instead of reading all rows.
        report: Gets a line of progress now and then.

    Returns:
        The dataset file as TOML, with the reasons as comments; `load_dataset` accepts it.

    Raises:
        PipelineError: A file cannot be read, no layout fits, or the name holds other than letters, digits and _.-
    """
    if name is not None and NAME.fullmatch(name) is None:
        raise PipelineError(f"--name {name!r}: expected letters, digits and the signs _ . - alone; give another name")
    files, left_out = expand(paths)
    chosen = sorted({0, len(files) // 2, len(files) - 1})
    samples = [take_sample(files[at]) for at in chosen]
    place = place_of(files, folder)
    hive = {key: [_hive_value(files[at], key) for at in chosen] for key in place.hive}
    evidence = Evidence(samples, hive=hive)
    name = name or _name_of(files, folder)
    proposal = propose(evidence)
    _say_place(proposal, place, name)
    counts = None
    if not quick:
        proposal, place, counts = _read_all(proposal, evidence, place, files, folder, name, report)
        say_counts(proposal, counts, place)
    else:
        say_sample_days(proposal, place)
    if left_out:
        names = ", ".join(file.name for file in left_out[:3]) + (", ..." if len(left_out) > 3 else "")
        proposal.draft.doubt(f"path: {len(left_out)} files of other kinds were left out: {names}")
    user = proposal.draft.get("columns", "user_id")
    if len(files) > 1 and not place.days and not proposal.preset and not name_score(user["from"], "user_id"):
        proposal.draft.doubt(
            "user_id: if each file holds one user, put it into a folder that names the user, as user=7/log.csv, and inspect again: "
            "[source] hive = true makes a column of that"
        )
    _doubt_other_files(proposal, place, files, folder)
    root = proposal.draft.get("store", "root")
    if (folder / root).exists():
        proposal.draft.doubt(f"store: {root} exists; if another dataset wrote it, write another name and another root")
    text = proposal.draft.render(_heading(files, counts))
    _load(text, folder)
    return text


def _read_all(
    proposal: Proposal,
    evidence: Evidence,
    place: Place,
    files: Sequence[Path],
    folder: Path,
    name: str,
    report: Callable[[str], None],
) -> tuple[Proposal, Place, Counts]:
    """Reads all rows, and proposes again as long as what was refused teaches something new."""
    best: tuple[Proposal, Place, Counts] | None = None
    for attempt in range(MOST_PASSES):
        set_days(proposal, date(1990, 1, 1), None)
        dataset = _load(proposal.draft.render("draft"), folder)
        counts = count(dataset, _raw_files(files, place), report)
        found = (proposal, place, counts)
        if best is None or _cost(counts) <= _cost(best[2]):
            best = found
        if place.days and share_of_days(counts.distances)[2] > 0.01:
            place = undated(place, files, folder)
        learnt = _learnt(proposal, evidence, counts, dataset.columns.action.from_)
        former = proposal.draft.tables
        if attempt + 1 == MOST_PASSES or (learnt is None and place is found[1]):
            break
        evidence = learnt or evidence
        proposal = propose(evidence)
        _say_place(proposal, place, name)
        set_days(proposal, date(1990, 1, 1), None)
        if proposal.draft.tables == former:
            # The same keys, but what was refused may have given it a doubt.
            best = (proposal, place, counts) if best[2] is counts else best
            break
    assert best is not None
    return best


def _cost(counts: Counts) -> tuple[int, int]:
    """What speaks against a proposal: sentences that stop a run, and rows that it cannot read."""
    unread = sum(rows for reason, rows in counts.reasons.items() if not reason.startswith("missing_"))
    return len(counts.problems), unread


def _learnt(proposal: Proposal, evidence: Evidence, counts: Counts, action: str | None) -> Evidence | None:
    """The evidence with what the pass found; None when there is nothing new to look at."""
    learnt = evidence
    # The name of the column, or of a type, is what a header in the middle of the file says.
    headers = {action, *(name for name in counts.unknown if name.strip().lower() in TYPES)}
    if any(name not in headers for name in counts.unknown):
        ranked = counts.actions + counts.unknown
        ordered = sorted(ranked, key=lambda name: (-ranked[name], name))
        learnt = replace(learnt, actions=tuple(name for name in ordered if name not in headers))
    if counts.refused:
        learnt = replace(learnt, refused=[*evidence.refused, *counts.refused])
    quoted = [line for line in counts.refused_lines if '"' in line]
    if (counts.open_lines > 1 or quoted) and not evidence.plain_quotes:
        learnt = replace(learnt, plain_quotes=True)
    telling = sum(rows for reason, rows in counts.reasons.items() if not reason.startswith(("missing_", "unknown_")))
    if proposal.preset and (
        counts.problems or telling > DEFAULT_SHARE * counts.rows or counts.reasons["id_out_of_range"]
    ):
        learnt = replace(learnt, use_preset=False)
    return None if learnt is evidence else learnt


def _say_place(proposal: Proposal, place: Place, name: str) -> None:
    draft = proposal.draft
    draft.tables = {
        "": {"name": name, **draft.tables.get("", {})},
        **{key: keys for key, keys in draft.tables.items() if key},
    }
    draft.tables["source"] = {"path": place.path, **draft.tables.get("source", {})}
    draft.reasons["source", "path"] = place.reason
    if place.hive:
        draft.say("source", "hive", True, f"folders name {', '.join(place.hive)}")
    draft.remark("source", place.note)
    draft.say("store", "root", f"out/{name}", "all that a run writes")


def _doubt_other_files(proposal: Proposal, place: Place, files: Sequence[Path], folder: Path) -> None:
    """Says so when the path matches files that were not given."""
    dataset = _load(proposal.draft.render("draft"), folder)
    matched = {file.path.resolve() for day in set(place.days) or {None} for file in find_files(dataset, day)}
    others = sorted(matched - {file.resolve() for file in files})
    if others:
        proposal.draft.doubt(f"path: it matches {len(others)} files that were not looked at, such as {others[0]}")


def _heading(files: Sequence[Path], counts: Counts | None) -> str:
    size = sum(file.stat().st_size for file in files)
    names = f", {files[0].name} to {files[-1].name}" if files[0].name != files[-1].name else ""
    what = f"{files[0].name}" if len(files) == 1 else f"{len(files)} files{names}"
    if counts is None:
        return f"Proposed for {what} ({size:,} bytes) from a sample of the rows."
    if not counts.rows:
        return f"Proposed for {what} ({size:,} bytes) from a sample; as it stands, a run cannot read it."
    found = f"{counts.accepted:,} are accepted" if counts.accepted < counts.rows else "all are accepted"
    ids = "" if counts.users is None or not counts.users else f": {counts.users:,} users, {counts.items:,} items"
    return f"Proposed for {what} ({size:,} bytes) after reading all of its {counts.rows:,} rows; {found}{ids}."


def _raw_files(files: Sequence[Path], place: Place) -> list[RawFile]:
    found = [raw_file(file) for file in files]
    return [replace(file, day=day) for file, day in zip(found, place.days, strict=True)] if place.days else found


def _hive_value(file: Path, key: str) -> str:
    return next((unquote(part.partition("=")[2]) for part in file.absolute().parts if part.startswith(f"{key}=")), "")


def _name_of(files: Sequence[Path], folder: Path) -> str:
    """A name for the dataset: that of the file, or of the nearest folder of several that names more than a day.

    Before a name that many logs bear stands that of the folder around it, up to `folder`: shop_events.
    """
    first = files[0].absolute()
    around = [path for path in first.parents if "=" not in path.name and re.search("[A-Za-z]", path.name)]
    # In the folder of the dataset file and in those around it, a folder's name tells no two logs apart.
    apart = [path.name for path in around if not folder.absolute().is_relative_to(path)]
    nearest = first.name.split(".")[0] if len(files) == 1 else around[0].name if around else ""
    parts = [_plain(nearest) or "log"]
    for other in filter(None, map(_plain, apart if len(files) == 1 else apart[1:])):
        if COMMON_NAME.fullmatch(parts[0]) is None:
            break
        parts.insert(0, other)
    return "_".join(parts)


def _plain(text: str) -> str:
    return NO_NAME.sub("_", text).strip("_.-")


def _load(text: str, folder: Path) -> Dataset:
    """The text as a dataset file in `folder`.

    Raises:
        PipelineError: It is no dataset file, which is a mistake here and not of the user.
    """
    with TemporaryDirectory() as place:
        file = Path(place) / "draft.toml"
        file.write_text(text, encoding="utf-8")
        return load_dataset(file).model_copy(update={"file": folder.absolute() / "dataset.toml"})

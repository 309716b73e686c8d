"""`[source] path` for some files: as it is, with the day in its place, or as a glob."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from pipeline.contracts import PipelineError
from pipeline.sources.stream import split_extension

# How a day stands in a path -> how `{date}` says so.
DAYS = {
    r"year=\d{4}/month=\d{2}/day=\d{2}": "year={date:%Y}/month={date:%m}/day={date:%d}",
    r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)": "{date}",
    r"(?<!\d)\d{4}/\d{2}/\d{2}(?!\d)": "{date:%Y/%m/%d}",
    r"(?<!\d)\d{4}_\d{2}_\d{2}(?!\d)": "{date:%Y_%m_%d}",
    r"(?<!\d)\d{4}\.\d{2}\.\d{2}(?!\d)": "{date:%Y.%m.%d}",
    r"\d{4}-[A-Z][a-z]{2}-\d{2}": "{date:%Y-%b-%d}",
    r"(?<!\d)(?:19|20)\d{6}(?!\d)": "{date:%Y%m%d}",
}
FORMATS = {"year={date:%Y}/month={date:%m}/day={date:%d}": "year=%Y/month=%m/day=%d", "{date}": "%Y-%m-%d"}
HIVE = re.compile(r"[A-Za-z_]\w*=[^/{]*")
GLOB = re.compile(r"[*?]")


@dataclass(frozen=True)
class Place:
    """Where the files are.

    Attributes:
        path: `[source] path`, relative to `folder`.
        reason: What says so.
        days: The day of each file, in the order given; empty when the path holds no `{date}`.
        hive: Keys of folders such as `country=de` that are no days.
        note: What else is worth knowing.
    """

    path: str
    reason: str = ""
    days: tuple[date, ...] = ()
    hive: tuple[str, ...] = field(default=())
    note: str = ""


def expand(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """The files that are named, those of a folder at any depth.

    Of a folder only the files of one kind are taken, the kind with the most bytes; hidden ones are left out.

    Returns:
        The files in bytewise order, and those of other kinds that were left out.

    Raises:
        PipelineError: A folder holds no files.
    """
    found: dict[Path, None] = {}
    left_out: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found[path] = None
            continue
        inside = [file for file in sorted(path.rglob("*")) if file.is_file()]
        inside = [file for file in inside if not any(part[0] in "._" for part in file.relative_to(path).parts)]
        if not inside:
            raise PipelineError(f"{path}: the folder holds no files; give the path of a log")
        kinds: dict[tuple[str, str], list[Path]] = {}
        for file in inside:
            kinds.setdefault(split_extension(file.name), []).append(file)
        taken = max(kinds.values(), key=lambda files: sum(file.stat().st_size for file in files))
        found.update(dict.fromkeys(taken))
        left_out += [file for file in inside if file not in set(taken)]
    return sorted(found, key=os.fsencode), left_out


def place_of(files: Sequence[Path], folder: Path) -> Place:
    """`[source] path` for some files.

    Args:
        files: The files, in bytewise order.
        folder: The folder that the path is relative to.

    Raises:
        PipelineError: A name holds what would be a glob.
    """
    names = [os.path.relpath(file.absolute(), folder.absolute()) for file in files]
    for name in names:
        if GLOB.search(name) or "{" in name:
            raise PipelineError(
                f"{name}: * ? and {{ in a path have a meaning of their own; rename the file or its folder"
            )
    dated = [_dated(name) for name in names]
    days = [day for _, day in dated if day is not None]
    hive = _hive_keys(names)
    if len(files) == 1:
        template, day = dated[0]
        note = f'if more such files follow, one a day: path = "{template}"' if day is not None else ""
        return Place(names[0], hive=hive, note=note)
    if len(days) == len(files) and len(set(days)) > 1:
        templates = [template for template, _ in dated]
        path = _common(templates) or _at_any_depth(templates, files, folder)
        if "{date" in path:
            return Place(path, f"{len(files)} files named by {len(set(days))} days", tuple(days), _hive_keys([path]))
    path = _common(names) or _at_any_depth(names, files, folder)
    return Place(path, f"all rows of {len(files)} files; each belongs to the day of its time", hive=hive)


def undated(place: Place, files: Sequence[Path], folder: Path) -> Place:
    """The same files without `{date}`, for files whose names are not the days of their rows."""
    names = [os.path.relpath(file.absolute(), folder.absolute()) for file in files]
    path = _common(names) or _at_any_depth(names, files, folder)
    return Place(
        path, "the days in the names are not those of the rows, so that each row says its own", hive=place.hive
    )


def _dated(name: str) -> tuple[str, date | None]:
    """A path with `{date}` where it names a day, and that day."""
    for pattern, template in DAYS.items():
        for match in reversed(list(re.finditer(pattern, name))):
            written = FORMATS.get(template) or template.removeprefix("{date:").removesuffix("}")
            try:
                day = datetime.strptime(match[0], written).date()  # noqa: DTZ007  (a day has no zone)
            except ValueError:
                continue
            path = name[: match.start()] + template + name[match.end() :]
            # Folders of the month above a file of the day.
            for part in ("%Y/%m/%d", "%Y/%m", "%Y-%m-%d", "%Y-%m", "%Y%m%d"):
                path = path.replace(f"{day.strftime(part)}/", f"{{date:{part}}}/")
            return path.replace("{date:%Y-%m-%d}", "{date}"), day
    return name, None


def _hive_keys(names: Sequence[str]) -> tuple[str, ...]:
    parts = {part.partition("=")[0] for name in names for part in name.split("/")[:-1] if HIVE.fullmatch(part)}
    return tuple(sorted(parts))


def _common(names: Sequence[str]) -> str | None:
    """One path with `*` where several differ; None when they are not equally deep, or not below one folder."""
    split = [name.split("/") for name in names]
    if len({len(parts) for parts in split}) > 1:
        return None
    if len({parts.count("..") for parts in split}) > 1:
        return None
    return "/".join(_merged(sorted(set(column))) for column in zip(*split, strict=True))


def _at_any_depth(names: Sequence[str], files: Sequence[Path], folder: Path) -> str:
    """One path for files that are not equally deep, below the folder that all of them lie in."""
    # As written, without following links, but for `..`, which names no folder.
    folders = [os.path.normpath(file.absolute().parent) for file in files]
    around = os.path.relpath(os.path.commonpath(folders), folder.absolute())
    last = _merged(sorted({name.split("/")[-1] for name in names}))
    return f"**/{last}" if around == "." else f"{around}/**/{last}"


def _merged(parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    start = _prefix(parts)
    end = _prefix([part[len(start) :][::-1] for part in parts])[::-1]
    # A digit that all have in common by chance is no part of the name.
    start, end = re.sub(r"\d+$", "", start), re.sub(r"^\d+", "", end)
    if "{" in start and "}" not in start[start.rindex("{") :]:
        start = start[: start.rindex("{")]
    return f"{start}*{end}"


def _prefix(texts: Sequence[str]) -> str:
    """The characters with which all texts begin."""
    first, last = min(texts), max(texts)
    return first[: next((at for at, letter in enumerate(first) if last[at : at + 1] != letter), len(first))]


def share_of_days(days: Mapping[int, int]) -> tuple[int, int, float]:
    """How far rows lie from the day of their file.

    Args:
        days: Days from the file's day to the row's -> rows.

    Returns:
        `neighbours` that reach nearly all rows, and the share that they do not reach.
    """
    total = sum(days.values())
    before = 1 if days.get(1, 0) > 0 else 0
    after = 1 if days.get(-1, 0) > 0 else 0
    reached = days.get(0, 0) + days.get(1, 0) + days.get(-1, 0)
    return before, after, (total - reached) / max(1, total)

"""Which raw files there are: for a day, or for all days."""

import glob
import os
import re
import stat
from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import Path, PurePath

from pipeline.config import DATE_FIELD, Dataset, fill_date, is_url
from pipeline.contracts import PipelineError
from pipeline.sources.block import RawFile
from pipeline.sources.locations.delta_table import find_delta_files
from pipeline.sources.locations.iceberg_table import find_iceberg_files
from pipeline.sources.locations.objects import describe_objects, find_objects, object_exists, require_object_folder

GLOB = re.compile(r"[*?]")


def find_files(dataset: Dataset, day: date | None) -> list[RawFile]:
    """The raw files that `[source] path` names for one day.

    Args:
        dataset: The dataset file.
        day: The day that stands in the path; not looked at when the path holds no `{date}`.

    Returns:
        The regular files, or the objects of a store, in bytewise order of their paths; [] when there are none.

    Raises:
        PipelineError: When a folder or file may not be looked at, or an object store does not answer.
    """
    if dataset.source.table is not None:
        return _files_of_table(dataset)
    named = day if dataset.source.dated else None
    pattern = _filled(dataset.source.path, day)
    if is_url(pattern):
        return _in_path_order(find_objects(pattern, day=named, root=dataset.root))
    found = [_regular_file(dataset, path, named) for path in _matches(dataset, pattern)]
    return _in_path_order(file for file in found if file is not None)


def files_of_day(dataset: Dataset, day: date) -> list[RawFile]:
    """The raw files in which rows of a day may stand: its own and those of its `neighbours`.

    Args:
        dataset: The dataset file.
        day: The day to be made.

    Returns:
        The regular files in bytewise order of their paths, each once; without `{date}` in the path all files.

    Raises:
        PipelineError: When a folder or file may not be looked at, or an object store does not answer.
    """
    if not dataset.source.dated:
        return find_files(dataset, None)
    before, after = dataset.source.neighbours
    found: dict[str, RawFile] = {}
    # The day's own files last: one that its neighbour's name matches as well is the day's own.
    for offset in sorted(range(-before, after + 1), key=abs, reverse=True):
        found.update({file.place: file for file in find_files(dataset, day + timedelta(days=offset))})
    return _in_path_order(found.values())


def require_folder(dataset: Dataset) -> None:
    """Refuses a log whose folder is not there: a disk that is not mounted must not look like days without rows.

    Raises:
        PipelineError: The part of `[source] path` before the first `{date}`, `*` or `?` is no folder, or holds no object.
    """
    if is_url(dataset.source.path):
        require_object_folder(dataset.source.path)
        return
    folder = dataset.directory
    for part in PurePath(dataset.source.path).parent.parts:
        if GLOB.search(part) is not None or "{" in part:
            break
        folder = folder / part
    if not folder.is_dir():
        raise PipelineError(
            f"{_shown_name(dataset, folder)}: the folder of the raw files is not there; mount it, or correct [source] path"
        )


def is_ready(dataset: Dataset, day: date) -> bool:
    """Whether the file that `[source] ready` makes the day wait for is there; True when nothing is declared."""
    if dataset.source.ready is None:
        return True
    ready = _filled(dataset.source.ready, day)
    if is_url(ready):
        return object_exists(ready)
    return any(path.exists() for path in _matches(dataset, ready))


def _files_of_table(dataset: Dataset) -> list[RawFile]:
    location = name = dataset.source.path
    if not is_url(name):
        folder = dataset.directory.absolute() / name
        location, name = str(folder), _shown_name(dataset, folder)
    if dataset.source.table == "delta":
        found = find_delta_files(location, name=name, hive=dataset.source.hive)
    else:
        found = find_iceberg_files(location, name=name)
    files = describe_objects([file for file in found if is_url(file)], root=dataset.root)
    for path in (file for file in found if not is_url(file)):
        file = _regular_file(dataset, Path(path), None)
        if file is None:
            raise PipelineError(f"{path}: the table names this file, which is not there; restore it")
        files.append(file)
    return _in_path_order(files)


def _regular_file(dataset: Dataset, path: Path, day: date | None) -> RawFile | None:
    """A file of this machine as it is; None for a folder, or when it is gone."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise PipelineError(_denied(path, error)) from None
    if not stat.S_ISREG(status.st_mode):
        return None
    return RawFile(
        path=path,
        name=_shown_name(dataset, path),
        day=day,
        bytes=status.st_size,
        mtime_ns=status.st_mtime_ns,
    )


def _in_path_order(files: Iterable[RawFile]) -> list[RawFile]:
    return sorted(files, key=lambda file: os.fsencode(file.place))


def _filled(pattern: str, day: date | None) -> str:
    if DATE_FIELD.search(pattern) is None:
        return pattern
    if day is None:
        raise ValueError("a path with {date} needs a day")
    return fill_date(pattern, day)


def _matches(dataset: Dataset, pattern: str) -> list[Path]:
    """The paths that a pattern of the dataset file matches, in no order."""
    directory = dataset.directory.absolute()
    literal = directory / pattern
    try:
        literal.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        if GLOB.search(pattern) is None:
            raise PipelineError(_denied(literal, error)) from None
    else:
        return [literal]
    if GLOB.search(pattern) is None:
        return []
    _refuse_unlistable(directory, pattern)
    # Only * and ? are ours; [ stays what it is, a letter of a name.
    escaped = pattern.replace("[", "[[]")
    # Path.glob would also find hidden files, such as half-written ones.
    found = glob.glob(escaped, root_dir=directory, recursive=True)  # noqa: PTH207
    # `a/**` would also find a file named a, as if it were a folder.
    return [directory / match for match in set(found) if not match.endswith("/") or (directory / match).is_dir()]


def _refuse_unlistable(directory: Path, pattern: str) -> None:
    """Refuses a folder that may not be listed, which glob would silently take for an empty one."""
    fixed = directory
    for part in PurePath(pattern).parts:
        if GLOB.search(part) is not None:
            break
        fixed = fixed / part
    if fixed.is_dir() and not os.access(fixed, os.R_OK | os.X_OK):
        raise PipelineError(f"{fixed}: the folder may not be listed; make it readable and run the day again")


def _denied(path: Path, error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{path}: the raw file cannot be looked at ({reason}); make it readable and run the day again"


def _shown_name(dataset: Dataset, path: Path) -> str:
    shown = os.path.abspath(path)  # noqa: PTH100  (pathlib has nothing that drops .. without following links)
    folder = os.path.abspath(dataset.directory)  # noqa: PTH100
    if os.path.commonpath([shown, folder]) == folder:
        shown = os.path.relpath(shown, folder)
    return os.fsencode(shown).decode("utf-8", "replace")

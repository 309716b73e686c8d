"""How long a log has been: noticed when its end is lost, without reading the manifests of all days.

`<vocabulary>/_index/length-<entries>` is an empty file whose name says that the log had so many entries. It is made after a
segment is linked, and by a day that finds a log longer than noted, in both cases before the day is published. Hence no
published day, in whatever order days are made or made again, has a `size` beyond the largest of these names.
"""

import re
from contextlib import suppress
from pathlib import Path

from pipeline.store import Store, sync_folder, writing

NAME = re.compile(r"length-(\d{10})")


def index_directory(store: Store, vocabulary: str) -> Path:
    """Where everything lies that is derived from the log."""
    return store.root / vocabulary / "_index"


def longest_length(store: Store, vocabulary: str) -> int:
    """The longest log that a published day may have seen; from the manifests of all days where nothing is noted."""
    noted = _noted(index_directory(store, vocabulary))
    days = store.days(vocabulary)
    # The newest day is asked in any case: a backup may bring an older log back together with what was noted of it.
    manifests = (store.manifest(vocabulary, day) for day in (days[-1:] if noted else days))
    sizes = (manifest.size or 0 for manifest in manifests if manifest is not None)
    return max([*noted, *sizes], default=0)


def note_length(folder: Path, length: int) -> None:
    """Notes that a log has so many entries.

    Args:
        folder: Of the vocabulary.
        length: Entries; shorter ones than noted change nothing.

    Raises:
        PipelineError: The disk is full, or the folder cannot be written to.
    """
    directory = folder / "_index"
    noted = _noted(directory)
    if noted and max(noted) >= length:
        return
    with writing(f"the length of {folder.name}", directory):
        directory.mkdir(parents=True, exist_ok=True)
        _path(directory, length).touch()
        sync_folder(directory)
    for shorter in noted:  # two runs at once: each removes only what is shorter than its own
        if shorter < length:
            with suppress(OSError):
                _path(directory, shorter).unlink(missing_ok=True)


def _noted(directory: Path) -> list[int]:
    try:
        names = [path.name for path in directory.iterdir()]
    except FileNotFoundError:
        return []
    return [int(found[1]) for name in names if (found := NAME.fullmatch(name))]


def _path(directory: Path, length: int) -> Path:
    return directory / f"length-{length:010d}"

"""Raw files of object stores: listed where they are, copied to this machine when they are first read.

The copies lie in the store's scratch folder, so that every reader, the second reading included, reads a local file.
"""

import hashlib
import os
import re
import secrets
import shutil
import threading
from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

from pyarrow import fs

from pipeline.contracts import PipelineError
from pipeline.sources.block import RawFile
from pipeline.sources.locations.object_stores import asking, open_store
from pipeline.store import writing
from pipeline.store.lake import SCRATCH

GLOB = re.compile(r"[*?]")
STEP = 16 * 2**20  # bytes a request
State = tuple[int, int, dict[str, bytes]]


def find_objects(url: str, *, day: date | None, root: Path) -> list[RawFile]:
    """The objects that a URL matches; nothing is copied yet.

    Args:
        url: `s3://bucket/key`, `gs://` or `az://`, in which `*`, `**` and `?` stand for what they stand for in paths.
        day: What `RawFile.day` is to be.
        root: The store's root, for the copies.

    Returns:
        The objects, in no order; [] when there are none.

    Raises:
        PipelineError: The store cannot be asked.
    """
    scheme = url.partition("://")[0]
    found = [info for info in _matching(url) if info.type == fs.FileType.File]
    return [_raw_file(scheme, info, day=day, root=root) for info in found]


def describe_objects(urls: Sequence[str], *, root: Path) -> list[RawFile]:
    """Some objects of one bucket that are known to be there; nothing is copied yet.

    Args:
        urls: Without anything that stands for something else.
        root: The store's root, for the copies.

    Raises:
        PipelineError: An object is not there, or the store cannot be asked.
    """
    if not urls:
        return []
    scheme = urls[0].partition("://")[0]
    paths = [url.partition("://")[2] for url in urls]
    with asking(urls[0]):
        infos = open_store(scheme, paths[0].split("/")[0]).get_file_info(paths)
    for url, info in zip(urls, infos, strict=True):
        if info.type != fs.FileType.File:
            raise PipelineError(f"{url}: there is no such object any more; restore it, or run the day again without it")
    return [_raw_file(scheme, info, day=None, root=root) for info in infos]


def object_exists(url: str) -> bool:
    """Whether there is an object, or a folder with objects, that a URL matches.

    Raises:
        PipelineError: The store cannot be asked.
    """
    return bool(_matching(url))


def require_object_folder(url: str) -> None:
    """Refuses a URL whose folder is not there: a misspelt bucket must not look like days without rows.

    Raises:
        PipelineError: There is no such bucket, no object below the part of the URL before the first `{date}`, `*` or
            `?`, or the store cannot be asked.
    """
    scheme, _, path = url.partition("://")
    parts = path.split("/")[:-1]
    fixed = list(takewhile(lambda part: GLOB.search(part) is None and "{" not in part, parts))
    bucket, folder = fixed[0], "/".join(fixed)
    with asking(url):
        store = open_store(scheme, bucket)
        if store.get_file_info(folder).type == fs.FileType.Directory:
            return
        there = store.get_file_info(bucket).type == fs.FileType.Directory
    missing = "nothing lies in the folder of the raw files" if there else "there is no such bucket"
    shown = f"{scheme}://{folder if there else bucket}"
    raise PipelineError(f"{shown}: {missing}; bring the files, or correct [source] path")


def matches(store: fs.FileSystem, folder: str, parts: Sequence[str]) -> Iterator[fs.FileInfo]:
    """What a pattern matches, folder by folder, by the rules of local globs.

    Args:
        store: Where to look.
        folder: Where to begin.
        parts: The parts of the pattern below it. `**` stands for any number of folders; what begins with a dot is
            found only by a part that begins with one.

    Yields:
        The objects and folders, in no order.
    """
    fixed = list(takewhile(lambda part: GLOB.search(part) is None, parts))
    folder, parts = "/".join([folder, *fixed] if folder else fixed), parts[len(fixed) :]
    if not parts:
        info = store.get_file_info(folder)
        if info.type != fs.FileType.NotFound:
            yield info
        return
    deep = parts[0] == "**"
    try:
        inside = store.get_file_info(fs.FileSelector(folder, allow_not_found=True, recursive=deep))
    except NotADirectoryError:  # of stores with true folders
        return
    if deep:
        pattern = _whole_pattern(parts)
        yield from (info for info in inside if pattern.fullmatch(info.path.removeprefix(f"{folder}/")))
        return
    pattern = re.compile(_pattern(parts[0]), re.DOTALL)
    for info in inside:
        if pattern.fullmatch(info.base_name) is None:
            continue
        if len(parts) == 1:
            yield info
        elif info.type == fs.FileType.Directory:
            yield from matches(store, info.path, parts[1:])


def copy_object(file: RawFile) -> None:
    """Copies an object to this machine unless that was done: whole, and as it was when it was found.

    Raises:
        PipelineError: The object is gone, has changed since it was found, or cannot be read; or there is no room.
    """
    version = file.path.parents[file.name.partition("://")[2].count("/")]
    with _one_at_a_time:
        if file.path.exists():
            os.utime(version.parent)  # in use: not to be swept yet
            return
        part = version.with_suffix(".part")
        with writing(f"the copy of {file.name}", version.parent, part):
            file.path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as copy:
                for piece in read_object(file):
                    copy.write(piece)
            part.replace(file.path)


def read_object(file: RawFile) -> Iterator[bytes]:
    """The bytes of an object as it was found, piece by piece.

    Raises:
        PipelineError: The object is gone, has changed since it was found, or cannot be read.
    """
    scheme, _, path = file.name.partition("://")
    with asking(file.name):
        store = open_store(scheme, path.split("/")[0])
        before, read = _state(store, path), 0
        if before[:2] != (file.bytes, file.mtime_ns):
            raise _changed(file, now=before[0])
        try:
            with store.open_input_stream(path, compression=None) as stream:
                while piece := stream.read(STEP):
                    read += len(piece)
                    yield piece
        except OSError:  # such as a range that lies beyond the new end
            _refuse_changed(file, before, _state(store, path))
            raise
        _refuse_changed(file, before, _state(store, path))
    if read != file.bytes:
        raise _changed(file, now=read)


def remove_copies(root: Path) -> None:
    """Removes the copies that this process has made; what is read afterwards is copied again.

    Those of a killed process lie in the scratch folder, which the store sweeps by age.

    Args:
        root: The store's root.
    """
    shutil.rmtree(_copies(root.absolute(), os.getpid()), ignore_errors=True)


_one_at_a_time = threading.Lock()


@lru_cache
def _copies(root: Path, process: int) -> Path:
    """The folder of a process's copies; two machines may share a root and give the same number to a process."""
    return root / SCRATCH / f"objects-{process}-{secrets.token_hex(4)}"


def _raw_file(scheme: str, info: fs.FileInfo, *, day: date | None, root: Path) -> RawFile:
    url = f"{scheme}://{info.path}"
    if any(part in {"", ".", ".."} for part in info.path.split("/")):
        raise PipelineError(f"{url}: a part of the key is empty, . or .., which is no file name; rename the object")
    version = hashlib.sha256(f"{url} {info.size} {info.mtime_ns}".encode()).hexdigest()[:16]
    return RawFile(
        path=_copies(root.absolute(), os.getpid()) / version / info.path,
        name=url,
        day=day,
        bytes=info.size,
        mtime_ns=info.mtime_ns,
        copy=copy_object,
    )


def _matching(url: str) -> list[fs.FileInfo]:
    scheme, _, path = url.partition("://")
    with asking(url):
        return list(matches(open_store(scheme, path.split("/")[0]), "", path.split("/")))


def _state(store: fs.FileSystem, path: str) -> State:
    """Size, time and tag of an object: what differs when it was written again."""
    info = store.get_file_info(path)
    if info.type != fs.FileType.File:
        raise FileNotFoundError(path)
    with store.open_input_file(path) as opened:
        tags = {name.lower(): value for name, value in opened.metadata().items() if name.lower() == "etag"}
    return info.size, info.mtime_ns, tags


def _refuse_changed(file: RawFile, before: State, after: State) -> None:
    if after != before:
        raise _changed(file, now=after[0])


def _whole_pattern(parts: Sequence[str]) -> re.Pattern[str]:
    """A pattern with `**` for paths below a folder."""
    *folders, last = parts
    above = "".join(r"(?:[^/.][^/]*/)*" if part == "**" else _pattern(part) + "/" for part in folders)
    below = r"(?:[^/.][^/]*/)*[^/.][^/]*" if last == "**" else _pattern(last)
    return re.compile(above + below, re.DOTALL)


def _pattern(part: str) -> str:
    """One part of a path: `*` and `?` match within it, and no dot at its beginning."""
    letters = {"*": "[^/]*", "?": "[^/]"}
    visible = "" if part.startswith(".") else r"(?!\.)"
    return visible + "".join(letters.get(letter) or re.escape(letter) for letter in part)


def _changed(file: RawFile, *, now: int) -> PipelineError:
    return PipelineError(
        f"{file.name}: the object changed while it was read ({file.bytes} bytes when it was found, {now} now); "
        "run the day again when the object is complete"
    )

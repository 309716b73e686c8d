"""A bounded sample of a file: its head, and whole lines from further on where it is not packed."""

import re
import stat
from dataclasses import dataclass
from pathlib import Path

from pipeline.contracts import PipelineError
from pipeline.inspection.bytes import packed_as, stranger
from pipeline.sources import RawFile
from pipeline.sources.stream import ByteStream

HEAD_BYTES = 1 << 20
PLACE_BYTES = 1 << 17
PLACES = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Sample:
    """Some bytes of a file.

    Attributes:
        file: The file.
        packed: gzip, bz2, zstd, xz or none, by its first bytes.
        head: Its first unpacked bytes.
        places: Runs of whole lines from further on, in file order; none of packed files.
        whole: Whether `head` is all there is.
    """

    file: RawFile
    packed: str
    head: bytes
    places: tuple[bytes, ...]
    whole: bool


def raw_file(path: Path) -> RawFile:
    """A file as the readers want it, named as the user named it.

    Raises:
        PipelineError: There is no such file, or it may not be looked at.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        if re.match(r"[a-z][a-z0-9+]+:/", str(path)):
            raise PipelineError(
                f"{str(path).replace(':/', '://', 1)}: inspect reads local files alone; copy some of the files here, and write the address as "
                "[source] path into the draft"
            ) from None
        raise PipelineError(f"{path}: there is no such file; give the path of a log") from None
    except OSError as error:
        raise PipelineError(f"{path}: the file cannot be looked at ({error.strerror})") from None
    if not stat.S_ISREG(status.st_mode):
        raise PipelineError(f"{path}: this is no regular file; give the path of a log")
    return RawFile(path=path.absolute(), name=str(path), day=None, bytes=status.st_size, mtime_ns=status.st_mtime_ns)


def take_sample(path: Path) -> Sample:
    """Reads the sample; the time that it takes does not grow with the file.

    Raises:
        PipelineError: The file cannot be read, is empty, or is of a kind that no reader knows.
    """
    file = raw_file(path)
    if file.bytes == 0:
        raise PipelineError(f"{path}: the file is empty; give one that holds records")
    try:
        with file.path.open("rb") as stored:
            first = stored.read(512)
    except OSError as error:
        raise PipelineError(f"{path}: the file cannot be read ({error.strerror})") from None
    packed = packed_as(first)
    head = _head(file, packed)
    if (kind := stranger(head)) is not None:
        raise PipelineError(
            f"{path}: this is {kind}, which cannot be read; unpack or export it as CSV, JSON or Parquet"
        )
    whole = len(head) <= HEAD_BYTES
    places = () if whole or packed != "none" or b"\0" in head[:4000] else tuple(_places(file))
    return Sample(file, packed, head[:HEAD_BYTES], places, whole)


def _head(file: RawFile, packed: str) -> bytes:
    head = b""
    try:
        with ByteStream(file, packed) as stream:
            while len(head) <= HEAD_BYTES and (piece := stream.read(HEAD_BYTES + 1 - len(head))):
                head += piece
    except PipelineError as error:  # there is no day yet that could be run again
        raise PipelineError(str(error).removesuffix(" and run the day again")) from None
    return head


def _places(file: RawFile) -> list[bytes]:
    """Whole lines from the middle of a file and from its end."""
    found = []
    with file.path.open("rb") as stored:
        for share in PLACES:
            stored.seek(max(HEAD_BYTES, int(file.bytes * share) - PLACE_BYTES))
            _, _, lines = stored.read(PLACE_BYTES).partition(b"\n")
            found.append(lines[: lines.rfind(b"\n") + 1])
    return [lines for lines in found if lines]

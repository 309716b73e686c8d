"""The bytes of a raw file for the second reading: hashed, unpacked, and as UTF-8."""

import bz2
import codecs
import gzip
import hashlib
import io
import lzma
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import IO, Any, Protocol

BLOCK_BYTES = 1 << 20
UNDECODABLE = "pipeline-raw-undecodable"
COMPRESSIONS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd", "xz": "xz"}

# A lone surrogate, which is no UTF-8 either: its record cannot be decoded.
codecs.register_error(UNDECODABLE, lambda error: ("\udc80", error.end))  # type: ignore[attr-defined]


class Readable(Protocol):
    """Something to read bytes from."""

    def read(self, size: int, /) -> bytes:
        """About `size` bytes; b"" at the end."""
        ...


class Hashed(io.RawIOBase):
    """A file whose bytes are hashed while they are read, in a thread of its own."""

    def __init__(self, stored: IO[bytes]) -> None:
        self._stored = stored
        self._digest = hashlib.sha256()
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._pending = self._thread.submit(lambda: None)

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = BLOCK_BYTES, /) -> bytes:
        """Up to `size` bytes; b"" at the end."""
        found = self._stored.read(size)
        self._pending.result()
        begun = Event()
        self._pending = self._thread.submit(self._hash, found, begun)
        begun.wait()  # who counts holds the interpreter: the thread would begin only when all is counted
        return found

    def _hash(self, found: bytes, begun: Event) -> None:
        begun.set()
        self._digest.update(found)

    def readinto(self, buffer: Any) -> int:
        """Reads into a buffer; gives how much."""
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def hexdigest(self) -> str:
        """The sha256 of what was read so far."""
        self._pending.result()
        return self._digest.hexdigest()

    def close(self) -> None:
        """Ends the thread."""
        self._thread.shutdown()
        super().close()


class Utf8:
    """Text of any encoding as UTF-8; what cannot be decoded becomes bytes that are none."""

    def __init__(self, stream: Readable, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)(errors=UNDECODABLE)

    def read(self, size: int, /) -> bytes:
        """About `size` bytes; b"" at the end."""
        while packed := self._stream.read(size):
            if text := self._utf8(packed, final=False):
                return text
        return self._utf8(b"", final=True)

    def _utf8(self, packed: bytes, *, final: bool) -> bytes:
        try:
            return self._decoder.decode(packed, final).encode("utf-8", "surrogatepass")
        except UnicodeError:  # no text of this encoding at all: the file is not the one that was read
            return b""


def as_utf8(stream: Readable, encoding: str) -> Readable:
    """A text of a declared encoding as UTF-8."""
    return stream if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig") else Utf8(stream, encoding)


def compression_of(name: str, declared: str | None) -> str:
    """How a file is packed, as declared or by its extension: none, gzip, bz2, zstd or xz."""
    return declared or COMPRESSIONS.get(name.lower().rpartition(".")[2], "none")


def unpacked(stored: io.RawIOBase, compression: str) -> Readable:
    """The unpacked bytes of a file."""
    if compression == "none":
        return stored
    buffered = io.BufferedReader(stored, BLOCK_BYTES)
    if compression == "gzip":
        return gzip.open(buffered)
    if compression == "bz2":
        return bz2.open(buffered)
    if compression == "xz":
        return lzma.open(buffered)
    import pyarrow as pa

    return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(buffered, mode="r"), "zstd"))  # type: ignore[arg-type]

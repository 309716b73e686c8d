"""The bytes of a raw file: unpacked by its extension, with the checksum of what is stored on disk."""

import bz2
import gzip
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import PurePath
from typing import Protocol

import pyarrow as pa

from pipeline.contracts import PipelineError
from pipeline.sources.block import RawFile, unreadable

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".xz": "xz"}
STEP = 1 << 18


class Readable(Protocol):
    """Something to read bytes from; b"" at the end."""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes."""
        ...


def split_extension(name: str) -> tuple[str, str]:
    """The extension of the format and the one of the compression, in small letters.

    >>> split_extension("logs/2020-01-01.csv.gz")
    ('.csv', '.gz')
    """
    path = PurePath(name.lower())
    if path.suffix in COMPRESSIONS:
        return path.with_suffix("").suffix, path.suffix
    return path.suffix, ""


def compression_of(name: str, declared: str | None) -> str:
    """How a file is packed: as `[source] compression` declares, else by its extension.

    >>> compression_of("2020-01-01.csv.gz", None), compression_of("2020-01-01.csv.gz", "none")
    ('gzip', 'none')
    """
    return declared or COMPRESSIONS.get(split_extension(name)[1], "none")


class ByteStream:
    """The unpacked bytes of a raw file, and the checksum of the stored ones from the same pass.

    Raises:
        PipelineError: When the file is missing, may not be read, or is corrupt or cut.
    """

    def __init__(self, file: RawFile, compression: str | None) -> None:
        self.file = file
        self._compression = compression_of(file.name, compression)
        try:
            self._stored = _Hashed(file)
        except OSError as error:
            raise unreadable(file, error) from None
        self._unpacked = self._open()
        self._ahead = ThreadPoolExecutor(max_workers=1)
        self._coming: Future[bytes] | None = None

    def __enter__(self) -> "ByteStream":
        return self

    def __exit__(self, *_: object) -> None:
        # Not waited for: see `pipeline.threads.thread_aside`.
        self._ahead.shutdown(wait=False, cancel_futures=True)
        if self._coming is None:
            self._stored.close()
        else:
            self._coming.add_done_callback(lambda _: self._stored.close())

    def pieces(self, size: int) -> Iterator[bytes]:
        """All unpacked bytes, about `size` at a time; the next ones are read and unpacked in a thread meanwhile."""
        self._coming = self._ahead.submit(self.read, size)
        while found := self._coming.result():
            self._coming = self._ahead.submit(self.read, size)
            yield found

    def read(self, size: int, /) -> bytes:
        """Up to `size` unpacked bytes; b"" at the end."""
        try:
            return self._unpacked.read(size)
        except (EOFError, zlib.error, lzma.LZMAError, pa.ArrowException, OSError) as error:
            # What the system refuses has a number; what the decompressors refuse has none.
            if isinstance(error, OSError) and error.errno is not None and self._stored.failed:
                raise unreadable(self.file, error) from None
            raise PipelineError(
                f"{self.file.name}: the compressed file is cut or corrupt ({error}); "
                "bring the complete file and run the day again"
            ) from None

    def checksum(self) -> str:
        """sha256 of the stored bytes, read to the end of the file."""
        while self._stored.read(STEP):
            pass
        return self._stored.sha256.hexdigest()

    def _open(self) -> Readable:
        if self._compression != "none" and self.file.bytes == 0:
            self._stored.close()
            raise PipelineError(
                f"{self.file.name}: the compressed file is empty; bring the complete file and run the day again"
            )
        if self._compression == "gzip":
            return gzip.GzipFile(fileobj=self._stored, mode="rb")  # type: ignore[arg-type]
        if self._compression == "bz2":
            return _Strict(self._stored, bz2.BZ2Decompressor)
        if self._compression == "xz":
            return _Strict(self._stored, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ))
        if self._compression == "zstd":
            return pa.CompressedInputStream(pa.PythonFile(self._stored, mode="r"), "zstd")
        return self._stored


class _Hashed:
    """The stored file; what is read from it goes through the checksum."""

    def __init__(self, file: RawFile) -> None:
        self._file = file.path.open("rb", buffering=0)
        self.sha256 = hashlib.sha256()
        self.failed = False

    def read(self, size: int = STEP, /) -> bytes:
        try:
            found = self._file.read(STEP if size < 0 else size)
        except OSError:
            self.failed = True
            raise
        self.sha256.update(found)
        return found

    @property
    def closed(self) -> bool:
        return self._file.closed

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()


class _Strict:
    """bz2 and xz without the standard library's leniency: what follows a stream must be another stream."""

    def __init__(self, stored: Readable, new_stream: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]) -> None:
        self._stored = stored
        self._new_stream = new_stream
        self._stream = new_stream()
        self._rest = b""

    def read(self, size: int, /) -> bytes:
        while True:
            if self._stream.eof:
                self._rest = self._stream.unused_data or self._stored.read(STEP)
                if not self._rest:
                    return b""
                self._stream = self._new_stream()
            elif self._stream.needs_input and not self._rest:
                self._rest = self._stored.read(STEP)
                if not self._rest:
                    raise EOFError("it ends before its end-of-stream mark")
            packed, self._rest = self._rest, b""
            unpacked = self._stream.decompress(packed, size)
            if unpacked:
                return unpacked

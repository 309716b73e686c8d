"""What every reader delivers: runs of records of one file, and what is known once the file is read."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import PipelineError


@dataclass(frozen=True)
class RawFile:
    """One raw file as it was found.

    Attributes:
        path: Where it is, absolute; for an object of a store where its copy on this machine is, once `fetch` was called.
        name: What users are shown: relative to the dataset file's folder when inside it, else absolute, or the URL.
        day: The UTC day in its name, None where the path holds no `{date}`.
        bytes: Its size when it was found.
        mtime_ns: Its time of modification when it was found, in ns since 1970.
        copy: Makes the copy of an object unless it is there; None for a file of this machine.
    """

    path: Path
    name: str
    day: date | None
    bytes: int
    mtime_ns: int
    copy: "Callable[[RawFile], None] | None" = field(default=None, compare=False, repr=False)

    @property
    def place(self) -> str:
        """What tells the file from all others, and what (bytewise) path order is by: its path, or the URL of an object."""
        return str(self.path) if self.copy is None else self.name

    def fetch(self) -> Path:
        """Where the file can be read; the first call for an object of a store copies it to this machine.

        Raises:
            PipelineError: The object is gone, has changed since it was found, or cannot be read.
        """
        if self.copy is not None:
            self.copy(self)
        return self.path


@dataclass(frozen=True, eq=False)
class RawBlock:
    """A run of consecutive records of one file, in file order. R rows.

    Attributes:
        frame: All raw columns [R]. CSV, fixed width, regex: String, missing cells null; columns of CSV that were asked for as
            `integers` are Int64 in blocks where each cell is missing or what Python prints of an int64. JSON: String
            with the exact text. Parquet, Arrow: the types of the file.
        line: Int64 [R], the physical line, counted from 1, on which the record starts; null for Parquet and Arrow.
        malformed: Boolean [R], True where the record could not be cut into cells; these are then all null.
        typed: JSON: the columns that `sql` expressions use and that are no text, typed [R].
    """

    frame: pl.DataFrame
    line: pl.Series
    malformed: pl.Series
    read_raw: Callable[[Sequence[int]], list[str]]
    typed: Sequence[pl.Series] = ()

    @property
    def sql_frame(self) -> pl.DataFrame:
        """All raw columns [R] as `sql` expressions see them."""
        return self.frame.with_columns(self.typed) if self.typed else self.frame

    def raw_text(self, rows: Sequence[int]) -> list[str]:
        """The raw text of some rows.

        Args:
            rows: Positions in the block, 0..R-1.

        Returns:
            One text a row, without the line end; bytes that are no text are shown as U+FFFD. For Parquet a
            JSON object of the row.
        """
        return self.read_raw(rows)


class BlockReader(Iterator[RawBlock], ABC):
    """The blocks of one file, in file order; at least one, possibly without rows, so that columns are known.

    Raises:
        PipelineError: While iterating, when the file is missing, unreadable, corrupt or cut, or when it changed
            while it was read. What was delivered before that must not be used.
    """

    def __init__(self, *, file: RawFile, dataset: Dataset, block_bytes: int) -> None:
        self.file = file
        self.dataset = dataset
        self.block_bytes = max(1, block_bytes)
        self.integers: frozenset[str] = frozenset()  # raw columns that may come as numbers where that loses nothing
        self._warnings: dict[str, int] = {}
        self._checksum: str | None = None
        self._exhausted = False
        self._running: Iterator[RawBlock] | None = None

    @abstractmethod
    def _blocks(self) -> Iterator[RawBlock]:
        """Reads the file to its end and sets `_checksum`."""

    def __iter__(self) -> Iterator[RawBlock]:
        return self

    def __next__(self) -> RawBlock:
        if self._exhausted:
            raise StopIteration
        if self._running is None:
            self.file.fetch()
            self._running = self._blocks()
        try:
            return next(self._running)
        except StopIteration:
            self._refuse_changed()
            self._exhausted = True
            raise
        except (PipelineError, OSError) as error:
            # A file that is still being written looks corrupt; that it changed is then the better sentence.
            self._refuse_changed()
            if isinstance(error, OSError):
                raise unreadable(self.file, error) from None
            raise

    @property
    def checksum(self) -> str:
        """sha256, in hex, of the bytes of the file as stored on disk; known once all blocks are read."""
        if not self._exhausted or self._checksum is None:
            raise RuntimeError(f"{self.file.name}: the checksum is known only after the last block")
        return self._checksum

    @property
    def warnings(self) -> dict[str, int]:
        """Counted oddities that refuse no row; complete once all blocks are read."""
        return dict(self._warnings)

    def _warn(self, oddity: str, count: int) -> None:
        self._warnings[oddity] = self._warnings.get(oddity, 0) + count

    def _refuse_changed(self) -> None:
        if self.file.copy is not None:  # the copy is ours; that the object stayed the same is looked at when it is made
            return
        try:
            now = self.file.path.stat()
        except OSError as error:
            raise unreadable(self.file, error) from None
        if (now.st_size, now.st_mtime_ns) != (self.file.bytes, self.file.mtime_ns):
            raise PipelineError(
                f"{self.file.name}: the file changed while it was read ({self.file.bytes} bytes when it was found, "
                f"{now.st_size} now); run the day again when the file is complete"
            )


def unreadable(file: RawFile, error: OSError) -> PipelineError:
    """The sentence for a file that the system does not let us read."""
    if isinstance(error, FileNotFoundError):
        return PipelineError(
            f"{file.name}: there is no such file any more; restore it, or run the day again without it"
        )
    reason = error.strerror or str(error)
    return PipelineError(f"{file.name}: the file cannot be read ({reason}); make it readable and run the day again")


def raw_texts(
    text: bytes,
    start: npt.NDArray[np.int64] | Sequence[int],
    end: npt.NDArray[np.int64] | Sequence[int],
    rows: Sequence[int],
) -> list[str]:
    """What stands between the borders of some rows, without the line ends."""
    found = (text[start[row] : end[row]] for row in rows)
    return [raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace") for raw in found]

"""Text of a file as UTF-8, held from the first record that is not yet dealt with."""

import codecs

from pipeline.contracts import PipelineError
from pipeline.sources.stream import ByteStream

BOM = codecs.BOM_UTF8
UNDECODABLE = "pipeline-undecodable"


def _mark(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\udcff", error.end


# A lone surrogate becomes bytes that are no UTF-8, and these make their record malformed.
codecs.register_error(UNDECODABLE, _mark)


class HeldText:
    """The text of a file as UTF-8 bytes, held piece by piece from the first record not yet dealt with.

    Raises:
        PipelineError: When the file as a whole is not in the declared encoding.
    """

    def __init__(self, stream: ByteStream, *, encoding: str, table: str, block_bytes: int) -> None:
        self._pieces = stream.pieces(block_bytes)
        self._block_bytes = block_bytes
        self._declared = f'{stream.file.name}: the file cannot be read as [source.{table}] encoding = "{encoding}"'
        name = codecs.lookup(encoding).name
        plain = name in ("utf-8", "utf-8-sig")
        self._decoder = None if plain else codecs.getincrementaldecoder(name)(errors=UNDECODABLE)
        self.held = b""
        self._cut_line = b""  # what is read of the line behind
        self.ended = False
        self.newline_added = False

    def more(self) -> None:
        """Reads about a block more, to the last line end in it if there is one; the last line of the file gets one."""
        # An open quoted record is looked at again each time: doubling keeps that linear in its length.
        wanted = max(self._block_bytes, len(self.held))
        found: list[bytes | memoryview] = [self.held, self._cut_line]
        text = self._cut_line = b""
        while wanted > 0 and not self.ended:
            piece = next(self._pieces, b"")
            self.ended = not piece
            wanted -= len(piece)
            found.append(text := self._as_utf8(piece))
        if not self.ended and (end := text.rfind(b"\n") + 1):
            # So that all that is held can be cut as it is; a part of it would be one more copy.
            found[-1], self._cut_line = memoryview(text)[:end], text[end:]
        self.held = b"".join(found)
        if self.ended and self.held and not self.held.endswith(b"\n"):
            self.held += b"\n"
            self.newline_added = True

    def drop(self, size: int) -> None:
        """Forgets what is dealt with."""
        self.held = self.held[size:]

    def drop_mark(self) -> None:
        """Forgets the byte order mark at the beginning of the file."""
        while not self.ended and len(self.held) < len(BOM):
            self.more()
        self.held = self.held.removeprefix(BOM)

    def _as_utf8(self, piece: bytes) -> bytes:
        if self._decoder is None:
            return piece
        try:
            return self._decoder.decode(piece, self.ended).encode("utf-8", "surrogatepass")
        except UnicodeError as error:  # a codec that wants a byte order mark, or that is none for whole files
            raise PipelineError(
                f"{self._declared} ({error}); declare the encoding that it is in, such as utf-8, or utf-16-le for "
                "UTF-16 without a byte order mark"
            ) from None

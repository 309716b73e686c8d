"""What the first bytes of a file say: how it is packed, what container it is, and how its bytes are text."""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass

PACKED = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "zstd": b"\x28\xb5\x2f\xfd", "xz": b"\xfd7zXZ\x00"}
# Containers that the readers know, by the bytes with which they begin.
BINARY = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}  # the last: a stream
STRANGERS = {
    "a zip archive or an Excel workbook": b"PK\x03\x04",
    "an old Excel workbook": b"\xd0\xcf\x11\xe0",
    "a PDF": b"%PDF",
    "an SQLite database": b"SQLite format 3\x00",
    "an HDF5 file": b"\x89HDF",
    "a NumPy array": b"\x93NUMPY",
    "an ORC file": b"ORC",
    "an Avro file": b"Obj\x01",
    "a 7z archive": b"7z\xbc\xaf\x27\x1c",
    "a RAR archive": b"Rar!",
    "a PNG image": b"\x89PNG",
    "a JPEG image": b"\xff\xd8\xff",
    "a GIF image": b"GIF8",
    "a program": b"\x7fELF",
    "a Feather file of version 1": b"FEA1",
    "a Python pickle": b"\x80\x04\x95",
}
FEW_SIGNS = 4
MARKS = {"utf-8": codecs.BOM_UTF8, "utf-32": codecs.BOM_UTF32_LE, "utf-16": codecs.BOM_UTF16_LE}


SCRIPTS = {"cp1251": "Russian", "koi8-r": "Russian", "big5": "Chinese"}
WORDS_BEYOND = re.compile(rb"[\x80-\xff]+")
BIG5 = re.compile(rb"(?:[\xa4-\xc6][\x40-\x7e\xa1-\xfe])+")  # runs of frequent characters


def packed_as(first: bytes) -> str:
    """gzip, bz2, zstd, xz, or none, by the bytes with which a file begins."""
    return next((name for name, magic in PACKED.items() if first.startswith(magic)), "none")


def binary_format(first: bytes) -> str | None:
    """Parquet or arrow, by the bytes with which a file begins."""
    return next((name for magic, name in BINARY.items() if first.startswith(magic)), None)


def stranger(first: bytes) -> str | None:
    """What a file is that no reader knows, in words; None when it may be one that is known."""
    if first[257:262] == b"ustar":
        return "a tar archive"
    known = next((name for name, magic in STRANGERS.items() if first.startswith(magic)), None)
    if known is None and not binary_format(first) and not first.startswith(tuple(MARKS.values())):
        # Text holds hardly a control character, but for half of the bytes of UTF-16.
        begin = first[:4000]
        control = [byte for byte in begin if byte < 0x20 and byte not in b"\0\t\n\r\x0b\x0c\x1b"]
        # Some logs separate by a few of these signs; of others any may occur.
        separators = len(set(control)) <= FEW_SIGNS and begin.isascii()
        if len(control) > 0.05 * len(begin) and begin.count(0) < 0.1 * len(begin) and not separators:
            return "binary data of a kind that is not known"
    return known


@dataclass(frozen=True, slots=True)
class Encoding:
    """How bytes are text.

    Attributes:
        name: A Python codec.
        reason: What says so; empty for plain UTF-8.
        doubt: What else it may be.
    """

    name: str
    reason: str = ""
    doubt: str = ""


def sniff_encoding(head: bytes, places: Sequence[bytes] = ()) -> Encoding:
    """The encoding of a text file.

    Args:
        head: Its first bytes.
        places: Whole lines from further on.
    """
    for name, mark in {**MARKS, "utf-16 ": codecs.BOM_UTF16_BE}.items():
        if head.startswith(mark):
            return Encoding(name.strip(), "the file begins with a byte order mark")
    even, odd = head[0:4000:2].count(0), head[1:4000:2].count(0)
    if max(even, odd) > 0.3 * len(head[:4000]) / 2 and min(even, odd) < 0.05 * len(head[:4000]) / 2:
        name = "utf-16-le" if odd > even else "utf-16-be"
        return Encoding(name, "every second byte is zero, and there is no byte order mark")
    lines = [line for part in (head, *places) for line in part.split(b"\n")[:-1] or [part] if not line.isascii()]
    broken = [line for line in lines if not _decodes(line, "utf-8")]
    if not broken:
        return Encoding("utf-8")
    if len(broken) * 10 < len(lines):
        return Encoding("utf-8", doubt=f"{len(broken)} lines of the sample are no UTF-8; they are refused")
    text = b"\n".join(broken)
    if _decodes(text, "gb18030") and _chinese_pairs(text) > 0.9 and _letters(text) in (None, "big5"):
        reason = f"no UTF-8, but pairs of bytes as Chinese text has them, such as {_shown(broken[0], 'gb18030')}"
        return Encoding("gb18030", reason, "encoding: gb18030 was taken; big5 or another two-byte encoding is possible")
    if (name := _letters(text)) is not None:
        reason = f"no UTF-8, but words of letters as {SCRIPTS[name]} has them, such as {_shown(broken[0], name)}"
        return Encoding(name, reason, f"encoding: {name} was taken; look at a line with letters beyond ASCII")
    name = "cp1252" if any(0x80 <= byte < 0xA0 for byte in text) and _decodes(text, "cp1252") else "latin-1"
    return Encoding(
        name,
        f"no UTF-8: {_shown(broken[0], name)}",
        f"encoding: {name} was taken, in which any byte is a letter; look at a line with letters beyond ASCII",
    )


def _decodes(line: bytes, name: str) -> bool:
    try:
        line.decode(name)
    except UnicodeDecodeError:
        return False
    return True


def _chinese_pairs(text: bytes) -> float:
    """The share of bytes beyond ASCII that stand in pairs of two such bytes, as the common Chinese characters do."""
    beyond, paired, at = 0, 0, 0
    text = text[:100_000]
    while at < len(text):
        if text[at] < 0x80:
            at += 1
            continue
        pair = text[at] >= 0xA1 and at + 1 < len(text) and text[at + 1] >= 0xA1
        beyond += 2 if pair else 1
        paired += 2 if pair else 0
        at += 2 if pair else 1
    return paired / max(1, beyond)


def _letters(text: bytes) -> str | None:
    """The encoding of words that are made of bytes beyond ASCII alone, as in Russian or in Chinese of Taiwan."""
    words = WORDS_BEYOND.findall(text[:100_000])
    beyond = sum(byte >= 0x80 for byte in text[:100_000])
    long = [word for word in words if len(word) >= 3]
    letters = b"".join(word for word in long if all(byte >= 0xC0 for byte in word))
    if len(letters) > 0.7 * beyond:
        small = sum(byte >= 0xE0 for byte in letters)
        return "cp1251" if 2 * small >= len(letters) else "koi8-r"
    pairs = b"".join(word for word in BIG5.findall(text[:100_000]) if len(word) >= 4)
    return "big5" if sum(byte >= 0x80 for byte in pairs) > 0.7 * beyond and _decodes(text, "big5") else None


def _shown(line: bytes, name: str) -> str:
    first = next(at for at, byte in enumerate(line) if byte >= 0x80)
    return repr(line[max(0, first - 10) : first + 10].decode(name, "replace").strip())

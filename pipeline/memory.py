"""How much memory this process holds and may hold, and that it keeps what it will need again."""

import ctypes
import gc
import os
import re
import resource
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import pyarrow as pa

SHARE = 4  # a run takes one part in so many of what is free
LEAST = 512 * 2**20
STATUS = Path("/proc/self/status")
MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # of glibc's malloc.h
KEPT_BYTES = 256 * 2**20


@cache
def keep_freed() -> None:
    """Has this process keep the memory that it frees for the next block of rows, and not walk what it has loaded as garbage.

    Blocks are as large as what allocators give back at once: a third of the time of a day went to the kernel, which took
    pages and gave them again. Arrow takes its memory where numpy does, and threads share as many places as there are cores,
    so that what one frees another can use.
    """
    gc.freeze()
    pa.set_memory_pool(pa.system_memory_pool())
    with suppress(OSError, AttributeError):  # there is no glibc here
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        libc.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        libc.mallopt(M_ARENA_MAX, os.cpu_count() or 1)


def give_back() -> None:
    """Gives back what `keep_freed` kept: the next stage takes its memory elsewhere."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def free_share() -> int:
    """The bytes that a run may use when nothing is declared: a quarter of what is free now, at least 512 MiB."""
    return max(LEAST, available_bytes() // SHARE)


def available_bytes() -> int:
    """The bytes that the machine, or the container that this process runs in, can still give away."""
    try:
        free = _kib(MEMINFO, "MemAvailable")
    except (OSError, LookupError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    try:
        limit, used = (int((CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # there is none, or it is "max"
        return free
    return max(0, min(free, limit - used + _reclaimable()))


def _reclaimable() -> int:
    """Bytes of files that count as used in a container and are given up when memory is asked for."""
    try:
        found = re.search(r"^inactive_file (\d+)$", (CGROUP / "memory.stat").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def held_bytes() -> int:
    """The bytes that this process holds now."""
    try:
        return _kib(STATUS, "VmRSS")
    except (OSError, LookupError):
        return peak_bytes()


def peak_bytes() -> int:
    """The most bytes that this process has held at once so far."""
    try:
        return _kib(STATUS, "VmHWM")
    except (OSError, LookupError):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _kib(file: Path, name: str) -> int:
    """A figure of a list of `name: n kB`, in bytes."""
    found = re.search(rf"^{name}:\s*(\d+) kB$", file.read_text(encoding="ascii", errors="replace"), re.MULTILINE)
    if found is None:
        raise LookupError(name)
    return int(found[1]) * 1024

"""Work that is done in a thread beside the one that uses it."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
_END = object()


@contextmanager
def thread_aside(*, waits: bool = False) -> Iterator[ThreadPoolExecutor]:
    """A thread that nobody waits for when its reader is dropped unfinished, unless it `waits`.

    A dropped reader may end while another thread starts, and both would wait for each other for ever.
    """
    thread = ThreadPoolExecutor(max_workers=1)
    try:
        yield thread
    finally:
        thread.shutdown(wait=waits, cancel_futures=True)


def ahead(items: Iterator[T], *, waits: bool = False) -> Generator[T, None, None]:
    """The same items, each made in a thread while the one before it is used; errors come where the item would.

    Args:
        items: Made one by one.
        waits: Who closes this early waits for the thread, so that nothing is read or written any more; it must then be
            closed, and never be left to the collector: see `thread_aside`.
    """
    with thread_aside(waits=waits) as thread:
        coming = thread.submit(next, items, _END)
        while (item := coming.result()) is not _END:
            coming = thread.submit(next, items, _END)
            yield item  # type: ignore[misc]

"""Work one step ahead of whoever takes its results."""

from collections.abc import Generator, Iterator
from typing import TypeVar

from pipeline.sources.stream import thread_aside

T = TypeVar("T")
_END = object()


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

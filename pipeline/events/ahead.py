"""Work one step ahead of whoever takes its results."""

from collections.abc import Iterator
from typing import TypeVar

from pipeline.sources.stream import thread_aside

T = TypeVar("T")
_END = object()


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, each made in a thread while the one before it is used; errors come where the item would."""
    with thread_aside() as thread:
        coming = thread.submit(next, items, _END)
        while (item := coming.result()) is not _END:
            coming = thread.submit(next, items, _END)
            yield item  # type: ignore[misc]

"""Work one step ahead of whoever takes its results."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
_END = object()


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, each made in a thread while the one before it is used; errors come where the item would."""
    thread = ThreadPoolExecutor(max_workers=1)
    try:
        coming = thread.submit(next, items, _END)
        while (item := coming.result()) is not _END:
            coming = thread.submit(next, items, _END)
            yield item  # type: ignore[misc]
    finally:
        # Not waited for: what is dropped unfinished may end while another thread starts, and both would wait for ever.
        thread.shutdown(wait=False, cancel_futures=True)

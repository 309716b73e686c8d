"""Whoever drops a reader half-way never waits for its thread: that wait could come while another thread starts, for ever."""

import threading
from collections.abc import Iterator
from pathlib import Path

from pipeline.sources import find_files
from pipeline.sources.stream import ByteStream
from pipeline.threads import ahead, thread_aside
from pipeline_tests.raw_files import dataset


def test_a_thread_aside_is_not_waited_for() -> None:
    go_on = threading.Event()
    with thread_aside() as thread:
        waiting = thread.submit(go_on.wait, 60)
    assert not waiting.done()
    go_on.set()
    assert waiting.result()


def test_what_is_made_ahead_is_not_waited_for() -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        yield 1
        begun.set()
        go_on.wait(60)
        ended.set()
        yield 2

    dropped = ahead(items())
    assert next(dropped) == 1
    assert begun.wait(60)
    dropped.close()
    assert not ended.is_set()
    go_on.set()
    assert ended.wait(60)


def test_a_stream_is_not_waited_for_and_its_file_closed_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(b"a" * 100)
    (file,) = find_files(dataset(tmp_path, "log.csv"), None)
    go_on = threading.Event()
    with ByteStream(file, None) as stream:
        read, stored = stream.read, stream._stored
        stream.read = lambda size: read(size) if go_on.wait(60) else b""  # type: ignore[method-assign]
        pieces = stream.pieces(10)
        stream._coming = stream._ahead.submit(stream.read, 10)
    assert not stored.closed
    go_on.set()
    stream._coming.result()
    stream._ahead.shutdown(wait=True)
    assert stored.closed
    pieces.close()

"""Chunks hold whole users in stored order, and columns become tensors on their own memory."""

import warnings
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.chunks import EventChunk, as_tensor, halves, iter_chunks
from pipeline.contracts import Column, PipelineError
from pipeline.store import Manifest, Recipe, Store

DAY = date(2025, 3, 7)
INT_IDS = [2**53 + n for n in range(40)]  # float64 merges neighbours among them
STRING_IDS = sorted(
    ["", "a", "aa", "b", "B", "\u00e9", "e\u0301", "日本", *(f"u{n:02d}" for n in range(30))], key=str.encode
)


def day_of_events(store: Store, frames: Sequence[pl.DataFrame]) -> Manifest:
    """Stages frames with a user_id and a row_id as the files of a day."""
    kind = "int64" if not frames or frames[0]["user_id"].dtype == pl.Int64 else "string"
    with store.stage("events", DAY, run="test") as staging:
        for frame in frames:
            staging.write(frame)
        return staging.finish(
            rows=sum(frame.height for frame in frames),
            columns=[Column("user_id", kind), Column("row_id", "int64")],
            recipe=Recipe({}, {}, {}),
            content_version="",
            counts={},
            facts={},
        ).manifest


def users_frame(lengths: Sequence[int], ids: Sequence[int | str]) -> pl.DataFrame:
    """User n has so many rows; row_id counts all rows."""
    users = [user for user, length in zip(ids, lengths, strict=False) for _ in range(length)]
    dtype = pl.Int64 if isinstance(ids[0], int) else pl.String
    return pl.DataFrame(
        {"user_id": pl.Series(users, dtype=dtype), "row_id": pl.Series(range(len(users)), dtype=pl.Int64)}
    )


def chunks_of(frames: Sequence[pl.DataFrame], chunk_rows: int) -> list[EventChunk]:
    with TemporaryDirectory() as root:
        store = Store(Path(root))
        manifest = day_of_events(store, frames)
        return list(iter_chunks(store.directory("events", DAY), manifest, chunk_rows=chunk_rows))


def assert_users_or_pieces(chunks: Sequence[EventChunk], frame: pl.DataFrame, chunk_rows: int) -> None:
    """The chunks are the rows of the frame, in order; only who has more rows than a chunk is in two, and both say so."""
    assert pl.concat([chunk.frame for chunk in chunks]).equals(frame)
    heavy = dict(frame.group_by("user_id").len().iter_rows())
    assert [chunks[0].continues, chunks[-1].goes_on] == [False, False]
    for chunk, after in pairwise(chunks):
        shared = chunk.users[-1] == after.users[0]
        assert chunk.goes_on == after.continues == shared
        if shared:
            assert chunk.frame.height == chunk_rows < heavy[chunk.users[0]]
            assert chunk.users.len() == 1
    for chunk in chunks:
        assert chunk.frame.height <= chunk_rows
        assert chunk.heaviest == max(np.diff(chunk.offsets_U1))
        assert chunk.offsets_U1.dtype == np.int64
        assert chunk.offsets_U1[0] == 0
        assert chunk.offsets_U1[-1] == chunk.frame.height
        assert chunk.frame["user_id"].rle().struct.field("len").to_list() == np.diff(chunk.offsets_U1).tolist()


def test_chunks_by_hand() -> None:
    """Three users with 2, 3 and 1 rows, about three rows a chunk."""
    first, second = chunks_of([users_frame([2, 3, 1], INT_IDS)], chunk_rows=4)
    assert first.users.to_list() == INT_IDS[:1]
    assert first.offsets_U1.tolist() == [0, 2]
    assert second.users.to_list() == INT_IDS[1:3]
    assert second.frame["row_id"].to_list() == [2, 3, 4, 5]
    assert second.offsets_U1.tolist() == [0, 3, 4]


def test_a_giant_in_pieces_by_hand() -> None:
    """Users with 1, 7 and 2 rows, three rows a chunk: the giant alone until less than a chunk of it is left."""
    chunks = chunks_of([users_frame([1, 7, 2], INT_IDS)], chunk_rows=3)
    assert [chunk.frame["row_id"].to_list() for chunk in chunks] == [[0], [1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert [chunk.offsets_U1.tolist() for chunk in chunks] == [[0, 1], [0, 3], [0, 3], [0, 1, 3]]
    assert [(chunk.continues, chunk.goes_on) for chunk in chunks] == [
        (False, False),
        (False, True),
        (True, True),
        (True, False),
    ]


@given(
    lengths=st.lists(st.integers(1, 4) | st.sampled_from((1, 30)), min_size=1, max_size=12),
    ids=st.sampled_from((INT_IDS, STRING_IDS)),
    chunk_rows=st.integers(1, 12) | st.just(1_000),
    cuts=st.lists(st.integers(0, 60), max_size=3),
)
def test_chunks_are_a_partition_into_users_or_pieces_of_one(
    lengths: list[int], ids: list[int | str], chunk_rows: int, cuts: list[int]
) -> None:
    """Whatever the size of a chunk and the files, which may end in the middle of a user."""
    frame = users_frame(lengths, ids)
    borders = sorted({0, frame.height, *(cut for cut in cuts if cut < frame.height)})
    files = [frame[low:high] for low, high in pairwise(borders)]
    chunks = chunks_of(files, chunk_rows)
    assert_users_or_pieces(chunks, frame, chunk_rows)


@given(
    lengths=st.lists(st.integers(1, 4) | st.just(20), min_size=1, max_size=8),
    ids=st.sampled_from((INT_IDS, STRING_IDS)),
)
def test_a_chunk_is_halved_until_nothing_is_left_to_halve(lengths: list[int], ids: list[int | str]) -> None:
    """Between users where there are two, else in the user; the parts are the rows, and know what they were cut out of."""
    (chunk,) = chunks_of([users_frame(lengths, ids)], chunk_rows=1_000)
    parts = [chunk]
    while max(part.frame.height for part in parts) > 1:
        n = max(range(len(parts)), key=lambda n: parts[n].frame.height)
        whole = parts[n]
        first, second = halves(whole)
        assert first.goes_on == second.continues == (whole.users.len() == 1)
        assert (first.continues, second.goes_on) == (whole.continues, whole.goes_on)
        assert second.column("row_id").equals(second.frame["row_id"])
        parts[n : n + 1] = [first, second]
    assert pl.concat([part.frame for part in parts]).equals(chunk.frame)
    assert [part.continues for part in parts] == [n > 0 for length in lengths for n in range(length)]


def test_only_columns_that_are_asked_for_are_read_and_others_later() -> None:
    with TemporaryDirectory() as root:
        store = Store(Path(root))
        frame = users_frame([2, 3, 4, 1], INT_IDS)
        manifest = day_of_events(store, [frame[:4], frame[4:]])
        chunks = list(iter_chunks(store.directory("events", DAY), manifest, chunk_rows=5, columns=[]))
        assert [chunk.frame.columns for chunk in chunks] == [["user_id"]] * 2
        assert [chunk.column("row_id").to_list() for chunk in chunks] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
        first, second = halves(chunks[1])
        assert first.column("row_id").to_list() + second.column("row_id").to_list() == [5, 6, 7, 8, 9]


def test_one_row_a_chunk() -> None:
    frame = users_frame([1, 3, 1], STRING_IDS)
    chunks = chunks_of([frame], chunk_rows=1)
    assert_users_or_pieces(chunks, frame, 1)
    assert [chunk.continues for chunk in chunks] == [False, False, True, True, False]


def test_an_empty_day_has_no_chunks() -> None:
    assert chunks_of([], chunk_rows=5) == []
    assert EventChunk(users_frame([], INT_IDS), np.zeros(1, dtype=np.int64)).heaviest == 0


def test_equal_neighbours_beyond_float64_are_two_users() -> None:
    frame = pl.DataFrame({"user_id": [2**53, 2**53 + 1], "row_id": [0, 1]})
    (chunk,) = chunks_of([frame], chunk_rows=10)
    assert chunk.offsets_U1.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Int32, pl.UInt8, pl.Float32, pl.Float64, pl.Datetime("us", "UTC")])
def test_a_column_becomes_a_tensor_without_a_copy(dtype: pl.DataType) -> None:
    series = pl.Series("x", [1, 2, 3, 4], dtype=pl.Int64).cast(dtype)
    (_, buffer) = series.to_physical().to_arrow().buffers()
    assert as_tensor(series).data_ptr() == buffer.address
    assert as_tensor(series).tolist() == [1, 2, 3, 4]
    tail = as_tensor(series[2:])
    assert tail.data_ptr() == buffer.address + 2 * tail.element_size()
    assert tail.tolist() == [3, 4]


def test_chunks_lie_in_one_piece_of_memory() -> None:
    for chunk in chunks_of([users_frame([3], INT_IDS), users_frame([0, 4, 9], INT_IDS)], chunk_rows=5):
        assert chunk.frame.n_chunks() == 1
        (_, buffer) = chunk.frame["row_id"].to_arrow().buffers()
        base = buffer.address + 8 * chunk.frame["row_id"].to_arrow().offset
        assert as_tensor(chunk.frame["row_id"]).data_ptr() == base


def test_booleans_are_unpacked() -> None:
    tensor = as_tensor(pl.Series("x", [True, False, True]))
    assert (tensor.dtype, tensor.tolist()) == (torch.bool, [True, False, True])


def test_an_empty_column() -> None:
    tensor = as_tensor(pl.Series("x", [], dtype=pl.Int64))
    assert (tensor.dtype, tuple(tensor.shape)) == (torch.int64, (0,))


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Float64, pl.Boolean, pl.Datetime("us", "UTC")])
def test_nulls_are_refused(dtype: pl.DataType) -> None:
    with pytest.raises(PipelineError, match=r"^column 'price' holds 2 nulls and cannot become a tensor"):
        as_tensor(pl.Series("price", [None, 2**53 + 1, None], dtype=pl.Int64).cast(dtype))


@pytest.fixture
def every_warning() -> Iterator[None]:
    """Torch gives its warnings every time, not once a process, so that the order of tests does not matter."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


@pytest.mark.usefixtures("every_warning")
def test_the_warning_about_read_only_arrays_does_not_leak() -> None:
    column = pl.Series("x", [1, 2, 3])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        as_tensor(column)
        assert seen == []
        torch.from_numpy(column.to_numpy())  # others hear of it as before
    assert ["not writable" in str(warning.message) for warning in seen] == [True]


def test_other_warnings_are_not_silenced(monkeypatch: pytest.MonkeyPatch) -> None:
    def from_numpy(array: np.ndarray) -> torch.Tensor:
        warnings.warn("something else is wrong", UserWarning, stacklevel=1)
        return torch.tensor(array)

    monkeypatch.setattr(torch, "from_numpy", from_numpy)
    with pytest.warns(UserWarning, match="something else is wrong"):
        as_tensor(pl.Series("x", [1]))

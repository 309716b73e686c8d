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

from pipeline.chunks import EventChunk, as_tensor, iter_chunks
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


def assert_whole_users(chunks: Sequence[EventChunk], frame: pl.DataFrame) -> None:
    """The chunks are the rows of the frame, in order, and no user is in two of them."""
    assert pl.concat([chunk.frame for chunk in chunks]).equals(frame)
    lengths = dict(frame.group_by("user_id").len().iter_rows())
    for chunk in chunks:
        assert chunk.offsets_U1.dtype == np.int64
        assert chunk.offsets_U1[0] == 0
        assert chunk.offsets_U1[-1] == chunk.frame.height
        owned = [lengths[user] for user in chunk.users]
        assert np.diff(chunk.offsets_U1).tolist() == owned
        assert chunk.heaviest == max(owned)
    assert [user for chunk in chunks for user in chunk.users] == frame["user_id"].unique(maintain_order=True).to_list()


def test_chunks_by_hand() -> None:
    """Three users with 2, 3 and 1 rows, about three rows a chunk."""
    first, second = chunks_of([users_frame([2, 3, 1], INT_IDS)], chunk_rows=3)
    assert first.users.to_list() == INT_IDS[:1]
    assert first.offsets_U1.tolist() == [0, 2]
    assert second.users.to_list() == INT_IDS[1:3]
    assert second.frame["row_id"].to_list() == [2, 3, 4, 5]
    assert second.offsets_U1.tolist() == [0, 3, 4]


@given(
    lengths=st.lists(st.integers(1, 4) | st.sampled_from((1, 30)), min_size=1, max_size=12),
    ids=st.sampled_from((INT_IDS, STRING_IDS)),
    chunk_rows=st.integers(1, 12) | st.just(1_000),
    cuts=st.lists(st.integers(0, 60), max_size=3),
)
def test_chunks_are_a_partition_into_whole_users(
    lengths: list[int], ids: list[int | str], chunk_rows: int, cuts: list[int]
) -> None:
    """Whatever the size of a chunk and the files, which may end in the middle of a user."""
    frame = users_frame(lengths, ids)
    borders = sorted({0, frame.height, *(cut for cut in cuts if cut < frame.height)})
    files = [frame[low:high] for low, high in pairwise(borders)]
    chunks = chunks_of(files, chunk_rows)
    assert_whole_users(chunks, frame)
    for chunk in chunks:  # about chunk_rows: no more than a block beyond the users that fit no block
        assert chunk.frame.height < chunk_rows + max(chunk_rows, chunk.heaviest + 1)


def test_a_giant_among_small_users() -> None:
    frame = users_frame([1, 2, 200, 1, 1], INT_IDS)
    chunks = chunks_of([frame], chunk_rows=8)
    assert_whole_users(chunks, frame)
    (giant,) = [chunk for chunk in chunks if chunk.heaviest > 8]
    assert giant.users[0] == INT_IDS[2]  # the log names the first user of such a chunk


def test_one_row_a_chunk() -> None:
    frame = users_frame([1, 3, 1], STRING_IDS)
    chunks = chunks_of([frame], chunk_rows=1)
    assert_whole_users(chunks, frame)
    assert chunks[0].frame.height == 1


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

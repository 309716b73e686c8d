"""Facts about torch, polars and numpy that the code relies on: an upgrade that changes one is seen here first."""

import hashlib
import inspect
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

BEYOND_FLOAT64 = 2**53 + 1
NEVER = -(2**63)


# Memory that torch shares with polars


@pytest.fixture
def _every_warning() -> Iterator[None]:
    """Torch gives this warning once a process; a test would see it or not, depending on what ran before."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


def test_from_numpy_shares_memory() -> None:
    array = np.array([1, 2, 3])
    torch.from_numpy(array)[0] = 7
    assert array[0] == 7


@pytest.mark.usefixtures("_every_warning")
def test_from_numpy_warns_on_read_only_arrays_in_these_words() -> None:
    with pytest.warns(UserWarning, match=r"^The given NumPy array is not writable"):
        torch.from_numpy(pl.Series([1, 2]).to_numpy())


def test_uninitialised_memory_is_poisoned_in_deterministic_mode() -> None:
    """The laws rely on it to see an element that `torch.empty` left unwritten."""
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.isnan(torch.empty(3, dtype=torch.float32)).all()
        assert torch.empty_like(torch.zeros(3, dtype=torch.int64)).tolist() == [2**63 - 1] * 3
        assert torch.empty(3, dtype=torch.bool).all()
    finally:
        torch.use_deterministic_algorithms(False)


# Numbers in torch


def test_integers_divide_to_float32() -> None:
    """Hence the cast to float64 before every division."""
    assert (torch.tensor([1]) / torch.tensor([2])).dtype == torch.float32
    assert (torch.tensor([16_777_217]) / 1).tolist() == [16_777_216.0]


def test_int64_to_float64_divides_exactly_rounded() -> None:
    times_us = [1, 3, 10**6 + 1, 1_234_567_890_123_457, 2**53]
    per_s = torch.tensor(1e6, dtype=torch.float64)
    quotient = torch.tensor(times_us, dtype=torch.int64).to(torch.float64).div_(per_s)
    assert quotient.tolist() == [time_us / 1_000_000 for time_us in times_us]


def test_float64_to_float32_rounds_half_to_even() -> None:
    halves = torch.tensor([16_777_217.0, 16_777_219.0, 16_777_217.0000001], dtype=torch.float64)
    assert halves.to(torch.float32).tolist() == [16_777_216.0, 16_777_220.0, 16_777_218.0]


def test_float32_moves_in_steps_of_128_s_at_unix_times() -> None:
    assert float(np.spacing(np.float32(1_741_348_800))) == 128.0
    assert float(np.spacing(np.float32(2**24))) == 2.0


def test_sub_writes_into_a_slice() -> None:
    time_us, out = torch.tensor([5, 7, 12]), torch.full((3,), -1)
    torch.sub(time_us[1:], time_us[:-1], out=out[1:])
    assert out.tolist() == [-1, 2, 5]


def test_slices_and_gathers_of_nothing_work() -> None:
    """An empty chunk is no special case in a kernel."""
    empty, none = torch.empty(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)[:-1]
    torch.sub(empty[1:], empty[:-1], out=torch.empty_like(empty)[1:])
    assert empty[none].tolist() == []
    assert torch.cumsum(empty, 0).tolist() == []


def test_cumsum_of_booleans_counts_in_int64() -> None:
    counted = torch.cumsum(torch.tensor([True, False, True]), 0, dtype=torch.int64)
    assert (counted.dtype, counted.tolist()) == (torch.int64, [1, 1, 2])


def test_a_comparison_is_stored_as_bytes_0_and_1() -> None:
    """Hence a one-hot column is the comparison seen as uint8, without a copy."""
    equal = torch.tensor([3, 5], dtype=torch.uint8) == 5
    assert equal.view(torch.uint8).tolist() == [0, 1]
    assert equal.view(torch.uint8).data_ptr() == equal.data_ptr()


def test_never_is_an_int64() -> None:
    assert torch.tensor([NEVER], dtype=torch.int64).tolist() == [NEVER]
    assert (torch.tensor([NEVER, 0], dtype=torch.int64) == NEVER).tolist() == [True, False]


def test_stable_sort_keeps_the_order_of_ties() -> None:
    key = torch.arange(100_000) % 7
    order = torch.sort(key, stable=True).indices
    assert (order.dtype, key.dtype) == (torch.int64, torch.int64)
    tied = key[order]
    assert bool(((tied[1:] > tied[:-1]) | (order[1:] > order[:-1])).all())


def test_sort_of_int64_is_exact() -> None:
    """Neighbours above 2^53 are not taken for equal."""
    assert torch.sort(torch.tensor([BEYOND_FLOAT64, 2**53, -1]), stable=True).indices.tolist() == [2, 1, 0]


def test_repeat_interleave_takes_the_known_length() -> None:
    lengths, users = torch.tensor([2, 0, 1]), torch.arange(3)
    assert torch.repeat_interleave(users, lengths, output_size=3).tolist() == [0, 0, 2]


# From polars to numpy and back


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Int32, pl.UInt8, pl.Float32, pl.Float64])
def test_a_column_without_nulls_is_shared_and_read_only(dtype: pl.DataType) -> None:
    series = pl.Series([1, 2, 3]).cast(dtype)
    array = series.to_numpy()
    assert not array.flags.writeable
    assert array.ctypes.data == series.to_arrow().buffers()[1].address
    assert series[1:].to_numpy().ctypes.data == array.ctypes.data + array.itemsize


def test_one_null_makes_float64_of_int64() -> None:
    array = pl.Series([BEYOND_FLOAT64, None]).to_numpy()
    assert array.dtype == np.float64
    assert int(array[0]) != BEYOND_FLOAT64


def test_booleans_come_as_bytes() -> None:
    array = pl.Series([True, False]).to_numpy()
    assert (array.dtype, array.tolist()) == (np.bool_, [True, False])


def test_timestamps_are_microseconds_inside() -> None:
    series = pl.Series([1, 2]).cast(pl.Datetime("us", "UTC"))
    assert series.to_physical().dtype == pl.Int64
    assert series.to_physical().to_list() == [1, 2]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.float32, pl.Float32),
        (np.bool_, pl.Boolean),
        (np.uint8, pl.UInt8),
        (np.int32, pl.Int32),
        (np.int64, pl.Int64),
    ],
)
def test_arrays_become_columns_of_their_own_type(dtype: type, expected: pl.DataType) -> None:
    assert pl.Series("x", np.zeros(2, dtype=dtype)).dtype == expected


# Order in polars


def test_with_row_index_and_len_are_uint32() -> None:
    frame = pl.DataFrame({"x": [1]})
    assert frame.with_row_index("n")["n"].dtype == pl.UInt32
    assert frame.select(pl.len()).to_series().dtype == pl.UInt32


@pytest.mark.parametrize("kind", [pl.DataFrame, pl.LazyFrame])
def test_a_join_promises_no_order_unless_asked(kind: type[pl.DataFrame] | type[pl.LazyFrame]) -> None:
    assert inspect.signature(kind.join).parameters["maintain_order"].default is None


@pytest.mark.parametrize("lazy", [False, True])
def test_maintain_order_left_keeps_the_left_order(lazy: bool) -> None:
    left = pl.DataFrame({"id": np.arange(300_000) * 7919 % 300_007})
    right = left.unique().sort("id").with_columns(twice=pl.col("id") * 2)
    if lazy:
        joined = left.lazy().join(right.lazy(), on="id", how="left", maintain_order="left").collect()
    else:
        joined = left.join(right, on="id", how="left", maintain_order="left")
    assert joined["id"].equals(left["id"])
    assert joined["twice"].equals(left["id"] * 2, check_names=False)


def test_semi_join_keeps_the_left_order() -> None:
    left = pl.DataFrame({"id": np.arange(300_000) * 7919 % 300_007})
    kept = left.join(left[::3], on="id", how="semi", maintain_order="left")
    assert kept["id"].equals(left["id"].filter(left["id"].is_in(left["id"][::3].implode())))


def test_strings_sort_and_compare_bytewise() -> None:
    words = ["a", "B", "", "\u00e9", "e\u0301", "aa", "日本", "\U0001f600", "\uffff"]
    bytewise = sorted(words, key=str.encode)
    assert pl.Series(words).sort().to_list() == bytewise
    assert pl.Series(words).unique().sort().to_list() == bytewise
    assert (pl.Series(bytewise[:-1]) < pl.Series(bytewise[1:])).all()
    assert [pl.Series(bytewise).search_sorted(word) for word in bytewise] == list(range(len(words)))


def test_files_are_scanned_in_the_order_given(tmp_path: Path) -> None:
    for name, first in (("b", 0), ("a", 10), ("c[0]", 20)):
        pl.DataFrame({"x": range(first, first + 10)}).write_parquet(tmp_path / f"{name}.parquet")
    rows = pl.scan_parquet([tmp_path / f"{name}.parquet" for name in ("b", "a", "c[0]")], glob=False)
    assert rows.collect()["x"].to_list() == list(range(30))
    assert rows.slice(8, 14).collect()["x"].to_list() == list(range(8, 22))


# Values in polars


def test_enum_codes_are_the_declared_order() -> None:
    codes = pl.Series(["b", "a", "b"]).cast(pl.Enum(["b", "c", "a"])).to_physical()
    assert codes.to_list() == [0, 2, 0]
    names = [f"a{n}" for n in range(255)]
    assert pl.Series(names).cast(pl.Enum(names)).to_physical().cast(pl.UInt8).to_list() == list(range(255))


def test_a_word_outside_an_enum_is_an_error_or_null() -> None:
    with pytest.raises(pl.exceptions.InvalidOperationError):
        pl.Series(["x"]).cast(pl.Enum(["a"]))
    assert pl.Series(["x", "a"]).cast(pl.Enum(["a"]), strict=False).to_list() == [None, "a"]


def test_text_becomes_int64_only_when_it_is_one() -> None:
    texts = ["+5", "-7", "1e3", "1.5", " 5", "0x10", "1_000", "", "\u0663", str(2**63 - 1), str(2**63)]
    expected = [5, -7, None, None, None, None, None, None, None, 2**63 - 1, None]
    assert pl.Series(texts).cast(pl.Int64, strict=False).to_list() == expected


def test_integer_division_floors() -> None:
    """Nanoseconds before 1970 go to the earlier microsecond, days likewise."""
    assert (pl.Series([-1, -1000, -1001, 999]) // 1000).to_list() == [-1, -1, -2, 0]
    assert (pl.Series([-1, 999]) % 1000).to_list() == [999, 999]


def test_gather_of_a_null_position_is_null() -> None:
    positions = pl.Series([0, -1], dtype=pl.Int64)
    assert pl.Series(["a", "b"]).gather(positions.set(positions < 0, None)).to_list() == ["a", None]


def test_fill_null_keeps_int64_exact() -> None:
    filled = pl.Series([None, BEYOND_FLOAT64]).fill_null(NEVER)
    assert (filled.dtype, filled.to_list()) == (pl.Int64, [NEVER, BEYOND_FLOAT64])


def test_a_slice_of_a_one_piece_frame_is_one_piece() -> None:
    frame = pl.concat([pl.DataFrame({"x": [1, 2]}), pl.DataFrame({"x": [3]})])
    assert frame.n_chunks() == 2
    assert frame.rechunk()[1:].n_chunks() == 1


# Files of polars

WRITE = """
import hashlib, io, sys
import polars as pl
numbers = pl.int_range(0, 400_000, eager=True)
frame = pl.DataFrame({"n": numbers, "text": (numbers % 977).cast(pl.String), "half": (numbers / 2).cast(pl.Float32)})
file = io.BytesIO()
frame.write_parquet(file, compression="zstd", compression_level=1, row_group_size=131_072)
print(hashlib.sha256(file.getvalue()).hexdigest())
"""


def test_write_parquet_gives_the_same_bytes_for_any_thread_count() -> None:
    hashes = {
        subprocess.run(
            [sys.executable, "-c", WRITE],
            env={**os.environ, "POLARS_MAX_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "4")
    }
    assert len(hashes) == 1


def test_write_parquet_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    frame = pl.DataFrame({"x": np.arange(300_000) % 1000, "word": ["a", "b", None] * 100_000})
    for name in ("one", "two"):
        frame.write_parquet(tmp_path / name, compression="zstd", compression_level=1, row_group_size=131_072)
    assert len({hashlib.sha256((tmp_path / name).read_bytes()).digest() for name in ("one", "two")}) == 1


def test_parquet_keeps_types_and_zone(tmp_path: Path) -> None:
    schema = {"t": pl.Datetime("us", "UTC"), "i": pl.Int32, "u": pl.UInt8, "f": pl.Float32, "b": pl.Boolean}
    pl.DataFrame({"t": [1], "i": [1], "u": [1], "f": [1], "b": [True]}, strict=False).cast(schema).write_parquet(
        tmp_path / "x"
    )
    assert dict(pl.read_parquet(tmp_path / "x", glob=False).schema) == schema


# Numpy


def test_searching_an_empty_maximum_takes_the_initial_value() -> None:
    assert np.diff(np.zeros(1, dtype=np.int64)).max(initial=0) == 0


def test_an_oracle_value_that_does_not_fit_is_an_error() -> None:
    """The laws rely on it: a wrong value of the loop must not wrap into a right one."""
    with pytest.raises(OverflowError):
        np.array([256], dtype=np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="overflow"):
            np.array([1e300]).astype(np.float32)

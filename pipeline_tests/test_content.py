"""Content versions: the same values give the same hash, however they are cut; other values another one."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts import PipelineError
from pipeline.store import ContentHash, file_sha256, row_hash_sum

GOLDEN = pl.DataFrame(
    {
        "row_id": [0, 1, 2],
        "user_id": [17850, -(2**63), 2**63 - 1],
        "item_id": ["85123A", "", "日本"],
        "timestamp": [datetime(2010, 12, 1, 8, 26, tzinfo=UTC)] * 3,
        "is_first": [True, False, True],
        "price": [2.55, -0.1, 1e300],
    },
    schema_overrides={"timestamp": pl.Datetime("us", "UTC")},
)


def content_of(*frames: pl.DataFrame) -> str:
    content = ContentHash()
    for frame in frames:
        content.update(frame)
    return content.hexdigest()


def test_golden_values() -> None:
    # Versions are recorded in every manifest: a change here makes every store in the world stale.
    assert content_of(GOLDEN) == "95596f2bb5efae07ddc5fdcfc0198dc7"
    assert content_of() == "ce8f15881282a4001982e3a7bb241055"
    assert f"{row_hash_sum(GOLDEN):032x}" == "8d147afcf88a1007a39b334247d1fe7f"
    assert row_hash_sum(GOLDEN.clear()) == 0


def test_no_rows_are_one_version_whatever_the_columns() -> None:
    assert content_of(GOLDEN.clear()) == content_of() == content_of(pl.DataFrame({"x": []}, schema={"x": pl.Int8}))


CELLS: dict[str, tuple[pl.DataType, st.SearchStrategy[Any]]] = {
    "i": (pl.Int64(), st.integers(-(2**63), 2**63 - 1)),
    "s": (pl.String(), st.text(max_size=4)),
    "n": (pl.String(), st.none() | st.sampled_from(["", "a", "é"])),
    "m": (pl.Int64(), st.none() | st.sampled_from([0, 1])),
    "b": (pl.Boolean(), st.booleans()),
    "f": (pl.Float64(), st.floats(allow_nan=False)),
    "t": (pl.Datetime("us", "UTC"), st.datetimes(timezones=st.just(UTC), min_value=datetime(1990, 1, 1))),  # noqa: DTZ001
}
ROWS = st.lists(st.tuples(*(cells for _, cells in CELLS.values())), min_size=1, max_size=12)
SCHEMA = {name: dtype for name, (dtype, _) in CELLS.items()}


def names_of(*texts: str | None, known: tuple[str, ...] = ("view", "cart", "buy")) -> pl.DataFrame:
    return pl.DataFrame({"action": pl.Series(texts, dtype=pl.Enum(known))})


def test_a_column_of_names_depends_on_the_names_that_occur() -> None:
    views = names_of("cart", "view", "cart")
    assert content_of(views) == content_of(names_of("cart", "view", "cart", known=("view", "save", "cart")))
    others = [
        names_of("view", "cart", "view"),
        names_of("cart", "buy", "cart"),
        names_of("cart", "view"),
        names_of("cart", "view", None),
        names_of("cart", None, "view"),
        names_of("ca", "rtview", "ca", known=("ca", "rtview")),
    ]
    assert len({content_of(frame) for frame in [views, *others]}) == len(others) + 1


def test_any_number_of_names() -> None:
    several = [tuple(f"{letter}{n}" for n in range(200)) for letter in "abb"]
    frames = [names_of(*known, known=known) for known in several]
    everything = tuple(dict.fromkeys(name for known in several for name in known))
    assert content_of(*frames) == content_of(names_of(*(n for known in several for n in known), known=everything))


NAMES = st.lists(st.sampled_from(["view", "cart", "buy", None]), min_size=1, max_size=8)


@given(rows=NAMES, cut=st.integers(0, 8))
def test_names_hash_alike_however_they_are_cut(rows: list[str | None], cut: int) -> None:
    whole = names_of(*rows)
    other = names_of(*rows, known=("x", "buy", "cart", "view"))
    assert content_of(whole) == content_of(*(part for part in (whole[:cut], other[cut:]) if part.height))


def frame_of(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@given(ROWS, st.lists(st.integers(0, 12)))
def test_content_is_independent_of_chunks(rows: list[tuple[Any, ...]], cuts: list[int]) -> None:
    frame = frame_of(rows)
    borders = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    slices = [frame[low:high] for low, high in pairwise(borders)]
    whole = content_of(frame)
    assert content_of(*slices) == whole
    assert content_of(pl.concat(slices, rechunk=False)) == whole
    assert content_of(frame.select(reversed(frame.columns))) == whole
    assert content_of(frame.with_columns(pl.col("s").cast(pl.Categorical).cast(pl.String))) == whole


@given(ROWS, ROWS)
def test_content_tells_other_rows(left: list[tuple[Any, ...]], right: list[tuple[Any, ...]]) -> None:
    same = frame_of(left).equals(frame_of(right), null_equal=True) and str(left) == str(right)
    assert (content_of(frame_of(left)) == content_of(frame_of(right))) == same


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (["ab", "c"], ["a", "bc"]),
        (["", "a"], ["a", ""]),
        ([None, "a"], ["", "a"]),
        ([None, 0], [0, None]),
        ([0], [None]),
        ([1, 2], [2, 1]),
        ([1], [1, 1]),
        ([True, False], [False, True]),
        ([0.0], [-0.0]),
        (["é"], ["e\u0301"]),
    ],
)
def test_content_tells_what_looks_alike(left: list[Any], right: list[Any]) -> None:
    frames = [pl.DataFrame({"x": pl.Series(values)}) for values in (left, right)]
    assert content_of(frames[0]) != content_of(frames[1])


def test_content_tells_columns_apart() -> None:
    assert content_of(pl.DataFrame({"a": [1], "b": [2]})) != content_of(pl.DataFrame({"a": [2], "b": [1]}))
    assert content_of(pl.DataFrame({"a": [1]})) != content_of(pl.DataFrame({"b": [1]}))


WITHOUT_NULLS = st.lists(
    st.tuples(*(CELLS[name][1] for name in "isbft")), max_size=12, unique_by=lambda row: (row[0], row[1])
)


def rows_frame(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={name: SCHEMA[name] for name in "isbft"}, orient="row")


@given(WITHOUT_NULLS, st.randoms(use_true_random=False), st.integers(0, 12))
def test_the_sum_of_rows_forgets_the_order_and_can_be_updated(rows: list[Any], random: Any, cut: int) -> None:
    total = row_hash_sum(rows_frame(rows))
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert row_hash_sum(rows_frame(shuffled)) == total
    left, stays = rows_frame(rows[:cut]), rows_frame(rows[cut:])
    assert (total - row_hash_sum(left)) % 2**128 == row_hash_sum(stays)
    assert sum(row_hash_sum(rows_frame([row])) for row in rows) % 2**128 == total


@given(WITHOUT_NULLS, WITHOUT_NULLS)
def test_the_sum_of_rows_tells_other_rows(left: list[Any], right: list[Any]) -> None:
    same = sorted(map(repr, left)) == sorted(map(repr, right))
    assert (row_hash_sum(rows_frame(left)) == row_hash_sum(rows_frame(right))) == same


def test_the_sum_of_rows_sees_cells_swapped_between_rows_and_columns() -> None:
    base = pl.DataFrame({"user": [1, 2], "time": [10, 20]})
    across_rows = pl.DataFrame({"user": [1, 2], "time": [20, 10]})
    across_columns = pl.DataFrame({"user": [10, 20], "time": [1, 2]})
    assert len({row_hash_sum(frame) for frame in (base, across_rows, across_columns)}) == 3
    equal_pairs = pl.DataFrame({"user": [5, 5], "time": [7, 7]})  # no row cancels its double, as with xor
    assert row_hash_sum(equal_pairs) != 0
    assert row_hash_sum(equal_pairs) == 2 * row_hash_sum(equal_pairs[:1]) % 2**128


def test_no_two_of_many_rows_hash_alike() -> None:
    numbers = pl.DataFrame({"user": range(20_000), "time": [n % 3 for n in range(20_000)]})
    hashes = {row_hash_sum(numbers[row : row + 1]) for row in range(0, 20_000, 10)}
    assert len(hashes) == 2_000
    assert len({value >> 64 for value in hashes}) == len({value & (2**64 - 1) for value in hashes}) == 2_000


def test_the_sum_of_rows_refuses_nulls() -> None:
    with pytest.raises(PipelineError):
        row_hash_sum(pl.DataFrame({"user": [2**53, None]}))


def test_the_checksum_of_a_file(tmp_path: Any) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert file_sha256(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with pytest.raises(
        PipelineError, match=r"nowhere: cannot be read \(No such file or directory\); check that it is there"
    ):
        file_sha256(tmp_path / "nowhere")

"""The stored order: whatever the budget, it is that of Python's `sorted` by (user, time, row)."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.events import parts, write
from pipeline.events.arrange import Arranger
from pipeline.events.order import sort_rows
from pipeline.store import Staging
from pipeline_tests.datasets import make_dataset

Rows = list[tuple[Any, int]]
DAY = 18_262


def frame_of(rows: Rows, *, first: int = 0, dtype: type[pl.DataType] = pl.Int64) -> pl.DataFrame:
    """(user, time) rows as the stage hands them over; `payload` is there to see rows torn apart."""
    return pl.DataFrame(
        {
            "row_id": range(first, first + len(rows)),
            "user_id": [user for user, _ in rows],
            "timestamp": [time for _, time in rows],
            "payload": [f"{user}@{time}#{row}" for row, (user, time) in enumerate(rows, first)],
        },
        schema={"row_id": pl.Int64, "user_id": dtype, "timestamp": pl.Int64, "payload": pl.String},
    )


def expected(rows: Rows) -> list[tuple[int, Any, int, str]]:
    """By the bytes of text, or the number."""
    full = [(row, user, time, f"{user}@{time}#{row}") for row, (user, time) in enumerate(rows)]
    return sorted(full, key=lambda r: (r[1].encode() if isinstance(r[1], str) else r[1], r[2], r[0]))


def dtype_of(rows: Rows) -> type[pl.DataType]:
    return pl.String if rows and isinstance(rows[0][0], str) else pl.Int64


def arranged(rows: Rows, *, budget: int, block: int, folder: Path) -> tuple[list[pl.DataFrame], Arranger]:
    arranger = Arranger(budget_bytes=budget, directory=folder / "parts")
    for start in range(0, len(rows), block):
        frame = frame_of(rows[start : start + block], first=start, dtype=dtype_of(rows))
        arranger.add(frame, np.full(frame.height, DAY, dtype=np.int32))
    return list(arranger.ranges(DAY)), arranger


def rows_of(frames: list[pl.DataFrame]) -> list[tuple[Any, ...]]:
    return [row for frame in frames for row in frame.rows()]


def test_user_then_time_then_row() -> None:
    rows: Rows = [(2, 10), (1, 30), (2, 10), (1, 5), (-3, 99), (2, 9)]
    assert [row[:3] for row in sort_rows(frame_of(rows)).rows()] == [
        (4, -3, 99), (3, 1, 5), (1, 1, 30), (5, 2, 9), (0, 2, 10), (2, 2, 10),
    ]  # fmt: skip


def test_text_is_sorted_by_its_bytes() -> None:
    users = ["b", "a", "é", "z", "", "aa", "日本", "A", "a\x00", "\U0001f600", "ÿ", "\uffee"]  # fmt: skip
    found = sort_rows(frame_of([(user, 0) for user in users], dtype=pl.String))["user_id"].to_list()
    assert found == sorted(users, key=str.encode)
    # Bytes differ here from UTF-16 units: an emoji stands behind U+FFEE.
    assert found[-3:] == ["日本", "\uffee", "\U0001f600"]


@pytest.mark.parametrize("rows", [[], [(1, 5)], [(7, 7)] * 5])
def test_nothing_one_row_and_all_ties(rows: Rows) -> None:
    assert sort_rows(frame_of(rows)).rows() == expected(rows)


@pytest.mark.parametrize(
    "rows",
    [
        [(2**63 - 1, 5), (-(2**63), 9), (0, 1), (-(2**63), 2)],  # the span of users overflows int64
        [(2**62, 2**50), (0, 0), (2**62, 0), (1, 2**50)],  # 63 + 51 bits
        [(2**11, 2**50), (0, 0), (2**11 - 1, 2**50), (2**11 - 1, 0)],  # 12 + 51 = 63 bits: one too many
        [(2**10, 2**50), (0, 0), (2**10 - 1, 2**50), (2**10 - 1, 0)],  # 11 + 51 = 62 bits: just fits
        [(1, -(2**59)), (1, 2**60), (0, 0), (1, 2**60)],  # 1 bit of users + 61 of time
    ],
)
def test_keys_at_the_border_of_what_packs(rows: Rows) -> None:
    assert sort_rows(frame_of(rows)).rows() == expected(rows)


@pytest.mark.parametrize("times", [[0, 2**62 - 1, 5, 5], [2**62 - 1, 0, 5, 5]])
def test_what_does_not_fit_into_one_key_is_sorted_twice(times: list[int]) -> None:
    rows = [(2, times[0]), (1, times[1]), (2, times[2]), (1, times[3]), (2**61, 3), (1, 3)]
    assert sort_rows(frame_of(rows)).rows() == expected(rows)


@pytest.mark.parametrize("tick", [1_000_000, 1_000, 1])
def test_times_of_any_unit(tick: int) -> None:
    rows = [(1, 7 * tick), (1, 3 * tick), (0, 3 * tick), (1, 3 * tick), (0, 10 * tick)]
    assert sort_rows(frame_of(rows)).rows() == expected(rows)


def test_what_comes_in_is_not_changed() -> None:
    frame = frame_of([(3, 1), (1, 1), (2, 0)])
    before = frame.clone()
    sort_rows(frame)
    assert frame.equals(before)


USERS = st.sampled_from(
    [
        st.integers(0, 5),
        st.integers(-(2**63), 2**63 - 1),
        st.sampled_from([2**63 - 1, -(2**63), 2**53, 2**53 + 1, 0]),
        st.sampled_from(["", "a", "A", "é", "z", "日本", "\U0001f600", "a\x00b", "10", "9"]),
        st.text(max_size=3),
    ]
)


@st.composite
def logs(draw: st.DrawFn) -> Rows:
    users = draw(USERS)
    times = draw(st.sampled_from([st.integers(0, 3), st.integers(0, 86_400_000_000 - 1)]))
    rows = draw(st.lists(st.tuples(users, times), max_size=60))
    if rows and draw(st.booleans()):  # one giant user
        rows = [row for one in rows for row in (one, (rows[0][0], one[1]))]
    return rows


@given(logs())
def test_sort_rows_equals_sorted(rows: Rows) -> None:
    assert sort_rows(frame_of(rows, dtype=dtype_of(rows))).rows() == expected(rows)


@given(logs(), st.sampled_from([1, 100, 700, 10**9]), st.integers(1, 30))
def test_spilled_or_not_the_order_is_that_of_sorted(rows: Rows, budget: int, block: int) -> None:
    with TemporaryDirectory() as folder:
        frames, arranger = arranged(rows, budget=budget, block=block, folder=Path(folder))
        assert rows_of(frames) == expected(rows)
        if budget in (1, 10**9):
            assert (arranger.spilled_bytes > 0) == (budget == 1 and bool(rows))
        instants = [set(frame.select("user_id", "timestamp").iter_rows()) for frame in frames]
        assert sum(map(len, instants)) == len(set().union(*instants)), "an instant of a user was cut in two"
        arranger.forget(DAY)
        assert [path for path in Path(folder).rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("budget", [1, 10**9])
def test_numbers_of_every_size_come_back_as_they_were(tmp_path: Path, budget: int) -> None:
    numbers = {
        "small": [0, 2**32 - 1],
        "large": [0, 2**32],
        "negative": [-1, 5],
        "extreme": [-(2**63), 2**63 - 1],
        "missing": [None, 7],
    }
    frame = pl.DataFrame(numbers, schema=dict.fromkeys(numbers, pl.Int64)).with_columns(fraction=pl.Series([0.5, None]))
    kept = parts.DayParts(budget_bytes=budget, directory=tmp_path)
    kept.add(frame, np.full(2, DAY, dtype=np.int32))
    (found,) = kept.of(DAY)
    assert found.equals(frame)
    assert found.schema == frame.schema


@pytest.mark.parametrize("text", [False, True])
def test_a_spilled_day_comes_in_ranges_about_as_large_as_the_budget(tmp_path: Path, text: bool) -> None:
    users = [(f"user-number-{n % 500}" if text else n % 500, n // 7) for n in range(20_000)]
    frames, arranger = arranged(users, budget=100_000, block=1000, folder=tmp_path)
    assert rows_of(frames) == expected(users)
    sizes = [int(frame.estimated_size()) for frame in frames]
    assert max(sizes) <= 2 * 100_000
    assert len(frames) <= 2 * (1 + arranger.spilled_bytes // 100_000), "far too many small ranges"
    assert min(frame.height for frame in frames) > 100


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_user_larger_than_the_budget_is_cut_by_time_between_instants(tmp_path: Path, position: int) -> None:
    giant = [0, 250, 500][position]
    rows: Rows = [(n % 501, n) for n in range(4000)] + [(giant, 7919 * n % 20_000 // 3) for n in range(20_000)]
    frames, _ = arranged(rows, budget=50_000, block=500, folder=tmp_path)
    assert rows_of(frames) == expected(rows)
    with_giant = [frame.filter(pl.col("user_id") == giant) for frame in frames if giant in frame["user_id"]]
    assert len(with_giant) > 10
    instants = [set(frame["timestamp"]) for frame in with_giant]
    assert sum(map(len, instants)) == len(set().union(*instants)), "an instant was cut in two"
    assert max(int(frame.estimated_size()) for frame in frames) <= 2 * 50_000


def test_a_giant_instant_is_one_piece(tmp_path: Path) -> None:
    rows: Rows = [(n % 5, n) for n in range(100)] + [(3, 50)] * 10_000
    frames, _ = arranged(rows, budget=20_000, block=500, folder=tmp_path)
    assert rows_of(frames) == expected(rows)


def test_empty_blocks_are_nothing(tmp_path: Path) -> None:
    arranger = Arranger(budget_bytes=1, directory=tmp_path / "parts")
    arranger.add(frame_of([]), np.zeros(0, dtype=np.int32))
    assert list(arranger.ranges(DAY)) == []
    assert not (tmp_path / "parts").exists()


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
def test_no_order_of_the_log_has_rows_written_many_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """Of a log in the order of its users, the first rows tell nothing of where ranges should begin."""
    written: list[int] = []
    write = parts._Batches.write

    def counted(rows: pl.DataFrame, range_starts: np.ndarray, path: Path) -> parts._Batches:
        written.append(rows.height)
        return write(rows, range_starts, path)

    read: list[int] = []
    frame_of_batches = parts._frame

    def measured(batches: list[Any]) -> pl.DataFrame:
        frame = frame_of_batches(batches)
        read.append(parts.size_of(frame))
        return frame

    monkeypatch.setattr(parts._Batches, "write", counted)
    monkeypatch.setattr(parts, "_frame", measured)
    users = sorted(n * 7919 % 40_000 for n in range(40_000))
    if order != "ascending":
        users = users[::-1] if order == "descending" else [n * 7919 % 40_000 for n in range(40_000)]
    rows: Rows = [(user, n) for n, user in enumerate(users)]
    frames, _ = arranged(rows, budget=60_000, block=1000, folder=tmp_path)
    assert rows_of(frames) == expected(rows)
    assert sum(written) <= 3 * len(rows)
    assert max(read) <= 4 * 60_000, "a whole range is read at once, however large it is"


def test_a_file_that_waits_keeps_no_rows_of_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of 70 rows make files of 100: what is copied for a file, and lives until it is written, is that file alone."""
    copied: list[int] = []

    def noting(frames: list[pl.DataFrame]) -> pl.DataFrame:
        copied.append(sum(frame.height for frame in frames))
        return parts.joined(frames)

    monkeypatch.setattr(write, "FILE_ROWS", 100)
    monkeypatch.setattr(write, "joined", noting)
    staging = mock.create_autospec(Staging, instance=True)
    ranges = [
        pl.DataFrame(
            {"row_id": range(first, first + 70), "user_id": first, "item_id": 1, "timestamp": range(70), "action": 0},
            schema={**dict.fromkeys(["row_id", "user_id", "item_id", "timestamp"], pl.Int64), "action": pl.UInt8},
        )
        for first in range(0, 350, 70)
    ]
    write.write_events(iter(ranges), make_dataset(tmp_path), staging)
    files = [call.args[0] for call in staging.write.call_args_list]
    assert copied == [file.height for file in files] == [100, 100, 100, 50]
    assert pl.concat(files)["row_id"].to_list() == list(range(350))

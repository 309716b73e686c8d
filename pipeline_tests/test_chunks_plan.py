"""What is said of a day before the work: chunks within the budget, and users who are larger than one."""

from pathlib import Path

import polars as pl
import pytest

from pipeline.chunks import CHUNK_ROWS, plan_chunks, row_bytes
from pipeline.chunks.plan import FEWEST_ROWS, Plan
from pipeline.contracts import Column, PipelineError
from pipeline.store import ROW_GROUP_ROWS, Manifest, Store
from pipeline_tests.test_chunks import DAY, day_of_events

GIANT = 7


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    """Two files: user 7 has 3.5 row groups beside users of one event each."""
    users = [*range(-(ROW_GROUP_ROWS // 2), 0), *([GIANT] * (7 * ROW_GROUP_ROWS // 2)), *range(8, 8 + ROW_GROUP_ROWS)]
    frame = pl.DataFrame({"user_id": users, "row_id": range(len(users))})
    store = Store(tmp_path_factory.mktemp("plan"))
    manifest = day_of_events(store, [frame[: 2 * ROW_GROUP_ROWS], frame[2 * ROW_GROUP_ROWS :]])
    return store.directory("events", DAY), manifest


def plan(day: tuple[Path, Manifest], *, budget_bytes: int = 2**30, chunk_rows: int | None = None) -> Plan:
    return plan_chunks(*day, held_row_bytes=100, budget_bytes=budget_bytes, chunk_rows=chunk_rows)


@pytest.mark.parametrize(
    ("budget_bytes", "rows"),
    [
        (2**40, CHUNK_ROWS),
        (100 * CHUNK_ROWS, CHUNK_ROWS),
        (100 * CHUNK_ROWS - 1, CHUNK_ROWS - ROW_GROUP_ROWS),
        (100 * ROW_GROUP_ROWS, ROW_GROUP_ROWS),
        (10_000_000, 100_000),
        (1, FEWEST_ROWS),
    ],
)
def test_chunks_fit_the_budget(day: tuple[Path, Manifest], budget_bytes: int, rows: int) -> None:
    """Whole row groups where there is room for one: their files have no remnants."""
    found = plan(day, budget_bytes=budget_bytes)
    assert found.chunk_rows == rows
    assert found.chunks == -(-found.rows // rows)
    assert rows == FEWEST_ROWS or rows * 100 <= budget_bytes


def test_what_the_dataset_file_says_stands(day: tuple[Path, Manifest]) -> None:
    assert plan(day, budget_bytes=1, chunk_rows=5_000_000).chunk_rows == 5_000_000
    assert plan(day, chunk_rows=1).chunks == day[1].rows


def test_giants_are_known_from_the_footers(day: tuple[Path, Manifest]) -> None:
    """Three and a half row groups, of which three are all theirs: one is cut by the border of the users before."""
    least = 3 * ROW_GROUP_ROWS
    assert plan(day, chunk_rows=least).giants == {}
    assert plan(day, chunk_rows=least - 1).giants == {GIANT: least}


def test_the_plan_in_words(day: tuple[Path, Manifest]) -> None:
    text = str(plan(day, chunk_rows=2 * ROW_GROUP_ROWS))
    assert text.startswith("655,360 events in ")
    assert (
        "about 3 chunks of up to 262,144 events, in pieces: users 7 with 393,216 or more; expected peak of memory"
        in text
    )
    assert text.endswith("1.00 GiB of it for rows at most")
    assert "no user larger than a chunk" in str(plan(day))


def test_a_day_without_rows() -> None:
    found = plan_chunks(Path("nowhere"), day_of_nothing(), held_row_bytes=100, budget_bytes=2**30, chunk_rows=None)
    assert (found.rows, found.chunks, found.giants) == (0, 0, {})


def day_of_nothing() -> Manifest:
    return Manifest(
        "events", DAY, rows=0, files=(), columns=[], config={}, code={}, inputs={}, content_version="", counts={}
    )


def test_a_file_that_is_gone(tmp_path: Path, day: tuple[Path, Manifest]) -> None:
    with pytest.raises(PipelineError, match=r"the file cannot be read .*make this day again"):
        plan((tmp_path, day[1]))


def test_bytes_of_a_row() -> None:
    columns = [Column("a", "int64"), Column("b", "int32"), Column("c", "bool"), Column("action", "string")]
    assert row_bytes(columns) == 8 + 4 + 1 + 1
    assert row_bytes([Column("note", "string")]) == 40

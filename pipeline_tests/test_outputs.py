"""What is written of a day, what is said while it is written, and the tensor for in-memory scripts."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest
import torch

from pipeline.contracts import PipelineError
from pipeline.outputs import make_features, matrix
from pipeline.stages import STAGES, Work, run_day
from pipeline.store import ContentHash, Staging, scan
from pipeline_tests.datasets import make_dataset
from pipeline_tests.works import work_of

FIRST, SECOND = "2020-01-01", "2020-01-02"
NOON_S = 1_577_880_000
LINES = [
    f"8,b,{NOON_S + 10},view\n",
    f"7,a,{NOON_S},view\n",
    f"7,B,{NOON_S + 2},view\n",
]
LATER = [f"7,a,{NOON_S + 86_400},view\n"]


def make(folder: Path, *, chunk_rows: int = 1000) -> Work:
    days = {FIRST: "user,item,time,event\n" + "".join(LINES), SECOND: "user,item,time,event\n" + "".join(LATER)}
    dataset = make_dataset(folder, days=days)
    work = work_of(dataset, run="run", chunk_rows=chunk_rows)
    for asset in STAGES:
        for day in (FIRST, SECOND):
            run_day(asset, date.fromisoformat(day), work)
    return work


def test_the_matrix_is_in_input_order(tmp_path: Path) -> None:
    """Users 7 and 8 are 2 and 3; items B, a, b are 2, 3, 4; the second day comes a day minus two seconds later."""
    work = make(tmp_path)
    found = matrix(work.store.root, FIRST, SECOND)
    others = [0.0] * (len(work.dataset.action_names) - 1)
    assert work.dataset.action_names[0] == "view"
    assert found.dtype == torch.float32
    assert found.tolist() == [
        [3.0, 4.0, 0.0, 1.0, *others],
        [2.0, 3.0, 0.0, 1.0, *others],
        [2.0, 2.0, 2.0, 1.0, *others],
        [2.0, 3.0, 86_398.0, 1.0, *others],
    ]
    assert matrix(str(work.store.root), date(2020, 1, 2), date(2020, 1, 2)).tolist() == found.tolist()[3:]


def test_the_matrix_refuses_what_float32_cannot_tell_apart(tmp_path: Path) -> None:
    work = make(tmp_path)
    manifest = work.store.manifest("features", date(2020, 1, 1))
    assert manifest is not None
    path = work.store.directory("features", date(2020, 1, 1)) / manifest.files[0].path
    frame = pl.read_parquet(path)
    for index, refused in ((2**24, False), (2**24 + 1, True)):
        frame.with_columns(item_index=pl.lit(index, pl.Int32)).write_parquet(path)
        if not refused:
            assert matrix(work.store.root, FIRST, FIRST)[0, 1] == 2**24
            continue
        with pytest.raises(
            PipelineError,
            match="item_index reaches 16,777,217, and float32 holds integers exactly only up to 16,777,216",
        ):
            matrix(work.store.root, FIRST, FIRST)


@pytest.mark.parametrize(("chunk_rows", "rows"), [(3, [3]), (2, [2, 1]), (1, [1, 1, 1])])
def test_one_file_a_chunk(tmp_path: Path, chunk_rows: int, rows: list[int]) -> None:
    """Whole users where they fit; a user with more events than a chunk is still one user."""
    work = make(tmp_path, chunk_rows=chunk_rows)
    manifest = work.store.manifest("features", date(2020, 1, 1))
    assert manifest is not None
    assert [file.rows for file in manifest.files] == rows
    assert manifest.counts == {"chunks": len(rows), "users": 2}


def told_of(work: Work) -> list[str]:
    """What is said while the first day of features is made."""
    told: list[str] = []
    outcome = run_day("features", date(2020, 1, 1), replace(work, force=True, report=told.append))
    facts = outcome.facts
    assert facts["device"] == "cpu"
    assert facts["peak_bytes"] > 0
    assert facts["expected_peak_bytes"] > 0
    return [line.removeprefix("features 2020-01-01: ") for line in told]


def test_the_plan_progress_and_the_effort_are_told(tmp_path: Path) -> None:
    plan, first, second, effort = told_of(make(tmp_path, chunk_rows=2))
    assert plan.startswith(
        "3 events in 0.0 MiB, about 2 chunks of up to 2 events, no user larger than a chunk; expected peak"
    )
    assert [line.split(" events,")[0] for line in (first, second)] == ["2 of 3", "3 of 3"]
    assert all("s left" in line for line in (first, second))
    assert effort.startswith("3 events in ")
    assert "the process held at most" in effort


def test_a_giant_is_told_once(tmp_path: Path) -> None:
    told = told_of(make(tmp_path, chunk_rows=1))
    giants = [line for line in told if "in pieces" in line]
    assert giants == ["user 7 has more events than a chunk and is computed in pieces"]


def test_the_way_over_the_buffers_writes_the_same_bytes(tmp_path: Path) -> None:
    work = make(tmp_path, chunk_rows=2)
    made = [
        make_features(
            day=date(2020, 1, 2),
            dataset=work.dataset,
            features=work.features,
            store=work.store,
            run=f"staged-{staged}",
            device=work.device,
            chunk_rows=2,
            report=work.report,
            staged=staged,
        )
        for staged in (False, True)
    ]
    assert len(made[0].manifest.files) == len(made[1].manifest.files) == 1
    assert made[0].manifest.files[0].sha256 == made[1].manifest.files[0].sha256
    assert made[0].manifest.content_version == made[1].manifest.content_version
    assert (made[0].facts["bytes_to_device"], made[1].facts["bytes_to_device"] > 0) == (0, True)


def test_torch_has_its_threads_back_afterwards(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(5)
    try:
        make(tmp_path)
        assert torch.get_num_threads() == 5
    finally:
        torch.set_num_threads(threads)


def test_a_day_without_rows_has_no_files(tmp_path: Path) -> None:
    dataset = make_dataset(
        tmp_path, days={FIRST: "user,item,time,event\n" + "".join(LINES), SECOND: "user,item,time,event\n"}
    )
    work = work_of(dataset, run="run")
    for asset in STAGES:
        for day in (FIRST, SECOND):
            run_day(asset, date.fromisoformat(day), work)
    manifest = work.store.manifest("features", date(2020, 1, 2))
    assert manifest is not None
    assert (manifest.rows, list(manifest.files)) == (0, [])
    state = [work.store.manifest("user_state", date(2020, 1, day)) for day in (1, 2)]
    assert state[0] is not None
    assert state[1] is not None
    assert state[0].version("closing") == state[1].version("closing")
    assert scan(work.store.root, "features", FIRST, SECOND).collect().height == 3


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        work = make(tmp_path / name)
        manifest = work.store.manifest("features", date(2020, 1, 1) + timedelta(days=1))
        assert manifest is not None
        made.append([(file.sha256, file.bytes) for file in manifest.files])
    assert made[0] == made[1]


def test_staging_and_content_agree_on_what_is_written(tmp_path: Path) -> None:
    frame = pl.DataFrame({"x": [1, 2]})
    with Staging(
        asset="features", day=date(2020, 1, 1), run="r", directory=tmp_path / "d", aside=tmp_path / "a"
    ) as staging:
        staging.write(frame)
    once, again = ContentHash(), ContentHash()
    once.update(frame)
    again.update(pl.read_parquet(tmp_path / "d" / "r-0.parquet"))
    assert once.hexdigest() == again.hexdigest()

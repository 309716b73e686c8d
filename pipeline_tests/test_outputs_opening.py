"""The carried state is read along with the events: every row once, with the chunk that its user is in."""

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts import Column
from pipeline.outputs import opening as module
from pipeline.outputs.opening import OpeningReader
from pipeline.store import Manifest, Recipe, Store
from pipeline_tests.test_chunks import DAY, INT_IDS, STRING_IDS


def day_of_state(store: Store, frames: list[pl.DataFrame], kind: str) -> Manifest:
    with store.stage("user_state", DAY, run="test") as staging:
        for frame in frames:
            staging.write(frame, role="opening")
        staging.write(pl.DataFrame({"user_id": [1], "x": [1]}), role="closing")
        return staging.finish(
            rows=sum(frame.height for frame in frames),
            columns=[Column("user_id", kind), Column("x", "int64")],  # type: ignore[arg-type]
            recipe=Recipe({}, {}, {}),
            content_version={"opening": "", "closing": ""},
            counts={},
            facts={},
        ).manifest


@pytest.mark.parametrize(("ids", "kind"), [(INT_IDS, "int64"), (STRING_IDS, "string")], ids=["integers", "texts"])
@given(data=st.data())
def test_every_row_comes_once_with_its_chunk(ids: list[int | str], kind: str, data: st.DataObject) -> None:
    known = [n for n in range(len(ids)) if data.draw(st.booleans())]
    frame = pl.DataFrame(
        {"user_id": [ids[n] for n in known], "x": known},
        schema={"user_id": pl.Int64 if kind == "int64" else pl.String, "x": pl.Int64},
    )
    cut = data.draw(st.integers(0, len(known)))
    ends = sorted(data.draw(st.sets(st.integers(0, len(ids) - 1), max_size=6)))
    with TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROW_GROUP_ROWS", 1)
        store = Store(Path(root))
        manifest = day_of_state(store, [part for part in (frame[:cut], frame[cut:]) if part.height], kind)
        reader = OpeningReader(store.directory("user_state", DAY), manifest, ["x"])
        found = [reader.up_to(ids[end])["x"].to_list() for end in ends]
    lower = -1
    for end, rows in zip(ends, found, strict=True):
        assert rows == [n for n in known if lower < n <= end]
        lower = end

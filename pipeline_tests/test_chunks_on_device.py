"""A chunk as features see it: tensors, the state before it, and the device that was asked for."""

from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import accumulate
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.chunks import (
    EventChunk,
    as_tensor,
    columns_to_summarise,
    device_of_day,
    opening_tensors,
    out_of_memory,
    resolve_device,
    tensor_extras,
    to_tensors,
)
from pipeline.config import Dataset
from pipeline.contracts import Column, PipelineError
from pipeline.features import load_features

CPU = torch.device("cpu")
NOON = datetime(2025, 3, 7, 12, tzinfo=UTC)


def dataset(**extra: Any) -> Dataset:
    return Dataset.model_validate(
        {
            "name": "test",
            "partitions": {"start": "2025-03-01"},
            "source": {"path": "raw.csv"},
            "columns": {
                "user_id": {"from": "user", "type": "int64"},
                "item_id": {"from": "item", "type": "string"},
                "timestamp": {"from": "time", "unit": "s"},
                "action": {"value": "view"},
            },
            "actions": {"names": ["view", "cart", "purchase"]},
            "extra": extra,
            "store": {"root": "out"},
        }
    )


def event_chunk(**columns: Any) -> EventChunk:
    """Two users, with two events and one."""
    frame = pl.DataFrame(
        {
            "row_id": [4, 5, 0],
            "user_id": [7, 7, 9],
            "timestamp": pl.Series([NOON, NOON, NOON]).cast(pl.Datetime("us", "UTC")),
            "action": ["purchase", "view", "cart"],
            **columns,
        }
    )
    return EventChunk(frame, np.array([0, 2, 3], dtype=np.int64))


def test_a_chunk_as_features_see_it() -> None:
    chunk = to_tensors(event_chunk(), dataset=dataset(), device=CPU)
    assert (chunk.row_id_E.dtype, chunk.row_id_E.tolist()) == (torch.int64, [4, 5, 0])
    assert (chunk.time_us_E.dtype, chunk.time_us_E.tolist()) == (torch.int64, [1_741_348_800_000_000] * 3)
    assert (chunk.action_code_E.dtype, chunk.action_code_E.tolist()) == (torch.uint8, [2, 0, 1])
    assert (chunk.offsets_U1.dtype, chunk.offsets_U1.tolist()) == (torch.int64, [0, 2, 3])
    assert (chunk.user_E.dtype, chunk.user_E.tolist()) == (torch.int64, [0, 0, 1])
    assert chunk.action_names == ("view", "cart", "purchase")
    assert chunk.extra == {}


def test_numeric_extra_columns_that_are_never_missing_come_along() -> None:
    declared = dataset(
        price={"from": "p", "type": "float64"},
        count={"from": "c", "type": "int64"},
        gift={"from": "g", "type": "bool"},
        note={"from": "n", "type": "string"},
        rating={"from": "r", "type": "int64", "optional": True},
    )
    assert tensor_extras(declared.extra_columns) == ["price", "count", "gift"]
    columns = {
        "price": [0.1, 2.0, 3.0],
        "count": [2**53 + 1, 0, -1],
        "gift": [True, False, True],
        "note": ["a", "b", "c"],
        "rating": [None, 1, 2],
    }
    extra = to_tensors(event_chunk(**columns), dataset=declared, device=CPU).extra
    assert {name: tensor.dtype for name, tensor in extra.items()} == {
        "price": torch.float64,
        "count": torch.int64,
        "gift": torch.bool,
    }
    assert {name: tensor.tolist() for name, tensor in extra.items()} == {
        name: columns[name] for name in ("price", "count", "gift")
    }


@given(lengths=st.lists(st.integers(1, 5), max_size=8))
def test_user_of_an_event(lengths: list[int]) -> None:
    users = [u for u, length in enumerate(lengths) for _ in range(length)]
    frame = pl.DataFrame(
        {"row_id": range(len(users)), "user_id": users, "timestamp": users, "action": ["view"] * len(users)},
        schema={"row_id": pl.Int64, "user_id": pl.Int64, "timestamp": pl.Datetime("us", "UTC"), "action": pl.String},
    )
    offsets = np.array([0, *accumulate(lengths)], dtype=np.int64)
    assert to_tensors(EventChunk(frame, offsets), dataset=dataset(), device=CPU).user_E.tolist() == users


def test_an_action_that_is_not_declared_is_an_error_and_no_code() -> None:
    chunk = event_chunk()
    unknown = EventChunk(chunk.frame.with_columns(action=pl.lit("share")), chunk.offsets_U1)
    with pytest.raises(
        PipelineError, match=r"^events holds 3 rows with an action that \[actions\] names does not declare"
    ):
        _ = to_tensors(unknown, dataset=dataset(), device=CPU).action_code_E


@pytest.mark.parametrize("offsets", [[0, 2], [1, 2, 3], [0, 2, 4], [0, 2, 2, 3], [0, 3, 2, 3]])
def test_offsets_that_do_not_fit_the_rows_never_reach_a_device(offsets: list[int]) -> None:
    with pytest.raises(PipelineError, match="do not ascend from 0 to 3"):
        to_tensors(EventChunk(event_chunk().frame, np.array(offsets)), dataset=dataset(), device=CPU)


def test_actions_by_name_and_as_enum_have_the_same_codes() -> None:
    chunk = event_chunk()
    names = pl.Enum(dataset().action_names)
    read = EventChunk(chunk.frame.with_columns(pl.col("action").cast(names)), chunk.offsets_U1)
    codes = to_tensors(read, dataset=dataset(), device=CPU).action_code_E
    assert torch.equal(codes, to_tensors(chunk, dataset=dataset(), device=CPU).action_code_E)
    assert codes.data_ptr() == as_tensor(read.frame["action"].to_physical()).data_ptr()


def test_tensors_are_made_once_and_only_when_asked_for() -> None:
    """A frame without most of the columns is enough for who does not ask for them."""
    frame = event_chunk().frame.select("user_id", "timestamp")
    chunk = to_tensors(EventChunk(frame, np.array([0, 2, 3])), dataset=dataset(price=PRICE), device=CPU)
    assert chunk.time_us_E is chunk.time_us_E
    assert set(chunk.extra) == {"price"}
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        _ = chunk.row_id_E
    with pytest.raises(KeyError):
        _ = chunk.extra["row_id"]


PRICE = {"from": "p", "type": "float64"}


def test_what_summarise_asks_for_is_known_before_anything_is_read() -> None:
    core, position = load_features(["core", "history_position"], {})
    declared = dataset(price=PRICE)
    assert columns_to_summarise([position], declared) == []
    assert columns_to_summarise([position, core], declared) == ["timestamp"]
    greedy = replace(position, summarise=lambda chunk: {"events": chunk.extra["price"] + chunk.row_id_E})
    assert columns_to_summarise([greedy], declared) == ["price", "row_id"]
    assert columns_to_summarise([replace(position, summarise=None)], declared) == []


LAST = {"core.last": Column("core.last", "int64", initial=-(2**63)), "x.on": Column("x.on", "bool", initial=False)}


@pytest.mark.parametrize("users", [[2, 5, 7], ["B", "a", "é"]])
def test_users_without_a_past_get_the_initial_value(users: list[int | str]) -> None:
    opening = pl.DataFrame({"user_id": [users[0], users[2]], "core.last": [2**53 + 1, 70], "x.on": [True, True]})
    tensors = opening_tensors(opening, pl.Series(users), LAST, device=CPU)
    assert tensors["core.last"].tolist() == [2**53 + 1, -(2**63), 70]
    assert (tensors["x.on"].dtype, tensors["x.on"].tolist()) == (torch.bool, [True, False, True])


def test_no_past_at_all() -> None:
    opening = pl.DataFrame(schema={"user_id": pl.Int64, "core.last": pl.Int64, "x.on": pl.Boolean})
    tensors = opening_tensors(opening, pl.Series([1, 2]), LAST, device=CPU)
    assert tensors["core.last"].tolist() == [-(2**63)] * 2


IDS = st.sampled_from([-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1]) | st.integers(-5, 5)
TEXTS = st.sampled_from(["", "a", "aa", "B", "\u00e9", "e\u0301", "日本"]) | st.text("ab", max_size=3)


@pytest.mark.parametrize(("ids", "dtype"), [(IDS, pl.Int64), (TEXTS, pl.String)], ids=["integers", "texts"])
@given(data=st.data())
def test_the_opening_is_found_by_a_plain_look_up(
    ids: st.SearchStrategy, dtype: pl.DataType, data: st.DataObject
) -> None:
    order = str.encode if dtype == pl.String else None
    users = sorted(data.draw(st.sets(ids)), key=order)
    carried = {user: n for n, user in enumerate(sorted(data.draw(st.sets(ids)), key=order))}
    opening = pl.DataFrame(
        {"user_id": list(carried), "core.last": list(carried.values())},
        schema={"user_id": dtype, "core.last": pl.Int64},
    )
    tensors = opening_tensors(opening, pl.Series(users, dtype=dtype), {"core.last": LAST["core.last"]}, device=CPU)
    assert tensors["core.last"].tolist() == [carried.get(user, -(2**63)) for user in users]


def test_cpu_is_always_there() -> None:
    assert resolve_device("cpu") == CPU


@pytest.mark.parametrize(("available", "device"), [(False, "cpu"), (True, "cuda")])
def test_auto_takes_cuda_where_it_is(available: bool, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    assert resolve_device("auto") == torch.device(device)


@pytest.mark.parametrize(("setting", "count"), [("cuda", 0), ("cuda:0", 0), ("cuda:2", 2), ("cuda:7", 1)])
def test_a_cuda_device_that_is_not_there(setting: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    with pytest.raises(
        PipelineError, match=rf'device = "{setting}": this machine has {count} CUDA devices.*write "auto"'
    ):
        resolve_device(setting)


@pytest.mark.parametrize(("setting", "count"), [("cuda", 1), ("cuda:1", 2)])
def test_a_cuda_device_that_is_there(setting: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    assert resolve_device(setting) == torch.device(setting)


def test_metal_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(PipelineError, match=r'device = "mps": torch finds no Metal device here; write "auto" or "cpu"'):
        resolve_device("mps")


def test_neighbouring_days_use_one_gpu_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    days = [date(2025, 2, 27), date(2025, 2, 28), date(2025, 3, 1), date(2025, 3, 2)]
    numbers = [device_of_day(torch.device("cuda"), day).index for day in days]
    assert sorted(numbers[:3]) == [0, 1, 2]
    assert numbers[3] == numbers[0]
    for chosen in (torch.device("cuda:2"), CPU, torch.device("mps")):
        assert device_of_day(chosen, days[0]) == chosen


def test_every_way_in_which_torch_says_that_memory_is_used_up() -> None:
    assert out_of_memory(torch.OutOfMemoryError("x"))
    assert out_of_memory(RuntimeError("CUDA error: out of memory"))
    assert out_of_memory(RuntimeError("MPS backend out of memory (MPS allocated: 1 GB)"))
    assert not out_of_memory(RuntimeError("CUDA error: device-side assert triggered"))
    assert not out_of_memory(ValueError("out of memory"))

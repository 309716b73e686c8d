"""What the second reading makes of a record: typed values, or the first reason of the list."""

import math
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.checks.raw import excluded_columns, judge
from pipeline.checks.raw.values.numbers import NarrowFloat, written
from pipeline_tests.raw_files import declared_raw as declared

DAY = date(2024, 3, 1)
NOON_S = int(datetime(2024, 3, 1, 12, tzinfo=UTC).timestamp())


GOOD = {"u": "17850.0", "i": "85123A", "t": str(NOON_S), "a": "view", "p": "2.55"}


def test_a_good_record(tmp_path: Path) -> None:
    verdict = judge(GOOD, declared(tmp_path), file_day=DAY)
    assert verdict.reason is None
    assert verdict.values == {
        "user_id": 17850,
        "item_id": "85123A",
        "timestamp": NOON_S * 1_000_000,
        "action": "view",
        "price": 2.55,
    }


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (None, "malformed_line"),
        ({"u": None}, "missing_user_id"),
        ({"u": "17850.5"}, "malformed_user_id"),
        ({"i": None}, "missing_item_id"),
        ({"t": None}, "missing_timestamp"),
        ({"t": "noon"}, "malformed_timestamp"),
        ({"t": "0"}, "implausible_timestamp"),
        ({"t": str(NOON_S + 86_400)}, "outside_day"),
        ({"a": None}, "missing_action"),
        ({"a": "cart"}, "unknown_action"),
        ({"u": str(2**63)}, "id_out_of_range"),
        ({"p": "12,34"}, "malformed_extra"),
        ({"p": "inf"}, "malformed_extra"),
        ({"u": str(2**63), "a": "cart"}, "unknown_action"),
        ({"t": "0", "u": "x"}, "malformed_user_id"),
    ],
)
def test_reasons(tmp_path: Path, changed: dict[str, str | None] | None, reason: str) -> None:
    cells = None if changed is None else {**GOOD, **changed}
    assert judge(cells, declared(tmp_path), file_day=DAY).reason == reason


def test_times(tmp_path: Path) -> None:
    zone = {"from": "t", "format": "%Y-%m-%d %H:%M:%S", "timezone": "Europe/Berlin"}
    judged = judge({**GOOD, "t": "2024-03-01 13:00:00"}, declared(tmp_path, timestamp=zone), file_day=DAY)
    assert judged.values["timestamp"] == NOON_S * 1_000_000
    twice = judge({**GOOD, "t": "2023-10-29 02:30:00"}, declared(tmp_path, timestamp=zone), file_day=None)
    assert twice.reason == "malformed_timestamp"
    ns = judge(
        {**GOOD, "t": f"{NOON_S}000000999"}, declared(tmp_path, timestamp={"from": "t", "unit": "ns"}), file_day=DAY
    )
    assert ns.values["timestamp"] == NOON_S * 1_000_000


def test_what_is_not_judged_is_said(tmp_path: Path) -> None:
    assert excluded_columns(declared(tmp_path)) == []
    assert excluded_columns(declared(tmp_path, action={"sql": "'view'"})) == ["action"]
    odd = {"from": "t", "format": "%s", "timezone": "UTC"}
    assert excluded_columns(declared(tmp_path, timestamp=odd)) == ["timestamp"]


def judged(tmp: Path, cells: dict[str, Any], **columns: object) -> object:
    """The reason of a record, or its values: of the one column that is changed."""
    verdict = judge({**GOOD, **cells}, declared(tmp, **columns), file_day=None)
    (name,) = columns
    return verdict.reason or verdict.values[name]


@pytest.mark.parametrize(
    ("cell", "options", "expected"),
    [
        (" 7 ", {}, " 7 "),
        (" 7 ", {"strip": True}, "7"),
        ("\u3000\u00a0", {}, "\u3000\u00a0"),
        ("\u3000\u00a0", {"strip": True}, "missing_item_id"),
        ("\x1c", {"strip": True}, "\x1c"),
        ("NULL", {"null_values": ["NULL"]}, "missing_item_id"),
        (" NULL", {"null_values": ["NULL"]}, " NULL"),
        (" NULL", {"null_values": ["NULL"], "strip": True}, "missing_item_id"),
        ("-1.0", {"null_values": ["-1"]}, "-1.0"),
        (-1, {"null_values": ["-1.0"]}, "missing_item_id"),
        (Decimal("-1.00"), {"null_values": ["-1"]}, "missing_item_id"),
        (Decimal("17850.00"), {}, "17850"),
        (Decimal("0.50"), {}, "malformed_item_id"),
        (True, {"null_values": ["1"]}, "true"),
        (NarrowFloat(0.10000000149011612), {"null_values": ["0.1"]}, "missing_item_id"),
        (NarrowFloat(1.0), {"null_values": ["1e0", "9" * 50]}, "1"),
    ],
)
def test_string_ids(tmp_path: Path, cell: object, options: dict[str, object], expected: str) -> None:
    assert judged(tmp_path, {"i": cell}, item_id={"from": "i", "type": "string", **options}) == expected


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (Decimal("17850.00"), 17850),
        (Decimal("1E+3"), 1000),
        (Decimal("0.5"), "malformed_user_id"),
        (Decimal(2**63), "id_out_of_range"),
        (float(2**53 - 1), 2**53 - 1),
        (float(2**53), "malformed_user_id"),
        (NarrowFloat(2.0**24 - 1), 2**24 - 1),
        (NarrowFloat(2.0**24), "malformed_user_id"),
        (NarrowFloat(2048.0, 2**11), "malformed_user_id"),
    ],
)
def test_whole_numbers_of_typed_columns(tmp_path: Path, cell: object, expected: object) -> None:
    assert judged(tmp_path, {"u": cell}, user_id={"from": "u", "type": "int64"}) == expected


@pytest.mark.parametrize(
    ("cell", "expected"),
    [("1", "buy"), (1, "buy"), (" 1", "buy"), ("view", "view"), ("2", "unknown_action"), ("0", "missing_action"), (Decimal("1.5"), "malformed_action")],
)  # fmt: skip
def test_renamed_actions(tmp_path: Path, cell: object, expected: str) -> None:
    action = {"from": "a", "rename": {"1": "buy", "0": "buy"}, "null_values": ["0"], "strip": True}
    assert judged(tmp_path, {"a": cell}, action=action) == expected


@pytest.mark.parametrize(
    ("unit", "cell", "expected"),
    [
        ("s", "1396437466.94", 1_396_437_466_940_000),
        ("s", "1396437466.9400009", 1_396_437_466_940_000),
        ("s", " +1396437466. ", 1_396_437_466_000_000),
        ("s", "1396437466.9e0", "malformed_timestamp"),
        ("s", ".5", "malformed_timestamp"),
        ("s", "-0.0000001", "implausible_timestamp"),
        ("ms", "1396437466940.0019", 1_396_437_466_940_001),
        ("us", "1396437466940000.9", 1_396_437_466_940_000),
        ("ns", "1396437466940000999.9", 1_396_437_466_940_000),
        ("s", 1396437466.94, 1_396_437_466_940_000),
        ("us", 1e17, "malformed_timestamp"),
        ("us", math.nan, "malformed_timestamp"),
        ("us", 9.9e16, "implausible_timestamp"),
        ("s", NarrowFloat(1396437504.0), 1_396_437_500_000_000),
        ("s", NarrowFloat(3e38), "malformed_timestamp"),
        ("s", Decimal("1396437466.9400009"), 1_396_437_466_940_000),
        ("s", "9223372036854775808", "malformed_timestamp"),
        ("s", "9" * 5000, "malformed_timestamp"),
    ],
)
def test_times_in_units(tmp_path: Path, unit: str, cell: object, expected: object) -> None:
    assert judged(tmp_path, {"t": cell}, timestamp={"from": "t", "unit": unit}) == expected


def test_digits_beyond_microseconds_are_floored_toward_minus_infinity(monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline.checks.raw.values import times

    monkeypatch.setattr(times, "EARLIEST", datetime(1960, 1, 1, tzinfo=UTC))
    for unit, cell, expected in (
        ("s", "-0.0000001", -1), ("s", "-1", -1_000_000), ("ms", "-0.001", -1), ("ms", "-0.0011", -2), ("ns", "-1000", -1),
        ("ns", "-1000.5", -2), ("ns", "-1", -1), ("us", "-0.0", 0), ("ns", "999", 0),
    ):  # fmt: skip
        assert judged(Path(), {"t": cell}, timestamp={"from": "t", "unit": unit}) == expected, cell


def test_integers_with_a_format(tmp_path: Path) -> None:
    whole = {"from": "t", "format": "%Y%m%d", "timezone": "UTC"}
    assert judged(tmp_path, {"t": 20240301}, timestamp=whole) == (NOON_S - 43_200) * 1_000_000
    assert judged(tmp_path, {"t": 20240230}, timestamp=whole) == "malformed_timestamp"
    assert judged(tmp_path, {"t": -20240301}, timestamp=whole) == "malformed_timestamp"


@pytest.mark.parametrize(
    ("day", "clock", "expected"),
    [
        ("2024-03-01", "12:00", NOON_S * 1_000_000),
        (" 2024-03-01", "12:00 ", NOON_S * 1_000_000),
        ("2024-03-01", None, "missing_timestamp"),
        (None, "12:00", "missing_timestamp"),
        ("-", "12:00", "missing_timestamp"),
        ("2024-03-01", " ", "missing_timestamp"),
        ("2024-03-01", "12", "malformed_timestamp"),
        ("2024-03-01 12:00", "", "missing_timestamp"),
    ],
)
def test_a_date_and_a_clock(tmp_path: Path, day: str | None, clock: str | None, expected: object) -> None:
    column = {
        "from": "t",
        "time_from": "c",
        "format": "%Y-%m-%d %H:%M",
        "timezone": "UTC",
        "strip": True,
        "null_values": ["-"],
    }
    assert judged(tmp_path, {"t": day, "c": clock}, timestamp=column) == expected


@pytest.mark.parametrize(
    ("options", "twice", "never"),
    [
        ({}, "malformed_timestamp", "malformed_timestamp"),
        ({"ambiguous": "earliest"}, "2023-10-29 00:30", "malformed_timestamp"),
        ({"ambiguous": "latest"}, "2023-10-29 01:30", "malformed_timestamp"),
        ({"nonexistent": "forward"}, "malformed_timestamp", "2024-03-31 01:30"),
    ],
)
def test_hours_that_exist_twice_or_not_at_all(tmp_path: Path, options: dict[str, str], twice: str, never: str) -> None:
    column = {"from": "t", "format": "%Y-%m-%d %H:%M", "timezone": "Europe/Berlin", **options}
    for clock, expected in (("2023-10-29 02:30", twice), ("2024-03-31 02:30", never)):
        found = judged(tmp_path, {"t": clock}, timestamp=column)
        shown = found if isinstance(found, str) else datetime.fromtimestamp(found / 1e6, UTC).strftime("%Y-%m-%d %H:%M")  # type: ignore[operator]
        assert shown == expected


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@example(1396437504.0)
@example(2.0**-44)
@example(2.0**-126)
@example(0.0)
@example(9.999999843067494e16)
def test_the_number_that_a_narrow_float_means(value: float) -> None:
    if abs(value) > 1e38:
        return
    meant = written(NarrowFloat(value))
    assert struct.pack("<f", float(meant)) == struct.pack("<f", value) or meant == 0 == value
    digits = len(meant.normalize().as_tuple().digits)
    shorter = f"{value:.{max(digits - 2, 0)}e}"
    assert digits == 1 or struct.pack("<f", float(shorter)) != struct.pack("<f", value)

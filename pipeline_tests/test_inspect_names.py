"""`python -m pipeline inspect`: what the names of columns say, and what they do not."""

from pathlib import Path

import pytest

from pipeline.inspection.words import is_measure, listed, name_score, plain
from pipeline_tests.test_inspect import Proposed, proposed

START = 1577836800  # 2020-01-01


def log_of(folder: Path, header: str, *rows: str, copies: int = 1) -> Proposed:
    """A log whose last column is the time, a second a row."""
    lines = [f"{row},{START + at}\n" for at, row in enumerate([*rows] * copies)]
    return proposed(folder, "log.csv", f"{header},time\n" + "".join(lines))


@pytest.mark.parametrize(
    ("name", "role"),
    [
        *(("session_id_hash", "user_id"), ("customer_unique_id", "user_id"), ("CUST_CODE", "user_id")),
        *(("household_key", "user_id"), ("idvisitor", "user_id"), ("id_student", "user_id"), ("user_uid", "user_id")),
        *(
            ("Anon Student Id", "user_id"),
            ("id_cliente", "user_id"),
            ("Kundennummer", "user_id"),
            ("用户ID", "user_id"),
        ),
        *(("Пользователь", "user_id"), ("track_id_clean", "item_id"), ("click_article_id", "item_id")),
        *(("product_sku_hash", "item_id"), ("element_uid", "item_id"), ("商品ID", "item_id"), ("Товар", "item_id")),
        *(("server_timestamp_epoch_ms", "timestamp"), ("order_purchase_timestamp", "timestamp")),
        *(("date_added", "timestamp"), ("Дата и время", "timestamp"), ("时间", "timestamp"), ("Fecha", "timestamp")),
        *(("event_id", "action"), ("product_action", "action"), ("Événement", "action"), ("行为类型", "action")),
        ("VoteTypeId", "action"),
    ],
)
def test_a_name_says_its_role(name: str, role: str) -> None:
    scores = {other: name_score(name, other) for other in ("user_id", "item_id", "timestamp", "action")}
    assert max(scores, key=lambda other: scores[other]) == role
    assert scores[role] > 0


@pytest.mark.parametrize(
    ("name", "role"),
    [
        *(
            ("device_type", "action"),
            ("payment_method_id", "action"),
            ("item_type", "action"),
            ("timestampType", "action"),
        ),
        *(("user_location_country", "user_id"), ("is_sso_user", "user_id"), ("sessionStart", "user_id")),
        *(("product_category", "item_id"), ("app_domain", "item_id"), ("track_length_seconds", "item_id")),
        *(("product_action", "item_id"), ("time_since_last_click", "timestamp"), ("hour_of_day", "timestamp")),
    ],
)
def test_a_word_within_a_name_does_not_say_it(name: str, role: str) -> None:
    assert name_score(name, role) == 0


def test_the_whole_name_goes_before_its_end() -> None:
    assert (
        name_score("user_id", "user_id")
        > name_score("customer_unique_id", "user_id")
        > name_score("order_user", "user_id")
    )
    assert plain("Ação") == "acao"
    assert is_measure("SHOP_WEEKDAY")
    assert not is_measure("PROD_CODE")


def test_seven_names_are_listed_in_full() -> None:
    assert listed(list("abcdefg")) == "a, b, c, d, e, f and g"


def test_a_device_type_is_no_action(tmp_path: Path) -> None:
    rows = [f"d{at % 4},a{at % 3},{at % 2},{int(at % 3 == 0)}" for at in range(12)]
    found = log_of(tmp_path, "device_id,app_id,device_type,click", *rows)
    assert found.columns["action"] == {"value": "event"}
    assert found.comment(
        'if click tells two kinds apart, write action = { from = "click", rename = { "1" = "click", "0" = "impression" } }'
    )
    assert found.comment('and names = ["impression", "click"]')


def test_a_column_that_never_changes_is_hardly_the_item(tmp_path: Path) -> None:
    rows = [f"shop,u{at % 4},/p/{at % 5}" for at in range(24)]
    found = log_of(tmp_path, "app_id,user_id,page_url", *rows)
    assert found.columns["item_id"]["from"] == "page_url"


def test_what_numbers_the_rows_is_no_action(tmp_path: Path) -> None:
    found = log_of(tmp_path, "user_id,item_id,event_id", *[f"{at % 4},{at % 5},e{at}" for at in range(24)])
    assert found.columns["action"] == {"value": "event"}
    assert not found.comment("event_id is named like one")


def test_an_amount_is_no_user(tmp_path: Path) -> None:
    rows = [f"{at % 7},{at % 24},wer{at % 9},was{at % 8}" for at in range(30)]
    found = log_of(tmp_path, "SHOP_WEEKDAY,SHOP_HOUR,wer,was", *rows)
    assert (found.columns["user_id"]["from"], found.columns["item_id"]["from"]) == ("wer", "was")


def test_what_is_named_like_the_user_is_not_taken_for_the_item(tmp_path: Path) -> None:
    rows = [f"u{at % 9},s{at % 20},ref{at % 8}" for at in range(30)]
    found = log_of(tmp_path, "user_id,session_id,was", *rows)
    assert found.columns["item_id"]["from"] == "was"


def test_true_and_false_are_no_ids(tmp_path: Path) -> None:
    rows = [f"{'true' if at % 2 else 'false'},u{at % 9},i{at % 8}" for at in range(30)]
    found = log_of(tmp_path, "x,wer,was", *rows)
    assert (found.columns["user_id"]["from"], found.columns["item_id"]["from"]) == ("wer", "was")


def test_names_of_further_columns_that_toml_cannot_hold_bare(tmp_path: Path) -> None:
    found = log_of(tmp_path, '用户,商品,价格,"a ""b"""', "1,a,3,x", "2,b,4,y")
    assert found.columns["user_id"] == {"from": "用户", "type": "int64"}
    assert found.comment('raw_column = { from = "价格", type = "int64" }')
    assert found.comment("""a_b = { from = 'a "b"', type = "string" }""")


def test_a_preset_for_numbers_keeps_leading_zeros(tmp_path: Path) -> None:
    found = proposed(tmp_path, "ratings.dat", f"1::0114508::8::{START}\n2::0499549::9::{START + 1}\n")
    assert found.says["preset"] == "movielens_dat"
    assert found.columns == {"item_id": {"type": "string"}}
    assert found.dataset.columns.item_id.type == "string"
    assert found.comment("int64 would lose the leading zero of 0114508")


def test_of_two_actions_the_one_that_is_filled_and_varies(tmp_path: Path) -> None:
    kinds, done = ("WatchEvent", "ForkEvent", "PushEvent"), ("started", "", "")
    rows = [f"u{at % 9},i{at % 8},{kinds[at % 3]},{done[at % 3]}" for at in range(30)]
    assert log_of(tmp_path, "user,item,type,payload.action", *rows).columns["action"] == {"from": "type"}
    rows = [f"u{at % 9},i{at % 8},{kinds[at % 3]},started" for at in range(30)]
    assert log_of(tmp_path, "user,item,type,payload.action", *rows).columns["action"] == {"from": "type"}


def test_the_id_of_something_is_named_like_it() -> None:
    assert name_score("verb.id", "action") == name_score("verb_id", "action") > 0
    assert name_score("verb.display", "action") == 0
    assert name_score("User full name", "user_id") > name_score("IP address", "user_id")
    assert name_score("value.eventTime", "timestamp") > name_score("timestamp", "timestamp")


def test_a_name_whose_column_never_changes_is_a_doubt(tmp_path: Path) -> None:
    found = log_of(tmp_path, "user,page,was", *[f"u{at % 9},home,w{at % 8}" for at in range(30)])
    assert found.comment("item_id: page never changes; if another column is the item, write its name there")
    assert not log_of(tmp_path, "user,page", "u1,home", "u2,home").comment("never changes")


def test_a_plus_is_part_of_an_id(tmp_path: Path) -> None:
    found = log_of(tmp_path, "user,item", "+491701,1", "+491702,2")
    assert found.columns["user_id"] == {"from": "user", "type": "string"}
    assert found.comment("int64 would lose the leading plus of +491701")


def test_the_time_beside_the_user_is_believed_before_that_of_the_envelope(tmp_path: Path) -> None:
    record = (
        '{{"timestamp": {}500, "key": "u{}", "value": {{"user_id": "u{}", "item_id": "i{}", "event_time": {}000}}}}'
    )
    lines = [record.format(START + at + 1, at % 2, at % 2, at, START + at) for at in range(4)]
    found = proposed(tmp_path, "log.ndjson", "\n".join(lines))
    assert found.columns["timestamp"] == {"from": "value.event_time", "unit": "ms"}
    assert found.comment("timestamp can be read as the time as well")

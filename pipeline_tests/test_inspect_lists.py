"""`python -m pipeline inspect`: cells that hold lists, which a dataset file explodes, and lists that are details."""

import json
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from pipeline.inspection.text_lists import text_list
from pipeline.stages import run_day
from pipeline.store import scan
from pipeline_tests.test_inspect import Proposed, proposed
from pipeline_tests.works import work_of

START = 1577836800  # 2020-01-01


def events_of(found: Proposed) -> list[tuple[str, str, int]]:
    """User, item and time in seconds of all events that the draft gives as it is, in order of time."""
    dataset, work = found.dataset, work_of(found.dataset, run="run")
    first, last = dataset.partitions.start, dataset.last_day()
    for number in range((last - first).days + 1):
        run_day("events", first + timedelta(days=number), work)
    events = scan(dataset.root, "events", first, last).collect().sort("timestamp", "row_id")
    seconds = events["timestamp"].dt.epoch("s")
    return list(zip(events["user_id"].cast(pl.String), events["item_id"].cast(pl.String), seconds, strict=True))


THREE = [(7, ["12", "45", "77"]), (8, ["9"]), (7, ["12", "310"])]
EVENTS = [("7", "12", START), ("7", "45", START), ("7", "77", START), ("8", "9", START + 1)]
EVENTS += [("7", "12", START + 2), ("7", "310", START + 2)]


@pytest.mark.parametrize(
    ("begin", "mark", "end"),
    [
        *(("", " ", ""), ("", "|", ""), ("", ";", ""), ("", ",", ""), ("", ", ", "")),
        *(("[", ", ", "]"), ("[", ",", "]"), ("[", " ", "]"), ("(", ", ", ")"), ("{", ", ", "}")),
        *(("['", "', '", "']"), ('["', '", "', '"]'), ("['", "' '", "']")),
    ],
)
def test_a_cell_with_several_items_gives_an_event_each(tmp_path: Path, begin: str, mark: str, end: str) -> None:
    rows = [f"{user}\t{begin}{mark.join(items)}{end}\t{START + at}\n" for at, (user, items) in enumerate(THREE)]
    found = proposed(tmp_path, "log.tsv", "user_id\titems\ttime\n" + "".join(rows))
    assert found.says["source"]["explode"]["column"] == "items"
    assert events_of(found) == EVENTS


def test_a_tuple_of_one(tmp_path: Path) -> None:
    rows = "".join(f"{user}\t{tuple(map(int, items))}\t{START + at}\n" for at, (user, items) in enumerate(THREE))
    assert events_of(proposed(tmp_path, "log.tsv", "user_id\titems\ttime\n" + rows)) == EVENTS


def test_items_in_the_text_of_json(tmp_path: Path) -> None:
    rows = [{"user_id": user, "items": " ".join(items), "time": START + at} for at, (user, items) in enumerate(THREE)]
    found = proposed(tmp_path, "log.ndjson", "".join(json.dumps(row) + "\n" for row in rows))
    assert events_of(found) == EVENTS


def test_a_list_without_a_telling_name_is_the_item_where_nothing_else_is(tmp_path: Path) -> None:
    rows = [f"{user},{' '.join(items)},{START + at}\n" for at, (user, items) in enumerate(THREE)]
    found = proposed(tmp_path, "log.csv", "".join(rows))
    assert found.says["source"]["explode"] == {"column": "column_2", "separator": " "}
    assert found.comment("column_2 was taken for a list of items, such as '12 45 77'; if a cell is one item")
    assert events_of(found) == EVENTS


def test_what_was_clicked_of_what_was_shown(tmp_path: Path) -> None:
    rows = f"1\tN7 N8\tN1-0 N2-1\t{START}\n2\tN7\tN3-1\t{START + 1}\n1\tN9\tN1-0 N4-0 N5-1\t{START + 2}\n"
    found = proposed(tmp_path, "log.tsv", "user\thistory\timpressions\ttime\n" + rows)
    assert found.says["source"]["explode"] == {
        "column": "impressions",
        "separator": " ",
        "pattern": "(?P<item>.+)-(?P<clicked>[01])",
    }
    assert found.columns["item_id"]["from"] == "impressions.item"
    assert found.comment('action = { from = "impressions.clicked", rename = { "1" = "click", "0" = "impression" } }')
    assert [item for _, item, _ in events_of(found)] == ["N1", "N2", "N3", "N1", "N4", "N5"]


def test_a_history_beside_the_item_stays_a_text(tmp_path: Path) -> None:
    rows = [f"{user},a{at},{' '.join(items)},{START + at}\n" for at, (user, items) in enumerate(THREE)]
    found = proposed(tmp_path, "log.csv", "user,item,history,time\n" + "".join(rows))
    assert "explode" not in found.says["source"]
    assert found.columns["item_id"]["from"] == "item"
    assert found.comment(
        'history holds lists; if their elements are the events, add [source.explode] column = "history"'
    )


@pytest.mark.parametrize(
    "cells",
    [
        ["The Book 1", "Another 2", "A Third One"],  # words
        ["12 a1 400", "12 a2 400", "12 a3 401"],  # always three parts
        ["1,234", "1,234,567", "999,100"],  # thousands
        ["2020-01-01 10:00:00", "2020-01-01", "2020-01-02 10:00:01"],
        ["1.5 2.5", "1.5", "3.5 4.5 5.5"],
        ["7", "8", "9"],
    ],
)
def test_these_are_no_lists(cells: list[str]) -> None:
    assert text_list(pl.Series("x", cells)) is None


# Objects


def review(at: int, images: list[dict[str, str]]) -> dict[str, object]:
    return {"user_id": f"u{at % 3}", "asin": f"B{at % 4}", "timestamp": START + at, "images": images}


def test_the_images_of_a_review_are_no_events(tmp_path: Path) -> None:
    image = {"small_image_url": "https://x/y.jpg", "attachment_type": "IMAGE"}
    rows = [review(at, [image] if at % 5 == 0 else []) for at in range(20)]
    found = proposed(tmp_path, "log.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert "explode" not in found.says["source"]
    assert found.columns["item_id"]["from"] == "asin"
    assert found.comment("20 rows; all are accepted")


def test_the_profile_of_a_visitor_is_no_list_of_events(tmp_path: Path) -> None:
    groups = [{"item": "0", "groups": [{"group": "a", "count": 1}]}]
    rows = [{"profile": groups, "userId": f"u{at % 3}", "url": f"/{at % 4}", "time": START + at} for at in range(9)]
    found = proposed(tmp_path, "log.json", "".join(json.dumps(row) + "\n" for row in rows))
    assert "explode" not in found.says["source"]
    assert found.comment('add [source.explode] column = "profile", and take profile.item for the item')


def test_a_basket_gives_its_items_although_the_order_has_an_address(tmp_path: Path) -> None:
    rows = [{"user": 1, "url": f"/{at}", "time": START + at, "items": [{"sku": "a"}, {"sku": "b"}]} for at in range(3)]
    found = proposed(tmp_path, "log.ndjson", "".join(json.dumps(row) + "\n" for row in rows))
    assert found.says["source"]["explode"] == {"column": "items"}
    assert found.comment("6 rows; all are accepted")


def test_lists_that_run_in_parallel_are_said(tmp_path: Path) -> None:
    pl.DataFrame({"uid": [1, 2], "item_ids": [[1, 2], [3]], "timestamps": [[START, START], [START]]}).write_parquet(
        tmp_path / "log.parquet"
    )
    found = proposed(tmp_path, "log.parquet", (tmp_path / "log.parquet").read_bytes())
    assert "explode" not in found.says["source"]
    assert found.comment('as polars does by frame.explode("item_ids", "timestamps"), and inspect that')


# JSON in texts


@pytest.mark.parametrize("format_", ["csv", "ndjson"])
def test_an_item_within_the_text_of_a_column(tmp_path: Path, format_: str) -> None:
    """No column can name a field of a text, but a pattern takes it out."""
    texts = [json.dumps({"price": 3, "sku": f"p{at % 3}"}) for at in range(4)]
    if format_ == "csv":
        rows = [f'u{at % 2},{START + at},"{text.replace(chr(34), chr(34) * 2)}"\n' for at, text in enumerate(texts)]
        log = "user,time,properties\n" + "".join(rows)
    else:
        records = [{"user": f"u{at % 2}", "time": START + at, "properties": text} for at, text in enumerate(texts)]
        log = "".join(json.dumps(record) + "\n" for record in records)
    found = proposed(tmp_path, f"log.{format_}", log)
    assert found.comment("properties holds JSON in text, whose fields no column can name")
    assert found.columns["item_id"]["from"] == "properties.sku"
    assert events_of(found) == [(f"u{at % 2}", f"p{at % 3}", START + at) for at in range(4)]


def test_a_text_of_json_beside_the_item_is_a_doubt(tmp_path: Path) -> None:
    rows = "".join(f"""u,a{at},{START + at},"{{""sku"": ""p""}}"\n""" for at in range(3))
    found = proposed(tmp_path, "log.csv", "user,item,time,properties\n" + rows)
    assert "explode" not in found.says["source"]
    assert found.columns["item_id"]["from"] == "item"
    assert found.comment("if properties.sku is needed, write explode = {")


def test_a_list_is_not_the_item_where_another_column_may_be(tmp_path: Path) -> None:
    rows = [f"u{at % 7},was{at % 9},ort{at % 5},{at} {at + 1}{' 7' * (at % 3)},{START + at}\n" for at in range(30)]
    found = proposed(tmp_path, "log.csv", "user,was,ort,filter,time\n" + "".join(rows))
    assert "explode" not in found.says["source"]
    assert found.columns["item_id"]["from"] == "was"
    assert found.comment("filter holds lists; if their elements are the events, add [source.explode]")


def test_amounts_are_no_list_of_items(tmp_path: Path) -> None:
    rows = [f"{user},{'|'.join(items)},{START + at}\n" for at, (user, items) in enumerate(THREE)]
    found = proposed(tmp_path, "log.csv", "user,prices,time\n" + "".join(rows))
    assert "explode" not in found.says["source"]


def test_what_was_clicked_without_a_header(tmp_path: Path) -> None:
    rows = "".join(f"{at}\tU{at % 3}\t{START + at}\tN1-0 N2-1{' N3-0' * (at % 2)}\n" for at in range(25))
    found = proposed(tmp_path, "log.tsv", rows)
    assert found.columns["user_id"]["from"] == "column_2"
    assert found.columns["item_id"]["from"] == "column_4.item"


def test_the_key_of_sessions_is_the_user_where_nobody_else_is(tmp_path: Path) -> None:
    rows = "".join(
        f"s{at}\t{START + at}\tN1-0 N2-1{' N3-0' * (at % 2)}\t{'DE' if at % 2 else 'FR'}\n" for at in range(60)
    )
    found = proposed(tmp_path, "log.tsv", rows)
    assert found.columns["user_id"]["from"] == "column_1"


def test_a_count_beside_the_key_of_playlists_is_no_user(tmp_path: Path) -> None:
    """As in the Million Playlist Dataset, whose playlists tell no user."""
    lists = [
        {
            "pid": at,
            "num_tracks": at % 20 + 1,
            "modified_at": START + at,
            "tracks": [{"pos": n, "track_uri": f"t{n}"} for n in range(3)],
        }
        for at in range(30)
    ]
    found = proposed(tmp_path, "mpd.json", json.dumps({"info": {"version": "v1"}, "playlists": lists}))
    assert found.columns["user_id"]["from"] == "pid"
    assert found.columns["item_id"]["from"] == "tracks.track_uri"


def test_few_users_of_many_items_stay_users(tmp_path: Path) -> None:
    rows = "".join(f"w{at % 3}\tx{at % 200}\t{START + at}\n" for at in range(400))
    found = proposed(tmp_path, "log.tsv", rows)
    assert (found.columns["user_id"]["from"], found.columns["item_id"]["from"]) == ("column_1", "column_2")

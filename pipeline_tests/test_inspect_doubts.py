"""`python -m pipeline inspect`: small logs with something that only a person can decide, and how that is said."""

import json
from pathlib import Path

import polars as pl
import pytest

from pipeline.inspection.facts import look_at
from pipeline.inspection.words import listed, name_score
from pipeline_tests.test_inspect import Proposed, inspect, proposed, write_days
from pipeline_tests.test_inspect_real import declare, make

START = 1577836800  # 2020-01-01


def log_of(folder: Path, header: str, rows: list[str]) -> Proposed:
    """A log with one row a minute; its last column is the time."""
    lines = [f"{row},{START + 60 * at}\n" for at, row in enumerate(rows)]
    return proposed(folder, "log.csv", f"{header},time\n" + "".join(lines))


# Which column


def test_a_filled_column_goes_before_a_better_name(tmp_path: Path) -> None:
    half = log_of(tmp_path, "session_id,user_id,item", ["s1,1,a", "s1,,b", "s2,,c", "s2,,d"])
    assert half.columns["user_id"]["from"] == "session_id"
    assert half.comment("user_id: user_id may be meant as well; session_id was taken")
    assert "quality" not in half.says


def test_a_gate_that_lets_rows_pass_is_a_doubt(tmp_path: Path) -> None:
    found = log_of(tmp_path, "user_id,ip,item", ["1,i,a", "2,i,b", "3,i,c", ",j,d"])
    assert found.columns["user_id"]["from"] == "user_id"
    assert found.comment("ip may be meant as well; user_id was taken, though 25% of its cells are missing")
    assert found.comment("and ip is always filled")
    assert found.comment("quality: 25.0% of all rows are refused, because of missing_user_id 1")


def test_minus_one_counts_as_missing(tmp_path: Path) -> None:
    found = log_of(tmp_path, "user_id,ip,item", ["-1,i,a", "2,j,b", "-1,i,c", "3,j,d", "-1,k,d"])
    assert found.columns["user_id"]["from"] == "ip"


def test_a_log_without_refused_rows_has_no_such_doubt(tmp_path: Path) -> None:
    found = log_of(tmp_path, "user_id,item", ["1,a", "2,b"])
    assert not found.comment("quality:")
    assert not found.comment("may be meant as well")


def test_the_key_of_the_records_is_no_user(tmp_path: Path) -> None:
    lines = [
        {
            "_id": {"$oid": f"a{at:023}"},
            "userId": {"$oid": f"b{at % 7:023}"},
            "product": {"id": at % 5},
            "createdAt": {"$date": f"2020-01-01T00:00:{at:02}.000Z"},
        }
        for at in range(40)
    ]
    found = proposed(tmp_path, "log.json", "".join(json.dumps(line) + "\n" for line in lines))
    assert found.columns["user_id"] == {"from": "userId.$oid", "type": "string"}
    assert found.columns["timestamp"]["from"] == "createdAt.$date"


def test_a_column_that_numbers_the_rows_is_passed_over(tmp_path: Path) -> None:
    found = log_of(tmp_path, "nr,wer,was", [f"{at},w{at % 9},x{at % 20}" for at in range(60)])
    assert found.columns["user_id"]["from"] == "wer"
    assert found.columns["item_id"]["from"] == "was"


def test_a_name_that_numbers_the_rows_goes_behind(tmp_path: Path) -> None:
    found = log_of(tmp_path, "session_id,user_id,item", [f"s{at},{at % 9 if at % 3 else ''},a" for at in range(60)])
    assert found.columns["user_id"]["from"] == "user_id"
    assert found.comment("user_id was taken, though 33% of its cells are missing, and session_id is always filled")


def test_the_wrapper_of_a_mongodb_export_is_no_name() -> None:
    assert name_score("userId.$oid", "user_id") == name_score("userId", "user_id") > 0
    assert name_score("createdAt.$date", "timestamp") == name_score("createdAt", "timestamp") > 0
    assert name_score("_id.$oid", "user_id") == 0


# Ids


@pytest.mark.parametrize("nobody", ["0", "guest", "Unknown"])
def test_an_id_of_many_rows_may_stand_for_nobody(tmp_path: Path, nobody: str) -> None:
    rows = [f"{nobody},a"] * 20 + [f"{at},a" for at in range(1, 31)]
    found = log_of(tmp_path, "user,item", rows)
    assert found.comment(f"user: 40% of the rows looked at have '{nobody}', which may stand for nobody")
    assert found.comment(f'null_values = ["{nobody}"] takes it for missing')
    rare = log_of(tmp_path, "user,item", [f"{nobody},a"] + [f"{at},a" for at in range(1, 31)])
    assert not rare.comment("which may stand for nobody")


def test_what_is_taken_for_missing_already_is_no_doubt(tmp_path: Path) -> None:
    found = log_of(tmp_path, "user,item", ["-1,a"] * 20 + [f"{at},a" for at in range(1, 31)])
    assert found.columns["user_id"]["null_values"] == ["-1"]
    assert not found.comment("which may stand for nobody")


def test_two_names_of_nobody_are_one_doubt(tmp_path: Path) -> None:
    found = log_of(tmp_path, "user,item", ["unknown,a", "guest,a"] * 10 + [f"{at},a" for at in range(1, 31)])
    assert found.comment("40% of the rows looked at have 'unknown' or 'guest', which may stand for nobody")
    assert found.comment('null_values = ["unknown", "guest"] takes it for missing')


def test_a_frequent_user_is_somebody(tmp_path: Path) -> None:
    found = log_of(tmp_path, "user,item", ["7,a"] * 20 + [f"{at},a" for at in range(10, 40)])
    assert not found.comment("which may stand for nobody")


def test_ids_that_a_spreadsheet_rounded(tmp_path: Path) -> None:
    found = log_of(tmp_path, "user,item", ["1.07406E+12,a", "1.07407E+12,b"])
    assert found.columns["user_id"] == {"from": "user", "type": "string"}
    assert found.comment("user: cells such as 1.07406E+12 are long numbers that a spreadsheet rounded")
    plain = log_of(tmp_path, "user,item", ["1e05,a", "7e091613,b"])
    assert not plain.comment("that a spreadsheet rounded")


def test_numbers_with_a_decimal_comma_are_no_ids(tmp_path: Path) -> None:
    assert not look_at(pl.Series("x", ["28,51", "3,5"])).id_like
    assert look_at(pl.Series("x", ["28,517", "a,5"])).id_like
    rows = "".join(f"{at % 9 + 30},{at % 7 + 10};k{at % 8};a{at % 6};{START + at}\n" for at in range(40))
    found = proposed(tmp_path, "log.csv", "Preis;Kunde;Artikel;Zeit\n" + rows)
    assert found.columns["user_id"]["from"] == "Kunde"
    assert found.columns["item_id"]["from"] == "Artikel"


# Actions


def test_what_is_missing_is_no_action(tmp_path: Path) -> None:
    rows = [f"{at % 700 + 1000},{at % 90},view,{START + at}\n" for at in range(120_000)]
    rows[60_500] = f"1,1,undefined,{START + 60_500}\n"  # between the places of the sample
    found = proposed(tmp_path, "log.csv", "user,item,event,time\n" + "".join(rows))
    assert found.columns["action"] == {"from": "event", "null_values": ["undefined"]}
    assert found.says["actions"]["names"] == ["view"]


def test_a_column_with_too_many_values_for_actions(tmp_path: Path) -> None:
    found = log_of(tmp_path, "user,item,event", [f"{at % 7},a{at % 5},e{at % 300}" for at in range(600)])
    assert found.columns["action"] == {"value": "event"}
    assert found.comment("event is named like one, but its 300 values are more than the 255 that can be told apart")
    assert not found.comment("action: no column names one")


def test_neither_user_nor_item_is_offered_as_the_action(tmp_path: Path) -> None:
    rows = [f"{at % 4},a{at % 6},ort{at % 3},g{at % 2}" for at in range(130)]
    found = log_of(tmp_path, "user,item,ort,grund", rows)
    assert found.columns["user_id"]["from"] == "user"
    assert found.columns["item_id"]["from"] == "item"
    assert found.comment("every row is an 'event'; ort and grund have few values")
    one = log_of(tmp_path, "user,item,ort", [row.rpartition(",")[0] for row in rows])
    assert one.comment("every row is an 'event'; ort has few values")


def test_a_column_with_a_known_action_is_offered_first(tmp_path: Path) -> None:
    did = ("view", "retour", "umtausch")
    found = log_of(
        tmp_path, "user,item,ort,grund", [f"{at % 4},a{at % 6},ort{at % 3},{did[at % 3]}" for at in range(130)]
    )
    assert found.comment('grund and ort have few values: if they are actions, write action = { from = "grund" }')


def test_a_country_is_not_offered_as_the_action(tmp_path: Path) -> None:
    rows = [f"{at % 40},a{at % 30},{'DE' if at % 3 else 'FR'}" for at in range(130)]
    found = log_of(tmp_path, "user,item,country", rows)
    assert found.comment("action: no column names one")
    assert not found.comment("few values")


# Days


def test_one_lost_file_is_skipped_and_said(tmp_path: Path) -> None:
    write_days(tmp_path, "raw/2020-01-{day}.csv", range(1, 4))
    write_days(tmp_path, "raw/2020-01-{day}.csv", range(5, 9))
    found = inspect(tmp_path, "raw")
    assert found.says["partitions"] == {"start": "2020-01-01", "end": "2020-01-08", "skip": ["2020-01-04"]}
    assert found.says["source"] == {"path": "raw/{date}.csv"}
    assert found.comment("partitions: 2020-01-04 has no file and will be skipped; is a file missing?")
    quick = inspect(tmp_path, "raw", quick=True)
    assert quick.says["partitions"] == found.says["partitions"]


def test_a_draft_that_skips_a_day_runs(tmp_path: Path) -> None:
    write_days(tmp_path, "raw/2020-01-{day}.csv", range(1, 4))
    write_days(tmp_path, "raw/2020-01-{day}.csv", range(5, 9))
    made = make(declare(tmp_path / "raw", tmp_path))
    assert (made.accepted, made.users, made.items, made.sum_us) == (7, 1, 1, 7 * 86_400_000_000)


def test_many_days_without_a_file_are_empty_and_said(tmp_path: Path) -> None:
    write_days(tmp_path, "raw/2020-01-{day}.csv", range(1, 9, 2))
    found = inspect(tmp_path, "raw")
    assert found.says["source"]["missing_day"] == "empty"
    assert "skip" not in found.says["partitions"]
    assert found.comment("source: 2020-01-02, 2020-01-04 and 2020-01-06 have no file (3 of 7 days)")


def test_a_day_with_rows_in_the_next_file_is_not_skipped(tmp_path: Path) -> None:
    write_days(tmp_path, "raw/2020-01-{day}.csv", range(1, 4))
    write_days(tmp_path, "raw/2020-01-{day}.csv", range(5, 9))
    with (tmp_path / "raw" / "2020-01-05.csv").open("a") as file:
        file.write(f"1,a,{START + 4 * 86400 - 5},view\n")
    found = inspect(tmp_path, "raw")
    assert found.says["source"] == {"path": "raw/{date}.csv", "neighbours": [0, 1], "missing_day": "empty"}
    assert found.says["partitions"] == {"start": "2020-01-01", "end": "2020-01-08"}


def test_a_sample_of_dated_files_is_said_to_be_one(tmp_path: Path) -> None:
    write_days(tmp_path, "raw/2020-01-{day}.csv", range(1, 4))
    assert inspect(tmp_path, "raw", quick=True).comment("only a sample was read")
    assert not inspect(tmp_path, "raw").comment("only a sample was read")


def test_times_are_not_blamed_for_another_column(tmp_path: Path) -> None:
    """No column can be the item, so that a run would stop; the days are those of the sample."""
    found = proposed(tmp_path, "log.csv", f"user_id,time\n1,{START}\n2,{START + 86400}\n")
    assert found.comment("a run would stop")
    assert not found.comment("no row has a usable time")
    assert found.says["partitions"] == {"start": "2020-01-01", "end": "2020-01-02"}


# Lists


@pytest.mark.parametrize(("empty", "words"), [(1, "1 record has an empty list"), (2, "2 records have an empty list")])
def test_records_without_elements_are_said(tmp_path: Path, empty: int, words: str) -> None:
    full = {"user": 1, "hits": [{"sku": "a", "time": START}, {"sku": "b", "time": START + 1}]}
    lines = [full] * 3 + [{"user": 2, "hits": []}] * empty
    found = proposed(tmp_path, "log.ndjson", "".join(json.dumps(line) + "\n" for line in lines))
    assert found.says["source"]["explode"] == {"column": "hits"}
    assert found.comment(words)
    none = proposed(tmp_path, "log.ndjson", json.dumps(full) + "\n")
    assert not none.comment("empty list")


def test_names_in_a_sentence() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed([f"{at}" for at in range(8)]) == "0, 1, 2, 3, 4, 5 and 2 others"

"""One SQL statement: row_number for the indices, lag for the time difference."""

from pathlib import Path

from pipeline_tests.bench.logs import ACTIONS
from pipeline_tests.bench.protocol import run

STATEMENT = """
COPY (
    WITH events AS (
        SELECT file_row_number AS row_id, user_id, item_id, make_timestamptz("timestamp" * 1000) AS "timestamp", action
        FROM read_parquet($raw, file_row_number = true)
    ),
    users AS (SELECT user_id, (1 + row_number() OVER (ORDER BY user_id))::INTEGER AS user_index
              FROM (SELECT DISTINCT user_id FROM events)),
    items AS (SELECT item_id, (1 + row_number() OVER (ORDER BY item_id))::INTEGER AS item_index
              FROM (SELECT DISTINCT item_id FROM events)),
    preceded AS (
        SELECT *, epoch_us("timestamp") AS now_us, lag(epoch_us("timestamp")) OVER (
            PARTITION BY user_id ORDER BY "timestamp", row_id) AS before_us
        FROM events
    )
    SELECT row_id, user_id, item_id, "timestamp", user_index, item_index,
           coalesce((now_us - before_us)::DOUBLE / 1000000, 0)::FLOAT AS time_diff,
           before_us IS NULL AS is_first,
           {one_hot}
    FROM preceded JOIN users USING (user_id) JOIN items USING (item_id)
    ORDER BY user_id, "timestamp", row_id
) TO {target} (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)
"""


def convert(raw: Path, out: Path) -> dict[str, int]:
    """Raw log to features, sorted by user and time; returns the number of rows."""
    import duckdb

    one_hot = ", ".join(f"(action = '{name}')::UTINYINT AS action_{name}" for name in ACTIONS)
    target = "'" + str(out / "features.parquet").replace("'", "''") + "'"
    counted = duckdb.execute(STATEMENT.format(one_hot=one_hot, target=target), {"raw": str(raw)}).fetchone()
    return {"rows": counted[0]}


if __name__ == "__main__":
    import duckdb  # noqa: F401 - outside the clock, like everybody's imports; optional, hence not at the top

    run("duckdb_script", convert)

"""One SQL statement: row_number for the indices, lag for the time difference."""

from pathlib import Path

from pipeline_tests.bench.logs import ACTIONS
from pipeline_tests.bench.protocol import run

STATEMENT = """
COPY (
    WITH events AS (
        SELECT file_row_number AS row_id, user_id, item_id, "timestamp" AS now_ms, action
        FROM read_parquet($raw, file_row_number = true)
    ),
    users AS (SELECT user_id, (1 + row_number() OVER (ORDER BY user_id))::INTEGER AS user_index
              FROM (SELECT DISTINCT user_id FROM events)),
    items AS (SELECT item_id, (1 + row_number() OVER (ORDER BY item_id))::INTEGER AS item_index
              FROM (SELECT DISTINCT item_id FROM events)),
    preceded AS (
        SELECT *, lag(now_ms) OVER (PARTITION BY user_id ORDER BY now_ms, row_id) AS before_ms FROM events
    )
    SELECT row_id, user_id, item_id, make_timestamptz(now_ms * 1000) AS "timestamp", user_index, item_index,
           coalesce((now_ms - before_ms)::DOUBLE / 1000, 0)::FLOAT AS time_diff,
           before_ms IS NULL AS is_first,
           {one_hot}
    FROM preceded JOIN users USING (user_id) JOIN items USING (item_id)
) TO {target} (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)
"""


def convert(raw: Path, out: Path, *, settings: str = "") -> dict[str, int]:
    """Raw log to features; returns the number of rows.

    Args:
        raw: The log.
        out: Folder to write to.
        settings: SQL to run before the statement.
    """
    import duckdb

    one_hot = ", ".join(f"(action = '{name}')::UTINYINT AS action_{name}" for name in ACTIONS)
    statement = STATEMENT.format(one_hot=one_hot, target=quoted(out / "features.parquet"))
    with duckdb.connect() as connection:
        connection.execute(settings)
        counted = connection.execute(statement, {"raw": str(raw)}).fetchone()
    return {"rows": counted[0]}


def quoted(path: Path) -> str:
    """A path as a SQL literal."""
    return "'" + str(path).replace("'", "''") + "'"


if __name__ == "__main__":
    import duckdb  # noqa: F401 - outside the clock, like everybody's imports; optional, hence not at the top

    run("duckdb_lag", convert)

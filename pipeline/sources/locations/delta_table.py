"""Delta tables: which Parquet files make one up now, and whether these alone say what is in it."""

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pipeline.config import is_url
from pipeline.contracts import PipelineError
from pipeline.sources.locations.object_stores import CONNECT_S, RETRY_S, asking, s3_place

if TYPE_CHECKING:
    from deltalake import DeltaTable

# Features with which a row of the table is a row of a file. The first two are looked at in the table itself.
READABLE = {"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def find_delta_files(location: str, *, name: str, hive: bool) -> list[str]:
    """The files that a Delta table consists of in its newest version.

    Args:
        location: The folder of the table: an absolute path, or a URL.
        name: What users are shown.
        hive: Whether the columns that the table is partitioned by are read from the names of its folders.

    Returns:
        Absolute paths or URLs, in no order.

    Raises:
        PipelineError: The library is not installed; there is no such table; it cannot be read; or its rows are not just
            the rows of its files.
    """
    table = _open_delta(location, name)
    config = table.metadata().configuration
    others = set(table.protocol().reader_features or ()) - READABLE
    if config.get("delta.columnMapping.mode", "none") != "none":
        others.add("columnMapping")
    if _hides_rows(table):
        others.add("deletionVectors")
    if others:
        raise PipelineError(
            f"{name}: the Delta table uses {', '.join(sorted(others))}, so that its files alone do not say what is in it; "
            "rewrite the table without that, or export it to plain Parquet files"
        )
    files = table.file_uris()
    if hive:
        _require_folders_of_log(table, files, name)
    return files


def _open_delta(location: str, name: str) -> "DeltaTable":
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError
    except ImportError:
        raise PipelineError(
            f"{name}: Delta tables are read with deltalake, which is not installed; pip install 'event-feature-pipeline[delta]'"
        ) from None
    try:
        with asking(location):
            try:
                return DeltaTable(location, storage_options=_storage_options(location) if is_url(location) else None)
            except OSError as error:
                raise OSError(_plain(error)) from None
    except TableNotFoundError:
        raise PipelineError(f"{name}: there is no Delta table; bring it, or correct [source] path") from None
    except DeltaError as error:
        raise PipelineError(
            f"{name}: the Delta table cannot be read ({_plain(error)}); mend it, or export it to plain Parquet files"
        ) from None


def _storage_options(location: str) -> dict[str, str]:
    """How long to try, and what of an S3 bucket the library does not find out itself."""
    options = {"max_retries": "3", "retry_timeout": f"{RETRY_S}s", "connect_timeout": f"{CONNECT_S}s"}
    if location.startswith("s3://"):
        endpoint, region = s3_place(location.split("/")[2])
        options["AWS_REGION"] = region
        if endpoint is not None:
            options |= {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": str(endpoint.startswith("http://")).lower()}
    return options


def _hides_rows(table: "DeltaTable") -> bool:
    """Whether rows of the files are marked as deleted."""
    from deltalake.exceptions import DeltaError

    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return False
    try:
        return any(batch.num_rows for batch in table.deletion_vectors())
    except DeltaError:  # it has marks that the library cannot read
        return True


def _require_folders_of_log(table: "DeltaTable", files: Sequence[str], name: str) -> None:
    """Refuses files whose folders do not say what the log says of their partition."""
    import pyarrow as pa

    columns = table.metadata().partition_columns
    logged = pa.table(table.get_add_actions(flatten=True)).to_pylist() if columns else []
    for file, entry in zip(files, logged, strict=bool(columns)):
        expected = {column: entry[f"partition.{column}"] for column in columns}
        found = dict(_folders(file))
        if not all(column in found and _same(found[column], value) for column, value in expected.items()):
            raise PipelineError(
                f"{name}: the log of the Delta table says {expected} of a file whose folders do not: {file}; rewrite the "
                "table with plain folders, or leave hive out"
            )


def _folders(file: str) -> list[tuple[str, str]]:
    parts = [part.partition("=") for part in file.split("/")[:-1]]
    return [(unquote(key), unquote(value)) for key, equals, value in parts if equals]


def _same(folder: str, logged: Any) -> bool:
    """Whether a folder says what the log says; only values that are written in one way are compared."""
    if logged is None or folder == NO_VALUE:
        return logged is None and folder == NO_VALUE
    one_way = isinstance(logged, str | int | date) and not isinstance(logged, bool | datetime)
    return not one_way or folder == str(logged)


def _plain(error: Exception) -> str:
    return " ".join(COLOUR.sub("", str(error)).split())[:300]

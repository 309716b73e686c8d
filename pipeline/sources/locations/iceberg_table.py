"""Iceberg tables: which Parquet files make one up, and whether these alone say what is in it."""

from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.config import is_url
from pipeline.contracts import PipelineError
from pipeline.sources.locations.object_stores import CONNECT_S, RETRY_S, asking, s3_place

if TYPE_CHECKING:
    from pyiceberg.table import StaticTable

HINT = "metadata/version-hint.text"
SCHEMES = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "file": ""}


def find_iceberg_files(location: str, *, name: str) -> list[str]:
    """The files that an Iceberg table consists of in a version.

    Args:
        location: A metadata file of the table, or its folder when that holds `metadata/version-hint.text`: an absolute
            path, or a URL. Of several metadata files the catalog alone knows which is the table.
        name: What users are shown.

    Returns:
        Absolute paths or URLs, in no order.

    Raises:
        PipelineError: The library is not installed; there is no such table; it cannot be read; or its rows are not just
            the rows of its files, under the names that these give to their columns.
    """
    with asking(location):
        table = _open_iceberg(location, name)
        tasks = list(table.scan().plan_files())
    uses: set[str] = set()
    if any(task.delete_files for task in tasks):
        uses.add("files of deleted rows")
    uses |= {f"{kind} files" for kind in (str(task.file.file_format.value) for task in tasks) if kind != "PARQUET"}
    renamed = _renamed(table)
    if renamed:
        uses.add(f"more than one name or meaning for {', '.join(renamed)}")
    if uses:
        raise PipelineError(
            f"{name}: the Iceberg table uses {' and '.join(sorted(uses))}, so that its files alone do not say what is in it; "
            "rewrite the table without that, or export it to plain Parquet files"
        )
    return [_place(task.file.file_path, name) for task in tasks]


def _open_iceberg(location: str, name: str) -> "StaticTable":
    try:
        from pyiceberg.exceptions import ValidationError
        from pyiceberg.table import StaticTable
    except ImportError:
        raise PipelineError(
            f"{name}: Iceberg tables are read with pyiceberg, which is not installed; "
            "pip install 'event-feature-pipeline[iceberg]'"
        ) from None
    try:
        return StaticTable.from_metadata(location, _properties(location))
    except FileNotFoundError:
        missing = "no such metadata file" if location.endswith(".metadata.json") else f"no {HINT}"
        raise PipelineError(
            f"{name}: {missing}; write the table's newest .metadata.json, which its catalog names, as [source] path"
        ) from None
    except (ValidationError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise PipelineError(
            f"{name}: the Iceberg table cannot be read ({reason}); mend it, or export it to plain Parquet files"
        ) from None


def _properties(location: str) -> dict[str, str]:
    """What of an S3 bucket the library does not find out itself, and how long to try."""
    if not location.startswith("s3://"):
        return {}
    endpoint, region = s3_place(location.split("/")[2])
    found = {"s3.region": region, "s3.connect-timeout": str(CONNECT_S), "s3.request-timeout": str(RETRY_S)}
    return found | ({} if endpoint is None else {"s3.endpoint": endpoint})


def _renamed(table: "StaticTable") -> list[str]:
    """The columns of which a former version of the table had the name or the number otherwise."""
    columns = {
        (number, schema.find_column_name(number) or "")
        for schema in table.metadata.schemas
        for number in schema.field_ids
    }
    numbers = [number for number, _ in columns]
    names = [name for _, name in columns]
    return sorted({name for number, name in columns if numbers.count(number) > 1 or names.count(name) > 1})


def _place(file: str, name: str) -> str:
    """A data file as a path of this machine, or as a URL that is read."""
    if not is_url(file):
        return str(Path(file))
    scheme, _, path = file.partition("://")
    if scheme not in SCHEMES:
        raise PipelineError(
            f"{name}: a file of the Iceberg table lies at {file}, which is not read; copy the table to s3://"
        )
    return f"{SCHEMES[scheme]}://{path}" if SCHEMES[scheme] else path

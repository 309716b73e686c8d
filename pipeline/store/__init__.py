"""Partitions, manifests and commits: everything that touches the lake.

Layout: `<root>/<asset>/day=YYYY-MM-DD/_manifest.json` names the data files beside it. What no manifest names does not
exist for a reader. Every byte is written under the root.
"""

from pipeline.store.content import ContentHash, file_sha256, row_hash_sum
from pipeline.store.currency import RAW_PREFIX, Currency, previous, require_current
from pipeline.store.lake import Store, safe_run, sync_folder
from pipeline.store.manifest import DataFile, Manifest, Recipe
from pipeline.store.parquet import ROW_GROUP_ROWS, read_blocks, unreadable
from pipeline.store.scan import POLARS_DTYPES, as_day, latest_rows, manifest_schema, read_files, scan
from pipeline.store.staging import Staged, Staging, writing

__all__ = [
    "POLARS_DTYPES",
    "RAW_PREFIX",
    "ROW_GROUP_ROWS",
    "ContentHash",
    "Currency",
    "DataFile",
    "Manifest",
    "Recipe",
    "Staged",
    "Staging",
    "Store",
    "as_day",
    "file_sha256",
    "latest_rows",
    "manifest_schema",
    "previous",
    "read_blocks",
    "read_files",
    "require_current",
    "row_hash_sum",
    "safe_run",
    "scan",
    "sync_folder",
    "unreadable",
    "writing",
]

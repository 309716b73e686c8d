"""Partitions, manifests and commits: everything that touches the lake.

Layout: `<root>/<asset>/day=YYYY-MM-DD/_manifest.json` names the data files beside it. What no manifest names does not
exist for a reader. Every byte is written under the root.
"""

from pipeline.store.content import ContentHash, row_hash_sum
from pipeline.store.currency import Currency
from pipeline.store.lake import Staged, Staging, Store
from pipeline.store.manifest import DataFile, Manifest
from pipeline.store.scan import read_files, scan

__all__ = [
    "ContentHash",
    "Currency",
    "DataFile",
    "Manifest",
    "Staged",
    "Staging",
    "Store",
    "read_files",
    "row_hash_sum",
    "scan",
]

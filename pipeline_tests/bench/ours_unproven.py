"""Ours, without a proof: what the stages take that only compute, as the competitors do, and the memory that this needs.

The pipeline has no such mode. Here, and only here, a stand-in for `checks.publish` commits what was staged.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pipeline import stages
from pipeline.checks import Proof, Published
from pipeline.store import Staged, Store
from pipeline.vocabularies import Segment
from pipeline_tests.bench import ours
from pipeline_tests.bench.protocol import run


def commit(
    staged: Staged, *, store: Store, companion: Staged | None = None, segment: Segment | None = None, **_: object
) -> Published | None:
    """Does all that `checks.publish` does except to prove."""
    if segment is not None:
        try:
            if not segment.link():
                return None
        finally:
            segment.path.unlink(missing_ok=True)
    published = None if companion is None else store.commit(companion, proof={})
    manifest = store.commit(staged, proof={})
    return Published(manifest, published, Proof(manifest.asset, manifest.day, (), {}, 0.0))


def convert(raw: Path, out: Path) -> Mapping[str, Any]:
    """Runs every stage on the day of `raw`; `stages` are the seconds to make and commit."""
    with patch.object(stages, "publish", commit):
        found = dict(ours.convert(raw, out))
    commits = found.pop("proofs")
    del found["parts"]
    return {**found, "stages": {asset: seconds + commits[asset] for asset, seconds in found["stages"].items()}}


if __name__ == "__main__":
    run("ours_unproven", convert)

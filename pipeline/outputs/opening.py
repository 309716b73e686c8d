"""The carried state, read along with the events of a day."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from pipeline.store import ROW_GROUP_ROWS, Manifest, manifest_schema, read_blocks


class OpeningReader:
    """Rows of `opening`, which ascends by user_id as the events of a day do: a chunk's users are the next rows of it."""

    def __init__(self, directory: Path, manifest: Manifest, columns: Sequence[str]) -> None:
        wanted = ["user_id", *columns]
        schema = manifest_schema(manifest)
        self._blocks = read_blocks(directory, manifest.of_role("opening"), wanted, block_rows=ROW_GROUP_ROWS)
        self._held = pl.DataFrame(schema={name: schema[name] for name in wanted})
        self._more = True

    def up_to(self, user_id: int | str) -> pl.DataFrame:
        """All rows that have not been given yet, up to a user; one row a user, ascending."""
        while self._more and (self._held.is_empty() or self._held["user_id"][-1] < user_id):
            block = next(self._blocks, None)
            self._more = block is not None
            if block is not None:
                self._held = pl.concat([self._held, block])
        count = int(self._held["user_id"].search_sorted(user_id, side="right"))
        given, self._held = self._held[:count], self._held[count:]
        return given.rechunk()

"""Makes a day of a vocabulary: numbers those of its ids that the log lacks."""

import secrets
from datetime import date

import numpy as np
import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.store import Recipe, Staged, Store, require_current
from pipeline.vocabularies.day import DayVocabulary, distinct_ids, pairs_version, with_index
from pipeline.vocabularies.length import longest_length, note_length
from pipeline.vocabularies.log import (
    FIRST_KNOWN,
    UNKNOWN,
    Segment,
    id_column,
    log_columns,
    log_directory,
    write_segment,
)
from pipeline.vocabularies.lookup import Vocabulary, require_whole_log

VERSION = 2  # content versions are xxh3-128


def vocabulary_recipe(*, vocabulary: str, day: date, dataset: Dataset, store: Store) -> Recipe:
    """What a vocabulary day would be made of now."""
    return Recipe(
        config={"mode": dataset.vocabulary.mode, "id": id_column(vocabulary, dataset).dtype},
        code={"vocabularies": VERSION},
        inputs={"events": require_current(store, "events", day, dataset).version()},
    )


def make_vocabulary(
    *, vocabulary: str, day: date, dataset: Dataset, store: Store, run: str
) -> tuple[Staged, Segment | None]:
    """Numbers those ids of a day that the log lacks.

    Args:
        vocabulary: `user_vocabulary` or `item_vocabulary`.
        day: UTC day, whose `events` are published.
        dataset: The declarations.
        store: Where to read and stage.
        run: Name of the run.

    Returns:
        The staged day, and the segment that has to be linked before it is committed; None when no id is new.

    Raises:
        PipelineError: `events` are missing, the log is damaged, or the vocabulary is frozen and empty.
    """
    ids = distinct_ids(store, vocabulary, require_current(store, "events", day, dataset))
    size = longest_length(store, vocabulary)
    scratch = store.scratch_directory(f"{run}{secrets.token_hex(4)}", f"{vocabulary}-index", day)
    known, indices = with_index(store, vocabulary, dataset, lambda log: _look_up(log, ids), scratch=scratch)
    require_whole_log(store, vocabulary, known, size=size)
    note_length(store.root / vocabulary, known.length)
    frozen = dataset.vocabulary.mode == "frozen"
    if frozen and not known.length:
        raise PipelineError(
            f"{vocabulary} is frozen but its log in {log_directory(store, vocabulary)} is empty: build it first with "
            '[vocabulary] mode = "append", or copy the segments of a store that has it'
        )
    lacking = np.flatnonzero(indices == UNKNOWN) if not frozen else np.empty(0, dtype=np.int64)
    new = ids.gather(lacking)
    indices[lacking] = np.arange(FIRST_KNOWN + known.length, FIRST_KNOWN + known.length + len(lacking), dtype=np.int32)
    segment = write_segment(
        new, segments=known.segments, length=known.length, vocabulary=vocabulary, day=day, store=store, run=run
    )
    pairs = DayVocabulary(ids, pl.Series("index", indices))
    version = pairs_version(pairs.ids, pairs.indices)
    pairs.remember(store, vocabulary, day, version)
    with store.stage(vocabulary, day, run=run) as staging:
        staged = staging.finish(
            rows=ids.len(),
            columns=log_columns(vocabulary, dataset),
            recipe=vocabulary_recipe(vocabulary=vocabulary, day=day, dataset=dataset, store=store),
            content_version=version,
            counts={"ids": ids.len(), "new_ids": new.len()},
            facts={},
            size=known.length + new.len(),
        )
    return staged, segment


def _look_up(log: Vocabulary, ids: pl.Series) -> tuple[Vocabulary, np.ndarray]:
    """The log and the index of each id in it, int32 [N]; 1 where it lacks the id."""
    return log, log.index_of(ids, size=log.length).to_numpy().copy()

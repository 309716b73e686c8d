"""Makes a day of a vocabulary: numbers those of its ids that the log lacks."""

from datetime import date

import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.store import ContentHash, Recipe, Staged, Store, manifest_schema, read_files, require_current
from pipeline.vocabularies.log import (
    ID_COLUMNS,
    Segment,
    id_column,
    log_columns,
    log_directory,
    published_size,
    read_vocabulary,
    require_whole_log,
    write_segment,
)
from pipeline.vocabularies.lookup import UNKNOWN, Vocabulary

VERSION = 2


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
        PipelineError: `events` are missing, or the vocabulary is frozen and empty.
    """
    events = require_current(store, "events", day, dataset)
    column = ID_COLUMNS[vocabulary]
    rows = read_files(store.directory("events", day), events.files, manifest_schema(events))
    ids = rows.select(pl.col(column).drop_nulls().unique()).collect().to_series().sort()
    size = published_size(store, vocabulary)
    known = read_vocabulary(store, vocabulary, dataset)
    require_whole_log(store, vocabulary, known, size=size)
    frozen = dataset.vocabulary.mode == "frozen"
    if frozen and known.ids.is_empty():
        raise PipelineError(
            f"{vocabulary} is frozen but its log in {log_directory(store, vocabulary)} is empty: build it first with "
            '[vocabulary] mode = "append", or copy the segments of a store that has it'
        )
    new = ids.head(0) if frozen else ids.filter(known.index_of(ids, size=known.ids.len()) == UNKNOWN)
    segment = write_segment(new, known, vocabulary, day, store, run)
    grown = Vocabulary(pl.concat([known.ids, new.alias("id")]), known.segments)
    content = ContentHash()
    content.update(pl.DataFrame({"id": ids, "index": grown.index_of(ids, size=grown.ids.len())}))
    with store.stage(vocabulary, day, run=run) as staging:
        staged = staging.finish(
            rows=ids.len(),
            columns=log_columns(vocabulary, dataset),
            recipe=vocabulary_recipe(vocabulary=vocabulary, day=day, dataset=dataset, store=store),
            content_version=content.hexdigest(),
            counts={"ids": ids.len(), "new_ids": new.len()},
            facts={},
            size=grown.ids.len(),
        )
    return staged, segment

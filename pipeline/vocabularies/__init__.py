"""Ids to dense indices: one append-only log a vocabulary.

Index 0 is padding, 1 is unknown, known ids start at 2. An index once given to an id is that id's for ever: segments are
only ever added, each linked exclusively under the next number.
"""

from pipeline.vocabularies.log import (
    ID_COLUMNS,
    Segment,
    id_column,
    ids_of,
    log_columns,
    log_directory,
    read_vocabulary,
    require_whole_log,
    segment_paths,
)
from pipeline.vocabularies.lookup import FIRST_KNOWN, PADDING, UNKNOWN, Vocabulary
from pipeline.vocabularies.make import make_vocabulary, vocabulary_recipe

__all__ = [
    "FIRST_KNOWN",
    "ID_COLUMNS",
    "PADDING",
    "UNKNOWN",
    "Segment",
    "Vocabulary",
    "id_column",
    "ids_of",
    "log_columns",
    "log_directory",
    "make_vocabulary",
    "read_vocabulary",
    "require_whole_log",
    "segment_paths",
    "vocabulary_recipe",
]

"""Ids to dense indices: one append-only log a vocabulary.

Index 0 is padding, 1 is unknown, known ids start at 2. An index once given to an id is that id's for ever: segments are
only ever added, each linked exclusively under the next number.
"""

from pipeline.vocabularies.day import DayIds, DayVocabulary, ids_of, with_index
from pipeline.vocabularies.index import prove_index
from pipeline.vocabularies.log import (
    FIRST_KNOWN,
    ID_COLUMNS,
    PADDING,
    UNKNOWN,
    Segment,
    Segments,
    id_column,
    log_columns,
    log_directory,
    segment_paths,
)
from pipeline.vocabularies.lookup import Vocabulary, read_vocabulary, require_whole_log
from pipeline.vocabularies.make import make_vocabulary, vocabulary_recipe
from pipeline.vocabularies.mapped import MappedPiece
from pipeline.vocabularies.pieces import DamagedPieceError, keys_of

__all__ = [
    "FIRST_KNOWN",
    "ID_COLUMNS",
    "PADDING",
    "UNKNOWN",
    "DamagedPieceError",
    "DayIds",
    "DayVocabulary",
    "MappedPiece",
    "Segment",
    "Segments",
    "Vocabulary",
    "id_column",
    "ids_of",
    "keys_of",
    "log_columns",
    "log_directory",
    "make_vocabulary",
    "prove_index",
    "read_vocabulary",
    "require_whole_log",
    "segment_paths",
    "vocabulary_recipe",
    "with_index",
]

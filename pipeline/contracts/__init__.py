"""The few types that every layer shares: errors, columns, chunks, features."""

from pipeline.contracts.chunk import Chunk, State, chunk_of
from pipeline.contracts.column import Column
from pipeline.contracts.errors import PipelineError, quoted_or
from pipeline.contracts.feature import Declared, Event, Feature

__all__ = ["Chunk", "Column", "Declared", "Event", "Feature", "PipelineError", "State", "chunk_of", "quoted_or"]

"""Raw rows to accepted and rejected events of their days.

A row that is accepted is typed, and stands in `events` sorted by (user_id, timestamp, row_id). Every other row of the day
stands in `rejected_events` with its reason and raw text. No row vanishes.
"""

from pipeline.events.make import make_events, make_events_of_days
from pipeline.events.reasons import REASONS
from pipeline.events.recipe import VERSION, event_columns, events_recipe
from pipeline.events.rejected import rejected_columns

__all__ = [
    "REASONS",
    "VERSION",
    "event_columns",
    "events_recipe",
    "make_events",
    "make_events_of_days",
    "rejected_columns",
]

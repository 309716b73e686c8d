"""Raw rows to accepted and rejected events of one day.

A row that is accepted is typed, and stands in `events` sorted by (user_id, timestamp, row_id). Every other row of the day
stands in `rejected_events` with its reason and raw text. No row vanishes.
"""

from pipeline.events.make import VERSION, event_columns, events_recipe, make_events
from pipeline.events.reasons import REASONS
from pipeline.events.rejected import rejected_columns

__all__ = ["REASONS", "VERSION", "event_columns", "events_recipe", "make_events", "rejected_columns"]

"""What is carried from one day to the next: `opening` for the day's users, `closing` for all users."""

from pipeline.state.closing import GROUP_ROWS, REPAIR, ClosingReader, latest_blocks, merge_from
from pipeline.state.columns import carried_columns, carried_tensors, feature_config, state_columns
from pipeline.state.make import make_user_state
from pipeline.state.recipe import VERSION, state_recipe

__all__ = [
    "GROUP_ROWS",
    "REPAIR",
    "VERSION",
    "ClosingReader",
    "carried_columns",
    "carried_tensors",
    "feature_config",
    "latest_blocks",
    "make_user_state",
    "merge_from",
    "state_columns",
    "state_recipe",
]

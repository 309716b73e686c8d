"""Why a row is refused: the closed list, in the order in which the first that applies is given."""

REASONS = (
    "malformed_line",
    "missing_user_id",
    "malformed_user_id",
    "missing_item_id",
    "malformed_item_id",
    "missing_timestamp",
    "malformed_timestamp",
    "implausible_timestamp",
    "outside_day",
    "missing_action",
    "malformed_action",
    "unknown_action",
    "id_out_of_range",
    "malformed_extra",
    "duplicate",
)

"""From raw behaviour logs to proven model features, one UTC day at a time."""

"""From raw behaviour logs to proven model features, one UTC day at a time."""

import os

# The allocator of polars keeps some of what is freed in each of its arenas. By itself it makes four for each core, which takes
# a tenth more memory, and page faults; it reads this when polars is imported.
os.environ.setdefault("_RJEM_MALLOC_CONF", f"narenas:{os.cpu_count() or 1}")

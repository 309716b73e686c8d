"""The same job by other means: one script each, run in a process of its own.

`python -m pipeline_tests.bench.competitors.NAME RAW.parquet OUT_DIR` writes `OUT_DIR/*.parquet` with the core
columns, in input or in sorted order. Indices are 2 + the rank of the id among the day's ids, ascending; ties in time
are broken by input order.
"""

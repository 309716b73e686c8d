"""The same job by other means: one script each, run in a process of its own.

`python -m pipeline_tests.bench.competitors.NAME RAW.parquet OUT_DIR` writes `OUT_DIR/*.parquet` with the core columns
(zstd level 1), in whatever order suits it best. Indices are 2 + the rank of the id among the day's ids, ascending; ties
in time are broken by input order. Each was tuned until nothing that we tried made it faster.
"""

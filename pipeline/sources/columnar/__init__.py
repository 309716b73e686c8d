"""Parquet and Arrow: typed columns, slice by slice."""

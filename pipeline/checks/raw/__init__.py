"""The raw bytes, read a second time in plain Python: nothing here is shared with the readers that it judges."""

from pipeline.checks.raw.records import RawRecord, Reading, read_records
from pipeline.checks.raw.values import Verdict, excluded_columns, judge

__all__ = ["RawRecord", "Reading", "Verdict", "excluded_columns", "judge", "read_records"]

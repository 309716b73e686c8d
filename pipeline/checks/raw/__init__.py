"""The raw bytes, read a second time in plain Python: nothing here is shared with the readers that it judges."""

from pipeline.checks.raw.naming import raw_columns
from pipeline.checks.raw.owners import day_number, owners, plausible, time_of_record
from pipeline.checks.raw.records import read_records
from pipeline.checks.raw.taking import RawRecord, Reading, Wanted
from pipeline.checks.raw.values import Verdict, excluded_columns, judge

__all__ = [
    "RawRecord",
    "Reading",
    "Verdict",
    "Wanted",
    "day_number",
    "excluded_columns",
    "judge",
    "owners",
    "plausible",
    "raw_columns",
    "read_records",
    "time_of_record",
]

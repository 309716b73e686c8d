"""The raw bytes, read a second time in plain Python: nothing here is shared with the readers that it judges."""

from pipeline.checks.raw.records.read import read_records
from pipeline.checks.raw.values.judge import Verdict, excluded_columns, judge
from pipeline.checks.raw.values.owners import day_number, owners, plausible, time_of_record
from pipeline.checks.raw.values.taking import RawRecord, Reading, Wanted

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
    "read_records",
    "time_of_record",
]

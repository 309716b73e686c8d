"""Every setting, declared once: one dataset file becomes one validated object."""

from pipeline.config.dataset import Dataset, load_dataset
from pipeline.config.tables import (
    DATE_FIELD,
    Columns,
    ComputeSettings,
    Csv,
    ExtraColumn,
    FeatureSettings,
    IdColumn,
    ItemColumn,
    RawColumn,
    TimestampColumn,
    fill_date,
)

__all__ = [
    "DATE_FIELD",
    "Columns",
    "ComputeSettings",
    "Csv",
    "Dataset",
    "ExtraColumn",
    "FeatureSettings",
    "IdColumn",
    "ItemColumn",
    "RawColumn",
    "TimestampColumn",
    "fill_date",
    "load_dataset",
]

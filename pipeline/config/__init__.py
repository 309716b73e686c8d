"""Every setting, declared once: one dataset file becomes one validated object."""

from pipeline.config.columns import ActionColumn, Columns, ExtraColumn, IdColumn, ItemColumn, RawColumn, TimestampColumn
from pipeline.config.dataset import Dataset, load_dataset
from pipeline.config.presets import PRESETS
from pipeline.config.settings import DATE_FIELD, fill_date, is_url
from pipeline.config.source import BLANKS, Csv, Explode, FixedWidth, Json, Regex, Source, TextFormat
from pipeline.config.tables import ComputeSettings, FeatureSettings

__all__ = [
    "BLANKS",
    "DATE_FIELD",
    "PRESETS",
    "ActionColumn",
    "Columns",
    "ComputeSettings",
    "Csv",
    "Dataset",
    "Explode",
    "ExtraColumn",
    "FeatureSettings",
    "FixedWidth",
    "IdColumn",
    "ItemColumn",
    "Json",
    "RawColumn",
    "Regex",
    "Source",
    "TextFormat",
    "TimestampColumn",
    "fill_date",
    "is_url",
    "load_dataset",
]

"""Chunks and feature tensors to Parquet with the declared schema; and the tensor for older in-memory scripts."""

from pipeline.outputs.columns import VERSION, feature_columns, features_recipe
from pipeline.outputs.make import make_features
from pipeline.outputs.matrix import matrix

__all__ = ["VERSION", "feature_columns", "features_recipe", "make_features", "matrix"]

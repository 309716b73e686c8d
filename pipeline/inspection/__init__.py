"""Looks at an unknown log and proposes a dataset file, with its reasons and its doubts."""

from pipeline.inspection.inspect import inspect_log

__all__ = ["inspect_log"]

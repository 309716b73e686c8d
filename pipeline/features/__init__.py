"""One file a feature: dropping a file into this folder is all that it takes.

Nothing here imports torch; feature files do so inside their functions.
"""

import inspect
import pkgutil
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from pipeline.contracts import Column, Declared, Feature, PipelineError, quoted_or

REQUIRED = ("VERSION", "columns", "compute", "initial", "step")


def discover() -> dict[str, ModuleType]:
    """All feature modules, by name, in sorted order."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    return {name: import_module(f"{__name__}.{name}") for name in names}


def load_features(use: Sequence[str] | None, parameters: Mapping[str, Mapping[str, Any]]) -> tuple[Feature, ...]:
    """The features that a dataset uses, sorted by name with `core` first, parameters bound.

    Args:
        use: Names, or None for every feature found.
        parameters: Feature name -> its table in the dataset file.

    Raises:
        PipelineError: An unknown name, or parameters that the feature refuses.
    """
    found = discover()
    for name in (*(use or ()), *parameters):
        if name not in found:
            raise PipelineError(f"[features]: there is no feature '{name}'; {quoted_or(name, found)}")
    names = sorted(found if use is None else use, key=lambda name: (name != "core", name))
    for name in parameters:
        if name not in names:
            raise PipelineError(f"[features.{name}] has parameters but '{name}' is not in use; add it to use")
    return tuple(_bind(name, found[name], parameters.get(name, {})) for name in names)


def output_columns(features: Sequence[Feature], dataset: Declared) -> list[Column]:
    """The columns of all features, in order.

    Raises:
        PipelineError: Two features declare the same column, or a feature and [extra] do.
    """
    owners = {column.name: "[extra]" for column in dataset.extra_columns}
    declared: list[Column] = []
    for feature in features:
        for column in feature.columns(dataset):
            if column.name in owners:
                raise PipelineError(
                    f"'{owners[column.name]}' and '{feature.name}' both declare '{column.name}'; rename one"
                )
            owners[column.name] = feature.name
            declared.append(column)
    return declared


def _bind(name: str, module: ModuleType, table: Mapping[str, Any]) -> Feature:
    lacking = [attribute for attribute in REQUIRED if not hasattr(module, attribute)]
    if lacking:
        raise PipelineError(
            f"pipeline/features/{name}.py lacks {', '.join(lacking)}; docs/add-a-feature.md shows a whole one"
        )
    functions: dict[str, Any] = {
        key: getattr(module, key, None) for key in ("columns", "compute", "summarise", "combine", "initial", "step")
    }
    declared = getattr(module, "Parameters", None)
    if declared is not None:
        try:
            parameters = declared(**table)
        except (TypeError, ValueError) as error:
            raise PipelineError(f"[features.{name}]: {error}") from None
        functions = {
            key: partial(function, parameters=parameters)
            if function is not None and "parameters" in inspect.signature(function).parameters
            else function
            for key, function in functions.items()
        }
    elif table:
        raise PipelineError(
            f"[features.{name}]: the feature takes no parameters, found '{next(iter(table))}'; remove the table"
        )
    return Feature(name=name, version=module.VERSION, state=tuple(getattr(module, "STATE", ())), **functions)

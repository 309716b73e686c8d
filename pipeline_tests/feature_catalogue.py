"""docs/features.md, generated from what the feature files declare.

`python -m pipeline_tests.feature_catalogue` writes it anew, after a feature was added or changed.
"""

import inspect
import sys
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.contracts import Column
from pipeline.features import discover

PAGE = Path(__file__).parents[1] / "docs" / "features.md"
HEAD = """\
# The features

Generated from what the files in `pipeline/features/` declare; `python -m pipeline_tests.feature_catalogue` writes it anew. Every row of
`features` also has its identity, the two indices and the extra columns that are kept: [promises.md](promises.md#features). Ranges are
checked for every row before a day is published. `<name>` stands for each declared action.
"""


@dataclass(frozen=True)
class AnyDataset:
    """Declares what the catalogue shows as a placeholder."""

    action_names: tuple[str, ...] = ("<name>",)
    extra_columns: tuple[Column, ...] = ()


def catalogue() -> str:
    """The page."""
    return "\n".join([HEAD, *(_feature(name, module) for name, module in _core_first(discover()))])


def _core_first(modules: dict[str, ModuleType]) -> list[tuple[str, ModuleType]]:
    return sorted(modules.items(), key=lambda entry: (entry[0] != "core", entry[0]))


def _feature(name: str, module: ModuleType) -> str:
    title, *paragraphs = inspect.cleandoc(module.__doc__ or "").split("\n\n")
    text = [paragraph for paragraph in paragraphs if paragraph.startswith(("Definition.", "Source:"))]
    parts = [f"## `{name}`", title, *text, _columns(module.columns(AnyDataset()))]
    if hasattr(module, "Parameters"):
        parts += ["Parameters:", _parameters(module.Parameters)]
    if getattr(module, "STATE", ()):
        parts += ["Carried from day to day, one row a user:", _state(module.STATE)]
    file = f"pipeline/features/{name}.py"
    parts.append(f"Version {module.VERSION}; the worked example and the loop are in [{file}](../{file}).")
    return "\n\n".join(parts) + "\n"


def _columns(columns: Sequence[Column]) -> str:
    rows = [(f"`{c.name}`", c.dtype, c.unit or "-", _range(c), _plain(c.meaning)) for c in columns]
    return _table(("column", "type", "unit", "range", "meaning"), rows)


def _state(columns: Sequence[Column]) -> str:
    rows = [(f"`{c.name}`", c.dtype, c.unit or "-", str(c.initial), _plain(c.meaning)) for c in columns]
    return _table(("state", "type", "unit", "without a past", "meaning"), rows)


def _parameters(declared: Any) -> str:
    rows = [
        (f"`{f.name}`", str(f.type), "required" if f.default is MISSING else repr(f.default)) for f in fields(declared)
    ]
    return _table(("parameter", "type", "default"), rows)


def _range(column: Column) -> str:
    if column.minimum is None and column.maximum is None:
        return "-"
    return f"{'' if column.minimum is None else column.minimum}..{'' if column.maximum is None else column.maximum}"


def _plain(text: str) -> str:
    return text.replace("<", "&lt;").replace("|", "\\|")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows))


if __name__ == "__main__":
    PAGE.write_text(catalogue(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.name}\n")

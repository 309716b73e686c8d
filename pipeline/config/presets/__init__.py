"""Well-known layouts: each file here declares what every copy of a published log has in common."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.contracts import PipelineError, quoted_or

FOLDER = Path(__file__).parent
PRESETS = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))
# Of such keys a column has one: what the dataset file says takes the place of what the preset says.
ALTERNATIVES = ({"from", "sql", "value"}, {"format", "unit"})


def with_preset(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset file with what its `preset` says beneath it.

    Args:
        raw: The tables of the dataset file.

    Raises:
        PipelineError: There is no such preset.
    """
    name = raw.get("preset")
    if name is None:
        return dict(raw)
    if name not in PRESETS:
        raise PipelineError(f"there is no preset '{name}'; {quoted_or(str(name), PRESETS)}")
    return _merged(tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8")), raw)


def _merged(beneath: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two tables key by key, the upper one first."""
    kept = dict(beneath)
    for group in ALTERNATIVES:
        if group & above.keys():
            kept = {key: value for key, value in kept.items() if key not in group}
    for key, value in above.items():
        both_tables = isinstance(value, Mapping) and isinstance(kept.get(key), Mapping)
        kept[key] = _merged(kept[key], value) if both_tables else value
    return kept

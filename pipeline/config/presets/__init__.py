"""Well-known layouts: each file here declares what every copy of a published log has in common."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.contracts import PipelineError, quoted_or

FOLDER = Path(__file__).parent
PRESETS = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))
# Key of the dataset file -> what the preset says instead, or about it, and no longer holds once the key says otherwise.
REPLACES = {
    "from": {"sql", "value"},
    "sql": {"from", "value", "time_from"},
    "value": {"from", "sql", "rename", "strip", "null_values"},
    "unit": {"format", "time_from", "timezone", "ambiguous", "nonexistent"},
    "format": {"unit", "timezone", "ambiguous", "nonexistent", "csv", "fixed_width", "regex", "json"},
}


def with_preset(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset file with what its `preset` says beneath it: tables are merged key by key, lists are not.

    Args:
        raw: The tables of the dataset file.

    Raises:
        PipelineError: There is no such preset.
    """
    name = raw.get("preset")
    if not isinstance(name, str):  # what is no text is refused with the rest of the file
        return dict(raw)
    if name not in PRESETS:
        raise PipelineError(f"there is no preset '{name}'; {quoted_or(name, PRESETS)}")
    return _merged(tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8")), raw)


def _merged(beneath: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two tables key by key, the upper one first."""
    kept = dict(beneath)
    for key, replaced in REPLACES.items():
        # A table of that name is a column of [extra], which replaces no other.
        if key in above and not isinstance(above[key], Mapping) and above[key] != beneath.get(key):
            kept = {name: value for name, value in kept.items() if name not in replaced}
    for key, value in above.items():
        both_tables = isinstance(value, Mapping) and isinstance(kept.get(key), Mapping)
        kept[key] = _merged(kept[key], value) if both_tables else value
    return kept

"""Records that become several: one for each element of a list that stands in a column."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.checks.raw.records.json_values import as_text, read_json
from pipeline.checks.raw.values.taking import Naming, Taker, Wanted, value_at
from pipeline.config import Explode

MALFORMED = object()


class Exploder:
    """Finds the elements of a record.

    Attributes:
        column: The name of the column, or the path to it.
    """

    def __init__(self, settings: Explode, *, is_path: bool, empty_is_missing: bool) -> None:
        """Finds them as declared.

        Args:
            settings: `[source.explode]`.
            is_path: Whether the column is a path of keys.
            empty_is_missing: Whether the format knows no difference between no text and an empty one, as CSV does.
        """
        self.column = settings.column
        self._keys = settings.column.split(".") if is_path else [settings.column]
        self._separator = settings.separator
        self._pattern = None if settings.pattern is None else re.compile(settings.pattern)
        self._empty_is_missing = empty_is_missing

    def elements(self, values: Mapping[str, Any]) -> Sequence[Any] | None:
        """The elements of a record; None when there is no list."""
        found = value_at(values, self._keys)
        if found is None:
            return [] if self._empty_is_missing else None
        if isinstance(found, str):
            found = self._elements_of_text(str(found))
        if not isinstance(found, list):
            return None
        return found if self._pattern is None else [self._matched(element) for element in found]

    def is_text(self, values: Mapping[str, Any]) -> bool:
        """Whether the elements of a record are written in text."""
        return isinstance(value_at(values, self._keys), str)

    def outer(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The columns that stand beside the exploded one."""
        return {name: value for name, value in values.items() if name != self.column}

    def _elements_of_text(self, text: str) -> Any:
        if self._separator is not None:
            return [piece for piece in text.split(self._separator) if piece]
        if not text:
            return []
        try:
            return read_json(text)
        except ValueError:
            return None

    def _matched(self, element: Any) -> Any:
        """The groups of a pattern in an element."""
        assert self._pattern is not None
        text = as_text(element)
        match = None if text is None else self._pattern.fullmatch(text)
        return MALFORMED if match is None else {name: found or None for name, found in match.groupdict().items()}


class ExplodingTaker(Taker):
    """Takes the elements of records as records."""

    one_by_one = True

    def __init__(self, wanted: Wanted, naming: Naming, exploder: Exploder) -> None:
        super().__init__(wanted, naming)
        self._exploder = exploder

    def needs_none(self, records: int, first_line: int | None, lines: int) -> bool:  # noqa: ARG002
        """Every record has to be looked into."""
        return False

    def take(self, line: int | None, values: Callable[[], Mapping[str, Any] | None]) -> None:
        """Counts the elements of a record, and keeps the wanted ones; a record without a list counts as one."""
        found = values()
        elements = None if found is None else self._exploder.elements(found)
        if found is None or elements is None:
            super().take(line, lambda: None)
        elif super().needs_none(len(elements), line, 1):
            self.skip(len(elements))
        else:
            outer, written = self._exploder.outer(found), self._exploder.is_text(found)
            for element in elements:
                super().take(line, lambda element=element: self._joined(outer, element, written))

    def _joined(self, outer: Mapping[str, Any], element: Any, written: bool) -> Mapping[str, Any] | None:
        if element is MALFORMED:
            return None
        found = self._columns_of(outer, element)
        return {**outer, **({name: as_text(value) for name, value in found.items()} if written else found)}

    def _columns_of(self, outer: Mapping[str, Any], element: Any) -> Mapping[str, Any]:
        column = self._exploder.column
        if not isinstance(element, Mapping):
            return {column: element}
        inner = {f"{column}.{key}": value for key, value in element.items()}
        paths = {
            name: value_at(element, name.removeprefix(f"{column}.").split("."))
            for name in self.naming.paths
            if name.startswith(f"{column}.") and name not in outer
        }
        return {**paths, **inner}

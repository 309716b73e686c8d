"""From JSON objects to columns: which ones there are is known once all objects of a file were seen."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from pipeline.sources.json_text.flat import kinds_of_written, unquoted
from pipeline.sources.json_text.values import kind_of, text_of, type_of
from pipeline.sources.paths import within

ABSENT = object()
BOOLEANS = {"true": True, "false": False, None: None}
Path = tuple[str, ...]
Key = str | None  # None: the element of a list itself, which is no object
Record = Mapping[Any, Any]


def follow(value: Any, path: Path) -> Any:
    """What stands at a path into nested objects; `ABSENT` when nothing does."""
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return ABSENT
        value = value[key]
    return value


class JsonColumns:
    """The columns of all objects of a file: their keys, in the order in which they are first seen, then the paths.

    A declared name with points that no object has as a key is a path into nested objects, and a column where any
    object has something there. Cells are String: numbers as they are written, `true` and `false`, texts as they are,
    nested values as compact JSON, null where null or missing. A column that an `sql` expression uses is also typed, for
    `sql` alone, by all of its values in the file: integers within int64 -> Int64; numbers that float64 holds (integers
    up to 2^53) -> Float64; booleans -> Boolean; all else String. Where there is not a single object, the declared
    columns are there.

    Args:
        declared: Raw names that the dataset file declares.
        in_sql: Those that its expressions use.
        column: For the elements of a list, its column: keys are then `<column>.<key>`, and `<column>` is an element
            that is no object.
    """

    def __init__(self, *, declared: Sequence[str], in_sql: frozenset[str], column: str | None = None) -> None:
        self._column = column
        keys = {name: name if column is None else within(name, column) for name in declared}
        self._declared: list[Key] = [key for name, key in keys.items() if key is not None or name == column]
        self._in_sql: set[Key] = {keys[name] for name in in_sql if keys[name] is not None or name == column}
        self._paths: dict[str, Path] = {key: tuple(key.split(".")) for key in self._declared if key and "." in key}
        self._kinds: dict[Key, set[str]] = {}
        self._kinds_at: dict[str, set[str]] = {}
        self._any = False

    def see(self, records: Iterable[Record]) -> None:
        """Takes in which columns objects have."""
        kinds, in_sql, paths = self._kinds, self._in_sql, self._paths
        for record in records:
            self._any = True
            if not record.keys() <= kinds.keys():
                kinds.update({key: set() for key in record if key not in kinds})
            for key in in_sql:
                if key in record:
                    kinds[key].add(kind_of(record[key]))
            for key, path in paths.items():
                value = follow(record, path)
                if value is not ABSENT:
                    self._kinds_at.setdefault(key, set()).add(kind_of(value))

    def wants(self, keys: Iterable[str]) -> bool:
        """Whether the kinds of the values under some keys tell something: that of a column that `sql` uses."""
        return not self._in_sql.isdisjoint(keys)

    def see_written(self, written: pl.DataFrame) -> None:
        """Takes in the kinds of values as they are written, by key; `see` has seen the keys."""
        for key in self._in_sql.intersection(written.columns):
            self._kinds[key] |= kinds_of_written(written[key or ""])

    def names(self) -> list[str]:
        """The columns, in order."""
        return [self._name(key) for key in self._found()]

    def build(self, records: Sequence[Record | None]) -> tuple[pl.DataFrame, list[pl.Series]]:
        """The cells of objects.

        Args:
            records: The objects [R]; of None all cells are null.

        Returns:
            All columns [R], and the typed ones of `sql` [R].
        """
        columns, typed = [], []
        for key, kinds in self._found().items():
            name, dtype = self._name(key), type_of(kinds) if key in self._in_sql else pl.String()
            values = self._values(records, key)
            columns.append(pl.Series(name, [text_of(value) for value in values], dtype=pl.String))
            if dtype == pl.Boolean:
                typed.append(pl.Series(name, values, dtype=dtype))
            elif dtype != pl.String:
                number = int if dtype == pl.Int64 else float
                numbers = [None if value is None else number(value) for value in values]
                typed.append(pl.Series(name, numbers, dtype=dtype))
        frame = pl.DataFrame(columns or None, height=len(records))
        frame.columns = self.names()  # polars gives a column without a name one of its own
        return frame, typed

    def place(self, written: pl.DataFrame) -> tuple[pl.DataFrame, list[pl.Series]]:
        """The same for values as they are written [R], by key; the columns of other keys are null."""
        columns, typed = [], []
        none = pl.repeat(None, written.height, dtype=pl.String, eager=True)
        for key, kinds in self._found().items():
            cells = unquoted(written[key]) if key in written.columns else none
            columns.append(cells.alias(f"{len(columns)}"))
            dtype = type_of(kinds) if key in self._in_sql else pl.String()
            if dtype != pl.String:
                values = (
                    cells.replace_strict(BOOLEANS, return_dtype=dtype) if dtype == pl.Boolean else cells.cast(dtype)
                )
                typed.append(values.alias(self._name(key)))
        frame = pl.DataFrame(columns or None, height=written.height)
        frame.columns = self.names()
        return frame, typed

    def _found(self) -> dict[Key, set[str]]:
        if not self._any:
            return {key: set() for key in self._declared}
        return self._kinds | {key: kinds for key, kinds in self._kinds_at.items() if key not in self._kinds}

    def _values(self, records: Sequence[Record | None], key: Key) -> list[Any]:
        if key in self._kinds or key not in self._kinds_at:
            return [None if record is None else record.get(key) for record in records]
        path = self._paths[key]  # type: ignore[index]
        found = (None if record is None else follow(record, path) for record in records)
        return [None if value is ABSENT else value for value in found]

    def _name(self, key: Key) -> str:
        if self._column is None:
            return key or ""
        return self._column if key is None else f"{self._column}.{key}"

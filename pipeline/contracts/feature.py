"""What a feature file provides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from pipeline.contracts.column import Column

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.contracts.chunk import Chunk, State

OracleState: TypeAlias = Any
Row: TypeAlias = dict[str, Any]


class Declared(Protocol):
    """What a feature may ask of the dataset when it declares its columns."""

    @property
    def action_names(self) -> tuple[str, ...]:
        """The declared actions, in declared order."""
        ...

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        """The declared extra columns, in declared order."""
        ...


class Event(NamedTuple):
    """One event as the loop oracle sees it: plain Python values.

    Attributes:
        row_id: Position of the row in its day's input.
        user_id: Raw id of the user.
        item_id: Raw id of the item, None when it is missing and declared optional.
        timestamp_us: Microseconds since 1970-01-01 UTC.
        action: Name of the action.
        action_names: The declared actions, in declared order.
        extra: Values of the extra columns.
    """

    row_id: int
    user_id: int | str
    item_id: int | str | None
    timestamp_us: int
    action: str
    action_names: tuple[str, ...]
    extra: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Feature:
    """A discovered feature: the functions of one file in `pipeline/features/`, its parameters already bound.

    Attributes:
        name: Name of the file.
        version: Raised when the output changes.
        state: What is carried from day to day, one declared column each, with its `initial` value; may be empty.
        columns: Declares the output columns for a dataset.
        compute: (chunk, opening) -> name -> tensor [E], one for each declared column.
        summarise: chunk -> state of this chunk alone; None when nothing is carried.
        combine: (earlier, later) -> state of both, row by row; associative; None when nothing is carried.
        initial: The oracle's state of a user without past: state column -> plain value.
        step: (state, event) -> (state, row): the oracle, one event at a time.
    """

    name: str
    version: int
    state: tuple[Column, ...]
    columns: Callable[[Declared], list[Column]]
    compute: Callable[[Chunk, State], dict[str, Tensor]]
    summarise: Callable[[Chunk], dict[str, Tensor]] | None
    combine: Callable[[State, State], dict[str, Tensor]] | None
    initial: Callable[[], OracleState]
    step: Callable[[OracleState, Event], tuple[OracleState, Row]]

"""A block of raw rows to typed columns, and a reason for every row that cannot be typed."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.events.cells import clean
from pipeline.events.ids import CONVERSIONS, Typed
from pipeline.events.origin import Origin, take_origin
from pipeline.events.reasons import REASONS
from pipeline.events.times.timestamps import convert_times, joined
from pipeline.events.times.unit_doctor import DAY_US, UnitDoctor
from pipeline.sources import RawBlock

ACCEPTED = 255
RANK = {reason: rank for rank, reason in enumerate(REASONS)}


@dataclass(frozen=True, slots=True)
class ConvertedBlock:
    """Typed rows of one block, in file order.

    Attributes:
        frame: user_id, item_id, timestamp (Int64 us), action (Enum) and the extra columns.
        day: Int64 [rows], days since 1970-01-01; null where there is no usable timestamp.
        rank: uint8 [rows], position in `REASONS` of the first reason that applies, or `ACCEPTED`.
        culprit: uint8 [rows], position of the column at fault in the declared columns; 255 for none.
        floored: Rows whose nanoseconds were floored.
    """

    frame: pl.DataFrame
    day: pl.Series
    rank: np.ndarray
    culprit: np.ndarray
    floored: int


class Verdicts:
    """Collects reasons row by row; the first of the closed list wins."""

    def __init__(self, rows: int) -> None:
        self.rank = np.full(rows, ACCEPTED, dtype=np.uint8)
        self.culprit = np.full(rows, ACCEPTED, dtype=np.uint8)

    def refuse(self, reason: str, rows: np.ndarray | None, *, culprit: int = ACCEPTED) -> None:
        """Marks rows, unless an earlier reason of the list holds for them."""
        if rows is None:
            return
        worse = rows & (self.rank > RANK[reason])
        self.rank[worse] = RANK[reason]
        self.culprit[worse] = culprit


def convert_block(block: RawBlock, dataset: Dataset, doctor: UnitDoctor) -> ConvertedBlock:
    """Types every row of a block.

    Args:
        block: Raw rows of one file.
        dataset: The declarations.
        doctor: Sees every timestamp of the file.
    """
    rows = block.frame.height
    verdicts = Verdicts(rows)
    malformed_line = block.malformed.to_numpy() if block.malformed.any() else None
    verdicts.refuse("malformed_line", malformed_line)
    positions = {name: position for position, name in enumerate(dataset.declared_columns)}
    origins = {name: take_origin(block, column) for name, column in dataset.declared_columns.items()}

    columns: list[pl.Series] = []
    for name, declared in (("user_id", dataset.columns.user_id), ("item_id", dataset.columns.item_id)):
        typed = _typed(origins[name], declared.type, declared.from_ or name, doctor.file)
        if not (name == "item_id" and dataset.columns.item_id.optional):
            verdicts.refuse(f"missing_{name}", origins[name].really(typed.missing), culprit=positions[name])
        verdicts.refuse(f"malformed_{name}", typed.malformed, culprit=positions[name])
        verdicts.refuse(f"malformed_{name}", origins[name].failed, culprit=positions[name])
        verdicts.refuse("id_out_of_range", typed.out_of_range, culprit=positions[name])
        columns.append(typed.values.alias(name))

    cells, declared = origins["timestamp"].values, dataset.columns.timestamp
    if declared.time_from is not None:
        cells = joined(cells, clean(block.frame[declared.time_from], declared), declared, doctor)
    times = convert_times(cells, declared, doctor)
    verdicts.refuse("malformed_timestamp", origins["timestamp"].failed, culprit=positions["timestamp"])
    verdicts.refuse("missing_timestamp", origins["timestamp"].really(times.missing), culprit=positions["timestamp"])
    verdicts.refuse("malformed_timestamp", times.malformed, culprit=positions["timestamp"])
    verdicts.refuse("implausible_timestamp", times.implausible, culprit=positions["timestamp"])
    columns.append(times.us.alias("timestamp"))

    columns.append(_convert_action(origins["action"], dataset, verdicts, positions["action"], doctor.file))
    verdicts.refuse("malformed_action", origins["action"].failed, culprit=positions["action"])

    for name, extra in dataset.extra.items():
        typed = _typed(origins[name], extra.type, extra.from_ or name, doctor.file)
        refused = (typed.malformed, typed.out_of_range, origins[name].failed)
        for rows_at_fault in refused if extra.optional else (typed.missing, *refused):
            verdicts.refuse("malformed_extra", rows_at_fault, culprit=positions[name])
        columns.append(typed.values.alias(name))

    usable = times.us if times.implausible is None else times.us.set(pl.Series(times.implausible), None)
    return ConvertedBlock(pl.DataFrame(columns), usable // DAY_US, verdicts.rank, verdicts.culprit, times.floored)


def _typed(origin: Origin, kind: str, column: str, file: str) -> Typed:
    try:
        return CONVERSIONS[kind](origin.values, column=column)
    except PipelineError as error:
        raise PipelineError(f"{file}: {error}") from None


def _convert_action(origin: Origin, dataset: Dataset, verdicts: Verdicts, position: int, file: str) -> pl.Series:
    declared, names = dataset.columns.action, dataset.action_names
    typed = _typed(origin, "string", declared.from_ or "action", file)
    cells = list(dict.fromkeys((*names, *declared.rename)))
    known = typed.values.cast(pl.Enum(cells), strict=False)
    if declared.rename:
        renamed = pl.Series([declared.rename.get(cell, cell) for cell in cells]).cast(pl.Enum(names))
        known = renamed.gather(known.to_physical())
    verdicts.refuse("missing_action", origin.really(typed.missing), culprit=position)
    verdicts.refuse("malformed_action", typed.malformed, culprit=position)
    if known.null_count() > typed.values.null_count():
        verdicts.refuse("unknown_action", (known.is_null() & typed.values.is_not_null()).to_numpy(), culprit=position)
    return known.alias("action")

"""Computes the features of chunks on a device, and makes their tables."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.chunks import EventChunk, Transfer, halves, out_of_memory, resolve_device, to_tensors
from pipeline.config import Dataset
from pipeline.contracts import Feature, PipelineError, State
from pipeline.state import carried_tensors
from pipeline.vocabularies import DayVocabulary

if TYPE_CHECKING:
    import torch

    Carried = Mapping[str, dict[str, torch.Tensor]]


@dataclass(frozen=True, slots=True)
class Launched:
    """A chunk whose features are computed, maybe still on their way back from the device.

    Attributes:
        chunk: The events.
        results: Waits for the values of the declared columns [E].
    """

    chunk: EventChunk
    results: Callable[[], dict[str, np.ndarray]]


class Engine:
    """The features of a day's chunks, one after the other.

    A device without memory for a chunk gets it, and all that follow, in halves. A user whose events lie in more than one
    chunk is carried from one to the next: by the law of splitting that changes no value.
    """

    def __init__(
        self,
        *,
        features: Sequence[Feature],
        dataset: Dataset,
        users: DayVocabulary,
        items: DayVocabulary,
        schema: Mapping[str, pl.DataType],
        transfer: Transfer,
        report: Callable[[str], None],
    ) -> None:
        self._features, self._dataset = features, dataset
        self._users, self._items = users, items
        self._schema = schema
        self._transfer = transfer
        self._report = report
        self._host = resolve_device("cpu")
        self._carried: Carried = {}
        self._most_rows: int | None = None

    def tables(self, chunks: Iterator[tuple[EventChunk, pl.DataFrame]]) -> Iterator[tuple[EventChunk, pl.DataFrame]]:
        """The chunks, or their parts, each with its rows of `features`, in order.

        Args:
            chunks: Each chunk with the rows of `opening` of its users, and maybe of others.

        Raises:
            PipelineError: The device has no memory even for one event, or a feature breaks its declaration.
        """
        under_way: deque[Launched] = deque()
        for whole, opening in chunks:
            waiting = [whole]
            while waiting:
                chunk = waiting.pop()
                if self._most_rows is not None and chunk.frame.height > self._most_rows:
                    waiting += reversed(halves(chunk))
                    continue
                launched = self._launch(chunk, opening)
                if launched is None:  # what is under way holds memory too
                    waiting.append(chunk)
                    while under_way:
                        yield self._finish(under_way.popleft())
                    self._make_room(chunk.frame.height)
                    continue
                under_way.append(launched)
                while len(under_way) > self._transfer.behind:
                    yield self._finish(under_way.popleft())
        while under_way:
            yield self._finish(under_way.popleft())

    def _launch(self, chunk: EventChunk, opening: pl.DataFrame) -> Launched | None:
        """Computes a chunk; None when the device has no memory for it, and then nothing has changed."""
        try:
            return self._computed(chunk, opening)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            if chunk.frame.height == 1:
                raise PipelineError(
                    f"{self._transfer.device} has no memory for a single event ({str(error).splitlines()[0]}); "
                    'end what else runs there, or set [compute] device = "cpu"'
                ) from None
            return None

    def _computed(self, chunk: EventChunk, opening: pl.DataFrame) -> Launched:
        transfer, users = self._transfer, chunk.users
        transfer.start()
        tensors = to_tensors(chunk, dataset=self._dataset, device=transfer.device, put=transfer.put)
        computed: dict[str, torch.Tensor] = {}
        carried: dict[str, dict[str, torch.Tensor]] = {}
        for feature in self._features:
            before = self._state_before(feature, chunk, opening, users)
            computed |= feature.compute(tensors, before)
            if chunk.goes_on and feature.summarise is not None and feature.combine is not None:
                after = feature.combine(before, feature.summarise(tensors))
                carried[feature.name] = {name: tensor[-1:].clone() for name, tensor in after.items()}
        results = transfer.fetch(computed)
        self._carried = carried
        return Launched(chunk, results)

    def _state_before(self, feature: Feature, chunk: EventChunk, opening: pl.DataFrame, users: pl.Series) -> State:
        """What a feature carries into a chunk: `opening`, and for a user who is cut what the piece before left."""
        tensors = carried_tensors(feature, opening, users, device=self._host)
        before = {name: self._transfer.put(f"{feature.name}.{name}", tensor) for name, tensor in tensors.items()}
        if chunk.continues:
            for name, tensor in self._carried.get(feature.name, {}).items():
                before[name][:1] = tensor
        return before

    def _make_room(self, rows: int) -> None:
        import torch

        self._most_rows = (rows + 1) // 2
        if self._transfer.device.type == "cuda":
            torch.cuda.empty_cache()
        self._report(
            f"{self._transfer.device} has no memory for {rows:,} events at once; going on with at most {self._most_rows:,}"
        )

    def _finish(self, launched: Launched) -> tuple[EventChunk, pl.DataFrame]:
        """The rows of `features` of a chunk."""
        chunk, computed = launched.chunk, launched.results()
        index_U = self._users.index_of(chunk.users).to_numpy()
        ready = {
            "user_index": pl.Series("user_index", np.repeat(index_U, np.diff(chunk.offsets_U1))),
            "item_index": self._items.index_of(chunk.column("item_id")).alias("item_index"),
            **{name: pl.Series(name, values) for name, values in computed.items()},
        }
        table = pl.DataFrame([ready[name] if name in ready else chunk.column(name) for name in self._schema])
        if dict(table.schema) != self._schema:
            wrong = next(name for name in self._schema if table.schema[name] != self._schema[name])
            raise PipelineError(
                f"feature column '{wrong}' was computed as {table.schema[wrong]}, declared is {self._schema[wrong]}"
            )
        return chunk, table

"""What a run works with: the lake, the device, and the settings that a single run may override."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field, ValidationError

from pipeline.config import ComputeSettings, Dataset
from pipeline.contracts import Feature, PipelineError

if TYPE_CHECKING:
    import torch

    from pipeline.stages import Work
    from pipeline.store import Store


class MakeConfig(dg.Config, extra="forbid"):
    """Run config of a step that makes days."""

    force: bool = Field(
        default=False, description="Make days again although nothing that they are made of has changed."
    )


class ProveConfig(dg.Config, extra="forbid"):
    """Run config of a step that proves again what lies on disk."""

    deep: bool = Field(
        default=False, description="Prove the carried state from the first day on. Its cost grows with history."
    )
    newest_days: int = Field(default=7, ge=1, description="How many days are proven when the run has no partition.")


class Lake(dg.ConfigurableResource):
    """Where the days lie."""

    root: str = Field(description="Root of the store.")

    def open_for(self, dataset: Dataset) -> "Store":
        """The store, for writing.

        Raises:
            PipelineError: It cannot be written to, or holds another dataset.
        """
        store = self.reading()
        store.open_for(dataset)
        return store

    def reading(self) -> "Store":
        """The store, for reading."""
        from pipeline.store import Store

        return Store(Path(self.root))


class Compute(dg.ConfigurableResource):
    """How the work is done; none of it changes a value. What a run leaves out is as the dataset file says."""

    device: str | None = Field(default=None, description="auto, cpu, cuda, cuda:N or mps.")
    chunk_rows: int | None = Field(default=None, description="The most events that a chunk holds.")

    def settings(self, dataset: Dataset) -> ComputeSettings:
        """The dataset's settings with what this run overrides.

        Raises:
            PipelineError: A value that the dataset file could not hold either.
        """
        overrides = {"device": self.device, "chunk_rows": self.chunk_rows}
        said = {name: value for name, value in overrides.items() if value is not None}
        try:
            return ComputeSettings(**{**dataset.compute.model_dump(), **said})
        except ValidationError as error:
            problem = error.errors()[0]
            message = problem["msg"].removeprefix("Value error, ")
            raise PipelineError(
                f"run config of the compute resource: {problem['loc'][0]}: {message} (found {problem['input']!r})"
            ) from None


def work_for(
    *,
    asset: str,
    context: dg.AssetExecutionContext,
    dataset: Dataset,
    features: Sequence[Feature],
    lake: Lake,
    compute: Compute,
    config: MakeConfig,
) -> "Work":
    """What the stages need to know of a run.

    Raises:
        PipelineError: The store, the device or an override cannot be used.
    """
    from pipeline.stages import Work

    settings = compute.settings(dataset)
    if settings.threads is not None:
        cap_threads(settings.threads)
    return Work(
        dataset=dataset,
        features=features,
        store=lake.open_for(dataset),
        run=context.run.run_id,
        device=_device(settings) if asset == "features" else None,
        chunk_rows=settings.chunk_rows,
        force=config.force,
        report=context.log.info,
    )


def _device(settings: ComputeSettings) -> "torch.device":
    from pipeline.chunks import resolve_device  # which costs torch, and no other stage needs to know

    return resolve_device(settings.device)


def cap_threads(threads: int) -> None:
    """Caps the threads that torch computes with and pyarrow reads and writes with; polars' are capped on its import."""
    import pyarrow as pa
    import torch

    torch.set_num_threads(threads)
    pa.set_cpu_count(threads)
    pa.set_io_thread_count(threads)


def asset_key(dataset: Dataset, asset: str) -> dg.AssetKey:
    """The key of an asset, with the dataset's prefix."""
    prefix = dataset.dagster.key_prefix
    return dg.AssetKey([prefix, asset] if prefix else [asset])


def prefixed(dataset: Dataset, name: str) -> str:
    """The name of a step, job, schedule, pool or group, with the dataset's prefix."""
    prefix = dataset.dagster.key_prefix
    return f"{prefix}_{name}" if prefix else name

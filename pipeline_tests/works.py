"""What tests and benchmarks give to `run_day`."""

from pipeline.chunks import resolve_device
from pipeline.config import Dataset
from pipeline.features import load_features
from pipeline.stages import Work
from pipeline.store import Store


def work_of(dataset: Dataset, *, run: str, chunk_rows: int | None = None, force: bool = False) -> Work:
    """A run of a dataset on the cpu, with the features that it uses, that reports nothing."""
    return Work(
        dataset=dataset,
        features=load_features(dataset.features.use, dataset.features.parameters),
        store=Store(dataset.root),
        run=run,
        device=resolve_device("cpu"),
        chunk_rows=chunk_rows or dataset.compute.chunk_rows,
        force=force,
        report=lambda _line: None,
    )

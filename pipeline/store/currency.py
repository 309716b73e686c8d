"""Which days are current: made from what their inputs are now, all the way back."""

from datetime import date, timedelta

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.store.lake import Store
from pipeline.store.manifest import Manifest

RAW_PREFIX = "raw_logs/"


def parse_input(name: str, day: date) -> tuple[str, str | None, date]:
    """Splits the name of a recorded input into asset, role and day.

    >>> parse_input("user_state.closing@2010-12-01", date(2010, 12, 2))
    ('user_state', 'closing', datetime.date(2010, 12, 1))
    """
    asset_and_role, _, other_day = name.partition("@")
    asset, _, role = asset_and_role.partition(".")
    return asset, role or None, date.fromisoformat(other_day) if other_day else day


class Currency:
    """Answers for one store, remembering what it found; make a new one after a commit."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._manifests: dict[tuple[str, date], Manifest | None] = {}
        self._problems: dict[tuple[str, date], str | None] = {}
        self._causes: dict[tuple[str, date], tuple[str, date]] = {}

    def cause(self, asset: str, day: date) -> tuple[str, date]:
        """For a day with a problem: the asset and day that have to be made (again) first."""
        return self._causes[asset, day]

    def problem(self, asset: str, day: date) -> str | None:
        """Why a day is not current, as half a sentence; None when it is."""
        pending = [(asset, day)]
        while pending:  # not recursive: a chain is as long as its history
            node = pending[-1]
            waiting = [needed for needed in self._needed(node) if needed not in self._problems]
            if waiting:
                pending.extend(waiting)
                continue
            pending.pop()
            self._problems[node] = self._judge(node)
        return self._problems[asset, day]

    def _manifest(self, node: tuple[str, date]) -> Manifest | None:
        if node not in self._manifests:
            self._manifests[node] = self._store.manifest(*node)
        return self._manifests[node]

    def _needed(self, node: tuple[str, date]) -> list[tuple[str, date]]:
        manifest = self._manifest(node)
        if manifest is None:
            return []
        names = [name for name in manifest.inputs if not name.startswith(RAW_PREFIX)]
        inputs = [parse_input(name, manifest.day) for name in names]
        return [(asset, day) for asset, _, day in inputs]

    def _judge(self, node: tuple[str, date]) -> str | None:
        asset, day = node
        manifest = self._manifest(node)
        if manifest is None:
            self._causes[node] = node
            return f"{asset} of {day} is missing"
        for name, version in manifest.inputs.items():
            if name.startswith(RAW_PREFIX):
                continue
            input_asset, role, input_day = parse_input(name, day)
            used = self._manifest((input_asset, input_day))
            if problem := self._problems[input_asset, input_day]:
                self._causes[node] = self._causes[input_asset, input_day]
                return problem
            if used is not None and used.version(role) != version:
                self._causes[node] = node
                return f"{asset} of {day} was made before {input_asset} of {input_day} was made again"
        return None


def require_current(store: Store, asset: str, day: date, dataset: Dataset) -> Manifest:
    """The published version of an input.

    Raises:
        PipelineError: It is missing, or not current; the sentence holds the command that makes it.
    """
    currency = Currency(store)
    problem = currency.problem(asset, day)
    manifest = store.manifest(asset, day)
    if problem is not None or manifest is None:
        first = currency.cause(asset, day)
        raise PipelineError(f"{problem}; run: {dataset.command([first[0]], first[1], day)}")
    return manifest


def previous(day: date) -> date:
    """The day before."""
    return day - timedelta(days=1)

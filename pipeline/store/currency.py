"""Which days are current: made from what their inputs are now, all the way back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

from pipeline.config import Dataset
from pipeline.contracts import PipelineError
from pipeline.store.lake import Signature, Store
from pipeline.store.manifest import Lineage, Manifest, version_of

RAW_PREFIX = "raw_logs/"
Node = tuple[str, date]


@lru_cache(maxsize=1 << 14)
def parse_input(name: str, day: date) -> tuple[str, str | None, date]:
    """Splits the name of a recorded input into asset, role and day.

    >>> parse_input("user_state.closing@2010-12-01", date(2010, 12, 2))
    ('user_state', 'closing', datetime.date(2010, 12, 1))
    """
    asset_and_role, _, other_day = name.partition("@")
    asset, _, role = asset_and_role.partition(".")
    return asset, role or None, date.fromisoformat(other_day) if other_day else day


@dataclass(slots=True)
class Judged:
    """What is known of a version of a day.

    Attributes:
        signature: Which version of the manifest; None when there is none.
        lineage: Its inputs and its content version.
        needed: The days that it was made from.
        problem: Why it is not current, as half a sentence; None when it is.
        cause: With a problem, the asset and day that have to be made (again) first.
    """

    signature: Signature | None
    lineage: Lineage | None
    needed: list[Node]
    problem: str | None = None
    cause: Node | None = None


class Currency:
    """Answers for one store as it is now; make a new one after a commit.

    What the store was found to be before holds for a day while no manifest that the day rests on, directly or not, has
    been replaced. All of these are looked at again, once, but only those that were replaced are read again.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._judged: dict[Node, Judged] = store.judged
        self._looked_at: set[Node] = set()

    def cause(self, asset: str, day: date) -> Node:
        """For a day with a problem: the asset and day that have to be made (again) first."""
        cause = self._judged[asset, day].cause
        assert cause is not None
        return cause

    def problem(self, asset: str, day: date) -> str | None:
        """Why a day is not current, as half a sentence; None when it is."""
        pending: list[Node] = [(asset, day)]
        found_now: dict[Node, Judged] = {}
        waited: set[Node] = set()
        while pending:  # not recursive: a chain is as long as its history
            node = pending[-1]
            if self._is_judged(node):
                pending.pop()
                continue
            if node not in found_now:
                signature, lineage = self._store.lineage(*node)
                found_now[node] = Judged(signature, lineage, [needed for needed, _, _ in _inputs(lineage, node[1])])
                self._looked_at.add(node)
            waiting = [needed for needed in found_now[node].needed if not self._is_judged(needed)]
            if waiting and node in waited:  # for what waits for it
                found = found_now[node]
                found.problem, found.cause = f"{node[0]} of {node[1]} rests on itself: its manifest is damaged", node
                self._judged[node] = found
                continue
            if waiting:
                waited.add(node)
                pending.extend(waiting)
                continue
            pending.pop()
            self._judged[node] = self._judge(node, found_now[node])
        return self._judged[asset, day].problem

    def _judge(self, node: Node, found: Judged) -> Judged:
        asset, day = node
        if found.lineage is None:
            found.problem, found.cause = f"{asset} of {day} is missing", node
            return found
        for needed, role, version in _inputs(found.lineage, day):
            used = self._judged[needed]
            if used.problem is not None:
                found.problem, found.cause = used.problem, used.cause
                return found
            if used.lineage is not None and version_of(used.lineage.content_version, role) != version:
                found.problem = f"{asset} of {day} was made before {needed[0]} of {needed[1]} was made again"
                found.cause = node
                return found
        return found

    def _is_judged(self, node: Node) -> bool:
        """Whether it is known what is to be said of a day; what no longer holds, of it or of what it rests on, is forgotten."""
        pending, signatures = [node], dict[Node, Signature | None]()
        while pending:
            one = pending.pop()
            if one in self._judged and one not in self._looked_at:
                self._looked_at.add(one)
                signatures[one] = self._judged[one].signature
                pending += self._judged[one].needed
        self._forget(self._store.changed(signatures))
        return node in self._judged

    def _forget(self, changed: Iterable[Node]) -> None:
        """Forgets what was found of some days and of all that rest on them."""
        pending = list(changed)
        if not pending:
            return
        resting: dict[Node, list[Node]] = {}
        for node, judged in self._judged.items():
            for needed in judged.needed:
                resting.setdefault(needed, []).append(node)
        while pending:
            node = pending.pop()
            if self._judged.pop(node, None) is not None:
                pending += resting.get(node, [])


def _inputs(lineage: Lineage | None, day: date) -> list[tuple[Node, str | None, str]]:
    """The recorded inputs that are days of assets, each with its role and version."""
    inputs: Mapping[str, str] = {} if lineage is None else lineage.inputs
    parsed = [(parse_input(name, day), version) for name, version in inputs.items() if not name.startswith(RAW_PREFIX)]
    return [((asset, input_day), role, version) for (asset, role, input_day), version in parsed]


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

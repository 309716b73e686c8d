"""`python -m pipeline inspect | check | doctor | show | failure`: about a log, a dataset, its store and the newest run."""

import argparse
import os
import platform
import shlex
import shutil
import sys
import tomllib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.config import Dataset, load_dataset
from pipeline.contracts import PipelineError

if TYPE_CHECKING:
    import dagster as dg

    from pipeline.store import Store

ASSETS = ("events", "rejected_events", "user_vocabulary", "item_vocabulary", "user_state", "features")
LIBRARIES = ("dagster", "polars", "torch", "pyarrow", "numpy")
GIB = 2**30


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code; what is wrong stands alone on stderr, in one sentence."""
    # Dagster is imported by the commands that need it: `inspect` is to answer at once.
    commands = {"check": check, "doctor": doctor, "show": show, "failure": failure}
    parser = argparse.ArgumentParser(prog="python -m pipeline", description="About a dataset and its store.")
    chosen = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, function in commands.items():
        text = (function.__doc__ or "").splitlines()[0]
        command = chosen.add_parser(name, help=text, description=text)
        command.add_argument("dataset", nargs="?", type=Path, help="the dataset file; default: PIPELINE_DATASET")
        if function is failure:
            command.add_argument("--since", type=float, default=0, help="look only at runs after this unix time")
    text = (inspect.__doc__ or "").splitlines()[0]
    command = chosen.add_parser("inspect", help=text, description=text)
    command.add_argument("files", nargs="+", type=Path, help="files of one log, or folders of them")
    command.add_argument(
        "--write", type=Path, metavar="PATH", help="save the dataset file there instead of printing it"
    )
    command.add_argument("--name", help="name of the dataset; default: that of the file")
    command.add_argument("--quick", action="store_true", help="look at a sample only, instead of reading all rows")
    options = parser.parse_args(arguments)
    try:
        if options.command == "inspect":
            inspect(options.files, write=options.write, name=options.name, quick=options.quick)
            return 0
        from pipeline.definitions import read_environment

        dataset = load_dataset(options.dataset or read_environment().dataset)
        if options.command == "failure":
            failure(dataset, since=options.since)
        else:
            commands[options.command](dataset)
    except PipelineError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def inspect(files: Sequence[Path], *, write: Path | None, name: str | None, quick: bool) -> None:
    """Looks at an unknown log and proposes a dataset file, with its reasons as comments.

    Args:
        files: Files of one log, or folders of them.
        write: Where to save the dataset file; None prints it.
        name: Name of the dataset; None takes that of the files.
        quick: Whether a sample is enough.

    Raises:
        PipelineError: A file cannot be read, no layout fits, or there is a file at `write` already.
    """
    from pipeline.inspection import inspect_log

    if write is not None and write.exists():
        raise PipelineError(f"{write}: there is such a file already; give another path, or remove it")
    folder = Path.cwd() if write is None else write.absolute().parent
    if not folder.is_dir():
        raise PipelineError(f"{folder}: there is no such folder; make it, or give another path")
    text = inspect_log(files, folder=folder, name=name, quick=quick, report=_report)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if write is None:
        print(text, end="")
        return
    with write.open("x", encoding="utf-8") as file:
        file.write(text)
    days, quoted = tomllib.loads(text)["partitions"], shlex.quote(str(write))
    print(f"{write} is written; read its comments, and change what is not so. Then validate it, and make its features:")
    print(
        f"python -m pipeline check {quoted} && PIPELINE_DATASET={quoted} make run "
        f"DAYS={days['start']}...{days.get('end', days['start'])}"
    )


def _report(line: str) -> None:
    """Shows progress in place, on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def check(dataset: Dataset) -> None:
    """Validates the dataset file and prints one sentence."""
    from pipeline.definitions import prepare
    from pipeline.inspection.columns import UNKNOWN

    placeholders = [name for name, column in dataset.declared_columns.items() if column.from_ == UNKNOWN]
    if placeholders:
        raise PipelineError(
            f'{dataset.file}: {placeholders[0]} still has the draft\'s placeholder from = "?"; write the name of a column of the log'
        )
    features = prepare(dataset)
    first, last = dataset.partitions.start, dataset.last_day()
    used = ", ".join(feature.name for feature in features)
    print(
        f"{dataset.file} is valid: dataset '{dataset.name}', days {first}..{last}"
        f"{'' if dataset.partitions.end else ' (yesterday)'}, actions {', '.join(dataset.action_names)}, "
        f"features {used}, store in {dataset.root}."
    )


def doctor(dataset: Dataset) -> None:
    """Shows versions, device, memory, dataset, store, and which days are published and current.

    Raises:
        PipelineError: The store cannot be written to, or the device is not there.
    """
    from pipeline.definitions import prepare

    features = prepare(dataset)
    from pipeline.chunks import resolve_device
    from pipeline.store import Store

    settings = dataset.compute
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    print(
        f"versions  Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    )
    print(f"machine   {os.cpu_count()} cores, {total:.1f} GiB memory; a run uses about {settings.memory / GIB:.1f} GiB")
    print(f"dataset   {dataset.name}, {dataset.partitions.start}..{dataset.last_day()}, {dataset.file}")
    print("features  " + ", ".join(f"{feature.name} (version {feature.version})" for feature in features))
    folder = next(path for path in (dataset.root, *dataset.root.parents) if path.exists())
    print(f"store     {dataset.root}, {shutil.disk_usage(folder).free / GIB:.1f} GiB free")
    print(_assets_table(dataset, Store(dataset.root)))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PipelineError(
            f"{dataset.root}: the store cannot be written to; check [store] root and the rights on {folder}"
        )
    print(f"device    {settings.device} -> {resolve_device(settings.device)}")


def show(dataset: Dataset) -> None:
    """Shows where the features are, a few rows, the results of the checks, and how to open the UI.

    Raises:
        PipelineError: There are none yet, or days are not current.
    """
    from pipeline.definitions import prepare

    prepare(dataset)
    import polars as pl

    from pipeline.store import Store, scan

    store = Store(dataset.root)
    days = store.days("features")
    if not days:
        raise PipelineError(
            f"no features in {dataset.root} yet; run: {dataset.command((), dataset.partitions.start, dataset.last_day())}"
        )
    rows = scan(dataset.root, "features", days[0], days[-1], missing="skip", allow_stale=True)
    count = rows.select(pl.len()).collect().item()
    print(f"\nFeatures: {count:,} rows in {len(days)} days, {days[0]}..{days[-1]}, in {dataset.root / 'features'}\n")
    with pl.Config(tbl_cols=-1, tbl_hide_dataframe_shape=True, tbl_width_chars=1000, tbl_hide_column_data_types=True):
        print(rows.head(5).collect())
    print(f"\n{_assets_table(dataset, store)}\n")
    print(
        'Read them:   python -c "from pipeline.store import scan; '
        f"print(scan('{os.path.relpath(dataset.root)}', 'features', '{days[0]}', '{days[-1]}').collect())\""
    )
    print("Open the UI: make ui, then http://127.0.0.1:3000")


def failure(_: Dataset, *, since: float = 0) -> None:
    """Says in one sentence why the newest run failed.

    Args:
        since: Unix time; older runs are not looked at.

    Raises:
        PipelineError: That sentence.
    """
    import dagster as dg

    instance = _instance()
    if instance is None:
        raise PipelineError(
            "DAGSTER_HOME is not set, so that no run is recorded; set it to the folder that the run used"
        )
    with instance:
        records = [
            record for record in instance.get_run_records(limit=1) if record.create_timestamp.timestamp() >= since
        ]
        failed = [r.dagster_run for r in records if r.dagster_run.status is dg.DagsterRunStatus.FAILURE]
        if not failed:
            raise PipelineError("no run has failed: the newest one did not start or has not ended; see what it printed")
        reasons = []
        for entry in instance.all_logs(failed[0].run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
            reported = entry.get_dagster_event().step_failure_data
            ours = reported.user_failure_data
            if ours is not None and ours.description:
                reasons.append(ours.description)
            elif reported.error is not None:
                reasons.append(f"{entry.step_key}: {(reported.error.cause or reported.error).message.strip()}")
    raise PipelineError("; ".join(reasons) or "the run failed outside of a step; see what it printed")


def _assets_table(dataset: Dataset, store: "Store") -> str:
    """A line an asset: days published, missing, not current, and what its checks said last."""
    from pipeline.store import Currency

    expected = (dataset.last_day() - dataset.partitions.start).days + 1
    currency = Currency(store)
    results = _check_results(dataset)
    lines = ["asset            published  missing  stale  proofs  proof    proof_again"]
    for asset in ASSETS:
        days = store.days(asset)
        stale = sum(currency.problem(asset, day) is not None for day in days)
        manifests = [store.manifest(asset, day) for day in days]
        proofs = sum(len(manifest.proof.get("findings", ())) for manifest in manifests if manifest is not None)
        missing = expected - sum(dataset.has_day(day) for day in days)
        first, again = (results.get((asset, check), "-") for check in ("proof", "proof_again"))
        lines.append(f"{asset:15}  {len(days):9}  {missing:7}  {stale:5}  {proofs:6}  {first:7}  {again}")
    return "\n".join(lines)


def _check_results(dataset: Dataset) -> dict[tuple[str, str], str]:
    """(asset, check) -> passed or failed, as the Dagster instance recorded it last; nothing without an instance."""
    import dagster as dg

    from pipeline.resources import asset_key

    instance = _instance()
    if instance is None:
        return {}
    keys = {
        dg.AssetCheckKey(asset_key(dataset, asset), check): (asset, check)
        for asset in ASSETS
        for check in ("proof", "proof_again")
    }
    with instance:
        records = instance.event_log_storage.get_latest_asset_check_execution_by_key(list(keys))
    words = {"SUCCEEDED": "passed", "FAILED": "failed", "PLANNED": "not run"}
    return {keys[key]: words.get(record.status.value, "running") for key, record in records.items()}


def _instance() -> "dg.DagsterInstance | None":
    """The Dagster instance of DAGSTER_HOME; None when that is not set."""
    import dagster as dg
    from dagster._core.errors import DagsterHomeNotSetError

    try:
        return dg.DagsterInstance.get()
    except DagsterHomeNotSetError:
        return None


if __name__ == "__main__":
    sys.exit(main())

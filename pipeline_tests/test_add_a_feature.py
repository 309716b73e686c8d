"""docs/add-a-feature.md is true: its file, dropped into a copy of the project, is a feature under all laws."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PAGE = REPOSITORY / "docs" / "add-a-feature.md"
FILE = Path("pipeline", "features", "sessions.py")
LAWS = {f"law_{number:02d}" for number in range(1, 11)}


def block(language: str) -> str:
    """The one code block of the page in a language."""
    (code,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return code


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the page's file added, and nothing else changed."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("pipeline", "pipeline_tests"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", folder)
    assert not (folder / FILE).exists()
    (folder / FILE).write_text(block("python"), encoding="utf-8")
    return folder


def run(project: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(project), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *command], cwd=project, env=env, capture_output=True, text=True, timeout=300, check=False
    )


def run_laws(project: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """The command of the page, reporting test by test."""
    (command,) = block("sh").splitlines()
    python, *arguments = shlex.split(command)
    assert python == "python"
    return run(project, *arguments, "-vv", "--tb=line", "-p", "no:cacheprovider", *more)


DISCOVER = """
import sys
from types import SimpleNamespace
import pipeline
from pipeline.features import discover, load_features, output_columns

print(pipeline.__file__)
print(*discover())
declared = SimpleNamespace(action_names=("view",), extra_columns=())
print(*(column.name for column in output_columns(load_features(None, {}), declared)))
assert "torch" not in sys.modules  # discovery costs no import of torch
"""


def test_the_file_is_discovered(project: Path) -> None:
    result = run(project, "-c", DISCOVER)
    assert result.returncode == 0, result.stderr
    package, names, columns = result.stdout.splitlines()
    assert Path(package).parent == project / "pipeline"
    assert names.split() == ["core", "history_position", "sessions"]
    assert columns.split()[-2:] == ["session_number", "is_session_start"]


def test_its_example_and_all_laws_pass(project: Path) -> None:
    result = run_laws(project)
    assert result.returncode == 0, result.stdout
    passed = set(re.findall(r"test_(law_\d\d)\w*\[.*sessions\] PASSED", result.stdout))
    skipped = set(re.findall(r"test_(law_\d\d)\w*\[.*sessions\] SKIPPED", result.stdout))
    assert passed | skipped == LAWS
    assert skipped <= {"law_10"}  # where there is no CUDA device
    assert re.search(r"sessions\.py::pipeline\.features\.sessions PASSED", result.stdout)


@pytest.mark.parametrize(
    ("law", "right", "wrong"),
    [
        ("law_06", '+ later["sessions"] - goes_on_U.to(torch.int64)', '+ later["sessions"]'),
        ("law_05", " - total_E[first_U] + starts_E[first_U]", ""),
    ],
    ids=["a session does not go on over midnight", "a sum runs on into the next user"],
)
def test_a_mistake_in_it_is_caught(project: Path, law: str, right: str, wrong: str, tmp_path: Path) -> None:
    """The laws can fail: each mistake that the page warns of breaks the law that it names."""
    shutil.copytree(project, tmp_path / "broken")
    code = block("python")
    assert code.count(right) == 1
    (tmp_path / "broken" / FILE).write_text(code.replace(right, wrong), encoding="utf-8")
    only = ("-k", f"sessions and {law}", "--hypothesis-profile", "no_shrinking")
    result = run_laws(tmp_path / "broken", *only)
    assert result.returncode == 1, result.stdout
    assert re.search(rf"test_{law}\w*\[sessions\] FAILED", result.stdout), result.stdout


TWO_DAYS = """
import sys
from datetime import date
from pathlib import Path
from pipeline.chunks import resolve_device
from pipeline.config import load_dataset
from pipeline.features import load_features
from pipeline.stages import STAGES, Work, run_day
from pipeline.store import Store, scan

dataset = load_dataset(Path(sys.argv[1]) / "dataset.toml")
work = Work(
    dataset=dataset, features=load_features(None, {}), store=Store(dataset.root), run="run", device=resolve_device("cpu"),
    chunk_rows=2, force=False, report=lambda line: None,
)
for day in ("2025-03-07", "2025-03-08"):
    for asset in STAGES:
        outcome = run_day(asset, date.fromisoformat(day), work)
        assert outcome.proof.passed
rows = scan(dataset.root, "features", "2025-03-07", "2025-03-08").sort("day", "row_id").collect()
print(rows["session_number"].to_list(), rows["is_session_start"].cast(int).to_list())
"""

DATASET = """
name = "tiny"
[partitions]
start = "2025-03-07"
end = "2025-03-08"
[source]
path = "{date}.csv"
[columns]
user_id = { from = "user", type = "int64" }
item_id = { from = "item", type = "string" }
timestamp = { from = "time", format = "%Y-%m-%d %H:%M", timezone = "UTC" }
action = { value = "view" }
[actions]
names = ["view"]
[store]
root = "store"
"""


def test_it_is_carried_over_midnight_and_proven(project: Path, tmp_path: Path) -> None:
    """Two days through all stages: user 1 goes on after midnight, user 2 pauses for 31 minutes."""
    (tmp_path / "dataset.toml").write_text(DATASET)
    evening = ["1,a,2025-03-07 09:00", "1,a,2025-03-07 23:50", "2,a,2025-03-07 23:50"]
    night = ["1,a,2025-03-08 00:20", "2,a,2025-03-08 00:21", "3,a,2025-03-08 00:22"]
    for day, lines in (("2025-03-07", evening), ("2025-03-08", night)):
        (tmp_path / f"{day}.csv").write_text("\n".join(["user,item,time", *lines, ""]))
    result = run(project, "-c", TWO_DAYS, str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[0, 1, 0, 1, 1, 0] [1, 1, 1, 0, 1, 1]\n"


PARAMETERS = """
import sys, tomllib
from pipeline.config import FeatureSettings
from pipeline.contracts import Event, PipelineError
from pipeline.features import load_features

settings = FeatureSettings.model_validate(tomllib.loads(sys.argv[1])["features"])
sessions = load_features(settings.use, settings.parameters)[-1]
minute, state, numbers = 60_000_000, sessions.initial(), []
for time_us in (0, 45 * minute, 91 * minute):
    state, row = sessions.step(state, Event(0, 1, "item", time_us, "view", ("view",), {}))
    numbers.append(row["session_number"])
print(sessions.name, numbers)
for table in ({"gap_minutes": "45"}, {"gap_minutes": 0}, {"gap_minuets": 45}):
    try:
        load_features(None, {"sessions": table})
    except PipelineError as error:
        print(error)
"""


def test_its_parameters_come_from_the_dataset_file(project: Path) -> None:
    snippet = block("toml")
    assert tomllib.loads(snippet)["features"]["sessions"] == {"gap_minutes": 45}
    result = run(project, "-c", PARAMETERS, snippet)
    assert result.returncode == 0, result.stderr
    found, no_number, zero, misspelt = result.stdout.splitlines()
    assert found == "sessions [0, 0, 1]"  # 45 minutes belong to the session, 46 do not
    expected = "expected a whole number of minutes, at least 1"
    assert no_number == f"[features.sessions]: gap_minutes is '45', {expected}"
    assert zero == f"[features.sessions]: gap_minutes is 0, {expected}"
    assert misspelt.startswith("[features.sessions]: ")
    assert "gap_minuets" in misspelt

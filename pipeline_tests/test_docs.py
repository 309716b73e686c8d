"""The documents are true: commands run, links lead somewhere, tables match the tree, the models and the graph.

Convention of the code blocks: `sh` and `python` blocks of a page are run one after the other in a copy of the project, and
have to exit with 0. ```` ```sh exit 1 ```` says another exit code; ```` ```sh skip-test: reason ```` is not run.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin
from urllib.parse import unquote

import pytest
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from pipeline.config import Dataset, load_dataset
from pipeline.contracts import PipelineError
from pipeline.definitions import SAMPLE, Environment, build
from pipeline.events import REASONS
from pipeline.features import load_features
from pipeline.memory import free_share
from pipeline_tests import feature_catalogue, test_add_a_feature
from pipeline_tests.conftest import REPOSITORY
from pipeline_tests.datasets import toml
from pipeline_tests.test_golden import make_sample

DOCS = REPOSITORY / "docs"
PAGES = [REPOSITORY / "README.md", *sorted(DOCS.glob("*.md"))]
LINKING = [*PAGES, REPOSITORY / "CONTRIBUTING.md", REPOSITORY / "CHANGELOG.md", REPOSITORY / "data/sample/README.md"]
COPIED = (
    "pipeline", "docs", "data/sample", "Makefile", "pyproject.toml", "constraints.txt", "workspace.yaml",
    "dagster_instance.yaml",
)  # fmt: skip
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
DAGSTER = re.compile(r"\bmake run\b|\bdagster (?:asset|job) ")
CODE = re.compile(r"`([^`]+)`")
SECONDS = 300
COLUMNS = ("user_id", "item_id", "timestamp", "action")  # that `<column>` stands for in a table of keys


@dataclass(frozen=True)
class Block:
    """A fenced code block."""

    page: Path
    line: int
    language: str
    note: str
    code: str

    @property
    def exit_code(self) -> int:
        return int(self.note.removeprefix("exit ")) if self.note else 0

    @property
    def skipped(self) -> bool:
        return self.note.startswith("skip-test: ")


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        language, _, note = match["info"].partition(" ")
        found.append(Block(page, text.count("\n", 0, match.start()) + 1, language, note, match["code"]))
    return found


def runnable(page: Path) -> list[Block]:
    """The blocks that are run; the page of the worked feature has a test of its own."""
    if page == test_add_a_feature.PAGE:
        return []
    return [block for block in blocks(page) if block.language in ("sh", "python") and not block.skipped]


def pages_to_run() -> Iterator[Any]:
    for page in PAGES:
        if runnable(page):
            slow = [pytest.mark.slow] if any(DAGSTER.search(block.code) for block in runnable(page)) else []
            yield pytest.param(page, marks=slow, id=page.name)


@pytest.fixture(scope="session")
def made_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's store, as a run leaves it."""
    root = tmp_path_factory.mktemp("made") / "sample"
    make_sample(root)
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project whose `.venv/` leads to the Python that runs the tests, so that make need not install."""
    copy = tmp_path / "project"
    for name in COPIED:
        source, target = REPOSITORY / name, copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "out"))
        else:
            shutil.copy(source, target)
    programs = copy / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, command in {"python": "", "dagster": "-m dagster "}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {command}"$@"\n')
        (programs / name).chmod(0o755)
    (programs / "activate").write_text(f'PATH="{programs}:$PATH"\n')
    (copy / ".venv" / ".installed").touch()
    (copy / ".dagster").mkdir()
    shutil.copy(copy / "dagster_instance.yaml", copy / ".dagster" / "dagster.yaml")
    return copy


def run(block: Block, project: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIPELINE_", "DAGSTER_", "MAKE"))}
    environment = {
        **kept,
        "DAGSTER_HOME": str(project / ".dagster"),
        "PATH": f"{project / '.venv' / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(project),
    }
    command = ["bash", "-eu", "-c", block.code] if block.language == "sh" else [sys.executable, "-c", block.code]
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


@pytest.mark.parametrize("page", list(pages_to_run()))
def test_the_commands_of_a_page_run(page: Path, project: Path, made_sample: Path) -> None:
    if page.name != "README.md":  # it begins by making the sample itself
        shutil.copytree(made_sample, project / "data" / "out" / "sample")
    for block in runnable(page):
        done = run(block, project)
        assert done.returncode == block.exit_code, (
            f"{page.name}:{block.line}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        )


def test_a_block_that_is_not_run_says_why() -> None:
    notes = {f"{block.page.name}:{block.line}": block.note for page in PAGES for block in blocks(page) if block.note}
    assert all(re.fullmatch(r"exit \d+|skip-test: \S.{10,}", note) for note in notes.values()), notes
    assert len([note for note in notes.values() if note.startswith("skip-test")]) <= 8, notes
    known = {"sh", "python", "toml", "json", "yaml", "text"}
    assert {block.language for page in PAGES for block in blocks(page)} <= known


def test_code_that_is_only_shown_can_be_read() -> None:
    read = 0
    for page in PAGES:
        for block in blocks(page):
            if block.language in ("toml", "json"):
                (tomllib.loads if block.language == "toml" else json.loads)(block.code)
                read += 1
    assert read > 10


def anchors(page: Path) -> set[str]:
    """The names by which GitHub lets headings be linked to."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(REPOSITORY), f"{page.name} leads out of the project: {link}"
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}; there are {sorted(anchors(target))}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_names_a_machine(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(?:home|root|tmp|work|Users|mnt)/", text)
    assert str(REPOSITORY) not in text


def tables(text: str, *head: str) -> list[list[list[str]]]:
    """The rows of every Markdown table that begins with these column heads."""
    found = []
    for table in re.findall(r"(?:^\|.*\|\n)+", text + "\n", re.MULTILINE):
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines()]
        if rows[0][: len(head)] == list(head):
            found.append(rows[2:])
    return found


# -- README ---------------------------------------------------------------------------------------


@cache
def graph() -> dict[str, set[str]]:
    """Asset -> what it depends on."""
    definitions = build(Environment(dataset=SAMPLE, executor="in_process", days_per_run=None))
    nodes = definitions.resolve_asset_graph().asset_nodes
    return {node.key.to_user_string(): {key.to_user_string() for key in node.parent_keys} for node in nodes}


def test_the_table_of_stages_matches_the_tree() -> None:
    (rows,) = tables((REPOSITORY / "README.md").read_text(encoding="utf-8"), "stage", "in", "out", "file")
    named = [name for row in rows for name in CODE.findall(row[3])]
    assert len(named) == len(set(named))
    there = {
        f"pipeline/{path.name}/" if path.is_dir() else f"pipeline/{path.name}"
        for path in (REPOSITORY / "pipeline").iterdir()
        if path.name not in ("__init__.py", "__pycache__")
    }
    assert set(named) == there
    written = {name for row in rows for name in CODE.findall(row[2])}
    assert set(graph()) - {"raw_logs"} <= written


def test_the_picture_shows_the_graph() -> None:
    drawing = ET.fromstring((DOCS / "graph.svg").read_text(encoding="utf-8"))
    drawn = {asset: set() for node in drawing.iter() if (asset := node.get("data-asset"))}
    for node in drawing.iter():
        if target := node.get("data-to"):
            drawn[target].add(node.get("data-from"))
    assert drawn == graph()
    shown = {"".join(node.itertext()) for node in drawing.iter("{http://www.w3.org/2000/svg}text")}
    assert set(graph()) <= shown
    assert "docs/graph.svg" in LINK.findall((REPOSITORY / "README.md").read_text(encoding="utf-8"))


def test_the_readme_is_short() -> None:
    assert len((REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


# -- docs/dataset-file.md -------------------------------------------------------------------------


def model_in(annotation: Any) -> type[BaseModel] | None:
    candidates = [annotation, *get_args(annotation)]
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)


def fields_of(model: type[BaseModel], section: str = "") -> dict[str, FieldInfo]:
    """Dotted key -> field, for every key that a dataset file may hold."""
    found: dict[str, FieldInfo] = {}
    for name, field in model.model_fields.items():
        if name == "file":  # where the dataset file was read from
            continue
        key = f"{section}{field.alias or name}"
        nested = model_in(field.annotation)
        if nested is None:
            found[key] = field
        else:
            free = "<name>." if get_origin(field.annotation) is dict else ""
            found |= fields_of(nested, f"{key}.{free}")
    return found


def sections() -> dict[str, str]:
    """Name of a table of the dataset file -> the text about it."""
    text = (DOCS / "dataset-file.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    found = {}
    for heading, body in zip(parts[::2], parts[1::2], strict=True):
        if tables(body, "key"):
            found["" if heading == "Top level" else heading.strip("`[]")] = body
    return found


def documented() -> dict[str, list[str]]:
    """Dotted key -> the cells type, default and meaning."""
    found = {}
    for section, body in sections().items():
        (rows,) = tables(body, "key", "type", "default", "meaning")
        for key, *cells in rows:
            for column in COLUMNS if key.startswith("`<column>") else ("",):
                name = key.strip("`").replace("<column>", column)
                found[f"{section}.{name}".removeprefix(".")] = cells
    return found


def test_every_key_of_the_dataset_file_is_explained_and_no_other() -> None:
    assert sorted(documented()) == sorted(fields_of(Dataset))
    assert all(all(cells) for cells in documented().values())


@pytest.mark.parametrize("key", sorted(fields_of(Dataset)))
def test_the_default_is_the_one_that_is_documented(key: str) -> None:
    field, said = fields_of(Dataset)[key], documented()[key][1]
    if said == "required":
        assert field.is_required()
    elif said == "none":
        assert not field.is_required()
        assert field.default is None
    elif said == "a quarter of what is free":
        assert field.default_factory is free_share
    else:
        value = tomllib.loads(f"value = {said.strip('`')}")["value"]
        adapter = TypeAdapter(Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation)  # type: ignore[misc]
        assert adapter.validate_python(value) == field.get_default(call_default_factory=True)


def test_keys_are_found_in_every_kind_of_table() -> None:
    keys = fields_of(Dataset)
    assert {"name", "partitions.end", "source.csv.quote_char", "columns.user_id.from", "extra.<name>.keep"} <= set(keys)
    assert {"features.use", "vocabulary.mode", "compute.memory"} <= set(keys)
    assert not {"file", "partitions", "extra", "columns.user_id.from_"} & set(keys)


SMALLEST = blocks(DOCS / "dataset-file.md")[1].code


def load_with(changed: dict[str, Any], folder: Path) -> Dataset:
    """The smallest dataset file of the page with some keys replaced, checked as `python -m pipeline check` does."""
    merged = tomllib.loads(SMALLEST)
    for name, table in changed.items():
        if isinstance(table, dict):
            inner = merged.setdefault(name, {})
            for key, value in table.items():
                inner[key] = {**inner.get(key, {}), **value} if name == "source" and isinstance(value, dict) else value
        else:
            merged[name] = table
    file = folder / "dataset.toml"
    file.write_text("".join(f"{json.dumps(key)} = {toml(value)}\n" for key, value in merged.items()))
    dataset = load_dataset(file)
    load_features(dataset.features.use, dataset.features.parameters)
    return dataset


def test_every_example_is_accepted_and_every_key_has_one(tmp_path: Path) -> None:
    shown: set[str] = set()
    for block in blocks(DOCS / "dataset-file.md"):
        if block.language == "toml":
            changed = tomllib.loads(block.code)
            load_with(changed, tmp_path)
            shown |= set(dotted(changed))
    of_one_column = {re.sub(f"(?<=^columns.)({'|'.join(COLUMNS)})", "<column>", key) for key in shown}
    alike = {f"columns.{column}.{key}" for column in COLUMNS for key in ("from", "sql", "strip", "null_values")}
    assert {"columns.<column>.sql", "columns.<column>.strip", "columns.<column>.null_values"} <= of_one_column
    lacking = {key for key in fields_of(Dataset) if not key.startswith("extra.") and key not in shown}
    assert lacking - alike == {"columns.action.value"}


def dotted(table: dict[str, Any], section: str = "") -> Iterator[str]:
    for key, value in table.items():
        yield f"{section}{key}"
        if isinstance(value, dict):
            yield from dotted(value, f"{section}{key}.")


def refusals() -> Iterator[Any]:
    for section, body in sections().items():
        (rows,) = tables(body, "refused", "because")
        for refused, because in rows:
            line = refused.strip("`").replace("\\|", "|")
            yield pytest.param(section, line, because.replace("\\|", "|"), id=f"{section or 'top'}: {line}"[:60])


@pytest.mark.parametrize(("section", "line", "because"), list(refusals()))
def test_what_is_refused_is_refused_with_that_sentence(tmp_path: Path, section: str, line: str, because: str) -> None:
    changed = tomllib.loads(f"[{section}]\n{line}" if section else line)
    with pytest.raises(PipelineError) as caught:
        load_with(changed, tmp_path)
    sentence = str(caught.value).removeprefix(f"{tmp_path / 'dataset.toml'}: ")
    shown = because.removesuffix("...")  # a long list may be left out
    assert sentence == because or (shown != because and sentence.startswith(shown))


# -- the other pages ------------------------------------------------------------------------------


def test_the_reasons_stand_in_their_order() -> None:
    (rows,) = tables((DOCS / "promises.md").read_text(encoding="utf-8"), "", "reason", "when")
    assert [(number, reason.strip("`")) for number, reason, _ in rows] == [
        (str(number), reason) for number, reason in enumerate(REASONS, 1)
    ]


def test_the_catalogue_of_features_is_what_they_declare() -> None:
    assert feature_catalogue.PAGE.read_text(encoding="utf-8") == feature_catalogue.catalogue(), (
        "docs/features.md is not what the feature files declare; run: python -m pipeline_tests.feature_catalogue"
    )


def test_the_manifest_shown_is_one_of_the_sample(made_sample: Path) -> None:
    (block,) = [block for block in blocks(DOCS / "storage.md") if block.language == "json"]
    shown = json.loads(block.code)
    found = json.loads((made_sample / "features" / "day=2025-03-04" / "_manifest.json").read_text())
    for key in ("format", "asset", "day", "rows", "config", "code", "inputs", "content_version"):
        assert shown[key] == found[key], key
    assert [column for column in shown["columns"] if column != "..."] == [
        column for column in found["columns"] if column["name"] in ("row_id", "time_diff")
    ]
    assert set(shown) == set(found)
    assert set(shown["proof"]) == set(found["proof"])
    (rows,) = tables((DOCS / "storage.md").read_text(encoding="utf-8"), "key", "meaning")
    explained = {name for row in rows for name in CODE.findall(row[0])}
    every = [json.loads(path.read_text()) for path in made_sample.glob("*/day=2025-03-04/_manifest.json")]
    assert len(every) == 6
    assert explained == {key for manifest in every for key in manifest}


def test_the_example_files_are_valid() -> None:
    for file in sorted((DOCS / "examples").glob("*.toml")):
        dataset = load_dataset(file)
        assert dataset.name == file.stem
        assert dataset.source.path.startswith("path/to/")
        assert dataset.store.root.startswith("path/to/")

"""The webserver and a browser as a user has them: started for a test, asked through GraphQL and the page, ended by pid."""

import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect  # comes with dagster-webserver

from pipeline_tests.conftest import REPOSITORY

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
)  # fmt: skip
WIDTH, HEIGHT = 1600, 1300


def wait_for(ask: Callable[[], Any], what: str, *, seconds: float = 120) -> Any:
    """Asks until there is an answer."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = ask()
        if answer:
            return answer
        time.sleep(0.3)
    raise AssertionError(f"{what}: not within {seconds} s")


@contextmanager
def started(*command: str | Path, log: Path, environment: dict[str, str] | None = None) -> Iterator[subprocess.Popen]:
    """A program in a session of its own, ended with what it has started."""
    with log.open("wb") as output:
        program = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env={**os.environ, **(environment or {})},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield program
    finally:
        for number in (signal.SIGINT, signal.SIGKILL):
            try:
                os.killpg(program.pid, number)
            except ProcessLookupError:
                break
            try:
                program.wait(15)
            except subprocess.TimeoutExpired:
                continue
        program.wait(15)


class Server:
    """`dagster dev` on a free port of the loopback."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, query: str, **variables: Any) -> Any:
        """The data that a GraphQL query returns."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = json.load(answer)
        assert "errors" not in found, found["errors"]
        return found["data"]

    def is_up(self) -> bool:
        try:
            loaded = self.ask("{ repositoriesOrError { __typename ... on RepositoryConnection { nodes { name } } } }")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False
        return bool(loaded["repositoriesOrError"].get("nodes"))


@contextmanager
def webserver(dataset: Path, home: Path) -> Iterator[Server]:
    """What `make ui` starts, for a dataset file and a DAGSTER_HOME."""
    home.mkdir(exist_ok=True)
    shutil.copy(REPOSITORY / "dagster_instance.yaml", home / "dagster.yaml")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = (Path(sys.executable).parent / "dagster", "dev", "--host", "127.0.0.1", "--port", port)
    environment = {"PIPELINE_DATASET": str(dataset), "DAGSTER_HOME": str(home)}
    log = home.parent / "webserver.log"
    with started(*command, log=log, environment=environment) as program:
        server = Server(f"http://127.0.0.1:{port}")
        wait_for(lambda: server.is_up() or program.poll() is not None, "the webserver is up")
        assert program.poll() is None, log.read_text()
        yield server


class Page:
    """A tab of a headless browser."""

    def __init__(self, connection: ClientConnection) -> None:
        self._socket = connection
        self._calls = 0
        self._call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)

    def text_of(self, url: str, expected: str) -> str:
        """Opens a page and waits until it shows a text; returns all that it shows."""
        self._call("Page.navigate", url=url)
        return wait_for(lambda: text if re.search(expected, text := self._text()) else None, f"{expected!r} on {url}")

    def screenshot(self, path: Path) -> Path:
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"]))
        return path

    def _text(self) -> str:
        shown = self._call("Runtime.evaluate", expression="document.body ? document.body.innerText : ''")
        return shown["result"].get("value", "")

    def _call(self, method: str, **parameters: Any) -> Any:
        self._calls += 1
        self._socket.send(json.dumps({"id": self._calls, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=60))
            if answer.get("id") == self._calls:
                assert "error" not in answer, answer["error"]
                return answer["result"]


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """A tab of Chromium with a new profile."""
    assert CHROMIUM is not None
    log = folder / "chromium.log"
    profile = f"--user-data-dir={folder / 'profile'}"
    with started(CHROMIUM, *OPTIONS, profile, f"--window-size={WIDTH},{HEIGHT}", "about:blank", log=log):
        port = wait_for(lambda: re.search(r"ws://127\.0\.0\.1:(\d+)/", log.read_text()), "the browser is up")[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=60) as answer:
            tabs = json.load(answer)
        url = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
        with connect(url, max_size=None) as connection:
            yield Page(connection)

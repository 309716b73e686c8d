"""An S3 server of this machine for the tests, and objects put into it.

with serving() as server:
    bucket = server.bucket()
    bucket.put("logs/2020-01-01.csv", b"...")
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pyarrow import fs

# A process of its own, since the server's libraries warn of things that are errors in the tests.
SERVE = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""
ALLOWED = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "secret"}
NOBODY = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_SHARED_CREDENTIALS_FILE": "/nowhere/credentials",
    "AWS_CONFIG_FILE": "/nowhere/config",
}


@dataclass(frozen=True)
class Bucket:
    """A bucket of a server."""

    name: str
    store: fs.S3FileSystem

    def put(self, key: str, content: bytes) -> None:
        with self.store.open_output_stream(f"{self.name}/{key}", compression=None) as stream:
            stream.write(content)

    def delete(self, key: str) -> None:
        self.store.delete_file(f"{self.name}/{key}")


@dataclass
class Server:
    """A running server; `environment` is what a client needs to be let in."""

    port: int
    buckets: int = 0

    @property
    def environment(self) -> dict[str, str]:
        return {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", **ALLOWED, **NOBODY}

    def bucket(self) -> Bucket:
        """A new, empty bucket."""
        store = fs.S3FileSystem(
            endpoint_override=self.environment["AWS_ENDPOINT_URL"],
            access_key=ALLOWED["AWS_ACCESS_KEY_ID"],
            secret_key=ALLOWED["AWS_SECRET_ACCESS_KEY"],
            region="us-east-1",
            allow_bucket_creation=True,
        )
        self.buckets += 1
        store.create_dir(f"bucket{self.buckets}")
        return Bucket(f"bucket{self.buckets}", store)


@contextmanager
def serving(**environment: str) -> Iterator[Server]:
    """Starts a server on a free port, and stops it."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ) | environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Server(int(process.stdout.readline()))
        finally:
            process.stdin.close()
            process.wait(timeout=20)


def set_environment(monkeypatch, environment: Mapping[str, str]) -> None:
    """Gives a test exactly this environment of object stores."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_", "STORAGE_")):
            monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

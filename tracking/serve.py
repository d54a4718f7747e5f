"""MLflow's page for the store in use."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import psutil

from tracking.location import Location
from tracking.store import prepare_environment

FIRST_PORT = 5000
_START_S = 120.0


class ServerFailed(Exception):
    """MLflow's server ended, or did not answer in time. One sentence."""


class Page:
    """A page that is being served at `base`."""

    def __init__(self, base: str, process: subprocess.Popen[bytes] | None = None) -> None:
        self.base = base
        self._process = process

    def wait(self) -> None:
        """Until the server ends; at once where it is not ours. Ctrl-C comes through anywhere."""
        while self._process is not None and self._process.poll() is None:
            time.sleep(0.3)


@contextmanager
def served(location: Location, port: int | None = None) -> Iterator[Page]:
    """MLflow's page, on this machine only, until the block ends.

    A store on a server is at its own address. Without `port` the first free one from 5000 on.
    ServerFailed.
    """
    if location.uri.startswith("http"):
        yield Page(location.uri)
        return
    prepare_environment()
    port = _checked(port) if port else free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--workers", "1", "--backend-store-uri", location.uri]
    if location.artifacts is not None:
        command += ["--default-artifact-root", location.artifacts]
    # the queue for language model jobs would start eight more processes
    environment = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            base = f"http://127.0.0.1:{port}"
            _wait(base, process, log)
            yield Page(base, process)
        finally:
            _end(process)


def free_port(first: int = FIRST_PORT) -> int:
    """The first port from `first` on that nothing listens on. ServerFailed if there is none."""
    for port in range(first, min(first + 100, 65536)):
        if _is_free(port):
            return port
    raise ServerFailed(f"there is no free port from {first} on: name one with --port")


def _checked(port: int) -> int:
    if not _is_free(port):
        raise ServerFailed(f"port {port} is in use: name another one with --port")
    return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        if os.name != "nt":  # there, it would let two programs listen
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return False
        return True


def _wait(base: str, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    end_s = time.monotonic() + _START_S
    while time.monotonic() < end_s:
        if process.poll() is not None:
            log.seek(0)
            told = log.read().decode(errors="replace").strip().splitlines()
            raise ServerFailed(f"MLflow's server ended: {told[-1] if told else 'no message'}")
        try:
            with urllib.request.urlopen(f"{base}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise ServerFailed(f"MLflow's server at {base} did not answer within {_START_S:.0f} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the server and what it started: its workers are processes of their own."""
    try:
        family = psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        family = []
    process.terminate()
    for child in family:
        try:
            child.terminate()
        except psutil.Error:
            continue
    _, alive = psutil.wait_procs(family, timeout=5)
    for child in alive:
        child.kill()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

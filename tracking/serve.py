"""Runs MLflow's server as long as somebody wants it: its page for a store, or one for a team."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO

import psutil

from tracking.location import Location
from tracking.ports import EVERYWHERE, ServerFailed, checked, free_port
from tracking.store import prepare_environment

__all__ = ["Page", "ServerFailed", "free_port", "running", "served"]
_START_S = 120.0
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy knows this host


class Page:
    """A page that is being served at `base`."""

    def __init__(self, base: str, process: subprocess.Popen[bytes] | None = None) -> None:
        self.base = base
        self._process = process

    @property
    def is_ours(self) -> bool:
        """Whether it ends with the block that serves it."""
        return self._process is not None

    @property
    def processes(self) -> list[psutil.Process]:
        """The server and what it started; none where it is not ours."""
        if self._process is None:
            return []
        try:
            server = psutil.Process(self._process.pid)
            return [server, *server.children(recursive=True)]
        except psutil.Error:
            return []

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
    if location.is_server:
        yield Page(location.page)
        return
    artifacts = ["--default-artifact-root", location.artifacts] if location.artifacts else []
    port = checked(port) if port else free_port()
    with running(location.uri, "127.0.0.1", port, artifacts) as page:
        yield page


@contextmanager
def running(
    backend: str, host: str, port: int, options: Sequence[str], start_s: float = _START_S
) -> Iterator[Page]:
    """`mlflow server` over a database, with more `options`, until the block ends. ServerFailed."""
    prepare_environment()
    command = [sys.executable, "-m", "mlflow", "server", "--host", host, "--port", str(port)]
    command += ["--workers", "1", "--uvicorn-opts", "--log-level warning", *options]
    # the queue for language model jobs would start eight more processes; a password in the address
    # is not for everybody who may list processes
    environment = os.environ | {
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_BACKEND_STORE_URI": backend,
    }
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        page = Page(_address(host, port), process)
        try:
            _wait(page.base, process, log, start_s)
            yield page
        finally:
            _end(page, process)


def _address(host: str, port: int) -> str:
    """Where this machine itself reaches the server."""
    name = "127.0.0.1" if host in EVERYWHERE else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _wait(base: str, process: subprocess.Popen[bytes], log: IO[bytes], start_s: float) -> None:
    end_s = time.monotonic() + start_s
    while time.monotonic() < end_s:
        if process.poll() is not None:
            log.seek(0)
            told = log.read().decode(errors="replace").strip().splitlines()
            raise ServerFailed(f"MLflow's server ended: {told[-1] if told else 'no message'}")
        try:
            with _DIRECT.open(f"{base}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise ServerFailed(f"MLflow's server at {base} did not answer within {start_s:.0f} s")


def _end(page: Page, process: subprocess.Popen[bytes]) -> None:
    """Ends the server and what it started: its workers are processes of their own."""
    family = page.processes
    for one in family:
        with suppress(psutil.Error):
            one.terminate()
    _, alive = psutil.wait_procs(family, timeout=5)
    for one in alive:
        with suppress(psutil.Error):
            one.kill()
    process.wait()

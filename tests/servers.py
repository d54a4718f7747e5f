"""Real servers for tests: MLflow's, and a PostgreSQL where one is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.tracking_store import project
from tracking.serve import Page
from tracking.team import DATABASE, backend_of, team_server


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def told_until(running: subprocess.Popen[str], last: str, patience_s: float = 240.0) -> str:
    """What a program says up to the line `last`. The test fails, and shows what was said, where the
    program ends before, or says nothing of the kind for too long, and is killed."""
    assert running.stdout is not None
    watch = threading.Timer(patience_s, running.kill)
    watch.start()
    said = ""
    try:
        for line in running.stdout:
            said += line
            if line.rstrip("\n") == last:
                return said
    finally:
        watch.cancel()
    raise AssertionError(f"the program ended with {running.wait()} before {last!r}: {said}")


@contextmanager
def team(folder: Path, port: int | None = None) -> Iterator[Page]:
    """A server as `make server` starts it, in a folder of its own."""
    if not (folder / DATABASE).exists():  # MLflow takes seconds to make one
        folder.mkdir(parents=True, exist_ok=True)
        project(folder).joinpath("mlflow.db").rename(folder / DATABASE)
    with team_server(backend_of(None, folder), folder, port=port or free_port()) as page:
        yield page


@contextmanager
def postgres() -> Iterator[str]:
    """The address of a database in a PostgreSQL of its own; skips where there is none."""
    pytest.importorskip("psycopg", reason="left out: PostgreSQL's driver is not installed")
    programs = _programs()
    if programs is None:
        pytest.skip("left out: no PostgreSQL is installed here")
    with tempfile.TemporaryDirectory(prefix="specsweep-pg-") as name:
        folder, user = Path(name), _user()
        if user:
            shutil.chown(folder, user["user"], user["group"])
        port = free_port()

        def call(program: str, *arguments: str) -> None:
            command = [str(programs / program), *arguments]
            quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
            subprocess.run(command, check=True, cwd=folder, timeout=120, **quiet, **user)

        data = folder / "data"
        call("initdb", "-D", str(data), "-U", "team", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -F"
        call("pg_ctl", "start", "-w", "-D", str(data), "-l", str(folder / "log"), "-o", options)
        try:
            yield f"postgresql://team:secret@127.0.0.1:{port}/postgres"
        finally:
            call("pg_ctl", "stop", "-w", "-m", "immediate", "-D", str(data))


def _programs() -> Path | None:
    """The folder of PostgreSQL's programs, the newest's; Debian has them outside the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    anywhere = shutil.which("initdb")
    if found:
        return found[-1].parent
    return Path(anywhere).parent if anywhere else None


def _user() -> dict[str, Any]:
    """PostgreSQL refuses to be run by root: then it is run as the user that was made for it."""
    if os.name == "nt" or os.geteuid() != 0:
        return {}
    import pwd

    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    pytest.skip("left out: PostgreSQL is not run by root, and there is no other user here")

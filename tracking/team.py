"""`python -m tracking server`: an MLflow server that the machines of a team log to."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from tracking import sqlite
from tracking.location import Location, locate
from tracking.ports import EVERYWHERE, FIRST_PORT, ServerFailed, checked, free_port, own_addresses
from tracking.reach import reach
from tracking.recorder import Recorder
from tracking.serve import Page, running

DATABASE, ARTIFACTS = "server.db", "server-artifacts"
BACKEND = "SPECSWEEP_BACKEND"
_HELP = """\
Starts an MLflow server. The others set MLFLOW_TRACKING_URI to its address; their sweeps then log to
it, with their artifacts. There is no password: who reaches the port can read and change all of it.
"""
_PRIVATE = ["192.168.*", "10.*", *(f"172.{number}.*" for number in range(16, 32))]
"""What MLflow lets its server be called in home networks and offices, unless it is told names."""


def add_command(commands: Any) -> None:
    """`commands` is what `ArgumentParser.add_subparsers` gave."""
    server = commands.add_parser(
        "server", help="start an MLflow server for a team", description=_HELP
    )
    server.add_argument(
        "--host",
        default="0.0.0.0",
        help="address to listen on; 127.0.0.1 keeps it to this machine (default: all of them)",
    )
    server.add_argument("--port", type=int, help="default: the first free one from 5000 on")
    server.add_argument(
        "--allowed-hosts",
        default="",
        metavar="NAME,NAME",
        help="more names under which others reach it, * for any; its own are known",
    )
    server.add_argument(
        "--backend",
        metavar="ADDRESS",
        help=f"database: sqlite:///PATH/x.db or postgresql://… (default: {BACKEND}, from the "
        f"environment, where nobody else reads a password, else {DATABASE} in this folder)",
    )
    server.set_defaults(run=_server)


def _server(recorder: Recorder, options: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the server must not outlive this
    backend = backend_of(options.backend or os.environ.get(BACKEND), recorder.root)
    more = [name.strip() for name in options.allowed_hosts.split(",") if name.strip()]
    with suppress(KeyboardInterrupt):  # how it is meant to end
        with team_server(backend, recorder.root, options.host, options.port, more) as page:
            print(_welcome(backend, recorder.root, options.host, page), flush=True)
            page.wait()
        raise ServerFailed("MLflow's server ended by itself; what was logged is kept")
    return 0


def backend_of(address: str | None, root: Path) -> Location:
    """The database behind a server. ValueError where it cannot be one."""
    location = locate(address or f"sqlite:///{(root.resolve() / DATABASE).as_posix()}", root)
    if location.is_server:
        raise ValueError(
            f"{location.shown} is a server already: give --backend a database, "
            "sqlite:///PATH/x.db or postgresql://…"
        )
    return location


@contextmanager
def team_server(
    backend: Location,
    root: Path,
    host: str = "127.0.0.1",
    port: int | None = None,
    allowed: list[str] | None = None,
) -> Iterator[Page]:
    """A server over `backend` until the block ends; artifacts go through it, into `root`.

    ServerFailed, or StoreUnavailable where the database is at fault.
    """
    port = checked(port, host) if port else free_port(FIRST_PORT, host)
    names = [*_own_names(), *(allowed or [])]
    options = [
        "--serve-artifacts",
        "--artifacts-destination",
        (root / ARTIFACTS).resolve().as_uri(),
    ]
    options += ["--allowed-hosts", ",".join([*_PRIVATE, *_with_ports(names)])]
    origins = ["*"] if "*" in names else [f"http://{name}:{port}" for name in names]
    options += ["--cors-allowed-origins", ",".join(origins)]
    with _prepared(backend), running(backend.uri, host, port, options) as page:
        _done(backend)
        yield page


@contextmanager
def _prepared(backend: Location) -> Iterator[None]:
    """What is wrong with the database is told before MLflow buries it in a trace.

    A new SQLite file has a mark beside it until its tables are there: MLflow cannot repair one
    whose creation was broken off, and nothing is in it yet, so it is begun anew.
    """
    if backend.file is None:
        reach(backend)
    else:
        mark = _mark(backend.file)
        if mark.exists() and not _holds_runs(backend.file):
            for part in ("", "-wal", "-shm", "-journal"):
                backend.file.with_name(backend.file.name + part).unlink(missing_ok=True)
        if not backend.file.exists():
            backend.file.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
            sqlite.write_ahead(backend.file)
    yield


def _done(backend: Location) -> None:
    if backend.file is not None:
        _mark(backend.file).unlink(missing_ok=True)


def _mark(file: Path) -> Path:
    return file.with_name(f".{file.name}.unfinished")


def _holds_runs(file: Path) -> bool:
    """Whether anything was ever logged to a SQLite file, which is then never begun anew."""
    if not file.is_file():
        return False
    try:
        with closing(sqlite3.connect(file)) as database:
            return bool(database.execute("SELECT EXISTS (SELECT 1 FROM runs)").fetchone()[0])
    except sqlite3.DatabaseError:  # no such table yet, or no database at all
        return False


def _own_names() -> list[str]:
    """What this machine is called, by itself and by others."""
    host = socket.gethostname()
    return ["localhost", "127.0.0.1", "[::1]", host, f"{host}.local", *own_addresses()]


def _with_ports(names: list[str]) -> list[str]:
    """Browsers and MLflow name the port with the host, where it is not the usual one."""
    patterns = [name.replace("[", "[[]") for name in names]  # a bracket means a set in a pattern
    return [*names, *(f"{pattern}:*" for pattern in patterns if ":*" not in pattern)]


def _welcome(backend: Location, root: Path, host: str, page: Page) -> str:
    """How the others connect."""
    port = page.base.rpartition(":")[2]
    everywhere = host in EVERYWHERE
    reached = (own_addresses() or [socket.gethostname()]) if everywhere else [host]
    address = f"http://{reached[0]}:{port}" if everywhere else page.base
    only_here = host in ("127.0.0.1", "localhost", "::1")
    told = [
        f"MLflow server for a team; runs in {backend.shown}, files in {root / ARTIFACTS}",
        f"  a sweep that logs here:   MLFLOW_TRACKING_URI={address} make sweep",
        f"  what was measured before: MLFLOW_TRACKING_URI={address} make import FILE=…",
        f"  its page:                 {address}",
    ]
    if len(reached) > 1:
        told.append(f"  also reached as:          {', '.join(reached[1:])}")
    told.append(
        "Only this machine reaches it: --host 0.0.0.0 (make server HOST=0.0.0.0) opens it."
        if only_here
        else "Who reaches this port can read and change everything: there is no password."
    )
    return "\n".join([*told, "Ctrl-C ends it; what was logged stays."])

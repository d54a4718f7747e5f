"""The way into MLflow: opens the store, creates what is missing, waits for a lock."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import filelock

from tracking import sqlite
from tracking.artifacts import local_folder
from tracking.location import Location
from tracking.reach import reach
from tracking.trouble import StoreUnavailable, explain, unavailable

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment

_DEFAULTS = {
    # Repeating a request that may have been carried out could double a run: the recorder repeats
    # whole jobs instead, after looking at what is there.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
_OPEN_S = 120.0  # another sweep may be creating the database: seconds on a slow disk


@dataclass(frozen=True, slots=True)
class Store:
    """An open store: the client, and the experiment that runs go to."""

    location: Location
    client: MlflowClient
    experiment_id: str


def prepare_environment() -> None:
    """What must stand in the environment before MLflow is imported; the user's own choices stay."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)


def open_store(location: Location, experiment: str, note: str) -> Store:
    """Creates the database and the experiment where they are missing. StoreUnavailable."""
    with _connected(location) as client:
        experiment_id = _experiment(client, location, experiment, note)
        return Store(location, client, experiment_id)


def open_existing(location: Location, experiment: str) -> Store | None:
    """For reading: None, and nothing is created, where there is no database or no experiment.

    StoreUnavailable.
    """
    if location.file is not None and not location.file.exists():
        return None
    with _connected(location) as client:
        found = client.get_experiment_by_name(experiment)
        if found is None:
            return None
        _check_reach(found, location)
        return Store(location, client, str(found.experiment_id))


@contextmanager
def _connected(location: Location) -> Iterator[MlflowClient]:
    """The client, while no other program of ours opens the store."""
    prepare_environment()
    from mlflow import MlflowClient

    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("mlflow").setLevel(os.environ["MLFLOW_LOGGING_LEVEL"])
    reach(location)
    with unavailable(location), _one_at_a_time(location), warnings.catch_warnings():
        # MLflow's libraries deprecate what MLflow does: nothing for us to mend
        warnings.simplefilter("ignore", DeprecationWarning)
        if location.file is not None and location.ours and not location.file.exists():
            _create(location.file)
        if location.file is not None:
            sqlite.relax()
        yield MlflowClient(tracking_uri=location.uri)


def _experiment(client: MlflowClient, location: Location, name: str, note: str) -> str:
    found = client.get_experiment_by_name(name)
    if found is None:
        # without the kind, MLflow's page shows the tools for language model applications
        tags = {"mlflow.note.content": note, "mlflow.experimentKind": "custom_model_development"}
        try:
            return str(client.create_experiment(name, location.artifacts, tags))
        except Exception:  # another sweep may have been first, on a server that both use
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    _check_reach(found, location)
    if found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    if found.tags.get("mlflow.note.content") != note:
        client.set_experiment_tag(found.experiment_id, "mlflow.note.content", note)
    return str(found.experiment_id)


def _check_reach(found: Experiment, location: Location) -> None:
    """A server that keeps files in a folder tells every client to write to that folder: on another
    machine they would go nowhere, without a word. StoreUnavailable."""
    folder = local_folder(found.artifact_location)
    host = urlsplit(location.uri).hostname
    if location.is_server and folder is not None and not _is_here(host):
        raise StoreUnavailable(
            f"the server {location.shown} keeps artifacts in a folder that only its own machine "
            "reaches: start it with `make server`, whose artifacts go through it"
        )


def _is_here(host: str | None) -> bool:
    return host in ("localhost", "::1") or (host or "").startswith("127.")


@contextmanager
def _one_at_a_time(location: Location) -> Iterator[None]:
    """Two programs that create one SQLite file at once break each other's migrations."""
    if location.file is None:
        yield
        return
    location.file.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{location.file}.lock", timeout=_OPEN_S):
        yield


def _create(file: Path) -> None:
    """A database with all its tables, there whole or not at all: MLflow cannot repair one whose
    first migration was broken off."""
    from mlflow import MlflowClient

    draft = file.with_name(f".{file.name}.new")
    for part in ("", "-wal", "-shm", "-journal"):  # what an earlier try left
        draft.with_name(draft.name + part).unlink(missing_ok=True)
    client = MlflowClient(tracking_uri=f"sqlite:///{draft.as_posix()}")
    client.search_experiments(max_results=1)
    client._tracking_client.store.engine.dispose()  # nobody may hold the file that is renamed
    sqlite.write_ahead(draft)
    draft.replace(file)


def wait_for_lock(location: Location, patience_s: float) -> None:
    """Waits until a SQLite file can be written. StoreUnavailable after `patience_s`.

    MLflow itself would wait 20 s inside SQLite, deaf to Ctrl-C.
    """
    if location.file is None or not location.file.exists():
        return
    end_s = time.monotonic() + patience_s
    while True:
        try:
            with closing(sqlite3.connect(location.file, timeout=0, isolation_level=None)) as base:
                base.execute("BEGIN IMMEDIATE")
                base.execute("ROLLBACK")
            return
        except sqlite3.DatabaseError as error:
            if "locked" not in str(error) or time.monotonic() >= end_s:
                raise StoreUnavailable(explain(error, location)) from error
        time.sleep(0.05)

"""A project's folder with an MLflow database in it, for the tests of `tracking`.

Making a database takes MLflow seconds of migrations, so it is made once and copied.
"""

from __future__ import annotations

import atexit
import shutil
import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from tracking.recorder import Recorder


@cache
def _template() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="specsweep-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        Recorder(root=folder, experiment="template").open()
    return folder / "mlflow.db"


def project(folder: Path) -> Path:
    """`folder` with a database that no sweep has been logged to."""
    with (
        closing(sqlite3.connect(_template())) as template,
        closing(sqlite3.connect(folder / "mlflow.db")) as copy,
    ):
        template.backup(copy)
    return folder


def sweep_in(folder: Path, sweep_id: str = "s1") -> Recorder:
    """A recorder with an open sweep in a fresh store."""
    recorder = Recorder(root=project(folder))
    recorder.open_sweep(sweep_id, "a test", {"machine.id": "abc", "machine.name": "here"})
    return recorder


def client(recorder: Recorder) -> MlflowClient:
    return recorder.open().client


def runs(recorder: Recorder) -> tuple[Run, list[Run]]:
    """Of the newest experiment: the parent, and its children by name, read by MLflow's own API."""
    store = recorder.open()
    found = list(store.client.search_runs([store.experiment_id]))
    parents = [run for run in found if "mlflow.parentRunId" not in run.data.tags]
    assert len(parents) == 1
    children = [run for run in found if run is not parents[0]]
    return parents[0], sorted(children, key=lambda run: str(run.info.run_name))

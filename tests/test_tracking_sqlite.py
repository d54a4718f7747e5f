"""How the project's own database is kept: fast, and readable while a sweep writes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.tracking_store import project
from tracking.recorder import Recorder

NORMAL, FULL = 1, 2


def settings(recorder: Recorder) -> tuple[str, int]:
    """Of a connection as MLflow itself opens it."""
    with recorder.open().client._tracking_client.store.engine.connect() as connection:
        mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
        return mode, connection.exec_driver_sql("PRAGMA synchronous").scalar()


def test_the_projects_store_does_not_wait_for_the_disk_at_every_commit(tmp_path: Path) -> None:
    Recorder(root=tmp_path).open()  # makes it
    assert settings(Recorder(root=tmp_path)) == ("wal", NORMAL)


def test_a_database_in_another_mode_keeps_sqlites_own_caution(tmp_path: Path) -> None:
    file = project(tmp_path) / "mlflow.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode=DELETE")
    assert settings(Recorder(uri=f"sqlite:///{file}", root=tmp_path)) == ("delete", FULL)

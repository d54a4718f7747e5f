"""SQLite's own settings, for the databases that MLflow opens in this process."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any


def write_ahead(file: Path) -> None:
    """Puts a database into write-ahead mode, for good: it halves the time that a run takes, and
    lets MLflow's page read while the sweep writes."""
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode=WAL")


@cache  # once a process
def relax() -> None:
    """Does not wait for the disk at every commit where a database is in write-ahead mode.

    Logging a run commits eleven times. A crash of the program loses nothing; a power cut may take
    the last commits back, never a part of one, and what they said is in `outputs/` or in a bundle.
    """
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    event.listen(Engine, "connect", _relax)


def _relax(connection: Any, _: object) -> None:
    if not isinstance(connection, sqlite3.Connection):
        return
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode == "wal":
        connection.execute("PRAGMA synchronous=NORMAL")

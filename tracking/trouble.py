"""Whatever goes wrong in a store becomes one exception, with one sentence for a person."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.privacy import hide_password, hide_passwords
from tracking.location import Location
from tracking.python import this_python


class StoreUnavailable(Exception):
    """The store did not take or give something: locked, down, full or refusing. One sentence."""


@contextmanager
def unavailable(location: Location) -> Iterator[None]:
    """Turns whatever the store raises inside into StoreUnavailable with one sentence."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (
        MlflowException,
        SQLAlchemyError,
        OSError,  # requests' exceptions are OSErrors too
        sqlite3.Error,
        ImportError,  # a database's driver
    ) as error:
        raise StoreUnavailable(explain(error, location)) from error


_CAUSES = (
    ("is locked", "the store {at} is locked by another program"),
    ("disk is full", "the disk that holds the store {at} is full"),
    ("No space left", "the disk that holds the store {at} is full"),
    ("readonly database", "the store {at} is read-only"),
    ("not a database", "{at} is not an MLflow database: move it away, or choose another address"),
    ("malformed", "the database {at} is damaged: move it away, or restore a copy"),
    ("Can't locate revision", "the store {at} was written by a newer MLflow: update MLflow"),
    (
        "out-of-date database schema",
        "the store {at} is of an older MLflow: keep a copy, then run `mlflow db upgrade {uri}`",
    ),
    ("Invalid Host header", "the server {at} refuses its host name: start it with --allowed-hosts"),
    ("Max retries exceeded", "the server {at} does not answer"),
    ("Connection refused", "the server {at} does not answer"),
    ("Connection aborted", "the server {at} broke off"),
    ("connection timeout expired", "the server {at} does not answer in time"),
    ("failed to resolve host", "the host of {at} is not known"),
    ("Name or service not known", "the host of {at} is not known"),
    ("getaddrinfo failed", "the host of {at} is not known"),
    ("could not be acquired", "the store {at} is being created by another program"),
    (
        "psycopg is missing",
        "the store {at} needs PostgreSQL's driver: "
        "run `{python} -m pip install -c constraints.txt -e '.[postgres]'` in the project's folder",
    ),
    (
        "another driver is missing",
        "the store {at} needs the driver {lacking}, which is not installed: install it into this "
        "Python, or for PostgreSQL write postgresql+psycopg://…",
    ),
    ("password authentication failed", "the database {at} refuses the user or the password"),
    ("no password supplied", "the database {at} wants a password: postgresql://USER:PASSWORD@…"),
    ("FATAL:  database", "the server of {at} has no such database: create it first"),
    ("FATAL:  role", "the server of {at} has no such user: create it first"),
    ("timed out", "the server {at} does not answer in time"),
)


def explain(error: BaseException, location: Location) -> str:
    """One sentence for a person: which store, and what is wrong with it."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    told = _told(chain)
    for sign, sentence in _CAUSES:
        if sign in told:
            return sentence.format(
                at=location.shown,
                uri=hide_password(location.uri),
                python=this_python(),
                lacking=", ".join(sorted(_lacking(chain))),
            )
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"the store {location.shown} cannot be made: {error.filename}: {error.strerror}"
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    shown = hide_passwords(first.replace(location.uri, location.shown))
    return f"the store {location.shown} refused: {shown or type(error).__name__}"[:500]


def _told(chain: list[BaseException]) -> str:
    """What the errors say; in one system's words where systems have words of their own."""
    if any(isinstance(link, OSError) and link.errno == errno.ENOSPC for link in chain):
        return "No space left"
    if any(isinstance(link, ConnectionRefusedError) for link in chain):
        return "Connection refused"
    if lacking := _lacking(chain):
        return "psycopg is missing" if "psycopg" in lacking else "another driver is missing"
    return " ".join(str(link) for link in chain)


def _lacking(chain: list[BaseException]) -> set[str]:
    """The modules that could not be imported."""
    return {str(link.name) for link in chain if isinstance(link, ImportError)}

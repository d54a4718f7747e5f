"""Where the figures go: the store's address, checked before anything runs. Does not load MLflow."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pipeline.privacy import hide_password

DATABASE, ARTIFACTS = "mlflow.db", "mlartifacts"
_NOT_IN_ADDRESS = re.compile(r"\?|%[0-9A-Fa-f]{2}")
"""What ends the path in a database's address, or would be decoded there."""
_SERVERS = ("http", "https")
_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")


@dataclass(frozen=True, slots=True)
class Location:
    """An MLflow store.

    `artifacts` is where a new experiment keeps its files, None where the server decides; `file`
    is the database where that is a local file; `ours` marks the project's own default store.
    """

    uri: str
    artifacts: str | None
    file: Path | None
    ours: bool

    @property
    def shown(self) -> str:
        """The address without a password."""
        if self.file is not None:
            return str(self.file)
        return hide_password(self.uri)

    @property
    def is_server(self) -> bool:
        """Whether MLflow's own server is at the address, not a database."""
        return self.uri.partition("://")[0].lower() in _SERVERS

    @property
    def page(self) -> str:
        """The server's address for a browser, which asks for user and password by itself."""
        scheme, _, rest = self.uri.partition("://")
        host, slash, path = rest.partition("/")
        return hide_password(f"{scheme}://{host.rpartition('@')[2]}{slash}{path}")


def locate(uri: str | None, root: Path, environ: Mapping[str, str] = os.environ) -> Location:
    """The store to use: `uri`, else MLFLOW_TRACKING_URI, else `root`/mlflow.db.

    ValueError, naming the fix, for an address that MLflow or specsweep cannot use.
    """
    given = uri or environ.get("MLFLOW_TRACKING_URI", "").strip()
    if not given:
        return _in_file(root.resolve() / DATABASE, ours=True)
    scheme = given.partition("://")[0].partition("+")[0].lower()
    if scheme in _SERVERS:
        _check_host(given)
        return Location(given.rstrip("/"), None, None, ours=False)
    if scheme == "sqlite":
        return _sqlite(given)
    if scheme in _DATABASES:
        return Location(given, (root.resolve() / ARTIFACTS).as_uri(), None, ours=False)
    raise ValueError(
        f"the tracking address {hide_password(given)!r} is a folder, and MLflow no longer keeps "
        "runs in folders: unset MLFLOW_TRACKING_URI to use the project's own mlflow.db, or set it "
        "to sqlite:///PATH/mlflow.db or to a server's http:// address"
        if scheme == "file" or "://" not in given
        else f"the tracking address {hide_password(given)!r} has an unknown scheme: use "
        "sqlite:///PATH/mlflow.db, postgresql://…, or a server's http:// address"
    )


def _check_host(address: str) -> None:
    try:
        parts = urlsplit(address)
        if parts.hostname and parts.port != 0:  # reading a port that is none raises
            return
    except ValueError:
        pass
    raise ValueError(unreadable(address))


def unreadable(address: str) -> str:
    """The sentence for an address without a host, or with something else for a port."""
    return (
        f"the tracking address {hide_password(address)!r} cannot be read: write "
        "SCHEME://USER:PASSWORD@HOST:PORT, and / # ? @ in a password as %2F %23 %3F %40"
    )


def _sqlite(uri: str) -> Location:
    """A path that is relative counts from the working directory of now, whatever it is later."""
    scheme, _, rest = uri.partition("://")
    path, _, query = rest.removeprefix("/").partition("?")
    if path in ("", ":memory:"):
        raise ValueError(
            f"the tracking address {hide_password(uri)!r} keeps nothing: give a file, "
            "sqlite:///PATH/mlflow.db"
        )
    return _in_file(Path(path).resolve(), scheme, query)


def _in_file(file: Path, scheme: str = "sqlite", query: str = "", ours: bool = False) -> Location:
    path = file.as_posix()
    if found := _NOT_IN_ADDRESS.search(path):
        raise ValueError(
            f"the database {file} cannot be used, as no address can hold the {found[0]} in its "
            "path: rename the folder, or set MLFLOW_TRACKING_URI to sqlite:///PATH/mlflow.db"
        )
    return Location(
        uri=f"{scheme}:///{path}" + (f"?{query}" if query else ""),
        artifacts=(file.parent / ARTIFACTS).as_uri(),
        file=file,
        ours=ours,
    )

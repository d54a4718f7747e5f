"""Is a server there? Asked once and briefly, before MLflow, which repeats itself for long.

MLflow tries a database that is down, or refuses the password, ten times in a hundred seconds; and a
host that swallows what is sent to it costs the whole patience that slow answers are given.
"""

from __future__ import annotations

import socket
from contextlib import closing
from urllib.parse import urlsplit

from tracking.location import Location, unreadable
from tracking.trouble import StoreUnavailable, unavailable

PATIENCE_S = 5
_DRIVERS = ("psycopg", "psycopg2", "pymysql", "mysqldb", "mariadbconnector")
"""Those whose connections take `connect_timeout`, in seconds."""
_PORTS = {"http": 80, "https": 443}


def reach(location: Location) -> None:
    """Nothing, where the store's server answers. StoreUnavailable, within seconds, otherwise."""
    if location.file is not None:
        return
    with unavailable(location):
        if location.is_server:
            _knock(location.uri)
        else:
            _log_in(location.uri)


def _knock(address: str) -> None:
    """OSError where nobody listens. Behind a proxy only the proxy could tell."""
    from requests.utils import get_environ_proxies, select_proxy

    parts = urlsplit(address)
    if select_proxy(address, get_environ_proxies(address)) or not parts.hostname:
        return
    port = parts.port or _PORTS[parts.scheme.lower()]
    socket.create_connection((parts.hostname, port), timeout=PATIENCE_S).close()


def _log_in(address: str) -> None:
    """What SQLAlchemy or the driver raises where the database is not to be had."""
    import sqlalchemy

    try:
        url = sqlalchemy.make_url(address)
    except ValueError:  # a port that is no number
        raise StoreUnavailable(unreadable(address)) from None
    own = url.get_dialect().driver in _DRIVERS and "connect_timeout" not in url.query
    engine = sqlalchemy.create_engine(
        url, connect_args={"connect_timeout": PATIENCE_S} if own else {}
    )
    try:
        with closing(engine.connect()):
            pass
    finally:
        engine.dispose()

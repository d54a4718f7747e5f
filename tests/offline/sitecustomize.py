"""Python runs this at its start in every process of an offline test: only this machine is there.

Whatever else a process calls is refused, and noted in the file that OFFLINE_CALLS names.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

_HERE = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "", None)


def _check(host: Any, what: str) -> None:
    name = host.decode() if isinstance(host, bytes) else host
    if name not in _HERE:
        with Path(os.environ["OFFLINE_CALLS"]).open("a", encoding="utf-8") as calls:
            calls.write(f"{what} {name} by {' '.join(sys.argv)[:200]}\n")
        raise OSError(101, f"the network is blocked: {what} {name}")


class _Socket(socket.socket):
    def connect(self, address: Any, /) -> None:
        self._look(address, "connect")
        super().connect(address)

    def connect_ex(self, address: Any, /) -> int:
        self._look(address, "connect")
        return super().connect_ex(address)

    def sendto(self, data: Any, *rest: Any) -> int:
        self._look(rest[-1], "send")
        return super().sendto(data, *rest)

    def _look(self, address: Any, what: str) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _check(address[0], what)


_look_up, _look_up_name = socket.getaddrinfo, socket.gethostbyname


def _getaddrinfo(host: Any, *rest: Any, **named: Any) -> Any:
    _check(host, "look up")
    return _look_up(host, *rest, **named)


def _gethostbyname(host: str) -> str:
    _check(host, "look up")
    return _look_up_name(host)


if "OFFLINE_CALLS" in os.environ:
    for name, replacement in (
        ("socket", _Socket),
        ("getaddrinfo", _getaddrinfo),
        ("gethostbyname", _gethostbyname),
    ):
        setattr(socket, name, replacement)

"""Free ports, and the addresses under which others reach this machine."""

from __future__ import annotations

import ipaddress
import os
import socket

import psutil

FIRST_PORT = 5000
EVERYWHERE = ("0.0.0.0", "::")


class ServerFailed(Exception):
    """MLflow's server ended, or did not answer in time, or has no port. One sentence."""


def free_port(first: int = FIRST_PORT, host: str = "127.0.0.1") -> int:
    """The first port from `first` on that nothing listens on. ServerFailed if there is none."""
    check_host(host)
    for port in range(first, min(first + 100, 65536)):
        if _is_free(port, host):
            return port
    raise ServerFailed(f"there is no free port from {first} on: name one with --port")


def checked(port: int, host: str = "127.0.0.1") -> int:
    """`port`, which is free. ServerFailed otherwise."""
    if not 0 < port < 65536:
        raise ServerFailed(f"port {port}: give one from 1 to 65535")
    check_host(host)
    if not _is_free(port, host):
        raise ServerFailed(f"port {port} is in use: name another one with --port")
    return port


def check_host(host: str) -> None:
    """ServerFailed where this machine has no such address to listen on."""
    if not _is_free(0, host):  # 0 is whichever port is free
        here = ", ".join(["127.0.0.1", *own_addresses()])
        raise ServerFailed(
            f"{host} is no address of this machine: give one of {here}, or 0.0.0.0 for all of them"
        )


def own_addresses() -> list[str]:
    """This machine's addresses in its networks, IPv4, those of home networks and offices first."""
    found = []
    for addresses in psutil.net_if_addrs().values():
        for address in addresses:
            if address.family == socket.AF_INET:
                ip = ipaddress.ip_address(address.address)
                if not ip.is_loopback and not ip.is_link_local:
                    found.append(ip)
    return [str(ip) for ip in sorted(found, key=lambda ip: (not ip.is_private, ip.packed))]


def _is_free(port: int, host: str) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        if os.name != "nt":  # there, it would let two programs listen
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError):
            return False
        return True

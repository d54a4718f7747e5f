"""Which machine this is: an id that stays with it, whatever its name, its load or its user.

The system's own id, hashed. A container has none that stays: the file for it is the image's, the
same on every machine that runs the image, or the container's, a new one each time. There, and where
a system has no id at all, processor and number of cores are what tells machines apart, with the
file's content where there is one. Two machines of one make then count as one, unless each is given
a name: tracking.machine=NAME.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import machineid
import psutil

ID_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_CONTAINER_FILES = (
    Path("/.dockerenv"),
    Path("/run/.containerenv"),
    Path("/run/systemd/container"),
)


def machine_id(name: str | None, processor: Callable[[], str]) -> str:
    """12 hexadecimal digits: stable over restarts and sweeps, and telling nothing of the host.

    A machine that is given two names counts as two. `processor` tells what it is called; it is
    asked only where the system has no id that can be relied on.
    """
    own = None if in_container() else _systems_own()
    if own is None:
        own = "|".join([_file(), processor(), platform.machine(), str(psutil.cpu_count())])
    return hashlib.sha256(f"{own}|{name or ''}".encode()).hexdigest()[:12]


def in_container() -> bool:
    """Whether a container is seen from inside, by the marks that the usual ones leave."""
    marked = any(file.exists() for file in _CONTAINER_FILES)
    return marked or bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def _systems_own() -> str | None:
    try:
        return str(machineid.hashed_id("specsweep"))
    except Exception:  # the library raises plain Exception where the system has no id
        return None


def _file() -> str:
    """What the image, or whoever started the container, has put into the place of the id."""
    for file in ID_FILES:
        with suppress(OSError):
            if text := file.read_text(encoding="utf-8").strip():
                return text
    return ""

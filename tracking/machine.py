"""What machine this is. What a system does not tell is left out, never guessed."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path

import cpuinfo
import psutil

from tracking import identity

_CPUFREQ = Path("/sys/devices/system/cpu")


def describe(name: str | None = None, anonymous: bool = False) -> dict[str, str]:
    """The `machine.*` tags of this machine, as strings; those that it does not tell are absent.

    `name` stands for the host's name; a machine that is given two names counts as two machines.
    With `anonymous`, a hash stands for the host's name.
    """
    readers: dict[str, Callable[[], str | None]] = {
        "machine.cpu": lambda: _cpu().get("brand_raw"),
        "machine.cores": _cores,
        "machine.memory_bytes": lambda: str(psutil.virtual_memory().total),
        "machine.os": _os,
        "machine.arch": platform.machine,
        "machine.python": platform.python_version,
        "machine.torch": lambda: metadata.version("torch"),
        "machine.power": _power,
        "machine.governor": _governor,
        "machine.frequency_mhz": _frequency,
        "machine.virtual": _virtual,
    }
    found = {tag: _told(read) for tag, read in readers.items()}
    tags = {tag: value for tag, value in found.items() if value}
    tags["machine.id"] = machine_id(name)
    tags["machine.name"] = name or (
        f"host-{tags['machine.id'][:6]}" if anonymous else platform.node() or tags["machine.id"]
    )
    return dict(sorted(tags.items()))


def machine_id(name: str | None = None) -> str:
    """12 hexadecimal digits that stay with this machine: see `tracking.identity`."""
    return identity.machine_id(name, lambda: _told(lambda: _cpu().get("brand_raw")) or "")


def _told(read: Callable[[], str | None]) -> str | None:
    """What `read` says, or None where this system cannot answer.

    The libraries raise whatever the system call beneath them raises, and a sweep must not end
    because a laptop does not say how fast its clock runs.
    """
    try:
        return read()
    except Exception:
        return None


@cache
def _cpu() -> dict[str, str]:
    """py-cpuinfo's answer; it takes about a second, so once a process."""
    info = cpuinfo.get_cpu_info()
    return {
        "brand_raw": " ".join(str(info.get("brand_raw", "")).split()),
        "flags": " ".join(info.get("flags", [])),
    }


def _cores() -> str | None:
    physical, logical = psutil.cpu_count(logical=False), psutil.cpu_count()
    if physical and logical:
        return f"{physical} physical, {logical} logical"
    return f"{logical} logical" if logical else None


def _os() -> str:
    system = platform.system()
    if system == "Linux":
        name = platform.freedesktop_os_release().get("PRETTY_NAME", system)
        return f"{name} ({platform.release()})"
    if system == "Darwin":
        return f"macOS {platform.mac_ver()[0]}"
    return f"{system} {platform.release()} ({platform.version()})"


def _power() -> str | None:
    battery = psutil.sensors_battery()
    if battery is None or battery.power_plugged is None:
        return None
    return "mains" if battery.power_plugged else "battery"


def _governor() -> str | None:
    files = sorted(_CPUFREQ.glob("cpu[0-9]*/cpufreq/scaling_governor"))
    return ", ".join(sorted({file.read_text(encoding="utf-8").strip() for file in files})) or None


def _frequency() -> str | None:
    """ "lowest-highest" in MHz; systems that do not know one answer 0."""
    frequency = psutil.cpu_freq()
    if frequency is None or not frequency.max:
        return None
    return f"{frequency.min:.0f}-{frequency.max:.0f}" if frequency.min else f"{frequency.max:.0f}"


def _virtual() -> str | None:
    """ "kvm", "docker", "wsl", …; "no" where the system is sure; None where it does not say."""
    detector = shutil.which("systemd-detect-virt")
    if detector:
        answer = subprocess.run([detector], capture_output=True, text=True, timeout=5).stdout
        if answer.strip():
            return "no" if answer.strip() == "none" else answer.strip()
    if "hypervisor" in _cpu()["flags"].split():
        return "yes"
    return None

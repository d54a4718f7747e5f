"""How busy a machine is with other things than this sweep."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

_CPUS = Path("/sys/devices/system/cpu")
LoadState = Literal["idle", "light", "busy"]
STATES: tuple[LoadState, ...] = ("idle", "light", "busy")

IDLE_BELOW = 0.05
BUSY_FROM = 0.25
BOUNDS = (
    f"idle where other programs take less than {IDLE_BELOW:.0%} of the CPU, light below "
    f"{BUSY_FROM:.0%}, else busy"
)
"""Bounds on the others' share of all cores' time: idle < 5% <= light < 25% <= busy.

On eight cores one busy program is "light", on two it is "busy": there, it takes a core that the
timed side would use.
"""


def load_state(others_share: float | None) -> LoadState | None:
    """The word for a share of the machine's CPU time, or None where it is not known."""
    if others_share is None:
        return None
    if others_share < IDLE_BELOW:
        return "idle"
    return "light" if others_share < BUSY_FROM else "busy"


def main_load(states: Iterable[str | None]) -> str:
    """The most frequent of the known states, of equally frequent ones the busier; else empty."""
    known = [str(state) for state in states if state in STATES]
    busiest_first: list[str] = [*reversed(STATES)]
    return max(busiest_first, key=known.count) if known else ""


def load_average_1m() -> float | None:
    """Processes that ran or waited over the last minute, this sweep's own included."""
    try:
        return psutil.getloadavg()[0]
    except (AttributeError, OSError):
        return None


@dataclass(frozen=True, slots=True)
class _Reading:
    total_s: float
    busy_s: float
    own_s: float


class LoadMeter:
    """Measures between `start()` and `stop()` what other programs took of the machine.

    Own are the process it runs in and all that this one started. Time that a hypervisor took away
    is the others'. May be started again; single-threaded.
    """

    def __init__(self) -> None:
        self._own = psutil.Process()
        self._begun: _Reading | None = None

    def start(self) -> None:
        self._begun = self._read()

    def stop(self) -> float | None:
        """Share in 0..1 of all cores' time, or None for an interval too short to tell (< 50 ms).

        RuntimeError without a `start()`.
        """
        if self._begun is None:
            raise RuntimeError("LoadMeter.stop() without start()")
        begun, now = self._begun, self._read()
        self._begun = None
        total_s = now.total_s - begun.total_s
        if total_s < 0.05 * (psutil.cpu_count() or 1):
            return None
        others_s = (now.busy_s - begun.busy_s) - (now.own_s - begun.own_s)
        return min(1.0, max(0.0, others_s / total_s))

    def _read(self) -> _Reading:
        times = psutil.cpu_times()._asdict()
        # Linux counts guests a second time inside user and nice.
        counted = {name: s for name, s in times.items() if not name.startswith("guest")}
        total_s = sum(counted.values())
        return _Reading(
            total_s=total_s,
            busy_s=total_s - counted.get("idle", 0.0) - counted.get("iowait", 0.0),
            own_s=sum(_cpu_s(process) for process in _family(self._own)),
        )


class Meter:
    """What a sweep asks before and after each timed job."""

    def __init__(self) -> None:
        self._others = LoadMeter()
        self._before: dict[str, float | None] = {}
        self._throttled: int | None = None

    def start(self) -> None:
        self._before = {
            "load/before_1m": load_average_1m(),
            "load/frequency_mhz_before": frequency_mhz(),
        }
        self._throttled = throttle_events()
        self._others.start()

    def stop(self) -> tuple[dict[str, float], dict[str, str]]:
        """The `load/` metrics and the `load.state` tag, as far as this system tells them."""
        share = self._others.stop()
        figures = {
            **self._before,
            "load/after_1m": load_average_1m(),
            "load/others_share": share,
            "load/frequency_mhz_after": frequency_mhz(),
            "load/throttle_events": _more(self._throttled, throttle_events()),
        }
        state = load_state(share)
        return (
            {name: value for name, value in figures.items() if value is not None},
            {"load.state": state} if state is not None else {},
        )


def load_now(interval_s: float = 0.5) -> float | None:
    """Others' share of the machine over the next `interval_s` seconds; blocks for that long."""
    meter = LoadMeter()
    meter.start()
    time.sleep(interval_s)
    return meter.stop()


def frequency_mhz() -> float | None:
    """The cores' present clock frequency, their mean, where the system tells it."""
    try:
        frequency = psutil.cpu_freq()
    except (AttributeError, NotImplementedError, OSError, RuntimeError):
        return None
    return float(frequency.current) or None if frequency else None


def throttle_events() -> int | None:
    """How often cores and packages have slowed down for heat since the start; Linux on Intel."""
    files = [*_CPUS.glob("cpu[0-9]*/thermal_throttle/*_throttle_count")]
    try:
        return sum(int(file.read_text(encoding="ascii")) for file in files) if files else None
    except (OSError, ValueError):
        return None


def _more(before: int | None, after: int | None) -> float | None:
    return None if before is None or after is None else float(max(0, after - before))


def _family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return [process]


def _cpu_s(process: psutil.Process) -> float:
    """CPU seconds of a process and of those children of it that have ended."""
    try:
        times = process.cpu_times()
    except psutil.Error:  # it ended meanwhile; its parent has its time then
        return 0.0
    return float(
        times.user
        + times.system
        + getattr(times, "children_user", 0.0)
        + getattr(times, "children_system", 0.0)
    )

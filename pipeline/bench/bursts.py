"""A bursty load: on every core a process that is busy and idle in turns, of random length.

    python -m pipeline.bench.bursts CORE SEED PARENT

It ends with the process `PARENT`, however that ends.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psutil

from pipeline.stop import end_with

SHORTEST_S, LONGEST_S = 0.2, 3.0


def bursts(seed: int) -> Iterator[tuple[float, float]]:
    """Seconds on and seconds off, again and again."""
    source = random.Random(seed)
    while True:
        yield source.uniform(SHORTEST_S, LONGEST_S), source.uniform(SHORTEST_S, LONGEST_S)


def _cores() -> int:
    """Those that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return psutil.cpu_count() or 1


@contextmanager
def bursty_load(seed: int = 0, cores: Sequence[int] | None = None) -> Iterator[list[int]]:
    """Every core bursty inside; gives the processes' ids. None of them is left, also after errors.

    RuntimeError where one could not be started or has ended by itself meanwhile.
    """
    cores = range(_cores()) if cores is None else cores
    started: list[subprocess.Popen[bytes]] = []
    try:
        for core in cores:
            words = [sys.executable, "-m", "pipeline.bench.bursts"]
            words += [str(core), str(seed), str(os.getpid())]
            started.append(subprocess.Popen(words))
        yield [process.pid for process in started]
        if ended := [process.pid for process in started if process.poll() is not None]:
            raise RuntimeError(f"the load did not last: process {ended[0]} ended by itself")
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def main(arguments: Sequence[str]) -> None:
    core, seed, parent = map(int, arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C, and ends this
    end_with(parent)
    if sys.platform == "linux":  # elsewhere the system spreads them
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[core]})
    for on_s, off_s in bursts(1000 * seed + core):
        until = time.monotonic() + on_s
        while time.monotonic() < until:
            pass
        time.sleep(off_s)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Ctrl-C and SIGTERM: workers end at once, and the sweep at the next place where it may.

A signal never cuts into a recording: it is kept until the recording is through.
"""

from __future__ import annotations

import multiprocessing.resource_tracker
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

import psutil
from joblib.externals.loky.backend import resource_tracker as loky_tracker

WATCH_S = 0.5


class Stopped(KeyboardInterrupt):
    """The sweep was told to stop."""


class Stop:
    """A context in which signals to stop kill the workers and raise `Stopped`, once.

    Further signals change nothing: what follows is tidying up, which is short.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._deep = 0
        self._raised = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stop:
        names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
        for name in names:
            if number := getattr(signal, name, None):
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
                    self._before[number] = signal.signal(number, self._heard)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """What runs inside is not cut; a signal heard meanwhile counts right after."""
        self._deep += 1
        try:
            yield
        finally:
            self._deep -= 1
        self._raise_if_heard()

    @property
    def exit_code(self) -> int:
        return 128 + int(self.signal or signal.SIGINT)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = signal.Signals(number)
        kill_workers()
        self._raise_if_heard()

    def _raise_if_heard(self) -> None:
        if self.signal is not None and not self._deep and not self._raised:
            self._raised = True
            raise Stopped(self.signal.name)


def kill_workers() -> None:
    """End this process's children at once.

    joblib's resource trackers stay: they hold no core, tidy up, and end with this process.
    """
    for child in _workers():
        try:
            child.kill()
        except psutil.Error:
            pass  # it was quicker


def _workers() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if not any("resource_tracker" in word for word in child.cmdline()):
                found.append(child)
        except psutil.Error:
            pass
    return found


def end_with(parent: int) -> None:
    """In a worker: end when the process `parent` has ended, also if it was killed.

    Called for every task; only the first call in a process does something.
    """
    if not _watching.acquire(blocking=False):
        return
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


_watching = threading.Lock()  # held for ever by the one watch of this process


def _watch(parent: int) -> None:
    alive = psutil.Process(parent).is_running if psutil.pid_exists(parent) else (lambda: False)
    posix = sys.platform != "win32"
    while (os.getppid() == parent) if posix else alive():
        time.sleep(WATCH_S)
    os._exit(1)


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes started inside never hear Ctrl-C: their parent does, and ends them.

    Elsewhere than on POSIX systems they do hear it, and say so.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    for tracker in (multiprocessing.resource_tracker, loky_tracker):
        tracker.ensure_running()  # starting one lets SIGINT through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

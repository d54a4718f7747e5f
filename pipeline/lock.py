"""One timing at a time on a machine, whoever runs it: the system's own lock on one file.

The system lets go of it when its holder ends, however that ends.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import filelock

POLL_S = 0.2


def machine_lock_path() -> Path:
    """A file that is the same for every user and every checkout of this machine.

    SPECSWEEP_TIMING_LOCK names another, as for tests, which need not be alone.
    """
    if named := os.environ.get("SPECSWEEP_TIMING_LOCK"):
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("PROGRAMDATA", tempfile.gettempdir())) / "specsweep-timing.lock"
    return Path("/tmp/specsweep-timing.lock")


@contextmanager
def alone(path: Path, say: Callable[[str], None]) -> Iterator[float]:
    """Hold the machine's clocks; gives how many seconds were waited. `say` hears of a wait."""
    lock = _acquirable(path, say)
    note = path.with_suffix(".holder")
    begun_s = time.monotonic()
    waiting = False
    while True:
        try:
            lock.acquire(timeout=0)
            break
        except filelock.Timeout:
            if not waiting:
                say(f"waiting: another sweep is timing on this machine{_holder(note)}")
            waiting = True
            time.sleep(POLL_S)
    with suppress(OSError):  # the note is only told to others who wait
        note.write_text(f"{os.getpid()} {time.strftime('%H:%M:%S')}", encoding="utf-8")
    try:
        yield time.monotonic() - begun_s
    finally:
        with suppress(OSError):
            note.unlink()
        lock.release()


def _acquirable(path: Path, say: Callable[[str], None]) -> filelock.BaseFileLock:
    """The machine's lock, or where another user's file may not be opened, this user's own."""
    lock = filelock.FileLock(path, mode=0o666)
    try:
        lock.acquire(timeout=0)
        with suppress(OSError):
            path.chmod(0o666)  # for other users, whatever this one's umask says
        lock.release()
    except filelock.Timeout:
        pass
    except OSError as error:
        own = Path(tempfile.gettempdir()) / f"specsweep-timing-{_user()}.lock"
        say(f"{path} cannot be locked ({error.strerror}): only your own sweeps wait for each other")
        return filelock.FileLock(own)
    return lock


def _holder(note: Path) -> str:
    with suppress(OSError, ValueError):
        pid, since = note.read_text(encoding="utf-8").split()
        return f" (process {pid}, since {since})"
    return ""


def _user() -> str:
    return os.environ.get("USER") or os.environ.get("USERNAME") or "me"

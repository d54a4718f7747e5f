"""One thread a test process: the models are small, and waiting threads are in each other's way.

And a timing lock of its own: tests measure nothing, so they neither wait for a sweep nor hold one
up. Set before torch is imported, and inherited by the processes that tests start.
"""

from __future__ import annotations

import os
import signal
import tempfile

import pytest

os.environ["OMP_NUM_THREADS"] = "1"
# a shell starts what runs behind `&` deaf to Ctrl-C; the programs that tests interrupt are not
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["SPECSWEEP_TIMING_LOCK"] = f"{tempfile.gettempdir()}/specsweep-test-{os.getpid()}.lock"

LONG = (
    "test_team_server.py",
    "test_sweep_real.py",
    "test_experiments.py",
    "test_offline.py",
    "test_browser.py",
    "test_compare_real.py",
)
"""Files that take longest, for servers and real sweeps: begun first, so that none is left alone at
the end while the other processes have nothing to do."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONG)  # stable: the rest stays in order

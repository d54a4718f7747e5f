"""One thread a test process: the models are small, and waiting threads are in each other's way.

And a timing lock of its own: tests measure nothing, so they neither wait for a sweep nor hold one
up. Set before torch is imported, and inherited by the processes that tests start.
"""

from __future__ import annotations

import os
import tempfile

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["SPECSWEEP_TIMING_LOCK"] = f"{tempfile.gettempdir()}/specsweep-test-{os.getpid()}.lock"

"""One thread a test process: the models are small, and waiting threads are in each other's way.

Set before torch is imported, and inherited by the processes that tests start.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

"""`python -m tests.large_store FOLDER`: a store with about 1,000 runs, to see how fast it is read.

Two machines with the same jobs: `python -m tracking --root FOLDER compare` then compares them all.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.records_factory import make_sweep
from tests.tracking_store import project
from tracking.recorder import Recorder

MACHINES = ("attic", "cellar")


def fill(folder: Path, seeds: int = 42) -> int:
    """Logs 12 jobs a seed and machine into a new store in `folder`; how many runs that made."""
    recorder = Recorder(root=project(folder))
    made = 0
    for place, machine in enumerate(MACHINES):
        tags = {"machine.id": f"{place:012x}", "machine.name": machine}
        recorder.open_sweep(f"sweep-{machine}", "a large one", tags)
        records = make_sweep(seeds=tuple(range(seeds)))
        for record in records:
            recorder.log_job(record, {"load.state": "idle", "code.digest": "c0de"})
        recorder.close_sweep("FINISHED", {}, "", {}, {})
        made += len(records) + 1
    return made


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    begun_s = time.perf_counter()
    made = fill(folder)
    print(f"{made} runs in {folder}, made in {time.perf_counter() - begun_s:.0f} s")


if __name__ == "__main__":
    main()

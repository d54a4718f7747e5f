"""Jobs that cost nothing and go wrong on demand: what a sweep is tested with.

A module with `pipeline.job`'s functions. Seeds say what happens: see the constants.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from pipeline.records import JobRecord
from pipeline.spec import JobSpec

RAISES = 13  # the job raises
DIES = 14  # the job kills its worker, every time
# these two take the prompt for the path of a folder to leave marks in
DIES_ONCE = 15  # the job kills its worker, the first time
TOGETHER = 17  # the job waits for another one that runs at the same time, and raises without it
SLOW = 16  # the job takes half a minute
INEXACT = 18  # the distribution looks wrong, and does so again
UNLUCKY = 19  # the distribution looks wrong, and does not when looked at again


def check(spec: JobSpec) -> None:
    if "\t" in spec.prompt:
        raise ValueError("the character '\\t' at position 0 is not known")


def digest(spec: JobSpec) -> str:
    return hashlib.sha256(json.dumps(spec.to_dict(), sort_keys=True).encode()).hexdigest()


def count(spec: JobSpec) -> JobRecord:
    """A record with few figures, unless the seed says otherwise."""
    started_s = time.time()
    if spec.seed == RAISES:
        raise RuntimeError("the dice are loaded")
    if spec.seed == DIES or (spec.seed == DIES_ONCE and _first_time(spec)):
        os.kill(os.getpid(), signal.SIGKILL)
    if spec.seed == TOGETHER:
        _meet(Path(spec.prompt))
    time.sleep(30 if spec.seed == SLOW else 0.05)
    law = {"dist/p_value": 1e-6 if spec.seed in (INEXACT, UNLUCKY) else 0.5}
    axes = {"draft": spec.draft, "k": spec.k, "seed": spec.seed, "verify": spec.verify}
    return JobRecord(
        digest=digest(spec),
        name=spec.name,
        status="counted",
        overrides=(),
        params={**axes, "proposal": spec.proposal, "tokens": spec.tokens},
        metrics={**law, "count/emitted": 1.0, "count/target_passes": float(os.getpid())},
        started_s=started_s,
        finished_s=time.time(),
    )


def clock(spec: JobSpec, counted: JobRecord, null: dict[str, float]) -> JobRecord:
    """One timed half of 50 ms; its pieces tell when, and in which process."""
    begun_ns = time.time_ns()
    time.sleep(30 if spec.seed == SLOW else 0.05)
    piece = {"wall_ns": time.time_ns() - begun_ns, "begun_ns": begun_ns, "pid": os.getpid()}
    data = json.loads(counted.to_json())
    data |= {"status": "done", "pieces": [piece], "finished_s": time.time()}
    data["metrics"] |= {"time/speedup_median": 1.5, **null}
    return JobRecord.from_json(json.dumps(data))


def null(spec: JobSpec) -> dict[str, float]:
    high = 1.2 if spec.timing == "whole" else 1.03
    return {"null/ratio_median": 1.0, "null/ratio_min": 0.97, "null/ratio_max": high}


def recheck(spec: JobSpec) -> float:
    return 1e-9 if spec.seed == INEXACT else 0.7


def estimate_s(specs: Sequence[JobSpec]) -> tuple[float, float]:
    return 2.0 * len(specs), 3.0 * len(specs)


def _first_time(spec: JobSpec) -> bool:
    mark = Path(spec.prompt) / f"died-{spec.draft}-{spec.k}"
    if mark.exists():
        return False
    mark.touch()
    return True


def _meet(folder: Path) -> None:
    (folder / f"here-{os.getpid()}").touch()
    end_s = time.monotonic() + 20
    while len(list(folder.glob("here-*"))) < 2:
        if time.monotonic() > end_s:
            raise TimeoutError("no other job ran at the same time")
        time.sleep(0.01)

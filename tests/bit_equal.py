"""A program of its own for `test_bit_equal`: jobs, decoded in one process, and what they came to.

`python -m tests.bit_equal FOLDER THREADS` writes digests.json and rows.npy. The processor's
capability is the environment's (`ATEN_CPU_CAPABILITY`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pipeline import counts, distribution, job
from pipeline.sampling import SeedBatch, Uniforms
from pipeline.spec import JobSpec
from pipeline.workbench import Workbench

TOKENS, SEEDS, LANES = 16, (0, 17, 31), 32
OPTIONS: dict[str, dict[str, Any]] = {
    "bigram": {"kind": "bigram"},
    "int8": {"kind": "quantized", "bits": 8},
    "int4": {"kind": "quantized", "bits": 4},
}
RULES = {"bigram": "token", "int8": "block", "int4": "match"}


def jobs(seed: int) -> list[JobSpec]:
    """One for each draft, each with another rule."""
    return [
        JobSpec(name, options, 4, seed, verify=RULES[name], tokens=TOKENS, draws=40)
        for name, options in OPTIONS.items()
    ]


def alone(seed: int) -> dict[str, str]:
    """Digest of each job of a seed, decoded by itself."""
    found = {}
    for spec in jobs(seed):
        bench = Workbench.of(spec, torch.float64)
        trace = counts.trace(bench.speculative(Uniforms(seed)).steps, bench.rule)
        found[f"{spec.draft} {seed}"] = counts.digest(trace)
    return found


def batch() -> dict[str, str]:
    """The same, of `LANES` seeds that are decoded side by side, a lane each."""
    found = {}
    for spec in jobs(0):
        bench = Workbench.of(spec, torch.float64)
        steps = list(bench.speculative(SeedBatch(list(range(LANES))), LANES).steps)
        for seed in SEEDS:
            digest = counts.digest(counts.trace(steps, bench.rule, seed))
            found[f"{spec.draft} {seed}"] = digest
    return found


def reused() -> dict[str, str]:
    """What `job.count` tags them with, in a process that has run others and a float32 side."""
    distribution.PIT_TEXTS = 2  # what is checked beside the counts may be quick here
    found = {}
    for spec in jobs(SEEDS[0]):
        for _ in Workbench.of(spec, torch.float32).speculative(Uniforms(9)).steps:
            pass
        found[f"{spec.draft} {spec.seed}"] = job.count(spec).tags["counts.digest"]
    return found


def rows() -> np.ndarray[Any, np.dtype[np.float64]]:
    """The target's rows `(T, V)` along a fixed text."""
    bench = Workbench.of(jobs(0)[0], torch.float64)
    ids = torch.from_numpy(np.arange(200)[None] % bench.target.cfg.vocab)
    with torch.inference_mode():
        return bench.spec.sampling.rows(bench.target(ids).numpy()[0])


def main(folder: Path, threads: int) -> None:
    torch.set_num_threads(threads)
    digests = {
        "alone": {key: value for seed in SEEDS for key, value in alone(seed).items()},
        "batch": batch(),
        "reused": reused(),
        "capability": torch.backends.cpu.get_cpu_capability(),
    }
    torch.set_num_threads(threads)
    (folder / "digests.json").write_text(json.dumps(digests), encoding="utf-8")
    np.save(folder / "rows.npy", rows())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

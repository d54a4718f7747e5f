"""Counting many seeds in one batch against one by one; and with two workers against one."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import torch

from pipeline import counts, job
from pipeline.bench import sides, turns
from pipeline.bench.figures import Figure, Goal, Part
from pipeline.pool import Ok, Task, beside
from pipeline.sampling import SeedBatch, Uniforms
from pipeline.spec import JobSpec
from pipeline.workbench import Workbench

NAME = "counting"
BATCH = Goal("at least", 5)
DRAFTS = "bigram,int8"


def measure(count: int, tokens: int, seeds: int) -> Part:
    """ValueError where a seed's digest in a batch is not the one it has alone."""
    figures: list[Figure] = []
    for spec in sides.specs(f"draft={DRAFTS}", f"tokens={tokens}", "timing=skip"):
        figures.append(_batch(spec, count, seeds))
    return Part(tuple(figures), ("every seed has the same counts.digest in a batch as alone",))


def _batch(spec: JobSpec, count: int, seeds: int) -> Figure:
    torch.set_num_threads(1)
    bench = Workbench.of(spec, torch.float64)
    numbers = list(range(seeds))
    check(one_by_one(bench, numbers), in_a_batch(bench, numbers), spec)  # and warm-up
    calls = {
        "one by one": lambda: one_by_one(bench, numbers),
        "batch": lambda: in_a_batch(bench, numbers),
    }
    found = turns.alternate(calls, count, warm_up=False)
    values = turns.ratios(found, "one by one", "batch")
    name = f"{spec.draft} k={spec.k}, {seeds} seeds: one by one / in a batch"
    return Figure(NAME, name, values, BATCH, "x", tuple(turn.row() for turn in found))


def one_by_one(bench: Workbench, seeds: list[int]) -> list[str]:
    """counts.digest of each seed."""
    return [
        counts.digest(counts.trace(bench.speculative(Uniforms(seed)).steps, bench.rule))
        for seed in seeds
    ]


def in_a_batch(bench: Workbench, seeds: list[int]) -> list[str]:
    """The same, a lane a seed."""
    steps = list(bench.speculative(SeedBatch(seeds), len(seeds)).steps)
    return [counts.digest(one) for one in counts.traces(steps, bench.rule, range(len(seeds)))]


def check(alone: list[str], batch: list[str], spec: JobSpec) -> None:
    """ValueError where they differ."""
    differ = [seed for seed, (a, b) in enumerate(zip(alone, batch, strict=True)) if a != b]
    if differ:
        raise ValueError(
            f"{spec.name}: seed {differ[0]} has other counts in a batch than alone; "
            "that is a fault of the engine, please report it"
        )


def workers(times: int, jobs: int, draws: int) -> Part:
    """`jobs` of the default sweep counted with n_jobs=2 and n_jobs=1, start of workers included."""
    found = sides.specs("draft=bigram,int8,int4", "timing=skip", f"draws={draws}")
    tasks = [
        Task(f"{index}", job.count, (replace(found[index % len(found)], seed=index),))
        for index in range(jobs)
    ]
    calls = {"n_jobs=1": lambda: count(tasks, 1), "n_jobs=2": lambda: count(tasks, 2)}
    turned = turns.alternate(calls, times, warm_up=False)
    values = turns.ratios(turned, "n_jobs=1", "n_jobs=2")
    raw = tuple(turn.row() for turn in turned)
    return Part((Figure(NAME, f"{jobs} jobs: n_jobs=1 / n_jobs=2", values, None, "x", raw),))


def count(tasks: list[Task], n_jobs: int) -> None:
    """Run all `tasks`. RuntimeError where one fails."""
    with closing(beside(tasks, n_jobs, lambda keys: None)) as outcomes:
        for _, outcome in outcomes:
            if not isinstance(outcome, Ok):
                raise RuntimeError(f"a counting job failed: {outcome.error.message}")

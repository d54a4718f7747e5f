"""How long jobs would take here: small ones are run and scaled up. For `make dry-run`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from pipeline.pairs import PairPlan
from pipeline.spec import JobSpec

Run = Callable[[JobSpec], object]
TRIALS = 12  # kinds of job that are tried; others are taken for the mean of these
FEW, SOME = 50, 1000  # draws of a trial
TOKENS = 25  # of a timed trial
SHARING = 0.85  # draws share prefixes: twice as many cost 2 ** SHARING as much


def estimate_s(jobs: Sequence[JobSpec], count: Run, halves: Run) -> tuple[float, float]:
    """Seconds of counting (one after the other) and of timing for `jobs`.

    `count` runs a job's exact side, `halves` one baseline and one speculative half.
    """
    kinds: dict[tuple[object, ...], JobSpec] = {}
    for job in jobs:
        kinds.setdefault(_kind(job), job)
    first = next(iter(kinds.values()))
    decode_s = _seconds(count, replace(first, draws=FEW))  # loading and decoding, hardly a draw
    load_s = _seconds(count, replace(first, draws=FEW, tokens=1))
    halves(replace(first, tokens=1))  # where passes are compiled, that is once for all
    open_s = _seconds(halves, replace(first, tokens=1))
    tried = {}
    for kind, job in list(kinds.items())[:TRIALS]:
        draws_s = _seconds(count, replace(job, draws=SOME, tokens=1)) - load_s
        short = replace(job, tokens=min(TOKENS, job.tokens))
        if job.compile:
            halves(short)
        tried[kind] = max(0.0, draws_s), max(0.0, _seconds(halves, short) - open_s) / short.tokens
    usual = tuple(sum(column) / len(tried) for column in zip(*tried.values(), strict=True))
    count_s = clock_s = 0.0
    for job in jobs:
        draws_s, token_s = tried.get(_kind(job), usual)
        count_s += decode_s + draws_s * (job.draws / SOME) ** SHARING
        if job.timing != "skip":
            clock_s += open_s + token_s * job.tokens * 1.5  # warm-up and costs
            clock_s += _pairs_s(job, token_s * job.tokens)
    return count_s, clock_s


def _pairs_s(job: JobSpec, pair_s: float) -> float:
    """Seconds of all pairs; of adaptive ones midway between the least and the most, as a guess."""
    least_s = pair_s * job.pairs
    if job.timing != "adaptive":
        return least_s
    most = pair_s * (job.most_pairs or PairPlan.most_pairs)
    return max(least_s, min((least_s + most) / 2, job.limit_s or PairPlan.limit_s))


def _kind(job: JobSpec) -> tuple[object, ...]:
    return job.draft, job.k, job.k_auto, job.verify, job.proposal, job.tree, job.compile


def _seconds(run: Run, job: JobSpec) -> float:
    begun_s = time.perf_counter()
    run(job)
    return time.perf_counter() - begun_s

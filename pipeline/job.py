"""One job: a composed config in, a `JobRecord` out. The only place where the parts meet.

`count` is the exact side and runs anywhere; `clock` is the timed side and must have the machine to
itself. Both may run in any process, in any order of jobs: nothing is kept between them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
import torch

from pipeline import (
    costs,
    counts,
    distribution,
    engine,
    estimate,
    memory,
    pairs,
    programs,
    spec,
    ties,
    timed,
    timing,
)
from pipeline.clocks import Decode, Timed
from pipeline.drafts import parts_of
from pipeline.reading import open_texts
from pipeline.records import JobRecord, Round
from pipeline.sampling import Uniforms
from pipeline.spec import JobSpec
from pipeline.weights import digest as weights_digest
from pipeline.workbench import Workbench

NEAR_TIE = 1e-9
"""Bound on the rounding error of a probability row in float64. Measured on the shipped target over
200 characters: with other instruction sets (none, AVX2, AVX-512) no entry of a row differs by more
than 8e-15, so the bound is generous by five digits. A decision nearer to its threshold than this
could go the other way on another machine."""


def check(job: JobSpec) -> None:
    """ValueError, one sentence, for anything in the job that cannot work. Loads the weights."""
    Workbench.of(job, torch.float32)
    if job.compile and job.timing != "skip":
        programs.check_compiler()


def digest(job: JobSpec) -> str:
    """job.digest: the hash of all that can change the job's figures."""
    return spec.digest(job, _weights(job))


def count(job: JobSpec) -> JobRecord:
    """The exact side: what was drafted, accepted, emitted, and whether the law is the target's."""
    started_s = time.time()
    torch.set_num_threads(1)
    bench = Workbench.of(job, torch.float64)
    run = bench.speculative(Uniforms(job.seed))
    trace = counts.trace(run.steps, bench.rule)
    text = np.array(trace.tokens)
    trace = counts.with_gaps(trace, ties.gaps(bench, text))
    law = distribution.metrics(bench, text)
    near_tie = trace.margin_min < NEAR_TIE
    return JobRecord(
        digest=digest(job),
        name=job.name,
        status="counted",
        overrides=(),
        params=job.params(),
        metrics={
            **counts.metrics(trace),
            "count/draft_length": _usual(job, trace.rounds),
            **law,
            **memory.metrics(bench, run, trace),
        },
        series=counts.by_position(trace),
        tags={
            "counts.digest": counts.digest(trace),
            "weights.digest": _weights(job),
            "job.digest": digest(job),
            "code.digest": spec.code_digest(),
            "exactness": "near-tie" if near_tie else "ok",
            **engine.tags(),
        },
        rounds=counts.tidy(trace),
        notes=(_near_tie_note(trace.margin_min),) if near_tie else (),
        text=bench.vocabulary.decode(trace.tokens),
        started_s=started_s,
        finished_s=time.time(),
    )


def clock(job: JobSpec, counted: JobRecord, null: dict[str, float]) -> JobRecord:
    """The timed side, added to what was counted. `null` is the baseline against itself."""
    started_s = time.time()
    bench, sides = timed_sides(job)
    opened: list[Decode] = []  # the first only warmed up, then one a pair

    def speculative() -> Decode:
        opened.append(sides.speculative())
        return opened[-1]

    measured = pairs.measure(sides.baseline, speculative, _plan(job))
    found = pairs.statistics(measured.pairs)
    side = opened[-1]
    emitted = bench.vocabulary.decode(side.emitted())
    rounds = _rounds(counted)
    text = np.array(bench.vocabulary.encode(counted.text))
    cost = costs.measure(sides, text, rounds)
    same = emitted == counted.text and side.accepted == [r.accepted for r in rounds]
    metrics = {
        **counted.metrics,
        **timed.metrics(found, same),
        **timed.costs(cost, counted.metrics, found.median),
        **null,
    }
    parted = ties.departure(bench, text, side.emitted()) if job.temperature == 0 else None
    verdict = pairs.verdict(found, null.get("null/ratio_min"), null.get("null/ratio_max"))
    return replace(
        counted,
        status="done",
        metrics=metrics,
        series={**counted.series, **timed.series(found)},
        tags={**counted.tags, "verdict": verdict, "timing.stopped": measured.stopped},
        pieces=pairs.tidy(measured.pairs),
        timed_rounds=timed.rounds(opened[1:]),
        notes=(*counted.notes, *timed.notes(found, same), *([parted] if parted else [])),
        started_s=min(counted.started_s, started_s),
        finished_s=time.time(),
    )


def null(job: JobSpec) -> dict[str, float]:
    """The baseline against itself through the very same code: what noise alone shows here."""
    # of as many pairs however noisy: its range would grow with their number
    job = replace(job, timing="pairs") if job.timing == "adaptive" else job
    _, sides = timed_sides(job)
    measured = pairs.measure(sides.baseline, sides.baseline, _plan(job))
    found = pairs.statistics(measured.pairs)
    return {
        "null/ratio_median": found.median,
        "null/ratio_min": found.minimum,
        "null/ratio_max": found.maximum,
    }


def estimate_s(jobs: Sequence[JobSpec]) -> tuple[float, float]:
    """Seconds of counting and of timing that `jobs` would take here, after a few small trials."""
    return estimate.estimate_s(jobs, count, _halves)


def _halves(job: JobSpec) -> None:
    _, sides = timed_sides(job)
    for side in (sides.baseline(), sides.speculative()):
        side.advance(job.tokens)


def recheck(job: JobSpec) -> float:
    """p-value of the distribution checks with ten times the draws, on a fresh stream."""
    torch.set_num_threads(1)
    return distribution.recheck(Workbench.of(job, torch.float64))


def timed_sides(job: JobSpec) -> tuple[Workbench, Timed]:
    """The job's models in float32, and its two sides, ready to be timed."""
    torch.set_num_threads(job.threads)
    bench = Workbench.of(job, torch.float32)
    if job.compile:
        bench.compile()
    room = len(bench.prompt) + job.tokens
    sides = Timed(
        open_target=lambda ids: open_texts(bench.target, ids, room, None),
        open_draft=lambda ids: bench.draft.open(ids, room, None, torch.float32),
        prompt=bench.prompt,
        tokens=job.tokens,
        method=bench.method,
        uniforms=Uniforms(job.seed),
        eos=bench.eos,
    )
    return bench, sides


def _plan(job: JobSpec) -> pairs.PairPlan:
    mode: Any = job.timing
    ends = {name: getattr(job, name) for name in timing.ADAPTIVE}
    return pairs.PairPlan(
        tokens=job.tokens,
        round_tokens=job.k + 1,
        pairs=job.pairs,
        piece_tokens=job.piece_tokens,
        mode=mode,
        seed=job.seed,
        **{name: value for name, value in ends.items() if value is not None},
    )


def _weights(job: JobSpec) -> str:
    return weights_digest(job.weights, ("target", *parts_of(job.draft_options)))


def _usual(job: JobSpec, rounds: Sequence[Round]) -> float:
    """Tokens drafted a round, on average, where the text's end leaves room for k: mostly k."""
    free = [r.drafted for r in rounds if r.start + job.k < job.tokens]
    return fmean(free) if free else job.k


def _rounds(counted: JobRecord) -> list[Round]:
    """The counted rounds again, from their rows; the costs need their shape, not their tokens."""
    return [Round(r["start"], r["k"], r["accepted"], (), r.get("nodes", 0)) for r in counted.rounds]


def _near_tie_note(margin: float) -> str:
    return (
        f"near-tie: the closest decision was {margin:.1e} from going the other way, under the "
        f"bound of {NEAR_TIE:.0e} on rounding; another machine may count differently"
    )

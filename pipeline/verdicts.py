"""Exactness over a whole sweep: many tests, corrected for their number, and a second look.

Pure functions of records. Of 128 tests one lies below 0.01 by chance alone; so p-values are
Holm-adjusted, a job whose adjusted p is below 0.05 is tested again by itself with ten times the
draws on a fresh stream, and only if that is below 0.001 is it rejected. A sweep without fault
comes to the second look 1 time in 20 at most, and is rejected there 1 time in 1000.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.exactness import holm
from pipeline.records import JobRecord

TESTS = ("dist/p_value", "dist/pit_p_value")
AGAIN = "dist/recheck_p_value"
LOOK_AGAIN_BELOW = 0.05
REJECT_BELOW = 0.001
REJECTED = "REJECTED"


@dataclass(frozen=True)
class Statement:
    """What a sweep's tests say together. `metrics` is empty where nothing was tested."""

    sentence: str
    rejected: tuple[JobRecord, ...]
    metrics: dict[str, float]


def suspects(records: Sequence[JobRecord]) -> tuple[JobRecord, ...]:
    """The jobs to test again: a Holm-adjusted p below 0.05, and no second look yet."""
    return tuple(
        record
        for record, p_value in zip(records, adjusted(records), strict=True)
        if p_value < LOOK_AGAIN_BELOW and AGAIN not in record.metrics
    )


def rechecked(record: JobRecord, p_value: float) -> JobRecord:
    """The record with its second look, whose p-value is `p_value`, and what follows from it."""
    tags, found = dict(record.tags), f"p = {p_value:.2g} with ten times the draws"
    if p_value < REJECT_BELOW:
        tags["exactness"] = REJECTED
        note = f"REJECTED: the text is not distributed as the target's ({found})"
    else:
        note = f"tested again after a small p-value, and nothing against exactness ({found})"
    return replace(
        record,
        metrics={**record.metrics, AGAIN: p_value},
        tags=tags,
        notes=(*record.notes, f"{record.name}: {note}"),
    )


def adjusted(records: Sequence[JobRecord]) -> list[float]:
    """The smallest Holm-adjusted p of each job's tests; 1 for a job without."""
    tests = [
        (i, r.metrics[name]) for i, r in enumerate(records) for name in TESTS if name in r.metrics
    ]
    smallest = [1.0] * len(records)
    for (i, _), p_value in zip(tests, holm([p for _, p in tests]), strict=True):
        smallest[i] = min(smallest[i], p_value)
    return smallest


def holm_statement(records: Sequence[JobRecord]) -> Statement:
    """One sentence over all jobs that were tested, those rejected, and the parent run's figures."""
    tested = [r for r in records if any(name in r.metrics for name in TESTS)]
    if not tested:
        return Statement("no job's distribution was tested", (), {})
    tests = sum(name in r.metrics for r in tested for name in TESTS)
    smallest = min(adjusted(tested))
    rejected = tuple(r for r in tested if r.tags.get("exactness") == REJECTED)
    counted = f"{many(len(tested), 'job')}, {many(tests, 'test')} of the distribution"
    sentence = f"{counted}: smallest Holm-adjusted p {smallest:.2g}: {_verdict(tested, rejected)}"
    metrics = {
        "sweep/tests": float(tests),
        "sweep/holm_p_value": smallest,
        "sweep/rejected": float(len(rejected)),
    }
    return Statement(sentence, rejected, metrics)


def _verdict(tested: Sequence[JobRecord], rejected: Sequence[JobRecord]) -> str:
    if rejected:
        return f"REJECTED: {', '.join(r.name for r in rejected)}"
    if waiting := suspects(tested):
        return f"to be tested again: {', '.join(r.name for r in waiting)}"
    again = [r for r in tested if AGAIN in r.metrics]
    if again:
        looked = f"{many(len(again), 'job')} tested again with ten times the draws"
        return f"{looked}, nothing against exactness"
    return "nothing against exactness"


def many(count: int, thing: str) -> str:
    """ "1 job", "2 jobs"."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"

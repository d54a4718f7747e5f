"""The parts of a sweep: count side by side, look again at what is suspect, time alone."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from pipeline import nulls, verdicts
from pipeline.idle import IdleCheck
from pipeline.lock import alone
from pipeline.plan import Job
from pipeline.pool import Ok, Outcome, Task, apart, beside
from pipeline.records import JobRecord

if TYPE_CHECKING:
    from pipeline.run import Sweep

NULL = "null of "  # before the kind of baseline, in a task's key


def count(sweep: Sweep) -> None:
    """Count every job that has no counts yet."""
    todo = [job for job in sweep.plan.jobs if not sweep.has(job, "counted", "done")]
    if not todo:
        return
    begun_s = time.monotonic()
    tasks = [Task(job.digest, sweep.jobs.count, (job.spec,)) for job in todo]
    with sweep.show.phase("counting", len(todo)) as phase:

        def running(keys: Sequence[str]) -> None:
            phase.running(sweep.begin(keys))

        with closing(beside(tasks, sweep.plan.workers, running)) as outcomes:
            for key, outcome in outcomes:
                phase.done(*sweep.take(key, outcome))
    sweep.seconds["sweep/count_s"] = time.monotonic() - begun_s


def look_again(sweep: Sweep) -> None:
    """Test those jobs again whose distribution looks wrong, with more draws."""
    found = [
        sweep.records[job.digest] for job in sweep.plan.jobs if sweep.has(job, "counted", "done")
    ]
    suspects = verdicts.suspects(found)
    if not suspects:
        return
    specs = {record.digest: sweep.by_digest[record.digest].spec for record in suspects}
    tasks = [Task(key, sweep.jobs.recheck, (spec,)) for key, spec in specs.items()]
    with sweep.show.phase("testing again", len(tasks)) as phase:

        def running(keys: Sequence[str]) -> None:
            phase.running([sweep.by_digest[key].name for key in keys])

        with closing(beside(tasks, sweep.plan.workers, running)) as outcomes:
            for key, outcome in outcomes:
                if isinstance(outcome, Ok):
                    sweep.amend(verdicts.rechecked(sweep.records[key], outcome.value))
                    phase.done(sweep.by_digest[key].name)
                else:
                    phase.done(*sweep.take(key, outcome))


def clock(sweep: Sweep) -> None:
    """Time every job that is only counted, one at a time, the machine's clocks held."""
    todo = [job for job in sweep.plan.jobs if sweep.has(job, "counted")]
    if not todo:
        return
    with alone(sweep.clock_lock, sweep.show.say), sweep.show.phase("timing", len(todo)) as phase:
        begun_s = asked_s = time.monotonic()
        meter = sweep.recorder.meter()
        idle = IdleCheck(sweep.plan.idle, sweep.recorder.meter(), sweep.show.say)

        def running(keys: Sequence[str]) -> None:
            nonlocal asked_s
            for_null = keys[0].startswith(NULL)
            names = ["null"] if for_null else [sweep.by_digest[key].name for key in keys]
            idle.before(", ".join(names))
            phase.running(names if for_null else sweep.begin(keys))
            asked_s = time.monotonic()
            meter.start()

        with closing(apart(_clock_tasks(sweep, todo), running)) as outcomes:
            for key, outcome in outcomes:
                load = meter.stop()
                idle.seen(load[0])
                if key.startswith(NULL):
                    _take_null(sweep, key.removeprefix(NULL), outcome)
                    begun_s += time.monotonic() - asked_s  # and the worker's start: no job's time
                else:
                    phase.done(*sweep.take(key, outcome, load))
                    sweep.timed_s += _timed_s(sweep.records[key])
        sweep.seconds["sweep/clock_s"] = time.monotonic() - begun_s - idle.waited_s


def _clock_tasks(sweep: Sweep, todo: Sequence[Job]) -> Iterator[Task]:
    """Before the first job of a kind of baseline its null, where it has not been measured.

    A job's task is made when its null is known, or could not be measured.
    """
    tried: set[str] = set()
    for job in todo:
        kind = nulls.kind(job.spec)
        if kind not in tried and kind not in sweep.store.read_nulls():
            yield Task(NULL + kind, sweep.jobs.null, (job.spec,))
        tried.add(kind)
        null = sweep.store.read_nulls().get(kind, {})
        yield Task(job.digest, sweep.jobs.clock, (job.spec, sweep.records[job.digest], null))


def _take_null(sweep: Sweep, kind: str, outcome: Outcome) -> None:
    if isinstance(outcome, Ok):
        sweep.store.write_nulls({**sweep.store.read_nulls(), kind: outcome.value})
    else:
        sweep.show.say(f"the null could not be measured: {outcome.error.message}")


def _timed_s(record: JobRecord) -> float:
    """Seconds inside timed halves."""
    return float(sum(piece["wall_ns"] for piece in record.pieces) / 1e9)

"""The parts of a sweep: count side by side, look again at what is suspect, time alone."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from pipeline import verdicts
from pipeline.idle import IdleCheck
from pipeline.lock import alone
from pipeline.plan import Job
from pipeline.pool import Ok, Outcome, Task, apart, beside
from pipeline.records import JobRecord

if TYPE_CHECKING:
    from pipeline.run import Sweep

NULL = "null"


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
        begun_s = time.monotonic()
        meter = sweep.recorder.meter()
        idle = IdleCheck(sweep.plan.idle, sweep.recorder.meter(), sweep.show.say)

        def running(keys: Sequence[str]) -> None:
            names = [NULL] if NULL in keys else [sweep.by_digest[key].name for key in keys]
            idle.before(", ".join(names))
            phase.running([NULL] if NULL in keys else sweep.begin(keys))
            meter.start()

        with closing(apart(_clock_tasks(sweep, todo), running)) as outcomes:
            for key, outcome in outcomes:
                load = meter.stop()
                idle.seen(load[0])
                if key == NULL:
                    _take_null(sweep, outcome)
                    # the worker is up: from here on jobs are timed
                    begun_s, idle.waited_s = time.monotonic(), 0.0
                else:
                    phase.done(*sweep.take(key, outcome, load))
                    sweep.timed_s += _timed_s(sweep.records[key])
        sweep.seconds["sweep/clock_s"] = time.monotonic() - begun_s - idle.waited_s


def _clock_tasks(sweep: Sweep, todo: Sequence[Job]) -> Iterator[Task]:
    """The null first, where it has not been measured; the others are made when it is known."""
    if sweep.store.read_null() is None:
        yield Task(NULL, sweep.jobs.null, (todo[0].spec,))
    null = sweep.store.read_null() or {}
    for job in todo:
        yield Task(job.digest, sweep.jobs.clock, (job.spec, sweep.records[job.digest], null))


def _take_null(sweep: Sweep, outcome: Outcome) -> None:
    if isinstance(outcome, Ok):
        sweep.store.write_null(outcome.value)
    else:
        sweep.show.say(f"the null could not be measured: {outcome.error.message}")


def _timed_s(record: JobRecord) -> float:
    """Seconds inside timed halves."""
    return float(sum(piece["wall_ns"] for piece in record.pieces) / 1e9)

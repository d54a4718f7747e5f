"""How a sweep ends: the table, one computed sentence, what failed, how to go on, where to look."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline import advice, nulls, verdicts
from pipeline.headlines import headlines
from pipeline.plan import Job, this_python
from pipeline.records import JobRecord

if TYPE_CHECKING:
    from pipeline.run import Sweep

MOST_NOTES = 4


@dataclass(frozen=True)
class Ending:
    """`status` is the parent run's; `why` says what broke the sweep off, if something did, and
    `refused` why jobs that are left were not run."""

    status: str
    why: str = ""
    refused: str = ""


def finish(sweep: Sweep, ending: Ending) -> bool:
    """Write summary.json, close the sweep in the store, and show what came out.

    Whether the summary could be written.
    """
    records = [sweep.records[job.digest] for job in sweep.plan.jobs if job.digest in sweep.records]
    exact = verdicts.holm_statement(records)
    found = headlines(records)
    about = {**sweep.describe(), "status": ending.status.lower(), "exactness": exact.sentence}
    about["headlines"] = found.as_dict()
    about["advice"] = advice.as_dict(advice.advice(records))
    report = sweep.recorder.report(records, about)
    summary = report.summary()
    summary["jobs"] += [_missing(job) for job in sweep.plan.jobs if job.digest not in sweep.records]
    written = _write(sweep, summary)
    sweep.journal.send_rest()
    metrics = {**_metrics(sweep), **exact.metrics, **found.metrics}
    sent = sweep.journal.close(ending.status, metrics, report, summary)
    if records:
        report.print(sweep.show.console)
    _say_notes(sweep, records)
    if written:
        sweep.show.say(f"numbers: {sweep.store.folder / 'summary.json'}")
    _say_where(sweep, ending, sent)
    return written


def _write(sweep: Sweep, summary: dict[str, Any]) -> bool:
    try:
        sweep.store.write_summary(summary)
    except OSError as error:
        sweep.show.say(f"summary.json cannot be written: {error}")
        return False
    return True


def _missing(job: Job) -> dict[str, Any]:
    """A job of the plan that has not answered."""
    nothing: dict[str, Any] = {"status": "missing", "error": None, "metrics": {}, "tags": {}}
    return {"name": job.name, **job.axes, **nothing, "command": job.command, "digest": job.digest}


def _metrics(sweep: Sweep) -> dict[str, float]:
    """The sweep as a whole, for the parent run."""
    records = list(sweep.records.values())
    metrics = {
        "sweep/jobs": float(len(sweep.plan.jobs)),
        "sweep/failed": float(sum(record.status == "failed" for record in records)),
        **sweep.seconds,
        **nulls.together(list(sweep.store.read_nulls().values())),
    }
    clock_s = sweep.seconds.get("sweep/clock_s", 0.0)
    if clock_s and sweep.timed_s:
        metrics["sweep/timed_share"] = sweep.timed_s / clock_s
    return metrics


def _say_notes(sweep: Sweep, records: Sequence[JobRecord]) -> None:
    """What the jobs want to be read of them; each is in its run's description too."""
    notes = [
        note if note.startswith(record.name) else f"{record.name}: {note}"
        for record in records
        for note in record.notes
    ]
    for note in notes[:MOST_NOTES]:
        sweep.show.say(note)
    if len(notes) > MOST_NOTES:
        sweep.show.say(f"and {len(notes) - MOST_NOTES} more notes like these, in the jobs' runs")


def _say_where(sweep: Sweep, ending: Ending, sent: bool) -> None:
    """The last lines: where to look, and what to type next."""
    show, store = sweep.show, sweep.store
    if sent:
        show.say(f"MLflow: {sweep.recorder.ui_command(store.sweep_id)}")
    if ending.refused:
        show.say(ending.refused)
    again = f"make resume (or: {this_python()} -m pipeline.resume {store.sweep_id})"
    if ending.why:
        show.say(f"{ending.why}; {_done(sweep)}; go on with: {again}")
    elif not sent:
        where = ", with MLFLOW_TRACKING_URI set as now" if _by_environment(sweep) else ""
        told = f"not everything is in MLflow ({sweep.journal.trouble}); send it with: {again}"
        show.say(told + where)


def _done(sweep: Sweep) -> str:
    """How far a sweep is that was broken off."""
    done = sum(record.status in ("done", "failed") for record in sweep.records.values())
    counted = sum(record.status == "counted" for record in sweep.records.values())
    more = f", {counted} more are counted and wait for their timing" if counted else ""
    return f"{done} of {len(sweep.plan.jobs)} jobs are done{more}"


def _by_environment(sweep: Sweep) -> bool:
    """Whether the store is the environment's, which nobody remembers for the next command."""
    return not sweep.plan.tracking.get("uri") and bool(os.environ.get("MLFLOW_TRACKING_URI"))

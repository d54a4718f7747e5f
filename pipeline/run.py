"""A sweep from plan to conclusion: each job's answer is kept as soon as it is there.

A job's record is on disk before the store of runs hears of it; so the sweep can be killed at any
moment and goes on from its folder.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline import nulls, phases, verdicts
from pipeline.anonymous import hidden_record
from pipeline.ending import Ending, finish
from pipeline.journal import Journal, Recorder
from pipeline.lock import machine_lock_path
from pipeline.origin import machine_of
from pipeline.plan import Job, Jobs, Plan
from pipeline.pool import Err, Ok, Outcome
from pipeline.progress import Show
from pipeline.records import JobError, JobRecord
from pipeline.stop import Stop, Stopped, kill_workers
from pipeline.store import Store

_CHANGED = JobError(
    "CodeChanged",
    "code or weights were changed while the sweep ran; `make resume` runs it with those of now",
    "",
)
Load = tuple[dict[str, float], dict[str, str]]  # metrics and tags


class Sweep:
    """One run over a plan; what an earlier one left in the folder is not done again."""

    def __init__(
        self,
        plan: Plan,
        store: Store,
        jobs: Jobs,
        recorder: Recorder,
        stop: Stop,
        show: Show,
        tags: Mapping[str, str],
        clock_lock: Path | None = None,
    ) -> None:
        self.plan, self.store, self.jobs, self.recorder = plan, store, jobs, recorder
        self.stop, self.show = stop, show
        self.clock_lock = clock_lock or machine_lock_path()
        self.by_digest = {job.digest: job for job in plan.jobs}
        on_disk = store.records()
        self.records = {key: on_disk[key] for key in self.by_digest if key in on_disk}
        self.seconds: dict[str, float] = {}
        self.timed_s = 0.0  # inside timed halves
        self.sends_only = False  # on another machine than the sweep's
        self.refused = ""  # then: the sentence for the jobs that are left
        self._begun_s: dict[str, float] = {}  # by digest, Unix time
        description = f"`{plan.command}`: {len(plan.jobs)} jobs"
        self.journal = Journal(recorder, (store.sweep_id, description, tags), stop, show.say)

    def run(self) -> int:
        """The exit code: 0, 1 where a job failed or the disk refused, above 128 when stopped."""
        try:
            with self.show.live():
                self.journal.open()
                self._send_known()
                if not self.sends_only:
                    phases.count(self)
                    phases.look_again(self)
                    phases.clock(self)
            ending = Ending(self._status(), refused=self.refused)
        except Stopped:
            ending = Ending("KILLED", "stopped")
        except OSError as error:  # our own folder: the store's troubles end in the journal
            ending = Ending("KILLED", f"the results cannot be written ({error.strerror or error})")
        finally:
            kill_workers()
        try:
            with self.stop.whole():
                kept = finish(self, ending)
        except Stopped:  # heard while finishing
            pass
        if self.stop.signal is not None:
            return self.stop.exit_code
        return 0 if ending.status == "FINISHED" and kept else 1

    def _send_known(self) -> None:
        """What is done goes to the store; what failed too, where it is not run again."""
        for record in self.records.values():
            if record.status == "done" or (self.sends_only and record.status == "failed"):
                self.journal.log(record)

    def has(self, job: Job, *statuses: str) -> bool:
        """Whether the job has a record of one of these statuses."""
        return job.digest in self.records and self.records[job.digest].status in statuses

    def begin(self, keys: Sequence[str]) -> list[str]:
        """Show jobs as running in the store, each once; their names."""
        for key in keys:
            if key not in self._begun_s:
                self._begun_s[key] = time.time()
                self.journal.started(self.by_digest[key])
        return [self.by_digest[key].name for key in keys]

    def take(self, key: str, outcome: Outcome, load: Load = ({}, {})) -> tuple[str, str]:
        """Keep what a job answered: on disk first, then in the store. Its name, and its error."""
        job = self.by_digest[key]
        if isinstance(outcome, Ok) and outcome.value.digest != key:
            outcome = Err(_CHANGED)
        if isinstance(outcome, Err):
            record = self._failure(job, outcome.error)
        else:
            answer: JobRecord = outcome.value
            skips = answer.status == "counted" and job.spec.timing == "skip"
            record = replace(
                answer,
                name=job.name,
                overrides=job.overrides,
                status="done" if skips else answer.status,
                metrics={**load[0], **answer.metrics},
                tags={**load[1], **answer.tags},
            )
        if self.plan.is_anonymous:
            record = hidden_record(record)
        with self.stop.whole():
            self._write(record)
            if record.status != "counted":
                self.journal.log(record)
        return job.name, record.error.message if record.error else ""

    def amend(self, record: JobRecord) -> None:
        """Keep more about a job that has answered."""
        with self.stop.whole():
            self._write(record)
            if record.status == "done":
                self.journal.amend(record)

    def _write(self, record: JobRecord) -> None:
        self.store.write_record(record)
        self.records[record.digest] = record

    def _status(self) -> str:
        """What the store is told of a sweep that was not stopped; elsewhere it may be half done."""
        answered = all(self.has(job, "done", "failed") for job in self.plan.jobs)
        if self.sends_only and not answered:
            return "KILLED"
        return "FAILED" if self._wrong() else "FINISHED"

    def _wrong(self) -> bool:
        """Whether a job has not come through, or its text is not distributed as the target's."""
        rejected = [
            r for r in self.records.values() if r.tags.get("exactness") == verdicts.REJECTED
        ]
        return bool(rejected) or not all(self.has(job, "done") for job in self.plan.jobs)

    def _failure(self, job: Job, error: JobError) -> JobRecord:
        """What is known of a job that raised: why, and no figure."""
        now_s = time.time()
        return JobRecord(
            digest=job.digest,
            name=job.name,
            status="failed",
            overrides=job.overrides,
            params=job.spec.params(),
            error=error,
            started_s=self._begun_s.get(job.digest, now_s),
            finished_s=now_s,
        )

    def describe(self) -> dict[str, Any]:
        """The sweep for its summary."""
        return {
            "id": self.store.sweep_id,
            "command": self.plan.command,
            "description": f"{verdicts.many(len(self.plan.jobs), 'job')}, "
            f"{verdicts.many(self.plan.workers, 'worker')}",
            "created_s": self.plan.created_s,
            "machine": machine_of(self.plan),
            "jobs": len(self.plan.jobs),
            "workers": self.plan.workers,
            "null": nulls.together(list(self.store.read_nulls().values())),
            "seconds": dict(self.seconds),
        }

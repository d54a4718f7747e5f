"""The one writer to MLflow. The sweep's parent process calls it, from one thread.

Every call can be repeated: what is there is looked up first, so that a sweep that was cut off, or
a store that was away for a while, neither loses nor doubles a run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.records import JobRecord
from tracking import closing, names
from tracking.load import Meter
from tracking.location import Location, locate
from tracking.machine import describe
from tracking.notes import experiment_note
from tracking.payload import (
    Payload,
    Point,
    RunStatus,
    as_text,
    payload,
    shorten,
    sweep_params,
)
from tracking.python import this_python
from tracking.reach import reach
from tracking.report import Report
from tracking.runs import NOTE_TAG, Child, SweepRuns, run_page
from tracking.store import Store, open_existing, open_store, wait_for_lock
from tracking.trouble import unavailable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROJECT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class _Sweep:
    sweep_id: str
    description: str
    tags: dict[str, str]


class Recorder:
    """Writes a sweep and its jobs to MLflow.

    `uri` is MLflow's address, None for MLFLOW_TRACKING_URI or else the project's own mlflow.db;
    `root` is the project's folder; `machine` stands for the host's name, `anonymous` hides it;
    `patience_s` is how long a locked SQLite file is waited for.

    All but the constructor, `check` and `machine` raise StoreUnavailable where the store does not
    do its part. The figures are not lost then: call again later with the same record.
    """

    def __init__(
        self,
        uri: str | None = None,
        root: Path | str | None = None,
        experiment: str = "specsweep",
        machine: str | None = None,
        anonymous: bool = False,
        patience_s: float = 3.0,
    ) -> None:
        self.root = Path(root) if root is not None else PROJECT
        self.experiment = experiment
        self.patience_s = patience_s
        self._uri, self._machine, self._anonymous = uri, machine, anonymous
        self._location: Location | None = None
        self._store: Store | None = None
        self._sweep: _Sweep | None = None
        self._runs: SweepRuns | None = None
        self._mine: set[str] = set()  # runs that this process began
        self._unsure = False  # a request failed: it may yet have been carried out

    def check(self) -> Location:
        """Where the runs will go; touches nothing. ValueError for an address of no use."""
        if not isinstance(self.experiment, str) or not self.experiment.strip():
            raise ValueError(
                f"tracking.experiment={self.experiment!r}: give the name of an experiment"
            )
        if self._location is None:
            self._location = locate(self._uri, self.root)
        return self._location

    def machine(self) -> dict[str, str]:
        """The `machine.*` tags that every run gets; takes about a second the first time."""
        return describe(self._machine, self._anonymous)

    def meter(self) -> Meter:
        """Measures the load around a timed job."""
        return Meter()

    def report(self, records: Sequence[JobRecord], sweep: Mapping[str, Any]) -> Report:
        """What a sweep has to show; this machine is added where it does not say its own."""
        return Report(records, {"machine": self.machine(), **sweep})

    def ui_command(self, sweep_id: str) -> str:
        """How to see a sweep: the address of its page on a server, else the command for it."""
        location = self.check()
        if self._store is not None and self._runs is not None and location.is_server:
            return run_page(location.page, self._store.experiment_id, self._runs.parent_id)
        return f"make ui (or: {this_python()} -m tracking ui --sweep {sweep_id})"

    def open(self) -> Store:
        """Connects; creates the database and the experiment where they are missing."""
        if self._store is None:
            location = self.check()
            wait_for_lock(location, self.patience_s)
            self._store = open_store(location, self.experiment, experiment_note())
        return self._store

    def open_existing(self) -> Store | None:
        """Connects for reading; None, and nothing is created, where there is nothing to read."""
        if self._store is None:
            location = self.check()
            wait_for_lock(location, self.patience_s)
            self._store = open_existing(location, self.experiment)
        return self._store

    def open_sweep(self, sweep_id: str, description: str, tags: Mapping[str, str]) -> None:
        """The parent run: a new one, or that of a sweep which goes on. All jobs get its tags.

        The machine's tags are added where `tags` has none.
        """
        names.check_tags(tags)
        told = {name: shorten(as_text(value)) for name, value in tags.items()}
        if "machine.id" not in told:
            told = self.machine() | told
        told |= {"sweep.id": sweep_id, "sweep.description": shorten(description)}
        self._sweep, self._runs = _Sweep(sweep_id, description, told), None
        with self._writing():
            pass

    def start_job(
        self,
        digest: str,
        name: str,
        params: Mapping[str, Any],
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Shows a job as running. `log_job` does not need it; a finished job is left alone."""
        names.check_tags(tags or {})
        with self._writing() as (sweep, runs):
            left = runs.children.get(digest)
            if left is not None and (left.status == "FINISHED" or left.run_id in self._mine):
                return
            if left is not None:
                runs.drop_child(digest)
            begun_ms = int(time.time() * 1000)
            child = runs.create_child(digest, name, begun_ms, {**sweep.tags, **(tags or {})})
            self._mine.add(child.run_id)
            texts = {key: shorten(as_text(value)) for key, value in params.items()}
            runs.log(child.run_id, params=texts)
            child.params.update(texts)

    def log_job(self, record: JobRecord, extra_tags: Mapping[str, str] | None = None) -> None:
        """A job's run, found by its digest: written whole, or completed where it was begun.

        A job that is FINISHED in the store is left alone, unless the record is the one that it was
        logged from with more in it. A record that is only counted stays RUNNING, to be logged again
        when it is timed. ValueError for a name that is not in `tracking.names`.
        """
        shared = self._opened().tags
        content = payload(record, {**shared, **(extra_tags or {})})
        with self._writing() as (_, runs):
            left = runs.children.get(record.digest)
            if left is not None and left.status == "FINISHED" and not _has_grown(left, content):
                return
            if left is not None and not self._continues(left, content):
                runs.drop_child(record.digest)
                left = None
            if left is not None:
                tags, params = self._missing(left, content)
            else:  # a new run has its tags from the start
                tags, params = {}, content.params
            child = left or runs.create_child(
                record.digest, record.name, content.started_ms, content.tags
            )
            self._mine.add(child.run_id)
            runs.log(child.run_id, content.points, params, tags)
            runs.log_files(child.run_id, content.files)
            if content.status != "RUNNING":
                digest = content.tags["record.digest"]
                runs.finish_child(record.digest, content.status, content.finished_ms, digest)

    def amend_job(self, record: JobRecord) -> None:
        """More about a job that was logged: what has come to its record since."""
        self.log_job(record)

    def close_sweep(
        self,
        status: RunStatus,
        metrics: Mapping[str, float],
        table_markdown: str,
        summary: Mapping[str, Any],
        figures: Mapping[str, Figure | Path],
    ) -> None:
        """The parent's metrics, parameters, description and artifacts.

        Jobs still RUNNING become KILLED.

        `figures` maps a name, "speedup", to a figure or to the file of one.
        """
        names.check_metrics(metrics)
        now_ms = int(time.time() * 1000)
        points = [Point(name, float(value), now_ms, 0) for name, value in metrics.items()]
        files = closing.files(self._opened().sweep_id, table_markdown, summary, figures)
        tags = closing.tags(table_markdown, summary)
        if self._unsure:  # what arrived late is found by looking once more
            self._runs, self._unsure = None, False
        with self._writing() as (_, runs):
            runs.log(runs.parent_id, points, runs.new_params(sweep_params(summary)), tags)
            runs.log_files(runs.parent_id, files)
            runs.finish(status, now_ms)

    def _opened(self) -> _Sweep:
        if self._sweep is None:
            raise RuntimeError("open_sweep() comes first")
        return self._sweep

    @contextmanager
    def _writing(self) -> Iterator[tuple[_Sweep, SweepRuns]]:
        """The sweep and what the store holds of it.

        After a failure all is looked up anew: nobody knows what arrived.
        """
        sweep, location = self._opened(), self.check()
        try:
            wait_for_lock(location, self.patience_s)
            if self._store is not None and self._runs is None:
                reach(location)  # it may have gone meanwhile
            store = self.open()
            with unavailable(location):
                if self._runs is None:
                    self._runs = _enter(store, sweep)
                yield sweep, self._runs
        except BaseException:
            self._runs, self._unsure = None, True
            raise

    def _continues(self, left: Child, content: Payload) -> bool:
        """Whether a run that is not finished holds a beginning of this very record.

        What another try left does not: its times and points are not this record's.
        """
        same = left.run_id in self._mine or _of_one_try(left, content)
        return same and all(left.params.get(k, v) == v for k, v in content.params.items())

    def _missing(self, left: Child, content: Payload) -> tuple[dict[str, str], dict[str, str]]:
        """The tags and parameters that a run lacks; one that this process began has the sweep's."""
        shared = self._opened().tags if left.run_id in self._mine else {}
        tags = {name: value for name, value in content.tags.items() if shared.get(name) != value}
        params = {name: v for name, v in content.params.items() if name not in left.params}
        return tags, params


def _of_one_try(left: Child, content: Payload) -> bool:
    return content.started_ms == left.started_ms or content.finished_ms == left.finished_ms


def _has_grown(left: Child, content: Payload) -> bool:
    """Whether the record that a finished run was logged from has had something added."""
    same_end = left.finished_ms == content.finished_ms
    return same_end and left.record_digest != content.tags["record.digest"]


def _enter(store: Store, sweep: _Sweep) -> SweepRuns:
    runs = SweepRuns.find(store, sweep.sweep_id)
    if runs is None:
        return SweepRuns.create(store, sweep.sweep_id, {**sweep.tags, NOTE_TAG: sweep.description})
    runs.reopen()
    runs.log(runs.parent_id, tags=sweep.tags)
    return runs

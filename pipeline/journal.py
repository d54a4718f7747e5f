"""The parent's line to the store of runs. What goes wrong there never costs a figure.

`record.json` is on disk before anything here is called. A store that is locked, full or away is
left alone for a while and then tried again; what it did not take in the end, `make resume` sends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from rich.console import Console

from pipeline.plan import Job
from pipeline.privacy import hide_passwords
from pipeline.records import JobRecord
from pipeline.stop import Stop

PAUSE_S = 10.0


class Report(Protocol):
    """A sweep's records as a table, figures and one sentence."""

    def print(self, console: Console) -> None: ...  # with the failures, and how to repeat each
    def markdown(self) -> str: ...
    def figures(self) -> Mapping[str, Any]: ...
    def summary(self) -> dict[str, Any]: ...  # {"sweep": {...}, "jobs": [{...}], ...}


class Meter(Protocol):
    """How busy the machine is with other things, between start and stop."""

    def start(self) -> None: ...
    def stop(self) -> tuple[dict[str, float], dict[str, str]]: ...


class Recorder(Protocol):
    """What `conf/tracking/*.yaml` must build. Calls that write may be repeated, and may fail."""

    def check(self) -> object: ...
    def machine(self) -> dict[str, str]: ...  # its tags; machine.id tells machines apart
    def open_sweep(self, sweep_id: str, description: str, tags: Mapping[str, str]) -> None: ...
    def start_job(
        self, digest: str, name: str, params: Mapping[str, Any], tags: Mapping[str, str]
    ) -> None: ...
    def log_job(self, record: JobRecord) -> None: ...
    def amend_job(self, record: JobRecord) -> None: ...
    def close_sweep(
        self,
        status: Any,
        metrics: Mapping[str, float],
        table_markdown: str,
        summary: Mapping[str, Any],
        figures: Mapping[str, Any],
    ) -> None: ...
    def meter(self) -> Meter: ...
    def report(self, records: Sequence[JobRecord], sweep: Mapping[str, Any]) -> Report: ...
    def ui_command(self, sweep_id: str) -> str: ...


class Journal:
    """Writes one sweep to a recorder, as far as the store takes it."""

    def __init__(
        self,
        recorder: Recorder,
        sweep: tuple[str, str, Mapping[str, str]],
        stop: Stop,
        say: Callable[[str], None],
    ) -> None:
        """`sweep` is its id, its description and its tags."""
        self._recorder, self._sweep, self._stop, self._say = recorder, sweep, stop, say
        self._opened = False
        self._again_s = 0.0
        self._said: set[str] = set()
        self.unsent: dict[str, JobRecord] = {}
        self.trouble = ""

    def open(self) -> None:
        self._try(lambda: None)

    def started(self, job: Job) -> None:
        self._try(lambda: self._recorder.start_job(job.digest, job.name, job.axes, {}))

    def log(self, record: JobRecord) -> None:
        """Send a finished record, now or when the store is back."""
        self.unsent[record.digest] = record
        if self._try(lambda: self._recorder.log_job(record)):
            del self.unsent[record.digest]

    def amend(self, record: JobRecord) -> None:
        """Send more about a job whose run is finished."""
        if record.digest in self.unsent:
            self.log(record)
        elif not self._try(lambda: self._recorder.amend_job(record)):
            self.unsent[record.digest] = record

    def send_rest(self) -> None:
        """One more try for what the store has not taken."""
        self._again_s = 0.0
        for record in list(self.unsent.values()):
            self.log(record)

    def close(
        self,
        status: str,
        metrics: Mapping[str, float],
        report: Report,
        summary: Mapping[str, Any],
    ) -> bool:
        """Whether all of the sweep is in the store."""
        closed = self._try(
            lambda: self._recorder.close_sweep(
                status, metrics, report.markdown(), summary, report.figures()
            )
        )
        return closed and not self.unsent

    def _try(self, action: Callable[[], None]) -> bool:
        if time.monotonic() < self._again_s:
            return False
        try:
            with self._stop.whole():
                if not self._opened:
                    self._recorder.open_sweep(*self._sweep)
                    self._opened = True
                action()
        except Exception as error:  # whatever a store raises, the figures are on disk
            self._again_s = time.monotonic() + PAUSE_S
            self.trouble = hide_passwords(str(error)) or type(error).__name__
            if self.trouble not in self._said:
                self._said.add(self.trouble)
                self._say(f"MLflow: {self.trouble}; the sweep goes on, its figures stay in outputs")
            return False
        return True

"""Sweeps as the store has them, without their files: a thousand runs are read in seconds."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from mlflow.exceptions import MlflowException

from pipeline.records import SCHEMA, JobRecord, Status
from tracking import names
from tracking.compare.sweeps import Sweep
from tracking.compare.whole import with_file
from tracking.payload import shorten
from tracking.runs import KIND_TAG, quote, search
from tracking.store import Store

if TYPE_CHECKING:
    from mlflow.entities import Run

_RATIO = "time/pair_ratio"
_STATUS: dict[str, Status] = {
    "FINISHED": "done",
    "RUNNING": "counted",
    "FAILED": "failed",
    "KILLED": "killed",
}
_AT_ONCE = 8  # requests to a server
_IN_BULK = 100  # runs in one question to a database
_EVERY_POINT = 2**31 - 1
_LONGEST_K = 6  # digits
_BOUND = 1e15  # what is measured or counted is below, in each unit; false for NaN and infinity


class UnusableSweep(ValueError):
    """A sweep whose records cannot be compared; says in a sentence which, and why."""


class NewerRecords(UnusableSweep):
    """A newer version recorded it: its figures may not mean what they mean here."""


class StoredSweeps:
    """Reads sweeps on demand, each once. Methods raise what MLflow raises, and `UnusableSweep`.

    Records of every older form are read: what they lack is not needed here.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._records: dict[str, list[JobRecord]] = {}
        self._runs: dict[tuple[str, str], str] = {}

    def parents(self) -> list[Run]:
        """The sweeps' own runs, oldest first."""
        found = search(self._store, f"tags.`{KIND_TAG}` = 'sweep'")
        return [run for run in found if "sweep.id" in run.data.tags]

    def records(self, sweep_id: str) -> list[JobRecord]:
        """The jobs without rounds, pieces, text and series; runs without counts are left out."""
        if sweep_id not in self._records:
            condition = f"tags.`sweep.id` = '{quote(sweep_id)}' AND tags.`{KIND_TAG}` = 'job'"
            runs = [r for r in search(self._store, condition) if "counts.digest" in r.data.tags]
            _check_schema(sweep_id, runs)
            _check_params(sweep_id, runs)
            self._records[sweep_id] = [_light(run) for run in runs]
            ids = {(sweep_id, run.data.tags.get("job.digest", "")): run.info.run_id for run in runs}
            self._runs |= ids
        return self._records[sweep_id]

    def sweep(self, parent: Run) -> Sweep:
        """With the ratios of all timed pairs; a job with one that no clock gives is not timed."""
        tags = {n: v for n, v in parent.data.tags.items() if n in names.TAGS}
        own = tags["sweep.id"]
        records = self.records(own)
        timed = {
            self._runs[own, record.digest]: record
            for record in records
            if "time/speedup_median" in record.metrics
        }
        for run_id, ratios in self._ratios([*timed]).items():
            if all(0 < ratio < _BOUND for ratio in ratios.values()):
                timed[run_id].series[_RATIO] = sorted(ratios.items())
        return Sweep(own, tags, records)

    def whole(self, sweep: Sweep, record: JobRecord) -> JobRecord:
        """The record with its text and rounds, from the run's file; as it is where there is none,
        or one that cannot be read."""
        run_id = self._runs[sweep.id, record.digest]
        with tempfile.TemporaryDirectory(prefix="specsweep-") as folder:
            try:
                file = self._store.client.download_artifacts(run_id, "record.json", folder)
                return with_file(record, Path(file).read_text(encoding="utf-8"))
            except (MlflowException, OSError, ValueError):
                return record

    def _ratios(self, run_ids: list[str]) -> dict[str, dict[int, float]]:
        """By run and pair. A database answers for many runs at once, a server for each alone."""
        client = self._store.client
        bulk = getattr(client._tracking_client.store, "get_metric_history_bulk", None)
        if bulk is None:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                answers = pool.map(lambda run: client.get_metric_history(run, _RATIO), run_ids)
                return {
                    run: {point.step: point.value for point in points}
                    for run, points in zip(run_ids, answers, strict=True)
                }
        found: dict[str, dict[int, float]] = {}
        for start in range(0, len(run_ids), _IN_BULK):
            for point in bulk(run_ids[start : start + _IN_BULK], _RATIO, _EVERY_POINT):
                found.setdefault(point.run_id, {})[point.step] = point.value
        return found


def _check_schema(sweep_id: str, runs: Sequence[Run]) -> None:
    told = [str(run.data.tags.get("record.schema", "")) for run in runs]
    newest = max((int(schema[:9]) for schema in told if schema.isdecimal()), default=0)
    if newest > SCHEMA:
        raise NewerRecords(
            f"sweep {sweep_id} has records of schema {newest}, and this version of specsweep reads "
            f"up to {SCHEMA}: update specsweep to compare it"
        )


def _check_params(sweep_id: str, runs: Sequence[Run]) -> None:
    """What tables and figures are ordered by has to be there, whoever wrote the runs."""
    for run in runs:
        params = run.data.params
        name = "k_most" if params.get("k") == "auto" else "k"
        told = params.get(name, "")
        wrong = "" if told.isdecimal() and len(told) <= _LONGEST_K else name
        wrong = wrong or ("draft" if not params.get("draft") else "")
        if wrong:
            raise UnusableSweep(
                f"sweep {sweep_id} cannot be compared: its run {run.info.run_name!r} has "
                f"{wrong}={shorten(params.get(wrong, 'none'), 60)!r}; delete that run, or the sweep"
            )


def _light(run: Run) -> JobRecord:
    info, data = run.info, run.data
    series = {metric.name for metric in names.METRICS.values() if metric.step}
    return JobRecord(
        digest=data.tags.get("job.digest", ""),
        name=str(info.run_name),
        status=_STATUS.get(info.status, "killed"),
        overrides=(),
        params=dict(data.params),
        metrics={
            name: value
            for name, value in data.metrics.items()
            if name not in series and abs(value) < _BOUND
        },
        tags={name: value for name, value in data.tags.items() if name in names.TAGS},
        started_s=(info.start_time or 0) / 1000,
        finished_s=(info.end_time or 0) / 1000,
    )

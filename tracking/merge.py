"""Merges a bundle into a store: every run once, however often, and wherever it was broken off.

A run is known by its sweep's id and its job's digest. One that was recorded here is never touched.
One that came with a bundle bears its digest there as a tag, and gets its end after all else: where
either is not as in the bundle, the run was broken off or has gone on since, and is completed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal

import filelock

from tracking import artifacts, bundle
from tracking.bundle import BundleRun
from tracking.bundle_read import Bundle
from tracking.doubles import one_of_each
from tracking.payload import shorten
from tracking.portions import portions
from tracking.runs import KIND_TAG, LONGEST_NAME
from tracking.store import Store
from tracking.trouble import StoreUnavailable, unavailable

if TYPE_CHECKING:
    from mlflow.entities import Run

What = Literal["new", "completed", "known"]
_BATCH = 700  # points; with parameters and tags MLflow takes 1000 things a request


def merge(store: Store, source: Bundle, tick: Callable[[], object] = lambda: None) -> Counter[What]:
    """How many runs were new, completed, or known already. StoreUnavailable.

    `tick` is called after each run.
    """
    done: Counter[What] = Counter()
    with _alone(store), unavailable(store.location):
        for parent in (run for run in source.runs if not run.job):
            ours = _Sweep(store, source, one_of_each(store, parent.sweep_id))
            what = ours.begin(parent)
            for run in source.runs:
                if run.job and run.sweep_id == parent.sweep_id:
                    done[ours.take(run)] += 1
                    tick()
            ours.end(parent, what)
            done[what] += 1
            tick()
    return done


class _Sweep:
    """One sweep on its way into the store."""

    def __init__(self, store: Store, source: Bundle, there: dict[str, Run]) -> None:
        self._store, self._client, self._source, self._there = store, store.client, source, there
        self._parent_id = ""

    def begin(self, parent: BundleRun) -> What:
        """Makes sure that there is a run to hang the jobs on."""
        what = self._judge(parent)
        if what == "new":
            self._create(parent)
        self._parent_id = self._there[parent.key].info.run_id
        return what

    def end(self, parent: BundleRun, what: What) -> None:
        """All that the sweep's own run says, when its jobs are there."""
        if what != "known":
            self._fill(parent)

    def take(self, run: BundleRun) -> What:
        """A job's run, whole."""
        what = self._judge(run)
        if what == "known":
            return what
        if what == "completed" and not self._continues(run):
            self._client.delete_run(self._there.pop(run.key).info.run_id)
        if run.key not in self._there:
            self._create(run)
        self._fill(run)
        return what

    def _judge(self, run: BundleRun) -> What:
        """What there is to do for a run."""
        left = self._there.get(run.key)
        if left is None:
            return "new"
        tags, info = left.data.tags, left.info
        if bundle.SOURCE_TAG not in tags:  # recorded here
            return "known"
        whole = tags.get(bundle.DIGEST_TAG) == run.digest()
        if whole and (info.status, info.end_time) == (run.status, run.finished_ms):
            return "known"
        newer = tags.get(bundle.EXPORTED_TAG, "") > self._source.about.exported
        return "known" if newer else "completed"

    def _continues(self, run: BundleRun) -> bool:
        """Whether what is there of a job is a beginning of this very run.

        It is not where the job was run anew since an earlier bundle.
        """
        left = self._there[run.key]
        same = all(run.params.get(name) == value for name, value in left.data.params.items())
        return same and left.info.start_time == run.started_ms

    def _create(self, run: BundleRun) -> None:
        """An empty run. Its end, which is written last, will say that it is whole."""
        tags = run.tags | self._marks(run)
        if run.status != "RUNNING":
            tags[bundle.DIGEST_TAG] = run.digest()
        self._there[run.key] = self._client.create_run(
            self._store.experiment_id, run.started_ms, tags, shorten(run.name, LONGEST_NAME)
        )

    def _marks(self, run: BundleRun) -> dict[str, str]:
        """The tags that say where a run comes from, and where it belongs in this store."""
        marks = {
            bundle.SOURCE_TAG: run.source_id,
            bundle.EXPORTED_TAG: self._source.about.exported,
            bundle.SCHEMA_TAG: str(bundle.SCHEMA),
            KIND_TAG: "job" if run.job else "sweep",
        }
        return marks | {bundle.PARENT_TAG: self._parent_id} if run.job else marks

    def _fill(self, run: BundleRun) -> None:
        """Files, points and parameters; then, if it has no such tag yet, the mark that all is
        there; then the end."""
        from mlflow.entities import Metric, Param, RunTag

        left = self._there[run.key]
        run_id = left.info.run_id
        files = {path: partial(self._source.open, run, path) for path in run.files}
        artifacts.put(self._client, run_id, left.info.artifact_uri, files)
        points = [Metric(p.name, p.value, p.time_ms, p.step) for p in run.points]
        params = {k: v for k, v in run.params.items() if k not in left.data.params}
        if left.data.tags.get(bundle.EXPORTED_TAG) != self._source.about.exported:
            for some in portions(run.tags | self._marks(run)):
                self._client.log_batch(run_id, tags=[RunTag(*tag) for tag in some.items()])
        *early, last = portions(params)
        for some in early:
            self._client.log_batch(run_id, params=[Param(*param) for param in some.items()])
        for start in range(_BATCH, len(points), _BATCH):
            self._client.log_batch(run_id, metrics=points[start : start + _BATCH])
        marked = left.data.tags.get(bundle.DIGEST_TAG) == run.digest()
        mark = [] if marked else [RunTag(bundle.DIGEST_TAG, run.digest())]
        self._client.log_batch(
            run_id,
            metrics=points[:_BATCH],
            params=[Param(*param) for param in last.items()],
            tags=mark,
        )
        if run.status != "RUNNING":
            self._client.set_terminated(run_id, run.status, run.finished_ms)
        elif left.info.status != "RUNNING":
            self._client.update_run(run_id, "RUNNING")


@contextmanager
def _alone(store: Store) -> Iterator[None]:
    """Two imports into one database at once would both find a run missing."""
    if store.location.file is None:
        yield
        return
    try:
        with filelock.FileLock(f"{store.location.file}.import.lock", timeout=0):
            yield
    except filelock.Timeout:
        raise StoreUnavailable(
            f"another import into {store.location.shown} is running: wait for it, or end it"
        ) from None

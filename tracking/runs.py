"""A sweep's runs in MLflow: the parent, and a child for each job, known by `job.digest`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tracking import artifacts
from tracking.payload import Point, RunStatus, shorten
from tracking.store import Store

if TYPE_CHECKING:
    from mlflow.entities import Run

PARENT_TAG = "mlflow.parentRunId"
NOTE_TAG = "mlflow.note.content"
KIND_TAG = "run.kind"
FOR_MODELS = "?workflowType=machine_learning"  # MLflow's page has another view, for language apps
LONGEST_NAME = 250
"""Characters of a run's name, which some databases hold to."""
_BATCH = 900  # points a request; MLflow refuses more than 1000
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Child:
    """A job's run as far as it got."""

    run_id: str
    status: RunStatus
    started_ms: int
    finished_ms: int | None = None
    record_digest: str = ""
    params: dict[str, str] = field(default_factory=dict)
    artifact_uri: str = ""


class SweepRuns:
    """The runs of one sweep. Methods raise what MLflow raises."""

    def __init__(self, store: Store, parent: Run, children: dict[str, Child]) -> None:
        self.parent_id = str(parent.info.run_id)
        self.children = children
        self._store, self._client = store, store.client
        self._artifact_uris = {child.run_id: child.artifact_uri for child in children.values()}
        self._artifact_uris[self.parent_id] = str(parent.info.artifact_uri)

    @classmethod
    def find(cls, store: Store, sweep_id: str) -> SweepRuns | None:
        """What the store holds of a sweep, or None; what is there twice is mended first."""
        found = search(store, f"tags.`sweep.id` = '{quote(sweep_id)}'")
        runs = without_doubles(store, list(found))
        children = {run.data.tags.get("job.digest", ""): _child(run) for run in runs if is_job(run)}
        parents = [run for run in runs if not is_job(run)]
        return cls(store, parents[0], children) if parents else None

    @classmethod
    def create(cls, store: Store, sweep_id: str, tags: Mapping[str, str]) -> SweepRuns:
        own = {KIND_TAG: "sweep", "mlflow.source.name": "pipeline.sweep"}
        run = store.client.create_run(store.experiment_id, None, {**tags, **own}, sweep_id)
        return cls(store, run, {})

    def create_child(
        self, digest: str, name: str, started_ms: int, tags: Mapping[str, str]
    ) -> Child:
        tags = {**tags, KIND_TAG: "job", "job.digest": digest, PARENT_TAG: self.parent_id}
        short = shorten(name, LONGEST_NAME)
        run = self._client.create_run(self._store.experiment_id, started_ms, tags, short)
        self.children[digest] = Child(run.info.run_id, "RUNNING", started_ms)
        self._artifact_uris[run.info.run_id] = run.info.artifact_uri
        return self.children[digest]

    def new_params(self, params: Mapping[str, str]) -> dict[str, str]:
        """Those that the parent does not have yet: MLflow refuses to change one."""
        there = self._client.get_run(self.parent_id).data.params
        return {name: value for name, value in params.items() if name not in there}

    def drop_child(self, digest: str) -> None:
        """Moves a job's run to MLflow's bin."""
        self._client.delete_run(self.children[digest].run_id)
        del self.children[digest]

    def finish_child(
        self, digest: str, status: RunStatus, finished_ms: int, record_digest: str = ""
    ) -> None:
        child = self.children[digest]
        self._client.set_terminated(child.run_id, status, finished_ms)
        self.children[digest] = replace(
            child, status=status, finished_ms=finished_ms, record_digest=record_digest
        )

    def reopen(self) -> None:
        self._client.update_run(self.parent_id, "RUNNING")

    def finish(self, status: RunStatus, finished_ms: int) -> None:
        """Ends the parent; jobs still RUNNING become KILLED."""
        for digest, child in list(self.children.items()):
            if child.status == "RUNNING":
                self.finish_child(digest, "KILLED", finished_ms)
        self._client.set_terminated(self.parent_id, status, finished_ms)

    def log(
        self,
        run_id: str,
        points: list[Point] | None = None,
        params: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Points that are there already, to the millisecond, are kept once."""
        from mlflow.entities import Metric, Param, RunTag

        metrics = [Metric(p.name, p.value, p.time_ms, p.step) for p in points or []]
        self._client.log_batch(
            run_id,
            metrics=metrics[:_BATCH],
            params=[Param(name, value) for name, value in (params or {}).items()],
            tags=[RunTag(name, value) for name, value in (tags or {}).items()],
        )
        for start in range(_BATCH, len(metrics), _BATCH):
            self._client.log_batch(run_id, metrics=metrics[start : start + _BATCH])

    def log_files(self, run_id: str, files: Mapping[str, str | bytes]) -> None:
        """Artifacts by path inside the run; those that are there are replaced."""
        artifacts.put(self._client, run_id, self._artifact_uris[run_id], files)


def search(store: Store, condition: str) -> Iterator[Run]:
    """All runs that are not in the bin, oldest first."""
    token: str | None = None
    while True:
        page: Any = store.client.search_runs(
            [store.experiment_id],
            condition,
            max_results=_PAGE,
            order_by=["attributes.start_time ASC"],
            page_token=token,
        )
        yield from page
        token = page.token
        if not token:
            return


def run_page(base: str, experiment_id: str, run_id: str) -> str:
    """Address of a run in MLflow's page."""
    return f"{base}/#/experiments/{experiment_id}/runs/{run_id}{FOR_MODELS}"


def quote(text: str) -> str:
    """`text` for a quoted place in MLflow's search language, which knows no escapes."""
    if "'" in text:
        raise ValueError(f"{text!r} must not hold a quotation mark")
    return text


def is_job(run: Run) -> bool:
    """Whether a run of a sweep is a job's, not the sweep's own."""
    return PARENT_TAG in run.data.tags


def without_doubles(store: Store, runs: Sequence[Run]) -> list[Run]:
    """Of all runs of one sweep, as `search` gives them, one for the sweep and one for each job.

    Two come of a request that was carried out although its answer did not arrive in time. Which of
    them stay: see `better_run` and `better_parent`. The others go to MLflow's bin; jobs that hang
    on a parent that goes are hung on the one that stays.
    """
    parents = [run for run in runs if not is_job(run)]
    if not parents:
        return list(runs)
    jobs: dict[str, Run] = {}
    for run in filter(is_job, runs):
        digest = run.data.tags.get("job.digest", "")
        jobs[digest] = better_run(jobs[digest], run)[0] if digest in jobs else run
    parent = better_parent(parents, list(jobs.values()))
    for job in jobs.values():
        if job.data.tags[PARENT_TAG] != parent.info.run_id:
            store.client.set_tag(job.info.run_id, PARENT_TAG, parent.info.run_id)
    kept = [parent, *jobs.values()]
    ids = {run.info.run_id for run in kept}
    for run in runs:
        if run.info.run_id not in ids:
            store.client.delete_run(run.info.run_id)
    return kept


def better_parent(parents: Sequence[Run], jobs: Sequence[Run]) -> Run:
    """Which of a sweep's own runs stays: the one that most jobs hang on, else the oldest."""
    hung = Counter(job.data.tags[PARENT_TAG] for job in jobs)
    return max(parents, key=lambda run: hung[run.info.run_id])  # of equal ones the first


def better_run(one: Run, other: Run) -> tuple[Run, Run]:
    """Which of two runs of one job stays: a finished one, else the later.

    Both come from `search`, the older first.
    """
    return (one, other) if one.info.status == "FINISHED" else (other, one)


def _child(run: Run) -> Child:
    info, data = run.info, run.data
    return Child(
        info.run_id,
        info.status,
        info.start_time,
        info.end_time,
        data.tags.get("record.digest", ""),
        dict(data.params),
        info.artifact_uri,
    )

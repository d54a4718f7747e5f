"""Reads sweeps out of the store into a bundle."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tracking import bundle, zips
from tracking.artifacts import fetched
from tracking.bundle import About, BundleRun
from tracking.bundle_write import BundleWriter, writing
from tracking.histories import histories
from tracking.payload import Point
from tracking.runs import KIND_TAG, better_run, quote, search
from tracking.store import Store
from tracking.trouble import unavailable
from tracking.version import version

if TYPE_CHECKING:
    from mlflow.entities import Run


@dataclass(frozen=True, slots=True)
class Chosen:
    """A sweep's own run, and those of its jobs."""

    parent: Run
    jobs: list[Run]

    @property
    def sweep_id(self) -> str:
        return str(self.parent.data.tags["sweep.id"])

    @property
    def machine(self) -> str:
        return str(self.parent.data.tags.get("machine.name", ""))


def choose(store: Store, sweep_ids: Sequence[str] = (), every: bool = False) -> list[Chosen]:
    """The sweeps of these ids, or `every` one, or the newest. ValueError where there is none.

    The newest is one that was recorded here, where there is any: what came with a bundle goes back
    only when it is asked for.
    """
    with unavailable(store.location):
        parents = list(search(store, f"tags.`{KIND_TAG}` = 'sweep'"))
        there = {run.data.tags["sweep.id"]: run for run in parents if "sweep.id" in run.data.tags}
        for sweep_id in sweep_ids:
            if sweep_id not in there:
                raise ValueError(
                    f"there is no sweep {sweep_id!r} in {store.location.shown}: "
                    f"{_known(there)} (`make resume ARGS={sweep_id}` sends one that waits in "
                    "outputs/)"
                )
        if not there:
            raise ValueError(f"there is no sweep in {store.location.shown}: run `make sweep`")
        own = [key for key, run in there.items() if bundle.SOURCE_TAG not in run.data.tags]
        newest = (own or list(there))[-1]
        wanted = list(there) if every else list(dict.fromkeys(sweep_ids)) or [newest]
        return [Chosen(there[sweep_id], _jobs(store, sweep_id)) for sweep_id in wanted]


def default_name(chosen: Sequence[Chosen]) -> str:
    """specsweep-MACHINE-SWEEP.zip, with what there are many of counted."""
    machines = {one.machine for one in chosen}
    where = machines.pop() if len(machines) == 1 else f"{len(machines)}-machines"
    what = chosen[0].sweep_id if len(chosen) == 1 else f"{len(chosen)}-sweeps"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", f"specsweep-{where or 'machine'}-{what}.zip")


def export(store: Store, chosen: Sequence[Chosen], file: Path) -> list[str]:
    """Writes the bundle. What a reader should know of it, in sentences."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    machines = tuple(dict.fromkeys(one.machine for one in chosen))
    told: list[str] = []
    with writing(file) as out, unavailable(store.location):
        for one in chosen:
            runs = [one.parent, *one.jobs]
            points = histories(store, runs)
            bare = sum(not _add(store, out, run, points[run.info.run_id]) for run in runs)
            told += _remarks(one, bare)
        out.close(About(now, version(), machines))
    return told


def _jobs(store: Store, sweep_id: str) -> list[Run]:
    """One run a job."""
    found: dict[str, Run] = {}
    for run in search(store, f"tags.`sweep.id` = '{quote(sweep_id)}'"):
        digest = run.data.tags.get("job.digest")
        if digest and bundle.PARENT_TAG in run.data.tags:
            found[digest] = better_run(found[digest], run)[0] if digest in found else run
    return list(found.values())


def _add(store: Store, out: BundleWriter, run: Run, points: list[Point]) -> bool:
    """Whether a run that has ended has files, as it should."""
    info = run.info
    with fetched(store.client, info.run_id, info.artifact_uri) as files:
        try:
            out.add(_bundle_run(run, points), files)
        except zips.BadZip as error:
            raise ValueError(f"run {info.run_name} {error}: rename it there") from error
        return bool(files) or info.status != "FINISHED"


def _bundle_run(run: Run, points: list[Point]) -> BundleRun:
    tags, info = run.data.tags, run.info
    return BundleRun(
        sweep_id=tags["sweep.id"],
        job=tags.get("job.digest", ""),
        name=info.run_name,
        status=info.status,
        started_ms=info.start_time,
        finished_ms=info.end_time,
        source_id=tags.get(bundle.SOURCE_TAG, info.run_id),
        params=dict(run.data.params),
        tags=bundle.own_tags(tags),
        points=tuple(points),
    )


def _remarks(one: Chosen, bare: int) -> Iterable[str]:
    if one.parent.info.status == "RUNNING":
        yield (
            f"sweep {one.sweep_id} has not ended: this is what it has so far "
            f"(`make resume ARGS={one.sweep_id}` goes on with one that was broken off)"
        )
    if bare:
        yield f"{bare} runs of sweep {one.sweep_id} have no files in the store"


def _known(there: Iterable[str]) -> str:
    newest = list(there)[-5:]
    return f"there are {', '.join(newest)}" if newest else "there is none yet"

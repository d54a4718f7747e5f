"""Reads sweeps out of the store into a bundle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tracking import bundle, zips
from tracking.artifacts import fetched
from tracking.bundle import About, BundleRun
from tracking.bundle_tables import TableFull
from tracking.bundle_write import BundleWriter, writing
from tracking.chosen import Chosen
from tracking.histories import histories
from tracking.payload import Point
from tracking.printable import printable
from tracking.store import Store
from tracking.trouble import unavailable
from tracking.version import version

if TYPE_CHECKING:
    from mlflow.entities import Run


@dataclass(slots=True)
class Exported:
    """What a bundle holds. `remarks` and `left_out` are sentences; a run that no import would take
    is left out, and where it is a sweep's own, all of the sweep."""

    sweeps: int = 0
    jobs: int = 0
    machines: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def export(store: Store, chosen: Sequence[Chosen], file: Path) -> Exported:
    """Writes the bundle. ValueError, and no file, where nothing can be in it."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    done = Exported()
    with writing(file) as out, unavailable(store.location):
        for one in chosen:
            _export_sweep(store, out, one, done)
        if not done.sweeps:
            raise ValueError(f"nothing can be exported: {'; '.join(done.left_out)}")
        done.remarks += _replaced(out.replaced)
        out.close(About(now, version(), tuple(dict.fromkeys(done.machines))))
    return done


def _export_sweep(store: Store, out: BundleWriter, one: Chosen, done: Exported) -> None:
    points = histories(store, [one.parent, *one.jobs])
    bare = 0
    for run in (one.parent, *one.jobs):
        try:
            bare += not _add(store, out, run, points[run.info.run_id])
        except TableFull:
            raise
        except ValueError as error:
            done.left_out.append(_left_out(one, run, error))
            if run is one.parent:
                return
        else:
            done.jobs += run is not one.parent
    done.sweeps += 1
    done.machines.append(one.machine)
    done.remarks += _remarks(one, bare)


def _left_out(one: Chosen, run: Run, error: ValueError) -> str:
    what = f"sweep {one.sweep_id}"
    if run is not one.parent:
        what = f"run {run.info.run_name} of {what}"
    why = f"it {error}: rename it there" if isinstance(error, zips.BadZip) else str(error)
    return printable(f"{what} is left out, as no import would take it: {why}")


def _add(store: Store, out: BundleWriter, run: Run, points: list[Point]) -> bool:
    """Whether a run that has ended has files, as it should."""
    info = run.info
    with fetched(store.client, info.run_id, info.artifact_uri) as files:
        out.add(_bundle_run(run, points), files)
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


def _replaced(sweeps: Sequence[str]) -> Iterable[str]:
    if sweeps:
        told = ", ".join(sweeps[:3]) + (f" and {len(sweeps) - 3} more" if len(sweeps) > 3 else "")
        yield printable(f"it replaces the bundle of sweep {told} that was there")


def _remarks(one: Chosen, bare: int) -> Iterable[str]:
    if one.parent.info.status == "RUNNING":
        yield (
            f"sweep {one.sweep_id} has not ended: this is what it has so far "
            f"(`make resume ARGS={one.sweep_id}` goes on with one that was broken off)"
        )
    elif one.parent.info.status == "KILLED":
        yield (
            f"sweep {one.sweep_id} was broken off: this is what it has "
            f"(`make resume ARGS={one.sweep_id}` goes on with it, where it was begun)"
        )
    if bare:
        yield f"{bare} runs of sweep {one.sweep_id} have no files in the store"

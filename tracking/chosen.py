"""Which sweeps of the store are exported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracking import bundle
from tracking.printable import printable
from tracking.runs import KIND_TAG, better_run, quote, search
from tracking.store import Store
from tracking.trouble import unavailable

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


def _jobs(store: Store, sweep_id: str) -> list[Run]:
    """One run a job."""
    found: dict[str, Run] = {}
    for run in search(store, f"tags.`sweep.id` = '{quote(sweep_id)}'"):
        digest = run.data.tags.get("job.digest")
        if digest and bundle.PARENT_TAG in run.data.tags:
            found[digest] = better_run(found[digest], run)[0] if digest in found else run
    return list(found.values())


def _known(there: Iterable[str]) -> str:
    newest = list(there)[-5:]
    return f"there are {printable(', '.join(newest))}" if newest else "there is none yet"

"""Which sweeps of a store are compared: those that are named, or the newest of each machine."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracking.compare.comparison import NothingToCompare
from tracking.compare.read import StoredSweeps
from tracking.compare.sweeps import Sweep
from tracking.load import main_load

if TYPE_CHECKING:
    from mlflow.entities import Run


def choose(
    stored: StoredSweeps,
    sweeps: Sequence[str] = (),
    machines: Sequence[str] = (),
    last: int | None = None,
) -> list[Sweep]:
    """By id, or the `last` that were begun, or of each machine the newest of each state of load.

    ValueError for a sweep or machine that is not there, naming those that are.
    """
    parents = stored.parents()
    if not parents:
        raise NothingToCompare("there is no sweep yet: run `make sweep`, on two machines")
    if sweeps:
        chosen = [_named(parents, name) for name in dict.fromkeys(sweeps)]
    elif last is not None:
        chosen = [p for p in parents if stored.records(_id(p))][-last:]
    else:
        chosen = _newest_of_each(stored, _of_machines(parents, machines))
    return [stored.sweep(parent) for parent in chosen]


def _id(parent: Run) -> str:
    return parent.data.tags["sweep.id"]


def _machine(parent: Run) -> str:
    tags = parent.data.tags
    return tags.get("machine.id") or tags.get("machine.name", "")


def _named(parents: Sequence[Run], name: str) -> Run:
    found = [parent for parent in parents if _id(parent) == name]
    if not found:
        known = [_id(parent) for parent in parents]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the newest is {known[-1]}"
        raise ValueError(f"there is no sweep {name!r} in the store; {hint}")
    return found[-1]


def _of_machines(parents: Sequence[Run], machines: Sequence[str]) -> list[Run]:
    for name in machines:
        if not any(_is(parent, name) for parent in parents):
            known = sorted({p.data.tags.get("machine.name", _machine(p)) for p in parents})
            raise ValueError(
                f"there is no sweep of a machine {name!r} in the store; "
                f"the machines are: {', '.join(known)}"
            )
    return [p for p in parents if not machines or any(_is(p, name) for name in machines)]


def _is(parent: Run, name: str) -> bool:
    return name in (parent.data.tags.get("machine.name"), parent.data.tags.get("machine.id"))


def _newest_of_each(stored: StoredSweeps, parents: Sequence[Run]) -> list[Run]:
    """A sweep that only counted has no state of load: it stands in only where nothing was timed."""
    found: dict[tuple[str, str], Run] = {}
    for parent in reversed(parents):
        state = parent.data.tags.get("load.state")
        if state is None:
            state = main_load(r.tags.get("load.state") for r in stored.records(_id(parent)))
        if (_machine(parent), state) in found or not stored.records(_id(parent)):
            continue
        found[_machine(parent), state] = parent
    timed = {machine for machine, state in found if state}
    kept = [p for (machine, state), p in found.items() if state or machine not in timed]
    return sorted(kept, key=parents.index)

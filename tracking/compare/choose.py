"""Which sweeps of a store are compared: those that are named, or the newest of each machine."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracking.compare.comparison import NothingToCompare
from tracking.compare.newest import Newest, machine_of, sweep_id
from tracking.compare.read import StoredSweeps
from tracking.compare.sweeps import Sweep

if TYPE_CHECKING:
    from mlflow.entities import Run


@dataclass(frozen=True)
class Choice:
    """`notes` say what was chosen and is not obvious. `asked` is the option that made the choice
    narrow, and `more` how to widen it, for the case that one sweep is all there is."""

    sweeps: Sequence[Sweep]
    notes: Sequence[str] = ()
    asked: str = ""
    more: str = ""


def choose(
    stored: StoredSweeps,
    sweeps: Sequence[str] = (),
    machines: Sequence[str] = (),
    last: int | None = None,
) -> Choice:
    """By id, or the `last` that were begun, or of each machine the newest of each state of load.

    ValueError for a sweep or machine that is not there, naming those that are, and for records of a
    newer version where they were asked for.
    """
    parents = stored.parents()
    if not parents:
        raise NothingToCompare("there is no sweep yet: run `make sweep`, on two machines")
    if sweeps:
        chosen = [_named(parents, name) for name in dict.fromkeys(sweeps)]
        more = "name a second one with another --sweep ID"
        return Choice([*map(stored.sweep, chosen)], (), f"--sweep {sweeps[0]}", more)
    if last is not None:
        found = [*map(stored.sweep, _last(stored, parents, last))]
        return Choice(found, (), f"--last {last}", "ask for more")
    newest = Newest(stored, _of_machines(parents, machines))
    found = [*map(stored.sweep, newest.sweeps)]
    return Choice(found, newest.notes, *_narrowed(parents, machines))


def _named(parents: Sequence[Run], name: str) -> Run:
    found = [parent for parent in parents if sweep_id(parent) == name]
    if not found:
        known = [sweep_id(parent) for parent in parents]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the newest is {known[-1]}"
        raise ValueError(f"there is no sweep {name!r} in the store; {hint}")
    return found[-1]


def _last(stored: StoredSweeps, parents: Sequence[Run], many: int) -> list[Run]:
    """Those with jobs, oldest first; no more are read than are taken."""
    found: list[Run] = []
    for parent in reversed(parents):
        if len(found) == many:
            break
        if stored.records(sweep_id(parent)):
            found.append(parent)
    return found[::-1]


def _of_machines(parents: Sequence[Run], machines: Sequence[str]) -> list[Run]:
    for name in machines:
        if not any(_is(parent, name) for parent in parents):
            raise ValueError(
                f"there is no sweep of a machine {name!r} in the store; "
                f"the machines are: {', '.join(_names(parents))}"
            )
    return [p for p in parents if not machines or any(_is(p, name) for name in machines)]


def _is(parent: Run, name: str) -> bool:
    return name in (parent.data.tags.get("machine.name"), parent.data.tags.get("machine.id"))


def _names(parents: Sequence[Run]) -> list[str]:
    return sorted({p.data.tags.get("machine.name", machine_of(p)) for p in parents})


def _narrowed(parents: Sequence[Run], machines: Sequence[str]) -> tuple[str, str]:
    """What --machine asked for, and the others that there are; empty where there are no others."""
    others = [p for p in parents if not any(_is(p, name) for name in machines)]
    if not machines or not others:
        return "", ""
    more = f"name another machine too ({', '.join(_names(others))}), or leave --machine out"
    return f"--machine {' '.join(machines)}", more

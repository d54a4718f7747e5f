"""Which sweeps of a store are compared: those that are named, or the newest of each machine."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracking.compare.comparison import NO_SWEEP, ONLY_ONE, NothingToCompare
from tracking.compare.newest import Newest, left_out, machine_of, sweep_id
from tracking.compare.read import StoredSweeps, UnusableSweep
from tracking.compare.sweeps import Sweep

if TYPE_CHECKING:
    from mlflow.entities import Run

_TOLD = 5  # sweeps that are named where one is not there


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

    ValueError for a sweep or machine that is not there, naming those that are, and for a sweep that
    cannot be compared where it was named; else that one is left out, and a note says so.
    """
    parents = stored.parents()
    if not parents:
        raise NothingToCompare(NO_SWEEP)
    if sweeps:
        chosen = [_named(parents, name) for name in dict.fromkeys(sweeps)]
        found = [*map(stored.sweep, chosen)]
        if len(parents) == 1:
            return Choice(found, (), "", ONLY_ONE)
        return Choice(
            found, (), f"--sweep {sweeps[0]}", "name a second one with another --sweep ID"
        )
    if last is not None:
        newest_ones, notes = _last(stored, parents, last)
        found = [*map(stored.sweep, newest_ones)]
        if len(parents) == 1:
            return Choice(found, [*notes], "", ONLY_ONE)
        return Choice(found, [*notes], f"--last {last}", "ask for more")
    newest = Newest(stored, _of_machines(parents, machines))
    found = [*map(stored.sweep, newest.sweeps)]
    asked, more = ("", ONLY_ONE) if len(parents) == 1 else _narrowed(parents, machines)
    return Choice(found, newest.notes, asked, more)


def _named(parents: Sequence[Run], name: str) -> Run:
    found = [parent for parent in parents if sweep_id(parent) == name]
    if not found:
        known = [sweep_id(parent) for parent in parents]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        there = f"there are {', '.join(known[-_TOLD:])}"
        there += f" and {len(known) - _TOLD} older ones" if len(known) > _TOLD else ""
        raise ValueError(f"there is no sweep {name!r} in the store: {hint}{there}")
    return found[-1]


def _last(
    stored: StoredSweeps, parents: Sequence[Run], many: int
) -> tuple[list[Run], dict[str, None]]:
    """Those with jobs, oldest first, and notes on what is left out; no more are read than are
    taken."""
    found: list[Run] = []
    notes: dict[str, None] = {}
    for parent in reversed(parents):
        if len(found) == many:
            break
        try:
            if stored.records(sweep_id(parent)):
                found.append(parent)
        except UnusableSweep as error:
            notes[left_out(error)] = None
    return found[::-1], notes


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

"""What is compared: sweeps, and of each one its columns, machine x state of load. Pure.

The load is known job by job. A sweep during which it changed has a column for each state, and a
job's timings stand in the column of its own state, so that nothing is pooled across loads. Counts
do not depend on load: for them a sweep is one side whatever its columns are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.records import JobRecord
from tracking.load import STATES, main_load

_LONGEST_NAME = 24


@dataclass(frozen=True)
class Sweep:
    """`tags` are the sweep's own: `machine.*`, `git.*`; `label` names it to a reader."""

    id: str
    tags: Mapping[str, str]
    records: Sequence[JobRecord]
    label: str = ""

    @property
    def machine(self) -> str:
        """What tells machines apart, also two of the same name."""
        return self.tags.get("machine.id") or self.tags.get("machine.name") or self.id

    @property
    def load(self) -> str:
        """The state of load under which most jobs were timed, empty where none is known."""
        return main_load(record.tags.get("load.state") for record in self.records)


@dataclass(frozen=True)
class Column:
    """The timed jobs of one sweep under one state of load; `load` is empty where not known."""

    label: str
    sweep: Sweep
    load: str
    records: Sequence[JobRecord]


def labelled(sweeps: Iterable[Sweep]) -> list[Sweep]:
    """With a label each: the machine's name, then as needed its load and the sweep's id.

    What jobs say of the machine, which library multiplies there, is added to the sweeps' tags.
    """
    sweeps = [replace(sweep, tags={**_told_by_jobs(sweep), **sweep.tags}) for sweep in sweeps]
    names = _machine_names(sweeps)
    labels = [names[sweep.machine] for sweep in sweeps]
    for more in (lambda sweep: sweep.load, lambda sweep: sweep.id):
        seen = Counter(labels)
        labels = [
            f"{label} {more(sweep)}".strip() if seen[label] > 1 else label
            for label, sweep in zip(labels, sweeps, strict=True)
        ]
    return [replace(sweep, label=label) for sweep, label in zip(sweeps, labels, strict=True)]


def _told_by_jobs(sweep: Sweep) -> dict[str, str]:
    told: dict[str, str] = {}
    for record in sweep.records:
        told |= {name: v for name, v in record.tags.items() if name.startswith("machine.")}
    return told


def columns(sweeps: Sequence[Sweep]) -> list[Column]:
    """In the order of the sweeps, idle before busy. Sweeps that timed nothing have none."""
    names = _machine_names(sweeps)
    found = [
        Column(f"{names[sweep.machine]} {state}".strip(), sweep, state, records)
        for sweep in sweeps
        for state in (*STATES, "")
        if (records := _timed(sweep, state))
    ]
    seen = Counter(column.label for column in found)
    return [
        replace(column, label=f"{column.label} {column.sweep.id}")
        if seen[column.label] > 1
        else column
        for column in found
    ]


def _timed(sweep: Sweep, state: str) -> list[JobRecord]:
    return [
        record
        for record in sweep.records
        if record.status == "done"
        and record.series.get("time/pair_ratio")
        and record.tags.get("load.state", "") == state
    ]


def _machine_names(sweeps: Sequence[Sweep]) -> dict[str, str]:
    """A short name for each machine, with the beginning of its id where two share the name."""
    names = {sweep.machine: _short(sweep.tags.get("machine.name") or sweep.id) for sweep in sweeps}
    seen = Counter(names.values())
    return {
        machine: f"{name} ({machine[:4]})" if seen[name] > 1 else name
        for machine, name in names.items()
    }


def _short(name: str) -> str:
    for suffix in (".localdomain", ".local", ".lan", ".home"):
        name = name.removesuffix(suffix)
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"

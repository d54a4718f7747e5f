"""What is compared: sweeps, and of each one its columns, machine x state of load. Pure.

Machine and load are known job by job. A sweep during which the load changed, or that went on on
another machine, has a column for each, and a job's timings stand in the column of its own machine
and state: nothing is pooled. Counts depend on neither: for them a sweep is one side whatever its
columns are.
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
    def machines(self) -> list[str]:
        """Those of its jobs, in the order in which they first occur."""
        return list(dict.fromkeys(map(self.machine_of, self.records))) or [self.machine]

    def machine_of(self, record: JobRecord) -> str:
        """The job's own; the sweep's where the job does not tell."""
        own = record.tags.get("machine.id") or record.tags.get("machine.name")
        return own or self.machine

    def told_of(self, record: JobRecord) -> dict[str, str]:
        """The `machine.*` tags of a job; what it does not tell is the sweep's, if that is of the
        same machine."""
        own = _about_machine(record.tags)
        same = self.machine_of(record) == self.machine
        return _about_machine(self.tags) | own if same else own

    @property
    def load(self) -> str:
        """The state of load under which most jobs were timed, empty where none is known."""
        return main_load(record.tags.get("load.state") for record in self.records)


@dataclass(frozen=True)
class Column:
    """The timed jobs of one sweep on one machine under one state of load, empty where not known.

    `told` are the machine's own tags, `machine.*`.
    """

    label: str
    sweep: Sweep
    told: Mapping[str, str]
    load: str
    records: Sequence[JobRecord]


def labelled(sweeps: Iterable[Sweep]) -> list[Sweep]:
    """With a label each: its machines' names, then as needed its load and the sweep's id."""
    sweeps = list(sweeps)
    names = _machine_names(sweeps)
    labels = [" + ".join(names[machine] for machine in sweep.machines) for sweep in sweeps]
    for more in (lambda sweep: sweep.load, lambda sweep: sweep.id):
        seen = Counter(labels)
        labels = [
            f"{label} {more(sweep)}".strip() if seen[label] > 1 else label
            for label, sweep in zip(labels, sweeps, strict=True)
        ]
    return [replace(sweep, label=label) for sweep, label in zip(sweeps, labels, strict=True)]


def _about_machine(tags: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in tags.items() if name.startswith("machine.")}


def _told(sweep: Sweep, records: Iterable[JobRecord]) -> dict[str, str]:
    told: dict[str, str] = {}
    for record in records:
        told |= sweep.told_of(record)
    return told


def columns(sweeps: Sequence[Sweep]) -> list[Column]:
    """In the order of the sweeps, idle before busy. Sweeps that timed nothing have none."""
    names = _machine_names(sweeps)
    found = [
        Column(f"{names[machine]} {state}".strip(), sweep, _told(sweep, records), state, records)
        for sweep in sweeps
        for machine in sweep.machines
        for state in (*STATES, "")
        if (records := _timed(sweep, machine, state))
    ]
    seen = Counter(column.label for column in found)
    return [
        replace(column, label=f"{column.label} {column.sweep.id}")
        if seen[column.label] > 1
        else column
        for column in found
    ]


def _timed(sweep: Sweep, machine: str, state: str) -> list[JobRecord]:
    return [
        record
        for record in sweep.records
        if record.status == "done"
        and record.series.get("time/pair_ratio")
        and record.tags.get("load.state", "") == state
        and sweep.machine_of(record) == machine
    ]


def _machine_names(sweeps: Sequence[Sweep]) -> dict[str, str]:
    """A short name for each machine, with the beginning of its id where two share the name."""
    told = {sweep.machine: sweep.tags.get("machine.name") or sweep.id for sweep in sweeps}
    for machine, record in ((sweep.machine_of(r), r) for sweep in sweeps for r in sweep.records):
        told[machine] = record.tags.get("machine.name") or told.get(machine, machine)
    names = {machine: _short(name) for machine, name in told.items()}
    seen = Counter(names.values())
    return {
        machine: f"{name} ({machine[:4]})" if seen[name] > 1 else name
        for machine, name in names.items()
    }


def _short(name: str) -> str:
    for suffix in (".localdomain", ".local", ".lan", ".home"):
        name = name.removesuffix(suffix)
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"

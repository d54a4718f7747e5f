"""Without being told: of each machine and state of load the newest sweep that can be compared.

The newest one of all may be a single job that was run again, or a quick look: where an older sweep
has more than twice as many jobs in common with the others', that one is taken, and it is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.records import JobRecord
from tracking.compare.matching import counted
from tracking.compare.read import StoredSweeps, UnusableSweep
from tracking.load import main_load

if TYPE_CHECKING:
    from mlflow.entities import Run

_LOOK_BACK = 10  # sweeps of one machine and state of load that are looked at
_WORTH = 2  # times as many jobs in common, for which an older sweep is taken
_Key = tuple[str, str]  # machine, state of load


class Newest:
    """The choice: `sweeps` in the order in which they were begun, and `notes` on it."""

    def __init__(self, stored: StoredSweeps, parents: Sequence[Run]) -> None:
        self.notes: list[str] = []
        self._stored, self._parents = stored, parents
        self._jobs: dict[str, set[str]] = {}
        self._groups = self._grouped(parents)
        newest = {key: group[0] for key, group in self._groups.items()}
        picked = self._together(newest)
        self.notes += [
            self._note(newest[key], picked, key) for key in newest if picked[key] is not newest[key]
        ]
        self.sweeps = sorted(picked.values(), key=parents.index)

    def _grouped(self, parents: Sequence[Run]) -> dict[_Key, list[Run]]:
        """Newest first. One that only counted has no state of load: it stands in only where nothing
        was timed."""
        groups: dict[_Key, list[Run]] = {}
        asked: Counter[str] = Counter()
        for parent in reversed(parents):
            state, machine = parent.data.tags.get("load.state"), machine_of(parent)
            if state is None:
                asked[machine] += 1
                if asked[machine] > _LOOK_BACK:
                    continue
                state = main_load(r.tags.get("load.state") for r in self._records(parent))
            group = groups.setdefault((machine, state), [])
            if len(group) < _LOOK_BACK and (group or self._records(parent)):
                group.append(parent)
        timed = {machine for (machine, state), group in groups.items() if state and group}
        return {
            (machine, state): group
            for (machine, state), group in groups.items()
            if group and (state or machine not in timed)
        }

    def _records(self, parent: Run) -> list[JobRecord]:
        """None of a sweep that cannot be used, and that is said."""
        try:
            return self._stored.records(sweep_id(parent))
        except UnusableSweep as error:
            self.notes = list(dict.fromkeys([*self.notes, left_out(error)]))
            return []

    def _jobs_of(self, parent: Run) -> set[str]:
        """What tells its jobs apart, as far as counts depend on it."""
        name = sweep_id(parent)
        if name not in self._jobs:
            self._jobs[name] = {counted(record) for record in self._records(parent)}
        return self._jobs[name]

    def _together(self, newest: dict[_Key, Run]) -> dict[_Key, Run]:
        picked = dict(newest)
        if len(picked) < 2:
            return picked
        if not any(self._jobs_of(run) & self._others(picked, key) for key, run in picked.items()):
            every = {key: set.union(*map(self._jobs_of, g)) for key, g in self._groups.items()}
            for key in picked:
                others = set.union(*(jobs for other, jobs in every.items() if other != key))
                picked[key] = self._closest(key, others)
        for key in picked:
            picked[key] = self._closest(key, self._others(picked, key))
        return picked

    def _others(self, picked: dict[_Key, Run], key: _Key) -> set[str]:
        return set().union(*(self._jobs_of(run) for other, run in picked.items() if other != key))

    def _closest(self, key: _Key, others: set[str]) -> Run:
        """The newest, or an older one that has far more jobs in common with `others`."""
        best, *older = self._groups[key]
        shared = len(self._jobs_of(best) & others)
        for run in older:
            if shared >= len(others):
                break
            told = run.data.params.get("jobs", "")
            if told.isdecimal() and int(told) <= _WORTH * shared:
                continue  # it has too few to be worth reading
            found = len(self._jobs_of(run) & others)
            if found > _WORTH * shared:
                best, shared = run, found
        return best

    def _note(self, newest: Run, picked: dict[_Key, Run], key: _Key) -> str:
        others = self._others(picked, key)
        more, fewer = (len(self._jobs_of(run) & others) for run in (picked[key], newest))
        jobs = "1 job" if more == 1 else f"{more} jobs"
        instead = sorted((picked | {key: newest}).values(), key=self._parents.index)
        command = " ".join(f"--sweep {sweep_id(run)}" for run in instead)
        name = f"{newest.data.tags.get('machine.name', key[0])} {key[1]}".strip()
        return (
            f"Of {name}, sweep {sweep_id(picked[key])} is compared, which has {jobs} in common "
            f"with the others; its newest, {sweep_id(newest)}, has {fewer or 'none'}: "
            f"{command} takes that one."
        )


def left_out(error: UnusableSweep) -> str:
    return f"Left out: {error}."


def sweep_id(parent: Run) -> str:
    return str(parent.data.tags["sweep.id"])


def machine_of(parent: Run) -> str:
    tags = parent.data.tags
    return str(tags.get("machine.id") or tags.get("machine.name", ""))

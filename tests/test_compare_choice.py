"""Which sweeps are compared without being asked for: the newest that others can be put beside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from mlflow.entities import LifecycleStage, Param, Run, RunData, RunInfo, RunTag

from pipeline.records import JobRecord
from tests.records_factory import make_record, make_sweep
from tracking.compare.choose import choose
from tracking.compare.newest import Newest
from tracking.compare.read import StoredSweeps
from tracking.compare.sweeps import Sweep

WHOLE = make_sweep(seeds=(0,))
QUICK = make_sweep(("int8",), (2,), (0,), tokens=24)


class Kept(StoredSweeps):
    """A store in memory, which counts how often each sweep is read."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.jobs: dict[str, Sequence[JobRecord]] = {}
        self.read: Counter[str] = Counter()

    def keep(
        self, sweep_id: str, machine: str, jobs: Sequence[JobRecord], load: str | None = "idle"
    ) -> None:
        tags = {"sweep.id": sweep_id, "machine.id": machine, "machine.name": machine}
        tags |= {"load.state": load} if load else {}
        info = RunInfo(sweep_id, "0", "me", "FINISHED", 0, 1, LifecycleStage.ACTIVE)
        data = RunData(
            params=[Param("jobs", str(len(jobs)))], tags=[RunTag(*tag) for tag in tags.items()]
        )
        self.runs.append(Run(info, data))
        own = {"load.state": load} if load else {}
        self.jobs[sweep_id] = [replace(job, tags=own | job.tags) for job in jobs]

    def parents(self) -> list[Run]:
        return self.runs

    def records(self, sweep_id: str) -> list[JobRecord]:
        self.read[sweep_id] += 1
        return list(self.jobs[sweep_id])

    def sweep(self, parent: Run) -> Sweep:
        own = parent.data.tags["sweep.id"]
        return Sweep(own, parent.data.tags, self.records(own))


@pytest.fixture
def kept() -> Kept:
    """Both machines ran the whole grid."""
    kept = Kept()
    kept.keep("s1", "attic", WHOLE)
    kept.keep("s2", "cellar", WHOLE)
    return kept


def chosen(kept: Kept) -> list[str]:
    return [sweep.id for sweep in choose(kept).sweeps]


def test_the_newest_are_taken_where_they_are_of_the_same_jobs_and_nothing_else_is_read(
    kept: Kept,
) -> None:
    kept.keep("s3", "attic", WHOLE)
    kept.keep("s4", "cellar", WHOLE)
    assert chosen(kept) == ["s3", "s4"]
    assert set(kept.read) == {"s3", "s4"}
    assert not choose(kept).notes


@pytest.mark.parametrize("hiding", [QUICK, WHOLE[:1], WHOLE[:5]])
@pytest.mark.parametrize("machine", ["attic", "cellar"])
def test_a_quick_look_or_a_few_jobs_run_again_hide_nothing(
    kept: Kept, hiding: list[JobRecord], machine: str
) -> None:
    kept.keep("s3", machine, hiding)
    assert chosen(kept) == ["s1", "s2"]
    (note,) = choose(kept).notes
    assert f"Of {machine} idle, sweep {'s1' if machine == 'attic' else 's2'} is compared" in note
    assert "which has 12 jobs in common with the others; its newest, s3, has " in note
    assert "--sweep s3" in note


def test_a_newest_sweep_that_lacks_a_job_or_two_is_taken_all_the_same(kept: Kept) -> None:
    kept.keep("s3", "attic", WHOLE[1:])
    assert chosen(kept) == ["s2", "s3"]


def test_a_quick_look_on_both_machines_is_compared(kept: Kept) -> None:
    kept.keep("s3", "attic", QUICK)
    kept.keep("s4", "cellar", QUICK)
    assert chosen(kept) == ["s3", "s4"]


def test_where_no_newest_sweep_shares_a_job_older_ones_are_looked_at(kept: Kept) -> None:
    kept.keep("s3", "attic", QUICK)
    kept.keep("s4", "cellar", [make_record("int4", 2, 7)])
    assert chosen(kept) == ["s1", "s2"]
    assert len(choose(kept).notes) == 2


def test_sweeps_that_have_nothing_in_common_are_the_newest() -> None:
    strangers = Kept()
    strangers.keep("s1", "attic", QUICK)
    strangers.keep("s2", "attic", QUICK)
    strangers.keep("s3", "cellar", WHOLE)
    assert chosen(strangers) == ["s2", "s3"]
    assert not choose(strangers).notes


def test_a_machines_states_of_load_are_chosen_one_by_one(kept: Kept) -> None:
    kept.keep("s3", "attic", WHOLE, "busy")
    kept.keep("s4", "attic", QUICK, "busy")
    assert chosen(kept) == ["s1", "s2", "s3"]


def test_one_machine_alone_has_its_newest_sweep(kept: Kept) -> None:
    kept.keep("s3", "attic", WHOLE[:1])
    assert [sweep.id for sweep in choose(kept, machines=["attic"]).sweeps] == ["s3"]


def test_the_last_ones_are_read_and_no_others(kept: Kept) -> None:
    kept.keep("s3", "attic", QUICK)
    kept.keep("s4", "cellar", [])
    kept.keep("s5", "cellar", QUICK)
    assert [sweep.id for sweep in choose(kept, last=2).sweeps] == ["s3", "s5"]
    assert set(kept.read) == {"s3", "s4", "s5"}


def test_no_more_than_ten_sweeps_of_a_machine_and_load_are_looked_at(kept: Kept) -> None:
    for place in range(20):
        kept.keep(f"t{place}", "attic", QUICK)
        kept.keep(f"u{place}", "tower", QUICK, None)  # counted only
    Newest(kept, kept.parents())
    assert len([name for name in kept.read if name.startswith(("s1", "t"))]) <= 10
    assert len([name for name in kept.read if name.startswith("u")]) <= 10

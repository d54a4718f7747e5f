"""Before a job is timed: a busy machine is told of, waited for where that is asked, never fatal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.idle import IdleCheck, IdlePlan
from pipeline.plan import Plan
from pipeline.store import Store
from tests import fake_jobs
from tests.sweeping import go_on, run


class Shares:
    """A meter that sees these shares, one after the other; sleeping only adds up."""

    def __init__(self, *shares: float | None) -> None:
        self._shares: Iterator[float | None] = iter(shares)
        self.slept_s = 0.0
        self.said: list[str] = []

    def start(self) -> None:
        pass

    def stop(self) -> tuple[dict[str, float], dict[str, str]]:
        share = next(self._shares)
        return ({} if share is None else {"load/others_share": share}), {}

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds

    def check(self, plan: IdlePlan) -> IdleCheck:
        return IdleCheck(plan, self, self.said.append, self.sleep)


def test_an_idle_machine_is_not_mentioned_nor_one_that_does_not_tell() -> None:
    for share in (0.0, 0.09, None):
        seen = Shares(share)
        seen.check(IdlePlan()).before("one")
        assert not seen.said and seen.slept_s < 0.5


def test_a_busy_machine_is_told_of_and_not_waited_for() -> None:
    seen = Shares(0.37)
    check = seen.check(IdlePlan())
    check.before("int8 k=4 seed=0")
    (told,) = seen.said
    assert told.startswith("int8 k=4 seed=0: other programs take 37% of this machine's CPU time")
    assert "timed all the same" in told and check.waited_s == 0


def test_what_was_seen_while_the_last_job_ran_costs_no_time() -> None:
    seen = Shares(0.0)
    check = seen.check(IdlePlan())
    check.before("one")
    first_s = seen.slept_s
    check.seen({"load/others_share": 0.5})
    check.before("two")
    assert seen.slept_s == first_s and seen.said[0].startswith("two: other programs take 50%")


def test_a_busy_machine_is_waited_for_until_it_is_idle() -> None:
    seen = Shares(0.5, 0.5, 0.5, 0.01)
    check = seen.check(IdlePlan(wait_s=60))
    check.before("one")
    assert "waiting up to 60 s" in seen.said[0] and seen.said[1] == "one: idle after 4 s"
    assert seen.slept_s == pytest.approx(check.waited_s + 0.3)


def test_waiting_is_given_up_at_its_limit_and_said() -> None:
    seen = Shares(*[0.5] * 99)
    seen.check(IdlePlan(wait_s=10)).before("one")
    assert "gave up waiting after 10 s, other programs still take 50%" in seen.said[-1]
    assert 10 <= seen.slept_s < 12


def test_a_sweep_says_of_each_timed_job_that_the_machine_is_busy_and_times_it(
    tmp_path: Path,
) -> None:
    result = run(tmp_path, "draft=int8", "k=1,2", "seed=0", "n_jobs=1")
    assert result.code == 0 and set(result.statuses.values()) == {"done"}
    for k in (1, 2):
        assert f"int8 k={k} seed=0: other programs take 25% of this machine's" in result.out
    quiet = run(tmp_path, "draft=int8", "k=1", "seed=0", "timing.idle_below=0.3")
    assert "other programs" not in quiet.out


def test_how_long_to_wait_changes_no_job_and_is_kept_for_a_resume(tmp_path: Path) -> None:
    one = ("draft=int8", "k=1", "seed=0")
    waiting = run(tmp_path, *one, "timing.wait_for_idle=1", "timing.idle_below=0.2")
    assert "gave up waiting after 1 s" in waiting.out and waiting.code == 0
    store = Store.find(tmp_path / "outputs", None)
    plan = Plan.from_dict(store.read_plan())
    assert plan.idle == IdlePlan(1.0, 0.2)
    assert plan.jobs[0].digest == fake_jobs.digest(plan.jobs[0].spec)
    assert "wait_for_idle" not in plan.jobs[0].spec.to_dict()
    assert "0 of 1 jobs are left" in go_on(tmp_path).out
    before = {key: value for key, value in plan.to_dict().items() if key != "idle"}
    assert Plan.from_dict(before).idle == IdlePlan()  # of a sweep that an older version began


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("timing.wait_for_idle=-1", "timing.wait_for_idle=-1.0: give the most seconds"),
        ("timing.idle_below=0", "timing.idle_below=0.0: give a share"),
        ("timing.wait_for_idle=0,60", "timing.wait_for_idle is one for a whole sweep"),
    ],
)
def test_a_wait_that_cannot_be_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], argument: str, told: str
) -> None:
    assert run(tmp_path, "draft=int8", "k=1", "seed=0", argument).code == 2
    assert told in capsys.readouterr().err and not list(tmp_path.iterdir())

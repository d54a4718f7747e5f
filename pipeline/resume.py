"""`python -m pipeline.resume [SWEEP]`: go on with a sweep that was broken off.

Runs what is missing or failed, sends to the store of runs what it has not got, and closes what was
left open there. The newest sweep, unless one is named. On another machine than the one it was begun
on, what waits is sent and nothing is run: a sweep's timings are one machine's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from pipeline.compose import ROOT
from pipeline.journal import Recorder
from pipeline.origin import is_elsewhere, its_name, refusal
from pipeline.plan import Jobs, Plan, git_tags
from pipeline.privacy import hide_passwords
from pipeline.progress import Show
from pipeline.recording import build_recorder
from pipeline.run import Sweep
from pipeline.stop import Stop, Stopped
from pipeline.store import Store
from pipeline.sweep import BAD_INPUT, pipeline_jobs


def main(
    arguments: Sequence[str] | None = None,
    jobs: Jobs | None = None,
    root: Path = ROOT,
    show: Show | None = None,
) -> int:
    """The exit code, as a sweep's."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.resume", description=__doc__)
    parser.add_argument(
        "sweep", nargs="?", help="name or folder of a sweep; the newest if left out"
    )
    named = parser.parse_args(arguments).sweep
    show = show or Show()
    with Stop() as stop, ExitStack() as held:
        try:
            store = Store.find(root / "outputs", named)
            held.enter_context(store.held())
            sweep = _prepare(store, jobs or pipeline_jobs(), root, show, stop)
        except ValueError as error:
            print(f"specsweep: {hide_passwords(str(error))}", file=sys.stderr)
            return BAD_INPUT
        except Stopped:
            return stop.exit_code
        return sweep.run()


def _prepare(store: Store, jobs: Jobs, root: Path, show: Show, stop: Stop) -> Sweep:
    before = Plan.from_dict(store.read_plan())
    recorder = build_recorder(before.tracking, root)
    if is_elsewhere(before, here := recorder.machine()):
        return _elsewhere(before, here, store, jobs, recorder, stop, show)
    _check_nulls(store)
    plan = before if _is_whole(before, store) else before.with_digests_of(jobs)
    changed = sum(a.digest != b.digest for a, b in zip(before.jobs, plan.jobs, strict=True))
    if changed:
        show.say(f"code or weights have changed since: {changed} jobs are new ones now")
        store.write_plan(plan.to_dict())
    sweep = Sweep(plan, store, jobs, recorder, stop, show, git_tags(ROOT))
    left = sum(not sweep.has(job, "done") for job in plan.jobs)
    show.say(f"sweep {store.sweep_id}: {left} of {len(plan.jobs)} jobs are left to do")
    return sweep


def _check_nulls(store: Store) -> None:
    try:
        store.read_nulls()
    except ValueError as error:
        raise ValueError(f"{error}; delete the file to have it timed anew") from error


def _is_whole(plan: Plan, store: Store) -> bool:
    """Whether every job is done: then nothing is run, and code or weights of now do not matter."""
    records = store.records()
    return all(job.digest in records and records[job.digest].status == "done" for job in plan.jobs)


def _elsewhere(
    plan: Plan,
    here: Mapping[str, str],
    store: Store,
    jobs: Jobs,
    recorder: Recorder,
    stop: Stop,
    show: Show,
) -> Sweep:
    """A sweep of another machine: what that machine found is sent as its own, whatever the code
    and weights here, and nothing is run."""
    sweep = Sweep(plan, store, jobs, recorder, stop, show, plan.tags)
    left = sum(not sweep.has(job, "done") for job in plan.jobs)
    sweep.sends_only, sweep.refused = True, refusal(plan, here, left) if left else ""
    show.say(f"sweep {store.sweep_id} is of another machine, {its_name(plan)}: it is sent, not run")
    return sweep


if __name__ == "__main__":
    sys.exit(main())

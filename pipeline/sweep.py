"""The main job: `python -m pipeline.sweep [OVERRIDES]` runs a grid of jobs and records them.

Hydra composes the jobs, joblib runs them, and the recorder that conf/tracking names keeps them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import joblib

from pipeline import config
from pipeline.compose import ROOT, compose
from pipeline.plan import Jobs, Plan, git_tags, make_plan
from pipeline.privacy import hide_passwords
from pipeline.progress import Show, clock_face
from pipeline.recording import build_recorder
from pipeline.run import Sweep
from pipeline.stop import Stop, Stopped
from pipeline.store import Store
from pipeline.verdicts import many

BAD_INPUT = 2


def main(
    arguments: Sequence[str] | None = None,
    jobs: Jobs | None = None,
    root: Path = ROOT,
    show: Show | None = None,
) -> int:
    """Run the sweep that the arguments describe; the exit code. `root` holds outputs and store."""
    show = show or Show()
    line = list(sys.argv[1:] if arguments is None else arguments)
    with Stop() as stop, ExitStack() as held:
        try:
            sweep = _prepare(line, jobs, root, show, stop, held)
        except ValueError as error:
            print(f"specsweep: {hide_passwords(str(error))}", file=sys.stderr)
            return BAD_INPUT
        except Stopped:
            return stop.exit_code
        return sweep.run() if sweep else 0


def _prepare(
    arguments: list[str], jobs: Jobs | None, root: Path, show: Show, stop: Stop, held: ExitStack
) -> Sweep | None:
    """The sweep, ready to run, in a new folder that is held; None for a dry run, which is over."""
    composed = compose(arguments)
    jobs = jobs or pipeline_jobs()
    cores = joblib.cpu_count(only_physical_cores=True)
    plan = make_plan(composed, arguments, jobs, cores)
    recorder = build_recorder(plan.tracking, root)
    warned = [text for job in plan.jobs for text in config.warnings_for(job.spec)]
    for text in dict.fromkeys([*warned, *config.crowded(plan.workers, cores)]):
        show.say(f"warning: {text}")
    if composed[0].config["dry_run"]:
        list_jobs(plan, jobs, show)
        return None
    tags = git_tags(ROOT)
    plan = replace(plan, tags=tags | recorder.machine())
    try:
        store = Store.create(root / "outputs")
        store.write_plan(plan.to_dict())
        store.make_latest()
    except OSError as error:
        raise ValueError(
            f"{root / 'outputs'} cannot be written: {error.strerror or error}"
        ) from error
    workers = many(plan.workers, "worker")
    show.say(f"sweep {store.sweep_id}: {many(len(plan.jobs), 'job')}, {workers}")
    held.enter_context(store.held())
    return Sweep(plan, store, jobs, recorder, stop, show, tags)


def list_jobs(plan: Plan, jobs: Jobs, show: Show) -> None:
    """A dry run: the jobs, and how long they would take."""
    for job in plan.jobs:
        show.say(f"  {job.name}")
    count_s, clock_s = jobs.estimate_s([job.spec for job in plan.jobs])
    count_s /= plan.workers
    show.say(
        f"{many(len(plan.jobs), 'job')}: counting about {clock_face(count_s)} with "
        f"{many(plan.workers, 'worker')}, "
        f"timing about {clock_face(clock_s)}, together about {clock_face(count_s + clock_s)} "
        "(minutes:seconds). Nothing was run."
    )


def pipeline_jobs() -> Jobs:
    """The real ones."""
    from pipeline import job  # brings torch: not needed for --help or a typo

    return job


if __name__ == "__main__":
    sys.exit(main())

"""The compiled engine, where there is one."""

from __future__ import annotations

from dataclasses import replace

from pipeline import job
from pipeline.bench import sides
from pipeline.clocks import Timed
from pipeline.spec import JobSpec


def try_compiled(spec: JobSpec) -> tuple[Timed | None, str]:
    """The job's sides with compiled models, both decoded once; or None and a sentence why not."""
    try:
        _, timed = job.timed_sides(replace(spec, compile=True))
        sides.write(sides.plain(timed, spec.seed), spec.tokens)
        sides.write(sides.speculative(timed, spec.seed), spec.tokens)
    except (ValueError, RuntimeError) as error:
        first = str(error).strip().partition("\n")[0]
        return None, f"the compiled engine could not be measured ({first})"
    return timed, ""

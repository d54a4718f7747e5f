"""A sweep is one machine's: its timings never mix with another's, wherever its folder is opened.

`outputs/` may lie on a disk that machines share, or be copied. Elsewhere nothing of a sweep is run,
not even counted: its runs say which machine counted them, and a comparison of two machines' counts
must be one. What waits there for the store of runs can be sent from anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.plan import Plan


def is_elsewhere(plan: Plan, here: Mapping[str, str]) -> bool:
    """Whether the sweep was begun on another machine than `here`, as the recorder's tags tell.

    A plan that names no machine is taken to be this one's.
    """
    its_id = plan.tags.get("machine.id")
    return its_id is not None and its_id != here.get("machine.id")


def refusal(plan: Plan, here: Mapping[str, str], left: int) -> str:
    """What is not done here, why, and what to do instead. One sentence."""
    named = ", with a tracking.machine of its own" if plan.tracking.get("machine") else ""
    return (
        f"{left} of {len(plan.jobs)} jobs are left and are not run here: this sweep was begun on "
        f"{_shown(plan.tags)} and this is {_shown(here)}, and timings of two machines never mix in "
        f"one sweep; go on there with `make resume`, or measure this machine in a sweep of its own"
        f"{named}: {plan.command}"
    )


def machine_of(plan: Plan) -> dict[str, str]:
    """What the plan tells of the sweep's machine."""
    return {tag: value for tag, value in plan.tags.items() if tag.startswith("machine.")}


def its_name(plan: Plan) -> str:
    """What the sweep's machine is called."""
    return plan.tags.get("machine.name", plan.tags.get("machine.id", "another machine"))


def _shown(tags: Mapping[str, str]) -> str:
    name, its_id = tags.get("machine.name", "a machine"), tags.get("machine.id", "without an id")
    return f"{name} (machine.id {its_id})"

"""Which settings keep jobs of several groups from being the same. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.records import JobRecord

HOW_OFTEN = frozenset("pairs most_pairs half_width limit_s".split())
"""Settings that say how often a ratio is taken: not what it is, only how well it is known."""
_TIMING = HOW_OFTEN | {"piece_tokens", "threads"}


def settings_apart(groups: Sequence[Sequence[JobRecord]]) -> dict[str, list[str]]:
    """The parameters that no two groups' records share a value of, with the values of each group.

    Where weights lie is none.
    """
    names = sorted({name for group in groups for r in group for name in r.params} - {"target"})
    found = {}
    for name in names:
        values = [{str(record.params.get(name)) for record in group} for group in groups]
        if not set.intersection(*values):
            found[name] = [", ".join(sorted(each)) for each in values]
    return found


def argument(name: str) -> str:
    """A parameter as it is given to a sweep: "timing.threads"."""
    return f"timing.{name}" if name in _TIMING else name

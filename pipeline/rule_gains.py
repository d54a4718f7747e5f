"""What the better rule gains in tokens a pass: same draft, same seeds, as many places drafted.

    python -m pipeline.rule_gains
    python -m pipeline.rule_gains draft=small k=4 tree=[4,2,2,1] seed='range(0,64)'

Settings are those of a sweep. On a chain `block` is compared with `token`; on a tree of the same
depth `sequoia` with `specinfer`, `traversal` with `sequoia`, and with `block` on the chain. `long`
is the token rule on a chain of as many tokens as the tree has nodes: `sequoia` is compared with it
too. These are counts, exact and equal on every machine; the error is the standard error over seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeline import config
from pipeline.asked import settings
from pipeline.compose import Composed
from pipeline.progress import Show
from pipeline.spec import JobSpec
from pipeline.verify.tree import tree

DEFAULTS = {"draft": "bigram,int4", "k": "3", "seed": "range(0,24)", "timing": "skip"}
Ladder = dict[str, tuple[str, ...]]
LONG = "long"  # the token rule on a chain with as many tokens as the tree has nodes
RULES: Ladder = {"token": (), "block": ("token",), LONG: ()}
TREE_RULES: Ladder = {
    "specinfer": (),
    "sequoia": ("specinfer", "token", LONG),
    "traversal": ("sequoia", "block"),
}
"""Rules, each with those it is compared with."""
PUBLISHED = (
    "Published: block over token 5 to 8% in wall-clock time (arXiv 2403.10444); trees over chains "
    "about 20% more tokens a pass."
)
BAD_INPUT = 2
PerSeed = NDArray[np.float64]


def main(arguments: Sequence[str] | None = None, show: Show | None = None) -> int:
    """0, or 2 for settings that cannot be."""
    show = show or Show()
    try:
        for jobs in _settings(settings(arguments, DEFAULTS, __doc__)):
            chain, branching = jobs[0]
            show.say(f"{_title(branching)}: {len(jobs)} seeds, {chain.tokens} characters each")
            for line in told(measure([one for one, _ in jobs], [one for _, one in jobs])):
                show.say(f"  {line}")
        show.say(PUBLISHED)
    except ValueError as error:
        print(f"specsweep: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0


def _settings(composed: Sequence[Composed]) -> list[list[tuple[JobSpec, JobSpec]]]:
    """A chain and a tree of its depth for each setting, the seeds of one setting together."""
    found: dict[str, list[tuple[JobSpec, JobSpec]]] = {}
    for one in composed:
        trees = {"proposal": "tree", "verify": "sequoia"}
        branching = config.to_spec({**one.config, **trees})
        chains = {"proposal": "chain", "verify": "token", "k": branching.k}
        chain = config.to_spec({**one.config, **chains})
        found.setdefault(str(replace(branching, seed=0)), []).append((chain, branching))
    return list(found.values())


def measure(chains: Sequence[JobSpec], trees: Sequence[JobSpec]) -> dict[str, PerSeed]:
    """Tokens a pass under each rule, one figure a seed. ValueError for a job that cannot be."""
    from pipeline.workbench import most_drafted, tokens_per_pass  # which bring torch

    nodes = tree(trees[0].tree or ()).nodes
    jobs = {rule: [replace(job, verify=rule) for job in chains] for rule in ("token", "block")}
    if nodes <= most_drafted(chains[0]):
        jobs[LONG] = [replace(job, verify="token", k=nodes) for job in chains]
    jobs |= {rule: [replace(job, verify=rule) for job in trees] for rule in TREE_RULES}
    return {rule: np.array([tokens_per_pass(job) for job in some]) for rule, some in jobs.items()}


def told(found: Mapping[str, PerSeed]) -> list[str]:
    """A line a rule: its mean, and what it gains over those it is compared with."""
    lines = []
    for rule, others in {**RULES, **TREE_RULES}.items():
        if rule not in found:  # a draft of few tokens has no long chain
            continue
        known = [other for other in others if other in found]
        gains = [f"{_gain(found[rule], found[other])} over {other}" for other in known]
        lines.append(f"{rule:<10}{found[rule].mean():6.2f} tokens a pass  {', '.join(gains)}")
    return [line.rstrip() for line in lines]


def _gain(mine: PerSeed, other: PerSeed) -> str:
    """In percent of the other's mean, with the standard error of the seeds' differences."""
    gain = 100 * (mine - other) / other.mean()
    error = f" ± {gain.std(ddof=1) / len(gain) ** 0.5:.1f}" if len(gain) > 1 else ""
    return f"{gain.mean():+.1f}{error}%"


def _title(job: JobSpec) -> str:
    return f"{job.draft} k={job.k} tree={str(list(job.tree or ())).replace(' ', '')}"


if __name__ == "__main__":
    sys.exit(main())

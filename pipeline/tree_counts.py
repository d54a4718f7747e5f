"""A round with a tree in the words that a chain's rounds are counted in.

Its `drafted` is the depth of the tree, the most it can accept, so that the acceptance rate is of
places and not of candidates; `nodes` says how many tokens were drafted for it. `alpha` is that of
one candidate: Σ min(p, q) at every node where a child was tested. With several candidates a place
is accepted more often than that.
"""

from __future__ import annotations

import numpy as np

from pipeline.records import Round
from pipeline.tree_decode import TreeStep
from pipeline.tree_proposal import siblings_margin
from pipeline.verify import TreeRule


def round_of(step: TreeStep, row: int) -> Round:
    """What one lane did, the one in `row` of the step."""
    count = int(step.emitted[row])
    emitted = tuple(step.block[row, :count].tolist())
    start, accepted = int(step.start[row]), int(step.accepted[row])
    return Round(start, step.shape.depth, accepted, emitted, step.shape.nodes)


def overlaps(step: TreeStep, row: int) -> list[float]:
    """Σ min(p, q) at each node whose children were tested."""
    count = min(int(step.accepted[row]) + 1, step.shape.depth)
    path = step.shape.path(step.node[row : row + 1])[0, :count]
    found: list[float] = np.minimum(step.p[row, path], step.q[row, path]).sum(axis=-1).tolist()
    return found


def margin(step: TreeStep, row: int, rule: TreeRule) -> float:
    """How near the closest call was, of all draws and of the tests that were made."""
    one, shape = slice(row, row + 1), step.shape
    p, q, drafted = step.p[one], step.q[one], step.drafted[one]
    calls = [float(rule.margin(shape, p, q, drafted, step.u[one], step.u_next[one])[0])]
    for depth, width in enumerate(shape.widths):
        here, below = shape.levels[depth], shape.levels[depth + 1]
        columns = slice(below.start - 1, below.stop - 1)
        ids = step.drafted[row, columns].reshape(-1, width)
        u = step.u_draft[row, columns].reshape(-1, width)
        calls.append(siblings_margin(step.q[row, here], ids, u, rule.with_replacement))
    return min(calls)

"""What a rejected sibling leaves behind, and the descent that `specinfer` and `sequoia` share.

P and Q are the target's and the draft's row at a node. Its child X is accepted w.p.
min(1, P(X)/Q(X)); if it is not, P ← [P − Q]₊, normalised, and the next child is tested. All
rejected: the next token is drawn from P. Otherwise all begins anew at the accepted child. The next
child came from Q as it was, or, drawn without replacement, from Q with X zeroed, normalised: it is
tested with that one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pipeline.verify.rule import Array
from pipeline.verify.tree import Tree
from pipeline.verify.tree_rule import Test, Walk

NOT_FROM_Q = (
    "a drafted token has probability 0 in its row of q, less the siblings drawn before: "
    "hand over the very rows the tree was sampled from"
)


def leftover(wanted: Array, q: Array) -> tuple[Array, Array]:
    """[wanted − q]₊ `(b, V)` divided by its sum, and the sum `(b,)`. Where nothing is left, the
    two agree to rounding: `wanted` stays."""
    return _normalised(np.maximum(wanted - q, 0), wanted)


def without(q: Array, tokens: Array) -> tuple[Array, Array]:
    """`q (b, V)` with `tokens (b,)` zeroed, divided by its sum, and the sum `(b,)`, which is 0
    where no other id can be drawn."""
    left = q.copy()
    left[np.arange(len(q)), tokens] = 0
    return _normalised(left, left)


def leftover_of_one(wanted: Array, q: Array) -> tuple[Array, Any]:
    """`leftover` of single rows `(V,)`."""
    left = np.maximum(wanted - q, 0)
    mass = left.cumsum()[-1]
    return (left / mass if mass > 0 else wanted), mass


def without_one(q: Array, token: int) -> tuple[Array, Any]:
    """`without` of a single row `(V,)`."""
    left = q.copy()
    left[token] = 0
    mass = left.cumsum()[-1]
    return (left / mass if mass > 0 else left), mass


def _normalised(weights: Array, otherwise: Array) -> tuple[Array, Array]:
    mass = weights.cumsum(axis=-1)[:, -1]  # summed in order: a row as in any batch
    some = mass > 0
    rows = weights / np.where(some, mass, 1)[:, None]
    return np.where(some[:, None], rows, otherwise), mass


class Open(NamedTuple):
    """Rounds that are still to accept a child of their node, with their rows as they are now."""

    rounds: Array  # (b,)
    node: Array  # (b,)
    p: Array  # (b, V)
    q: Array  # (b, V)
    units: Array  # (b,) what a weight of p counts, see `TreeRule.margin`
    q_mass: Array  # (b,) what of q is left to draw

    def take(self, which: Array) -> Open:
        return Open(*(part[which] for part in self))


def descend(
    tree: Tree, p: Array, q: Array, drafted: Array, u: Array, with_replacement: bool
) -> Walk:
    """From the root down, one sibling after another; shapes as `TreeRule`'s."""
    walk, rounds = Walk.at_root(p), np.arange(len(p))
    for width in tree.widths:
        node, ones = walk.node[rounds], np.ones(len(rounds), p.dtype)
        here = Open(rounds, node, p[rounds, node], q[rounds, node], ones, ones)
        for child in range(width):
            at = tree.first[here.node] + child
            tokens = drafted[here.rounds, at - 1]
            passed = accepts(here, tokens, at - 1, u, walk)
            walk.move(here.rounds[passed], at[passed], p)
            here = reject(here.take(~passed), tokens[~passed], with_replacement, walk)
            if not len(here.rounds):
                break
        rounds = rounds[walk.node[rounds] != node]
        if not len(rounds):
            break
    return walk


def descend_alone(
    tree: Tree, p: Array, q: Array, drafted: list[int], u: list[Any], with_replacement: bool
) -> tuple[int, Array]:
    """`descend` of one round: the node, and the row to draw from; `p (n+1, V)`, `q (m, V)`."""
    node = 0
    while node < tree.inner:
        row, row_q, found = p[node], q[node], 0
        first = int(tree.first[node])
        for child in range(first, first + tree.widths[tree.depths[node]]):
            token = drafted[child - 1]
            under_q = row_q.item(token)
            if not under_q:
                raise ValueError(NOT_FROM_Q)
            if u[child - 1] * under_q < row.item(token):
                found = child
                break
            row, _ = leftover_of_one(row, row_q)
            if not with_replacement:
                row_q, left = without_one(row_q, token)
                if not left:
                    break
        if not found:
            return node, row
        node = found
    return node, p[node]


def accepts(here: Open, tokens: Array, columns: Array, u: Array, walk: Walk) -> Array:
    """Which rounds accept `tokens (b,)` at `u[:, columns]`, `(b,)`."""
    places = np.arange(len(tokens))
    under_p, under_q = here.p[places, tokens], here.q[places, tokens]
    if not under_q.all():
        raise ValueError(NOT_FROM_Q)
    units = np.minimum(here.units, here.q_mass)
    walk.tests.append(Test(here.rounds, columns, (under_p / under_q)[:, None], units))
    passed: Array = u[here.rounds, columns] * under_q < under_p
    return passed


def reject(here: Open, tokens: Array, with_replacement: bool, walk: Walk) -> Open:
    """The rows after all of `here` rejected their token; only rounds that have a child left."""
    p, mass = leftover(here.p, here.q)
    units = np.minimum(here.units, here.q_mass) * np.where(mass > 0, mass, 1)
    walk.rows[here.rounds], walk.units[here.rounds] = p, units
    if with_replacement:
        return here._replace(p=p, units=units)
    q, left = without(here.q, tokens)
    after = here._replace(p=p, q=q, units=units, q_mass=here.q_mass * left)
    return after.take(left > 0)

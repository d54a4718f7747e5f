"""What a tree rule is: which node of a drafted tree is kept, and the token that follows it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, NamedTuple

import numpy as np

from pipeline.verify.rows import draw, edge_gap
from pipeline.verify.rule import Array
from pipeline.verify.tree import Tree


class Test(NamedTuple):
    """A comparison made in some rounds: of `u[rounds, columns]` with `cuts (b, m)`.

    `units (b,)` is what the distance to a cut counts, see `TreeRule.margin`.
    """

    rounds: Array  # (b,)
    columns: Array  # (b,)
    cuts: Array
    units: Array


class Walk(NamedTuple):
    """Where the decisions of B rounds led: to `node (B,)`, and `rows (B, V)` to draw from, weights.

    `units (B,)` is what a weight of the row counts; `tests` are all comparisons made, in order.
    """

    node: Array
    rows: Array
    units: Array
    tests: list[Test]

    @classmethod
    def at_root(cls, p: Array) -> Walk:
        """Nothing accepted yet, `p (B, n+1, V)` as it is."""
        return cls(np.zeros(len(p), np.int64), p[:, 0].copy(), np.ones(len(p), p.dtype), [])

    def move(self, rounds: Array, to: Array, p: Array) -> None:
        """Go on from `rounds (b,)` to their nodes `to (b,)`, where p is as the target has it."""
        self.node[rounds], self.rows[rounds], self.units[rounds] = to, p[rounds, to], 1


class TreeRule(ABC):
    """A verification rule for trees of n drafted tokens, on B rounds at once. It keeps no state.

    Shapes: `p (B, n+1, V)` the target's rows after each node, the root first; `q (B, m, V)` the
    draft's rows after each node with children, warped as the target's; `drafted (B, n)`, the token
    of node c at c - 1; `u (B, columns)` and `u_next (B,)` independent uniforms in [0, 1).

    Siblings were drawn one after another from their parent's row of q: with replacement, or without
    (the ids already drawn zeroed, the rest normalised). Where no id is left to draw, a sibling
    repeats the first one's id: it stands for no token, and no rule ever accepts it.
    """

    name: str
    uniforms: Literal["accept", "next"]
    """Purpose of `u`: a test a node, or a draw a depth, the one plain decoding makes there."""
    with_replacement: bool = False
    """How siblings must have been drawn."""

    def columns(self, tree: Tree) -> int:
        """How many uniforms a round may look at, `u_next` aside."""
        return tree.nodes if self.uniforms == "accept" else tree.depth

    @abstractmethod
    def walk(self, tree: Tree, p: Array, q: Array, drafted: Array, u: Array) -> Walk:
        """All decisions but the last draw. ValueError where a drafted token has probability 0 in
        the row of q it is said to come from, if the rule reads q."""

    @abstractmethod
    def alone(
        self, tree: Tree, p: Array, q: Array, drafted: list[int], u: list[Any]
    ) -> tuple[int, Array] | None:
        """`walk` of one round, without arrays of one: the node, and the row `(V,)` to draw from.

        It runs in timed halves. The same arithmetic to the bit; None to do as with many.
        """

    def verify(
        self, tree: Tree, p: Array, q: Array, drafted: Array, u: Array, u_next: Array
    ) -> tuple[Array, Array]:
        """The last node kept, `(B,)`, 0 for none, and the token that follows it, `(B,)`."""
        if len(p) == 1:
            one = self.alone(tree, p[0], q[0], drafted[0].tolist(), u[0].tolist())
            if one is not None:
                return np.array([one[0]]), draw(one[1][None], u_next)
        walk = self.walk(tree, p, q, drafted, u)
        return walk.node, draw(walk.rows, u_next)

    def margin(
        self, tree: Tree, p: Array, q: Array, drafted: Array, u: Array, u_next: Array
    ) -> Array:
        """How far each round's closest decision was from going the other way, `(B,)`, at most 1.

        Only comparisons that were made count. A cut made of rows that were normalised by a small
        sum errs by what they err, divided by that sum; so its distance counts times the sum.
        """
        walk = self.walk(tree, p, q, drafted, u)
        margin: Array = np.minimum(self.last_gap(walk, u_next), 1)
        for test in walk.tests:
            gaps = abs(u[test.rounds, test.columns][:, None] - test.cuts).min(axis=1) * test.units
            margin[test.rounds] = np.minimum(margin[test.rounds], gaps)
        return margin

    def last_gap(self, walk: Walk, u_next: Array) -> Array:
        """The last draw's part of the margin, `(B,)`."""
        return edge_gap(walk.rows * walk.units[:, None], u_next)

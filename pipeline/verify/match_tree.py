"""Sample and match on a tree: the target draws once at every node it comes to.

y ~ p at the root; while a child is y, on to that child and draw again; the last y is always
emitted. Exact for any tree, and q is never read. One draw a node, shared by all paths through it;
with the uniforms of plain decoding the text is plain decoding's very text.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from pipeline.verify.rows import draw, edge_gap
from pipeline.verify.rule import Array
from pipeline.verify.tree import Tree
from pipeline.verify.tree_rule import Test, TreeRule, Walk


class MatchTree(TreeRule):
    name = "match"
    uniforms: Literal["accept", "next"] = "next"

    def walk(self, tree: Tree, p: Array, q: Array, drafted: Array, u: Array) -> Walk:
        """The row is one-hot where a draw ended the round: `u_next` has nothing to decide then."""
        walk, rounds = Walk.at_root(p), np.arange(len(p))
        for depth, width in enumerate(tree.widths):
            node = walk.node[rounds]
            row, columns = p[rounds, node], np.full(len(rounds), depth)
            walk.tests.append(Test(rounds, columns, _edges(row), np.ones(len(rounds))))
            drawn = draw(row, u[rounds, depth])
            children = tree.first[node][:, None] + np.arange(width)
            same = drafted[rounds[:, None], children - 1] == drawn[:, None]
            found = same.any(axis=1)
            ended = rounds[~found]
            walk.rows[ended] = 0
            walk.rows[ended, drawn[~found]] = 1
            rounds, to = rounds[found], children[np.arange(len(rounds)), same.argmax(axis=1)][found]
            walk.move(rounds, to, p)
            if not len(rounds):
                break
        return walk

    def alone(
        self, tree: Tree, p: Array, q: Array, drafted: list[int], u: list[Any]
    ) -> tuple[int, Array] | None:
        node = 0
        for depth, width in enumerate(tree.widths):
            drawn = int(draw(p[node][None], np.array([u[depth]]))[0])
            first = int(tree.first[node])
            children = drafted[first - 1 : first - 1 + width]
            if drawn not in children:
                row = np.zeros_like(p[node])
                row[drawn] = 1
                return node, row
            node = first + children.index(drawn)
        return node, p[node]

    def last_gap(self, walk: Walk, u_next: Array) -> Array:
        return edge_gap(walk.rows, u_next)


def _edges(rows: Array) -> Array:
    """Where a draw from `rows (b, V)` turns to another id; 2, out of reach, for the outer edges."""
    cdf = rows.cumsum(axis=-1)
    total = cdf[:, -1:]
    edges: Array = np.where((cdf > 0) & (cdf < total), cdf / total, 2)
    return edges

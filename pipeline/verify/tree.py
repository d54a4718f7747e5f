"""The shape of a tree of drafted tokens: how many children a node has at each depth.

Nodes are numbered breadth first and from 0, the root, which stands for the committed text; node
c ≥ 1 is a drafted token. So a shallower tree of the same widths is the beginning of the deeper one,
children of one node are neighbours, and a tree of width 1 throughout is a chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipeline.verify.rule import Array

Ints = NDArray[np.int64]
MOST_NODES = 256


@dataclass(frozen=True, eq=False)
class Tree:
    """n nodes beside the root, m of them (the root included) with children."""

    widths: tuple[int, ...]
    parents: Ints  # (n + 1,), -1 for the root
    depths: Ints  # (n + 1,), 0 for the root
    first: Ints  # (n + 1,) the first child of each node, n + 1 and beyond for a leaf
    levels: tuple[slice, ...]  # the nodes of each depth, the root's first
    tour: tuple[int, ...]  # depth first: c on the way down into c, -c on the way back up
    above: tuple[int, ...]  # the parents once more, as plain numbers

    @property
    def depth(self) -> int:
        return len(self.widths)

    @property
    def nodes(self) -> int:
        """n: drafted tokens."""
        return len(self.parents) - 1

    @property
    def inner(self) -> int:
        """m: nodes with children; they come first, and only they have a row of q."""
        return self.levels[-1].start if self.widths else 0

    def path(self, node: Array) -> Ints:
        """From the root to `node (B,)`, then down first children to a leaf, `(B, depth + 1)`."""
        path = np.zeros((len(node), self.depth + 1), np.int64)
        path[:, -1] = node
        for _ in range(self.depth):  # down to a leaf
            path[:, -1] = np.where(path[:, -1] < self.inner, self.first[path[:, -1]], path[:, -1])
        for at in range(self.depth - 1, 0, -1):
            path[:, at] = self.parents[path[:, at + 1]]
        return path


@lru_cache(maxsize=64)
def tree(widths: tuple[int, ...]) -> Tree:
    """The tree whose nodes at depth d have `widths[d]` children; () is a root alone.

    ValueError for a width below 1 or a tree of more than `MOST_NODES` nodes.
    """
    if any(width < 1 for width in widths):
        raise ValueError(f"tree={list(widths)}: every depth needs a width of 1 or more")
    counts = [1, *np.cumprod(widths, dtype=object).tolist()]
    if sum(counts) - 1 > MOST_NODES:
        raise ValueError(
            f"tree={list(widths)} has {sum(counts) - 1} nodes: give narrower widths, "
            f"for {MOST_NODES} nodes at most"
        )
    ends = np.cumsum(counts)
    levels = tuple(slice(int(e - c), int(e)) for e, c in zip(ends, counts, strict=True))
    parents, first = np.full(ends[-1], -1), np.full(ends[-1], ends[-1])
    for above, below, width in zip(levels, levels[1:], widths, strict=False):
        parents[below] = np.repeat(np.arange(above.start, above.stop), width)
        first[above] = below.start + width * np.arange(above.stop - above.start)
    depths = np.repeat(np.arange(len(counts)), counts)
    tour = tuple(_tour(0, widths, first))
    return Tree(widths, parents, depths, first, levels, tour, tuple(parents.tolist()))


def _tour(node: int, widths: tuple[int, ...], first: Ints) -> Iterator[int]:
    if widths:
        for child in range(int(first[node]), int(first[node]) + widths[0]):
            yield child
            yield from _tour(child, widths[1:], first)
            yield -child

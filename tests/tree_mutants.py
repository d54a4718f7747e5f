"""Tree rules broken on purpose, each in a way that others shipped."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from pipeline.verify.match_tree import MatchTree
from pipeline.verify.rows import draw
from pipeline.verify.rule import Array
from pipeline.verify.sequoia import Sequoia
from pipeline.verify.siblings import Open, accepts, descend, reject
from pipeline.verify.specinfer import SpecInfer
from pipeline.verify.traversal import State, Traversal
from pipeline.verify.tree import Tree
from pipeline.verify.tree_rule import Test, TreeRule, Walk

TINY = Fraction(1, 10**12)


@dataclass(frozen=True)
class TreeMutant:
    name: str
    rule: TreeRule
    only_on_a_tie: bool = False
    """Wrong only where a uniform equals its threshold: no number of draws shows it."""


class Broken(TreeRule):
    """One round is done as many are, and not in the way of the rule that was broken."""

    def alone(
        self, tree: Tree, p: Array, q: Array, drafted: list[int], u: list[Any]
    ) -> tuple[int, Array] | None:
        return None


class FreshPerPath(Broken, MatchTree):
    """Each path through a node draws a target sample of its own there; the longest is kept."""

    uniforms: Literal["accept", "next"] = "accept"

    def columns(self, tree: Tree) -> int:
        return tree.depth * (tree.nodes + 1 - tree.inner)

    def walk(self, tree: Tree, p: Array, q: Array, drafted: Array, u: Array) -> Walk:
        walk, every = Walk.at_root(p), np.arange(len(p))
        longest = np.full(len(p), -1)
        for index, leaf in enumerate(range(tree.inner, tree.nodes + 1)):
            path = tree.path(np.array([leaf]))[0]
            going = every
            for depth, node in enumerate(path[:-1]):
                column = tree.depth * index + depth
                cdf = p[going, node].cumsum(axis=-1)
                columns, ones = np.full(len(going), column), np.ones(len(going))
                walk.tests.append(Test(going, columns, cdf / cdf[:, -1:], ones))
                drawn = draw(p[going, node], u[going, column])
                same = drawn == drafted[going, path[depth + 1] - 1]
                better = ~same & (longest[going] < depth)
                ended = going[better]
                longest[ended], walk.node[ended] = depth, node
                walk.rows[ended] = 0
                walk.rows[ended, drawn[better]] = 1
                going = going[same]
            going = going[longest[going] < tree.depth]
            longest[going] = tree.depth
            walk.move(going, np.full(len(going), leaf), p)
        return walk


class QUnchanged(Broken, Sequoia):
    """Siblings drawn without replacement, and q left as it was: SpecInfer's tests."""

    def walk(self, tree: Tree, p: Array, q: Array, drafted: Array, u: Array) -> Walk:
        return descend(tree, p, q, drafted, u, with_replacement=True)


class TakesForDistinct(Broken, SpecInfer):
    """Siblings drawn with replacement, tested as if without; one that repeats is a rejected one."""

    def walk(self, tree: Tree, p: Array, q: Array, drafted: Array, u: Array) -> Walk:
        walk, rounds = Walk.at_root(p), np.arange(len(p))
        for width in tree.widths:
            node, ones = walk.node[rounds], np.ones(len(rounds), p.dtype)
            here = Open(rounds, node, p[rounds, node], q[rounds, node], ones, ones)
            for child in range(width):
                at = tree.first[here.node] + child
                tokens = drafted[here.rounds, at - 1]
                passed = here.q[np.arange(len(tokens)), tokens] > 0
                passed[passed] = accepts(here.take(passed), tokens[passed], at[passed] - 1, u, walk)
                walk.move(here.rounds[passed], at[passed], p)
                here = reject(here.take(~passed), tokens[~passed], False, walk)
            rounds = rounds[walk.node[rounds] != node]
        return walk


class DrawsFromP(Broken, Sequoia):
    """All siblings rejected, and the next token comes from p as if none had been tested."""

    def walk(self, tree: Tree, p: Array, q: Array, drafted: Array, u: Array) -> Walk:
        walk = super().walk(tree, p, q, drafted, u)
        return walk._replace(rows=p[np.arange(len(p)), walk.node])


class OneUniform(Broken, Sequoia):
    """A seed set inside the loop: all siblings see the same uniform."""

    def walk(self, tree: Tree, p: Array, q: Array, drafted: Array, u: Array) -> Walk:
        eldest = tree.first[tree.parents[1:]] - 1
        walk = super().walk(tree, p, q, drafted, u[:, eldest])
        tests = [test._replace(columns=eldest[test.columns]) for test in walk.tests]
        return walk._replace(tests=tests)


class AcceptsZero(Broken, Sequoia):
    """`u <= a` instead of `u < a`."""

    def walk(self, tree: Tree, p: Array, q: Array, drafted: Array, u: Array) -> Walk:
        return super().walk(tree, p, q, drafted, u - TINY)


class PAsItWas(State):
    """P of the parent is not updated."""

    def delete(self, rounds: Array, node: int) -> None:
        v = self._tree.parents[node]
        before = self.p[rounds, v]
        super().delete(rounds, node)
        self.p[rounds, v] = before


class QAsItWas(State):
    """The deleted child's token stays in Q."""

    def delete(self, rounds: Array, node: int) -> None:
        v = self._tree.parents[node]
        before = self.q[rounds, v], self.q_mass[rounds, v]
        super().delete(rounds, node)
        self.q[rounds, v], self.q_mass[rounds, v] = before


class AAsItWas(State):
    """a of the parent is not updated."""

    def delete(self, rounds: Array, node: int) -> None:
        v = self._tree.parents[node]
        before = self.a[rounds, v]
        super().delete(rounds, node)
        self.a[rounds, v] = before


class NodeAlone(State):
    """a of a node from its own rows, without its parent's a."""

    def enter(self, rounds: Array, node: int) -> None:
        v = self._tree.parents[node]
        before = self.a[rounds, v]
        self.a[rounds, v] = 1
        super().enter(rounds, node)
        self.a[rounds, v] = before


class PUpdateLeftOut(Broken, Traversal):
    state = PAsItWas


class QUpdateLeftOut(Broken, Traversal):
    state = QAsItWas


class AUpdateLeftOut(Broken, Traversal):
    state = AAsItWas


class PathLeftOut(Broken, Traversal):
    state = NodeAlone


class StaleBonus(Broken, Traversal):
    """A leaf of the tree is accepted, and the next token comes from its parent's P."""

    def walk(self, tree: Tree, p: Array, q: Array, drafted: Array, u: Array) -> Walk:
        walk = super().walk(tree, p, q, drafted, u)
        parent = p[np.arange(len(p)), tree.parents[walk.node]]
        leaf = (walk.node >= tree.inner)[:, None]
        return walk._replace(rows=np.where(leaf, parent, walk.rows))


TREE_MUTANTS = (
    TreeMutant("a fresh target sample for each path", FreshPerPath()),
    TreeMutant("sequoia with q unchanged", QUnchanged()),
    TreeMutant("siblings with replacement taken for distinct", TakesForDistinct()),
    TreeMutant("sequoia drawing from p after all are rejected", DrawsFromP()),
    TreeMutant("sequoia with one uniform for all siblings", OneUniform()),
    TreeMutant("sequoia with u <= a", AcceptsZero(), only_on_a_tie=True),
    TreeMutant("traversal with P's update left out", PUpdateLeftOut()),
    TreeMutant("traversal with Q's update left out", QUpdateLeftOut()),
    TreeMutant("traversal with a's update left out", AUpdateLeftOut()),
    TreeMutant("traversal with each node on its own", PathLeftOut()),
    TreeMutant("traversal with the bonus from the node before", StaleBonus()),
)

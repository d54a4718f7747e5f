"""Traversal verification (Weng et al. 2025, arXiv 2505.12398): leaf to root, the tree as a whole.

a_root = 1, and a_c = min(1, a_v·P_v(X)/Q_v(X)) for a child c of v with token X. The first leaf, in
post-order, is accepted with its whole path w.p. a; the next token is then drawn from its P. If it
is not, it goes: with Z = Σ[a_v·P_v − Q_v]₊, P_v ← [a_v·P_v − Q_v]₊/Z, Q_v(X) ← 0, normalised, and
a_v ← Z/(Z + 1 − a_v), 0/0 = 1. A node whose children are all gone is a leaf; the root is always
accepted. Siblings are drawn without replacement. On a chain this is `block`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.verify.rule import Array
from pipeline.verify.siblings import NOT_FROM_Q, leftover, leftover_of_one, without, without_one
from pipeline.verify.tree import Tree
from pipeline.verify.tree_rule import Test, TreeRule, Walk


class State:
    """What every node of every round is at: P, Q, a, and what is left of Q to draw from."""

    def __init__(self, tree: Tree, p: Array, q: Array, drafted: Array) -> None:
        shape = (len(p), tree.nodes + 1)
        self.p, self.q = p.copy(), q.copy()
        self.a = np.ones(shape, p.dtype)
        self.units = np.ones(shape, p.dtype)  # what a, and a weight of a P, counts
        self.q_mass = np.ones(shape, p.dtype)
        self.there = np.ones(shape, bool)  # not a sibling that stands for no token
        self._tree, self._drafted = tree, drafted

    def enter(self, rounds: Array, node: int) -> None:
        """Reach a node for the first time: its a, from its parent's as it is now."""
        v, tokens = self._tree.parents[node], self._drafted[rounds, node - 1]
        there = self.there[rounds, v] & (self.q_mass[rounds, v] > 0)
        self.there[rounds, node] = there
        under_p, under_q = self.p[rounds, v, tokens], self.q[rounds, v, tokens]
        if not (under_q > 0)[there].all():
            raise ValueError(NOT_FROM_Q)
        ratio = under_p / np.where(there, under_q, 1)
        self.a[rounds, node] = np.minimum(self.a[rounds, v] * ratio, 1)
        q_mass = np.where(there, self.q_mass[rounds, v], 1)
        self.units[rounds, node] = np.minimum(self.units[rounds, v], q_mass)

    def delete(self, rounds: Array, node: int) -> None:
        """A leaf is gone: what that leaves of its parent."""
        v, tokens = self._tree.parents[node], self._drafted[rounds, node - 1]
        a, q, q_mass = self.a[rounds, v], self.q[rounds, v], self.q_mass[rounds, v]
        self.p[rounds, v], mass = leftover(a[:, None] * self.p[rounds, v], q)
        below = mass + (1 - a)
        never = below == 0
        below = np.where(never, 1, below)
        self.a[rounds, v] = np.where(never, 1, mass / below)
        self.units[rounds, v] = np.minimum(self.units[rounds, v], q_mass) * below
        self.q[rounds, v], left = without(q, tokens)
        self.q_mass[rounds, v] = q_mass * left


class Traversal(TreeRule):
    name = "traversal"
    uniforms = "accept"
    state = State

    def walk(self, tree: Tree, p: Array, q: Array, drafted: Array, u: Array) -> Walk:
        walk, state = Walk.at_root(p), self.state(tree, p, q, drafted)
        rounds = np.arange(len(p))
        for step in tree.tour:
            if step > 0:
                state.enter(rounds, step)
                continue
            tested = rounds[state.there[rounds, -step]]
            if not len(tested):
                continue
            accepted = self._accepted(state, tested, -step, u, walk)
            walk.node[tested[accepted]] = -step
            state.delete(tested[~accepted], -step)
            if accepted.any():
                rounds = rounds[walk.node[rounds] == 0]
                if not len(rounds):
                    break
        every = np.arange(len(p))
        walk.rows[:] = state.p[every, walk.node]
        left = state.a[every, walk.node] * state.units[every, walk.node]
        walk.units[:] = np.where(walk.node < tree.inner, left, 1)
        return walk

    def alone(
        self, tree: Tree, p: Array, q: Array, drafted: list[int], u: list[Any]
    ) -> tuple[int, Array] | None:
        return _alone(tree, list(p), list(q), drafted, u)

    def _accepted(self, state: State, rounds: Array, node: int, u: Array, walk: Walk) -> Array:
        a = state.a[rounds, node]
        columns = np.full(len(rounds), node - 1)
        walk.tests.append(Test(rounds, columns, a[:, None], state.units[rounds, node]))
        accepted: Array = u[rounds, node - 1] < a
        return accepted


def _alone(
    tree: Tree, p: list[Array], q: list[Array], drafted: list[int], u: list[Any]
) -> tuple[int, Array]:
    """`walk` of one round, rows `(V,)` in lists by node."""
    a: list[Any] = [1.0] * len(p)
    can_branch, there = [True] * len(p), [True] * len(p)
    for step in tree.tour:
        node, v = abs(step), tree.above[abs(step)]
        token = drafted[node - 1]
        if step > 0:
            there[node] = there[v] and can_branch[v]
            if not there[node]:
                continue
            under_q = q[v].item(token)
            if not under_q:
                raise ValueError(NOT_FROM_Q)
            a[node] = min(a[v] * (p[v].item(token) / under_q), 1)
        elif there[node]:
            if u[node - 1] < a[node]:
                return node, p[node]
            p[v], mass = leftover_of_one(a[v] * p[v], q[v])
            below = mass + (1 - a[v])
            a[v] = mass / below if below else 1
            q[v], left = without_one(q[v], token)
            can_branch[v] = bool(left > 0)
    return 0, p[0]

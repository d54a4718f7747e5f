"""Exact laws of tree rules: the shipped code on `Fraction`s, every tree and every cell of uniforms.

A rule says what it compared. So the cells are found by following it: as long as a round compared a
uniform that has no cell yet, the round is split at the cuts it was compared with. What no round
looked at is never split, and must not matter: it is set to other values, and nothing may change.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pipeline.verify.tree import Tree, tree
from pipeline.verify.tree_rule import TreeRule, Walk
from tests.enumeration import Array, Case, Cell, Outcome, Prefix, Row, cells_of, edges_of

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Rounds:
    """Trees drawn from a case, each with its probability; the uniforms that have a cell so far."""

    drafted: Array  # (B, n)
    p: Array  # (B, n + 1, V)
    q: Array  # (B, m, V)
    u: Array  # (B, columns)
    known: Array  # (B, columns)
    probability: Array  # (B,)

    def take(self, index: Array) -> Rounds:
        return Rounds(*(part[index] for part in vars(self).values()))


def tree_outcomes(
    rule: TreeRule,
    case: Case,
    widths: tuple[int, ...],
    place: Fraction = ZERO,
    with_replacement: bool | None = None,
) -> list[Outcome]:
    """Everything one round can do. `place` is where in its cell a uniform is put, 0 the left end;
    `with_replacement` is how the siblings are really drawn, if not as the rule wants it."""
    shape = tree(widths)
    drawn = rule.with_replacement if with_replacement is None else with_replacement
    rounds = _split(rule, shape, _rounds(rule, shape, case, drawn), place)
    walk = _walk(rule, shape, rounds)
    last = [(i, cell) for i, row in enumerate(walk.rows) for cell in cells_of(edges_of(row), place)]
    index = np.array([i for i, _ in last])
    u_next = np.array([at for _, (at, _) in last], object)
    again = rounds.take(index)
    node, token = rule.verify(shape, again.p, again.q, again.drafted, again.u, u_next)
    assert (node == walk.node[index]).all(), "the last draw may not change what is accepted"
    paths = shape.path(node)
    depth = shape.depths[node]
    return [
        Outcome(tuple(ids[path[1:] - 1].tolist()), int(kept), int(x), probability * width)
        for ids, path, kept, x, probability, (_, (_, width)) in zip(
            again.drafted, paths, depth, token, again.probability, last, strict=True
        )
    ]


def _split(rule: TreeRule, shape: Tree, rounds: Rounds, place: Fraction) -> Rounds:
    finished = []
    while len(rounds.u):
        walk = _walk(rule, shape, rounds)
        pending = np.full(len(rounds.u), -1)
        cuts: list[Array | None] = [None] * len(pending)
        for test in walk.tests:
            for row, column, points in zip(test.rounds, test.columns, test.cuts, strict=True):
                if pending[row] < 0 and not rounds.known[row, column]:
                    pending[row], cuts[row] = column, points
        finished.append(rounds.take(pending < 0))
        new: list[tuple[int, Cell]] = [
            (i, cell)
            for i, points in enumerate(cuts)
            if points is not None
            for cell in cells_of(points, place)
        ]
        index = np.array([i for i, _ in new], np.int64)
        rounds = rounds.take(index)
        at = np.arange(len(index)), pending[index]
        rounds.u[at] = [cell[0] for _, cell in new]
        rounds.known[at] = True
        rounds.probability[:] = rounds.probability * np.array([c[1] for _, c in new], object)
    parts = zip(*(vars(part).values() for part in finished), strict=True)
    return Rounds(*(np.concatenate(part) for part in parts))


def _walk(rule: TreeRule, shape: Tree, rounds: Rounds) -> Walk:
    return rule.walk(shape, rounds.p, rounds.q, rounds.drafted, rounds.u)


def unread_uniforms_do_not_matter(rule: TreeRule, case: Case, widths: tuple[int, ...]) -> bool:
    shape = tree(widths)
    rounds = _split(rule, shape, _rounds(rule, shape, case, rule.with_replacement), ZERO)
    walk = _walk(rule, shape, rounds)
    rounds.u[~rounds.known] = Fraction(7, 9)
    other = _walk(rule, shape, rounds)
    return bool((walk.node == other.node).all() and (walk.rows == other.rows).all())


def _rounds(rule: TreeRule, shape: Tree, case: Case, with_replacement: bool) -> Rounds:
    drawn = list(_trees(shape, case, with_replacement))
    drafted = np.array([ids for ids, _ in drawn], np.int64)
    p, q = rows_of(shape, case, drafted)
    columns = (len(drawn), rule.columns(shape))
    u, known = np.full(columns, ZERO, object), np.zeros(columns, bool)
    return Rounds(drafted, p, q, u, known, np.array([chance for _, chance in drawn], object))


def rows_of(shape: Tree, case: Case, drafted: Array) -> tuple[Array, Array]:
    """p `(B, n + 1, V)` and q `(B, m, V)` of some trees."""
    texts = [[_text(shape, ids, node) for node in range(shape.nodes + 1)] for ids in drafted]
    p = [[case.target[text] for text in row] for row in texts]
    q = [[case.draft[text] for text in row[: shape.inner]] for row in texts]
    return np.array(p, object), np.array(q, object)


def _text(shape: Tree, ids: Array, node: int) -> Prefix:
    found: Prefix = ()
    while node:
        found = (int(ids[node - 1]), *found)
        node = int(shape.parents[node])
    return found


def _trees(shape: Tree, case: Case, with_replacement: bool) -> Iterator[tuple[Prefix, Fraction]]:
    """Every tree that can be drawn, with its probability, level by level."""
    found: list[tuple[Prefix, Fraction]] = [((), ONE)]
    for level, width in zip(shape.levels, shape.widths, strict=False):
        for parent in range(level.start, level.stop):
            longer = []
            for ids, chance in found:
                row = case.draft[_text(shape, np.array(ids), parent)]
                for siblings, odds in siblings_of(row, width, with_replacement):
                    longer.append(((*ids, *siblings), chance * odds))
            found = longer
    yield from found


def siblings_of(row: Row, width: int, with_replacement: bool) -> Iterator[tuple[Prefix, Fraction]]:
    """Every way to draw `width` siblings from a row; a repeated first id stands for no token."""
    for ids in itertools.product(range(len(row)), repeat=width):
        chance, left = ONE, list(row)
        for token in ids:
            if not any(left):
                chance *= token == ids[0]
                continue
            chance *= left[token] / sum(left)
            if not with_replacement:
                left[token] = ZERO
        if chance:
            yield ids, chance

"""Exact laws of verification rules: the shipped code, run on `Fraction`s, cell by cell.

A rule's outcome is constant while each uniform stays between two neighbouring thresholds. So the
law of a round is a finite sum over drafts and cells; nothing is sampled and nothing is rounded.
Cells are half-open, `[threshold, next)`: read at its left end each also proves which side of a
threshold a tie falls on.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.verify import Rule

Array = NDArray[Any]
Row = tuple[Fraction, ...]
Prefix = tuple[int, ...]
Law = dict[Prefix, Fraction]
Cell = tuple[Fraction, Fraction]  # where the uniform is put, how wide the cell is


@dataclass(frozen=True)
class Case:
    """Target rows after every prefix of up to k tokens, draft rows after each of up to k - 1."""

    k: int
    vocab: int
    target: Mapping[Prefix, Row]
    draft: Mapping[Prefix, Row]


@dataclass(frozen=True)
class Outcome:
    """What one cell of the uniforms leads to, and its probability."""

    drafted: Prefix
    accepted: int
    token: int
    probability: Fraction

    @property
    def emitted(self) -> Prefix:
        return (*self.drafted[: self.accepted], self.token)


def random_case(generator: np.random.Generator, k: int, vocab: int = 3, least: int = 0) -> Case:
    """Rows that depend on the prefix; with `least=0` zeros and ties among them, and sometimes a
    deterministic draft, one equal to the target, or one that never proposes what the target may."""
    target = {x: random_row(generator, vocab, least) for x in _prefixes(k, vocab)}
    draft = {x: random_row(generator, vocab, least) for x in _prefixes(k - 1, vocab)}
    kind = generator.integers(8) if least == 0 else 7
    for prefix in draft:
        if kind == 0:
            draft[prefix] = one_hot(int(generator.integers(vocab)), vocab)
        elif kind == 1:
            draft[prefix] = target[prefix]
        elif kind == 2 and 0 in target[prefix]:
            draft[prefix] = one_hot(target[prefix].index(Fraction(0)), vocab)
    return Case(k, vocab, target, draft)


def random_row(generator: np.random.Generator, vocab: int, least: int = 0) -> Row:
    weights = generator.integers(least, 5, vocab)
    weights[generator.integers(vocab)] += 1  # never all zero
    return tuple(Fraction(int(weight), int(weights.sum())) for weight in weights)


def one_hot(token: int, vocab: int) -> Row:
    return tuple(Fraction(int(i == token)) for i in range(vocab))


def _prefixes(longest: int, vocab: int) -> Iterator[Prefix]:
    for length in range(longest + 1):
        yield from itertools.product(range(vocab), repeat=length)


def target_law(case: Case) -> Law:
    """Joint law of the k + 1 tokens that the target alone would write."""
    return extend(case, {(): Fraction(1)})


def extend(case: Case, law: Law) -> Law:
    """Let the target go on from every text of `law` until all have k + 1 tokens."""
    for length in range(case.k + 1):
        longer: Law = defaultdict(Fraction)
        for text, probability in law.items():
            if len(text) > length:
                longer[text] += probability
                continue
            for token, chance in enumerate(case.target[text]):
                longer[(*text, token)] += probability * chance
        law = longer
    return {text: probability for text, probability in law.items() if probability}


def emitted_law(outcomes: list[Outcome]) -> Law:
    law: Law = defaultdict(Fraction)
    for outcome in outcomes:
        law[outcome.emitted] += outcome.probability
    return law


def expected_accepted(outcomes: list[Outcome]) -> Fraction:
    return sum((one.accepted * one.probability for one in outcomes), Fraction(0))


def outcomes(
    rule: Rule,
    case: Case,
    sampled: Callable[[Row], Row] = lambda row: row,
    place: Fraction = Fraction(0),
) -> list[Outcome]:
    """Everything one round can do. `sampled` turns a row handed to the rule into the row the draft
    really came from; `place` is where in its cell a uniform is put, 0 the left end."""
    drafts = list(_drafts(case, sampled))
    p, q, drafted = rows_of(case, [ids for ids, _ in drafts])
    cells = [
        (index, cell)
        for index, cuts in enumerate(rule.cuts(p, q, drafted))
        for cell in itertools.product(*(cells_of(points, place) for points in cuts))
    ]
    index = np.array([i for i, _ in cells])
    p, q, drafted = p[index], q[index], drafted[index]
    u = _objects([[at for at, _ in cell] for _, cell in cells], case.k)
    accepted, _ = rule.verify(p, q, drafted, u, np.full(len(u), Fraction(0)))
    rows = rule.row(p, q, drafted, accepted)
    last = [(i, cell) for i, row in enumerate(rows) for cell in cells_of(edges_of(row), place)]
    again = np.array([i for i, _ in last])
    u_next = np.array([at for _, (at, _) in last], object)
    kept, token = rule.verify(p[again], q[again], drafted[again], u[again], u_next)
    assert (kept == accepted[again]).all(), "the last draw may not change what is accepted"
    widths = [drafts[i][1] * _volume(cell) for i, cell in cells]
    return [
        Outcome(drafts[index[i]][0], int(n), int(x), widths[i] * width)
        for (i, (_, width)), n, x in zip(last, kept, token, strict=True)
    ]


def rows_of(case: Case, drafts: list[Prefix]) -> tuple[Array, Array, Array]:
    """p `(B, k+1, V)`, q `(B, k, V)`, drafted `(B, k)` of some drafts."""
    p = [[case.target[ids[:i]] for i in range(case.k + 1)] for ids in drafts]
    q = [[case.draft[ids[:i]] for i in range(case.k)] for ids in drafts]
    return np.array(p, object), np.array(q, object), np.array(drafts, np.int64)


def _drafts(case: Case, sampled: Callable[[Row], Row]) -> Iterator[tuple[Prefix, Fraction]]:
    for ids in itertools.product(range(case.vocab), repeat=case.k):
        probability = Fraction(1)
        for i, token in enumerate(ids):
            probability *= sampled(case.draft[ids[:i]])[token]
        if probability:
            yield ids, probability


def cells_of(points: Array, place: Fraction) -> list[Cell]:
    edges = [Fraction(0), *sorted({Fraction(x) for x in points if 0 < x < 1}), Fraction(1)]
    return [(a + place * (b - a), b - a) for a, b in itertools.pairwise(edges)]


def edges_of(row: Array) -> Array:
    cdf = row.cumsum()
    edges: Array = cdf / cdf[-1]
    return edges


def _volume(cell: tuple[Cell, ...]) -> Fraction:
    volume = Fraction(1)
    for _, width in cell:
        volume *= width
    return volume


def _objects(values: list[list[Fraction]], width: int) -> Array:
    return np.array(values, object).reshape(len(values), width)

"""Texts drawn through a rule in float64, many at once, from the rows of a `Case`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.verify import Rule
from pipeline.verify.rows import draw
from tests.enumeration import Array, Case, Prefix, Row


def as_it_is(row: Row) -> Row:
    return row


@dataclass(frozen=True)
class Texts:
    """`ids (N, k+1)`: the first `accepted (N,)` + 1 from a round, the rest from the target."""

    ids: Array
    accepted: Array
    p: Array  # (N, k+1, V) after each text's own prefixes
    q: Array  # (N, k+1, V), zeros at the last place, where nothing is drafted

    def counts(self) -> Array:
        """How often each text occurs, `(V,) * (k+1)`."""
        vocab, length = self.p.shape[2], self.ids.shape[1]
        flat = np.ravel_multi_index(tuple(self.ids.T), (vocab,) * length)
        return np.bincount(flat, minlength=vocab**length).reshape((vocab,) * length)


def write(
    rule: Rule,
    case: Case,
    draws: int,
    generator: np.random.Generator,
    sampled: Callable[[Row], Row] = as_it_is,
) -> Texts:
    """`draws` texts of k + 1 tokens; `sampled` as for `enumeration.outcomes`."""
    k = case.k
    drafted = np.zeros((draws, k), np.int64)
    for i in range(k):
        came_from = _after(case.draft, drafted[:, :i], sampled)
        drafted[:, i] = draw(came_from, generator.random(draws))
    p = _along(case.target, drafted, k + 1)
    u, u_next = generator.random((draws, k)), generator.random(draws)
    accepted, token = rule.verify(p, _along(case.draft, drafted, k), drafted, u, u_next)
    ids = np.concatenate([drafted, token[:, None]], axis=1)
    ids[np.arange(draws), accepted] = token
    for i in range(1, k + 1):
        by_target = draw(_after(case.target, ids[:, :i]), generator.random(draws))
        ids[:, i] = np.where(i > accepted, by_target, ids[:, i])
    q = np.concatenate([_along(case.draft, ids, k), np.zeros_like(p[:, :1])], axis=1)
    return Texts(ids, accepted, _along(case.target, ids, k + 1), q)


def joint(rows: Mapping[Prefix, Row], length: int) -> Array:
    """Law of the first `length` tokens, `(V,) * length`."""
    law = np.ones(())
    for i in range(length):
        law = law[..., None] * _table(rows, i, as_it_is)
    return law


def _along(rows: Mapping[Prefix, Row], ids: Array, places: int) -> Array:
    return np.stack([_after(rows, ids[:, :i]) for i in range(places)], axis=1)


def _after(
    rows: Mapping[Prefix, Row], prefixes: Array, change: Callable[[Row], Row] = as_it_is
) -> Array:
    table = _table(rows, prefixes.shape[1], change)
    return np.broadcast_to(table[tuple(prefixes.T)], (len(prefixes), table.shape[-1]))


def _table(rows: Mapping[Prefix, Row], length: int, change: Callable[[Row], Row]) -> Array:
    vocab = len(rows[()])
    listed = [change(rows[x]) for x in itertools.product(range(vocab), repeat=length)]
    return np.array(listed, float).reshape((vocab,) * length + (vocab,))

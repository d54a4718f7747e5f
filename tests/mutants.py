"""Rules broken on purpose, each in a way that others shipped. They state the power of the checks.

Each has the interface of the shipped rules, so it can take their place in a real decode too.
`python -m tests.mutants` prints how many draws it takes to catch each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pipeline.leak import draws_to_catch
from pipeline.verify import Rule
from pipeline.verify.block import Block, last_passed, tests
from pipeline.verify.match import Match
from pipeline.verify.rows import draw, leading, odds, residual
from pipeline.verify.rule import Array
from pipeline.verify.token import Token
from tests.enumeration import (
    Case,
    Row,
    emitted_law,
    extend,
    one_hot,
    outcomes,
    random_case,
    target_law,
)

Verified = tuple[Array, Array]


@dataclass(frozen=True)
class Mutant:
    """`sampled` is the row the draft really came from, given the row the rule is told.

    In a real decode that one is a deterministic draft under `FlatQ`, whose rule is told soft rows.
    """

    name: str
    rule: Rule
    sampled: Callable[[Row], Row] = lambda row: row
    only_on_a_tie: bool = False
    """Wrong only where a uniform equals its threshold: no number of draws shows it."""


class OtherResidual(Token):
    """The token rule with another row after the accepted tokens."""

    def verify(self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array) -> Verified:
        if not drafted.shape[1]:
            return super().verify(p, q, drafted, u, u_next)
        under_p, under_q = odds(p, q, drafted)
        accepted = leading(u * under_q < under_p)
        return accepted, draw(self.row(p, q, drafted, accepted), u_next)


class SoftmaxResidual(OtherResidual):
    """[p − q]₊ put through a softmax instead of being divided by its sum."""

    def row(self, p: Array, q: Array, drafted: Array, accepted: Array) -> Array:
        right = residual(p, q, accepted)
        soft = np.exp(right.astype(np.float64))
        if right.dtype == object:
            soft = np.vectorize(lambda x: Fraction(round(x * 1000), 1000), [object])(soft)
        return np.where((accepted < q.shape[1])[:, None], soft, right)


class ResidualByIndex(OtherResidual):
    """p and q as lists of candidates, most probable first, subtracted place by place."""

    def row(self, p: Array, q: Array, drafted: Array, accepted: Array) -> Array:
        lanes, k = np.arange(len(p)), q.shape[1]
        target, draft = p[lanes, accepted], q[lanes, np.minimum(accepted, k - 1)]
        order = np.argsort(-target, axis=1, kind="stable")
        listed = np.take_along_axis(target, order, axis=1)
        left = np.zeros_like(target)
        by_place = np.maximum(listed - -np.sort(-draft, axis=1), 0)
        np.put_along_axis(left, order, by_place, axis=1)
        use_left = (accepted < k) & (left > 0).any(axis=1)
        return np.where(use_left[:, None], left, target)


class StaleBonus(OtherResidual):
    """All accepted, and still the last tested position's q is subtracted."""

    def row(self, p: Array, q: Array, drafted: Array, accepted: Array) -> Array:
        lanes, target = np.arange(len(p)), p[np.arange(len(p)), accepted]
        left = np.maximum(target - q[lanes, np.minimum(accepted, q.shape[1] - 1)], 0)
        return np.where((left > 0).any(axis=1)[:, None], left, target)


class RepeatedPosition(OtherResidual):
    """All accepted, and the bonus comes from p of the position before."""

    def row(self, p: Array, q: Array, drafted: Array, accepted: Array) -> Array:
        bonus = (accepted == q.shape[1])[:, None]
        return np.where(bonus, p[:, q.shape[1] - 1], residual(p, q, accepted))


class FlatQ(Token):
    """Told rows half uniform, where the draft came from others (raw rows instead of warped)."""

    def verify(self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array) -> Verified:
        return super().verify(p, self.told(q), drafted, u, u_next)

    def row(self, p: Array, q: Array, drafted: Array, accepted: Array) -> Array:
        return super().row(p, self.told(q), drafted, accepted)

    def cuts(self, p: Array, q: Array, drafted: Array) -> Array:
        return super().cuts(p, self.told(q), drafted)

    def told(self, q: Array) -> Array:
        flat = np.full_like(q, Fraction(1, q.shape[-1]))
        told: Array = (q + flat) / 2
        return told


class AcceptsZero(Token):
    """`u <= a` instead of `u < a`: at u = 0 a token of probability zero goes through."""

    def verify(self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array) -> Verified:
        if not drafted.shape[1]:
            return super().verify(p, q, drafted, u, u_next)
        under_p, under_q = odds(p, q, drafted)
        accepted = leading(u * under_q <= under_p)
        return accepted, draw(residual(p, q, accepted), u_next)


class OneUniform(Token):
    """A seed set inside the loop: every test of a round sees the same uniform."""

    def verify(self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array) -> Verified:
        return super().verify(p, q, drafted, np.repeat(u[:, :1], u.shape[1], axis=1), u_next)

    def cuts(self, p: Array, q: Array, drafted: Array) -> Array:
        every = super().cuts(p, q, drafted)[:, :, 0]
        return np.repeat(every[:, None], every.shape[1], axis=1)


class BlockTokenResidual(Block):
    """Block's tests with the token rule's residual."""

    def verify(self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array) -> Verified:
        if not drafted.shape[1]:
            return super().verify(p, q, drafted, u, u_next)
        accepted = last_passed(tests(p, q, drafted).passed(u))
        return accepted, draw(residual(p, q, accepted), u_next)

    def row(self, p: Array, q: Array, drafted: Array, accepted: Array) -> Array:
        return residual(p, q, accepted)


class BlockStopsEarly(Block):
    """Block's tests, ended at the first that fails."""

    def verify(self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array) -> Verified:
        if not drafted.shape[1]:
            return super().verify(p, q, drafted, u, u_next)
        found = tests(p, q, drafted)
        accepted = leading(found.passed(u))
        return accepted, draw(residual(p, q, accepted, found.scale(accepted)), u_next)


class MatchDrawsAgain(Match):
    """After a mismatch the token is drawn anew instead of keeping the one that mismatched."""

    def verify(self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array) -> Verified:
        accepted, _ = super().verify(p, q, drafted, u, u_next)
        return accepted, draw(self.row(p, q, drafted, accepted), u_next)


def most_probable(row: Row) -> Row:
    return one_hot(row.index(max(row)), len(row))


MUTANTS = (
    Mutant("argmax draft, soft q", Token(), sampled=most_probable),
    Mutant("argmax draft, soft q (block)", Block(), sampled=most_probable),
    Mutant("q unlike the rows sampled", FlatQ()),
    Mutant("softmax of the residual", SoftmaxResidual()),
    Mutant("residual by list index", ResidualByIndex()),
    Mutant("bonus from a stale residual", StaleBonus()),
    Mutant("bonus from the position before", RepeatedPosition()),
    Mutant("one uniform for all tests", OneUniform()),
    Mutant("block with the token residual", BlockTokenResidual()),
    Mutant("block stopping at the first failure", BlockStopsEarly()),
    Mutant("match that draws again", MatchDrawsAgain()),
    Mutant("u <= a", AcceptsZero(), only_on_a_tie=True),
)


def draws_needed(mutant: Mutant, case: Case) -> float:
    """Texts of k + 1 tokens that show `mutant` to be wrong: 99% power, 5% level; inf for never."""
    inside = Fraction(1, 2)  # of a cell: ties have no probability
    law = extend(case, emitted_law(outcomes(mutant.rule, case, mutant.sampled, inside)))
    right = target_law(case)
    texts = sorted(law.keys() | right.keys())
    return draws_to_catch(
        np.array([float(right.get(text, 0)) for text in texts]),
        np.array([float(law.get(text, 0)) for text in texts]),
    )


def table(cases: int = 5) -> str:
    """Markdown: draws needed for each mutant on random rows without zeros (V = 3, k = 2)."""
    some = [random_case(np.random.default_rng(seed), 2, least=1) for seed in range(cases)]
    lines = ["| mutant | draws to catch it: fewest | median | most |", "|---|---|---|---|"]
    for mutant in MUTANTS:
        needed = sorted(draws_needed(mutant, case) for case in some)
        shown = (needed[0], needed[len(needed) // 2], needed[-1])
        cells = [f"{n:,.0f}" if math.isfinite(n) else "never" for n in shown]
        lines.append(f"| {mutant.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    from tests import decode_mutants  # which builds on this module

    print(f"{decode_mutants.table()}\n\n{table()}")

"""Block verification: the draft judged as a whole (Sun et al. 2024, arXiv 2403.10444).

r₀ = 1 and rᵢ = min(1, rᵢ₋₁·pᵢ(Xᵢ)/qᵢ(Xᵢ)). For i < k, Zᵢ = Σ[rᵢ·p_{i+1} − q_{i+1}]₊ and
hᵢ = Zᵢ/(Zᵢ + 1 − rᵢ), with 0/0 = 1; h_k = r_k. All k tests are made, and the last one passed
counts: τ = max{i : uᵢ < hᵢ}, or 0. The next token is drawn from [r_τ·p_{τ+1} − q_{τ+1}]₊, from
p_{k+1} if τ = k. It never yields fewer tokens a pass than the token rule.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.verify.rows import draw, edge_gap, odds, residual
from pipeline.verify.rule import Array, Rule


class Tests(NamedTuple):
    """hᵢ of i = 1..k as fractions `top / bottom`, each `(B, k)`, and r₀..r_k `(B, k+1)`."""

    top: Array
    bottom: Array
    ratios: Array

    def passed(self, u: Array) -> Array:
        below: Array = u * self.bottom < self.top
        passed: Array = below | (self.bottom == 0)  # 0/0 = 1
        return passed

    def scale(self, accepted: Array) -> Array:
        """r_τ, `(B,)`."""
        return self.ratios[np.arange(len(accepted)), accepted]


def tests(p: Array, q: Array, drafted: Array) -> Tests:
    """The tests of B drafts of k ≥ 1 tokens."""
    k = drafted.shape[1]
    under_p, under_q = odds(p, q, drafted)
    step = under_p / under_q
    ratios = np.ones((len(p), k + 1), step.dtype)
    for i in range(k):
        ratios[:, i + 1] = np.minimum(ratios[:, i] * step[:, i], 1)
    top, bottom = ratios[:, 1:].copy(), np.ones_like(step)
    if k > 1:
        inner = ratios[:, 1:k]
        excess = np.maximum(inner[..., None] * p[:, 1:k] - q[:, 1:], 0)
        top[:, :-1] = excess.cumsum(axis=-1)[..., -1]  # summed in order: a row as in any batch
        bottom[:, :-1] = top[:, :-1] + (1 - inner)
    return Tests(top, bottom, ratios)


def last_passed(passed: Array) -> Array:
    """Number of the last passed test of each row `(B, k)`, counted from 1; 0 if none, `(B,)`."""
    k = passed.shape[1]
    return np.where(passed.any(axis=1), k - passed[:, ::-1].argmax(axis=1), 0)


class Block(Rule):
    name = "block"
    uniforms = "accept"

    def verify(
        self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array
    ) -> tuple[Array, Array]:
        if not drafted.shape[1]:
            return np.zeros(len(p), np.int64), draw(p[:, 0], u_next)
        found = tests(p, q, drafted)
        accepted = last_passed(found.passed(u))
        return accepted, draw(residual(p, q, accepted, found.scale(accepted)), u_next)

    def row(self, p: Array, q: Array, drafted: Array, accepted: Array) -> Array:
        return residual(p, q, accepted, tests(p, q, drafted).scale(accepted))

    def cuts(self, p: Array, q: Array, drafted: Array) -> Array:
        found = tests(p, q, drafted)
        never = found.bottom == 0  # 0/0 = 1: fails at no u
        cuts: Array = np.where(never, 1, found.top / np.where(never, 1, found.bottom))
        return cuts[..., None]

    def margin(
        self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array, accepted: Array
    ) -> Array:
        if not drafted.shape[1]:
            return edge_gap(p[:, 0], u_next)
        found = tests(p, q, drafted)
        # Tests before the last passed one do not matter, nor does a 0/0.
        counts = (np.arange(1, drafted.shape[1] + 1) >= accepted[:, None]) & (found.bottom > 0)
        gaps = np.where(counts, abs(u * found.bottom - found.top), 1).min(axis=1)
        next_row = residual(p, q, accepted, found.scale(accepted))
        margin: Array = np.minimum(gaps, edge_gap(next_row, u_next))
        return margin

"""The token rule: each drafted token on its own (Leviathan et al. 2023, arXiv 2211.17192; Chen et
al. 2023, 2302.01318).

Accept Xᵢ iff uᵢ < pᵢ(Xᵢ)/qᵢ(Xᵢ), stop at the first failure and draw from [pᵢ − qᵢ]₊; with all k
accepted draw from p_{k+1}.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.verify.rows import check_odds, draw, edge_gap, leading, odds, pick, residual
from pipeline.verify.rule import Array, Rule


class Token(Rule):
    name = "token"
    uniforms = "accept"

    def verify(
        self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array
    ) -> tuple[Array, Array]:
        if not drafted.shape[1]:
            return np.zeros(len(p), np.int64), draw(p[:, 0], u_next)
        if len(p) == 1:
            return _alone(p[0], q[0], drafted[0].tolist(), u[0].tolist(), u_next)
        under_p, under_q = odds(p, q, drafted)
        accepted = leading(u * under_q < under_p)
        return accepted, draw(residual(p, q, accepted), u_next)

    def row(self, p: Array, q: Array, drafted: Array, accepted: Array) -> Array:
        return residual(p, q, accepted)

    def cuts(self, p: Array, q: Array, drafted: Array) -> Array:
        under_p, under_q = odds(p, q, drafted)
        return np.minimum(under_p / under_q, 1)[..., None]

    def margin(
        self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array, accepted: Array
    ) -> Array:
        under_p, under_q = odds(p, q, drafted)
        tested = np.arange(drafted.shape[1]) <= accepted[:, None]
        gaps = np.where(tested, abs(u - under_p / under_q), 1).min(axis=1, initial=1)
        margin: Array = np.minimum(gaps, edge_gap(residual(p, q, accepted), u_next))
        return margin


def _alone(
    p: Array, q: Array, drafted: list[int], u: list[Any], u_next: Array
) -> tuple[Array, Array]:
    """One round, `p (k+1, V)`: the same arithmetic without arrays of one, for timed halves."""
    under_q = [q.item(i, token) for i, token in enumerate(drafted)]
    check_odds(all(under_q))
    accepted = 0
    for i, token in enumerate(drafted):
        if u[i] * under_q[i] >= p.item(i, token):
            break
        accepted += 1
    row = p[accepted]
    edges = None
    if accepted < len(drafted):
        edges = np.maximum(row - q[accepted], 0).cumsum()
    if edges is None or not edges[-1]:  # nothing left: p and q agree to rounding
        edges = row.cumsum()
    return np.array([accepted]), np.array([pick(edges, u_next[0])])

"""What the chain rules share: drafted tokens' probabilities, residual rows, the last draw.

Nothing here divides by a sum that can be zero, and nothing asks for float64: the tests run these
very functions on `Fraction`s and integrate them exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.verify.rule import Array


def odds(p: Array, q: Array, drafted: Array) -> tuple[Array, Array]:
    """Probability of each drafted token under target and draft, both `(B, k)`.

    ValueError if a drafted token has none under the draft: q is not what it was sampled from.
    """
    lanes, places = np.arange(len(drafted))[:, None], np.arange(drafted.shape[1])
    under_q = q[lanes, places, drafted]
    check_odds(bool(under_q.all()))
    return p[lanes, places, drafted], under_q


def check_odds(all_possible: bool) -> None:
    """ValueError unless every drafted token can be drawn from its row of q."""
    if not all_possible:
        raise ValueError(
            "a drafted token has probability 0 in its row of q: "
            "hand over the very rows the draft was sampled from"
        )


def leading(passed: Array) -> Array:
    """Length of the run of passed tests that each row `(B, k)` begins with, `(B,)`; k ≥ 1."""
    run: Array = np.where(passed.all(axis=1), passed.shape[1], passed.argmin(axis=1))
    return run


def residual(p: Array, q: Array, accepted: Array, scale: Array | None = None) -> Array:
    """Weights `(B, V)` of the token after τ = `accepted (B,)` kept ones.

    [scale·p_{τ+1} − q_{τ+1}]₊ (Leviathan et al. 2023, eq. in 2.3; `scale` is 1 there), not
    normalised; p_{k+1} where τ = k. Where nothing is left, p and q agree to rounding: the row is p.
    """
    k = q.shape[1]
    lanes = np.arange(len(p))
    target = p[lanes, accepted]
    if k == 0:
        return target
    wanted = target if scale is None else target * scale[:, None]
    left = np.maximum(wanted - q[lanes, np.minimum(accepted, k - 1)], 0)
    use_left = (accepted < k) & (left > 0).any(axis=1)
    return np.where(use_left[:, None], left, target)


def draw(rows: Array, u: Array) -> Array:
    """Ids `(B,)` by inverse CDF of weights `rows (B, V)` at `u (B,)`; never one of weight zero."""
    if len(rows) == 1:
        return np.array([pick(rows[0].cumsum(), u[0])])
    cdf = rows.cumsum(axis=-1)
    total = cdf[:, -1]
    level = u * total  # may round up to the total: the last id that weighs anything is the answer
    ids: Array = ((cdf <= level[:, None]) & (cdf < total[:, None])).sum(axis=-1)
    return ids


def pick(edges: Array, u: Any) -> Any:
    """`draw` from one row, given its cumulative sums `edges (V,)`."""
    last = edges[-1]
    at = u * last
    if at < last:
        return edges.searchsorted(at, side="right")
    return edges.searchsorted(last, side="left")  # the last id that weighs anything, as in `draw`


def edge_gap(rows: Array, u: Array) -> Array:
    """How far `u (...)` is from drawing another id of `rows (..., V)`, `(...)`.

    The distance of u times the total to the nearest inner edge of the CDF, in the rows' own unit;
    1 where only one id can be drawn.
    """
    cdf = rows.cumsum(axis=-1)
    total = cdf[..., -1:]
    inner = (cdf > 0) & (cdf < total)
    gap: Array = np.where(inner, abs(cdf - u[..., None] * total), 1).min(axis=-1)
    return gap

"""Is what was emitted distributed as the target says? Total variation, G-test, PIT, and Holm.

Pure functions of counts, laws and a NumPy generator: with the same generator state they give the
same figures on every machine. `pipeline.leak` has the test directed at the draft, and the power.

Shapes: V characters, N emitted tokens; a law and its counts may have any shape, but the same one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Counts = NDArray[np.integer]

SOUND = 5.0  # expected draws a cell of the G-test must have (Cochran 1954)


def total_variation(counts: Counts, p: Floats) -> float:
    """½ Σ |counts/n − p|: 0 for a perfect fit, 1 for disjoint laws. ValueError without draws."""
    return float(np.abs(counts / _draws(counts, p) - p).sum() / 2)


def tv_null(
    p: Floats, draws: int, generator: np.random.Generator, repeats: int = 1000
) -> tuple[float, float]:
    """Total variation that `draws` draws from p itself show: median and 95% quantile.

    Simulated, `repeats` times.
    """
    law = p.reshape(-1) / p.sum()
    drawn = generator.multinomial(draws, law, size=repeats)
    distances = np.abs(drawn / draws - law).sum(axis=1) / 2
    median, high = np.quantile(distances, [0.5, 0.95])
    return float(median), float(high)


def g_test(counts: Counts, p: Floats, q: Floats | None = None) -> float:
    """p-value of G = 2 Σ O·ln(O/E) of drawn `counts` under p, with Williams' correction (1976).

    Cells expected fewer than `SOUND` times are pooled, neighbours in the order of q/p, so that a
    leak of q does not cancel inside a pool; pools depend on p and q only, never on the counts.
    0 if p forbids a draw that was made, 1 if a single cell is left.
    """
    draws = _draws(counts, p)
    if counts[p == 0].any():
        return 0.0
    pool = pools(p * (draws / p.sum()), np.zeros_like(p) if q is None else q)
    allowed = p > 0
    expected = np.bincount(pool[allowed], p[allowed]) * (draws / p.sum())
    observed = np.bincount(pool[allowed], counts[allowed])
    cells = len(expected)
    if cells == 1:
        return 1.0
    g = 2 * float(special.xlogy(observed, observed / expected).sum())
    williams = 1 + (float((draws / expected).sum()) - 1) / (6 * draws * (cells - 1))
    return float(special.chdtrc(cells - 1, g / williams))


def pools(expected: Floats, q: Floats) -> NDArray[np.int64]:
    """Number of the pool of each cell; every pool is expected at least `SOUND` times.

    If all cells together are not, there is one pool. Cells expected 0 times get pool 0.
    """
    flat, draft = expected.reshape(-1), q.reshape(-1)
    pool = np.zeros(len(flat), np.int64)
    large = np.flatnonzero(flat >= SOUND)
    pool[large] = np.arange(len(large))
    small = np.flatnonzero((flat > 0) & (flat < SOUND))
    small = small[np.argsort(draft[small] / flat[small], kind="stable")]
    number, mass = len(large), 0.0
    for cell in small:
        pool[cell] = number
        mass += flat[cell]
        if mass >= SOUND:
            number, mass = number + 1, 0.0
    if mass and number:  # what is left over joins the pool before it
        pool[small[pool[small] == number]] = number - 1
    return pool.reshape(expected.shape)


def pit(p: Floats, q: Floats | None, emitted: NDArray[np.int64], u: Floats) -> Floats:
    """U `(N,)` = F(x−) + u·p(x) of `emitted (N,)`, F the CDF of p `(N, V)` in the order of q/p.

    Independent and uniform if each token is drawn from its p (Smith 1985); ordering by q/p
    gives the test power against a leak of q. Ties go by id; with `q=None`, or a row of zeros, all
    are ties. `u (N,)` must be fresh uniforms.

    The order must be fixed before the token is: by the text before it, and by how far the round has
    come. All chain rules allow that: given what is kept so far, the next token of the round follows
    its p, so rows of zeros may stand for the bonus position. ValueError for a token that p forbids.
    """
    rows = np.arange(len(p))
    under_p = p[rows, emitted]
    if (under_p <= 0).any():
        raise ValueError("an emitted token has probability 0 under the target")
    ids = np.arange(p.shape[1])
    if q is None:
        before = ids < emitted[:, None]
    else:
        own, other = q * under_p[:, None], q[rows, emitted][:, None] * p
        before = (own < other) | ((own == other) & (ids < emitted[:, None]))
    values: Floats = np.minimum((p * before).sum(axis=1) + u * under_p, 1.0)
    return values


def pit_test(p: Floats, q: Floats | None, emitted: NDArray[np.int64], u: Floats) -> float:
    """p-value of the texts' `pit` values; 0 if the target forbids a token that was emitted."""
    if (p[np.arange(len(p)), emitted] <= 0).any():
        return 0.0
    return uniform_p_value(pit(p, q, emitted, u))


def uniform_p_value(values: Floats) -> float:
    """Kolmogorov-Smirnov p-value of `values (N,)` against uniform on [0, 1].

    The limit law at a distance corrected for N (Vrbik 2018): within 0.001 from N = 20 on.
    """
    n = len(values)
    if n == 0:
        raise ValueError("no values: nothing to test")
    ranked = np.sort(values)
    above = np.arange(1, n + 1) / n - ranked
    distance = float(max(above.max(), (ranked - np.arange(n) / n).max()))
    x = math.sqrt(n) * distance
    return float(special.kolmogorov(x + 1 / (6 * math.sqrt(n)) + (x - 1) / (4 * n)))


def smaller_of_two(first: float, second: float) -> float:
    """One p-value for two tests of one sample: twice the smaller (Bonferroni), at most 1."""
    return min(1.0, 2 * min(first, second))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm 1979), in the order given.

    Calling those below 0.05 wrong errs, on a family that is right throughout, 1 time in 20 at most.
    """
    for value in p_values:
        if not 0 <= value <= 1:
            raise ValueError(f"a p-value of {value} is outside [0, 1]")
    adjusted, highest = [0.0] * len(p_values), 0.0
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def _draws(counts: Counts, p: Floats) -> int:
    if counts.shape != p.shape:
        raise ValueError(
            f"counts {counts.shape} and law {p.shape} must have one shape, an entry an outcome"
        )
    draws = int(counts.sum())
    if draws == 0:
        raise ValueError("no draws: nothing to test")
    return draws

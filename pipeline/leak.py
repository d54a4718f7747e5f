"""How much of the draft's own law could be in the output unseen: a directed test and its power.

A leak of size ε turns the law p of an outcome into (1 − ε)·p + ε·q. A test over hundreds of cells
spends its power in all directions; this one looks only along q, with the score
s(x) = log(1 + ε₀·(q(x)/p(x) − 1)), the likelihood ratio of a small leak (Neyman & Pearson 1933).
Its mean and variance under p and under q are exact sums, so its power needs no simulation.

Laws are vectors over the same outcomes (any shape; here pairs of characters). Pure functions.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

TILT = 0.01  # ε₀: the leak that the score is sharpest at; what is found hardly depends on it
SKEWED = 0.1  # skewness / (6·√draws) above which a sum of scores is too lumpy for a smooth tail


def scores(p: Floats, q: Floats) -> Floats:
    """s of each outcome that p allows, 0 for the others (a draw there needs no score)."""
    allowed = p > 0
    ratio = np.divide(q, p, out=np.ones_like(p), where=allowed)
    return np.where(allowed, np.log1p(TILT * (ratio - 1)), 0.0)


def leak_test(counts: NDArray[np.integer], p: Floats, q: Floats) -> float:
    """p-value of drawn `counts` under p, against a leak of q. One-sided; 0 if p forbids a draw.

    The tail is a saddlepoint approximation (Lugannani & Rice 1980), right far out as well. Where a
    few rare outcomes carry the score, as with a one-hot q and few draws, it is Chernoff's bound
    (1952): never too small, and so never a rejection that the draws do not bear out.
    """
    _same_shape(counts=counts, p=p, q=q)
    draws = int(counts.sum())
    if draws == 0:
        raise ValueError("no draws: nothing to test")
    if counts[p == 0].any():
        return 0.0
    allowed = p > 0
    s = scores(p, q)[allowed]
    return _upper_tail(p[allowed] / p.sum(), s, float(counts[allowed] @ s) / draws, draws)


def _upper_tail(p: Floats, s: Floats, mean: float, draws: int) -> float:
    """P(mean of `draws` scores ≥ mean), a score being s[i] with probability p[i]."""
    sd = math.sqrt(float(p @ (s - p @ s) ** 2))
    if sd < 1e-12:
        return 1.0  # q is p: nothing to see
    z = (s - p @ s) / sd
    at = (mean - float(p @ s)) / sd
    if at >= z.max() - 1e-9:
        return float(p[z >= z.max() - 1e-9].sum() ** draws)
    if at <= z.min() + 1e-9:
        return 1.0
    t = _saddlepoint(p, z, at)
    log_mgf, _, variance = _tilted(p, z, t)
    root = math.copysign(math.sqrt(max(0.0, 2 * draws * (t * at - log_mgf))), t)
    speed = t * math.sqrt(draws * variance)
    bend = float(p @ z**3) / (6 * math.sqrt(draws))
    if abs(bend) > SKEWED:
        return math.exp(-root * root / 2) if root > 0 else 1.0
    if abs(root) < 0.01:  # both terms below diverge here, and cancel
        return float(special.ndtr(-root)) - bend * _density(root)
    tail = float(special.ndtr(-root)) + _density(root) * (1 / speed - 1 / root)
    return min(1.0, max(0.0, tail))


def _saddlepoint(p: Floats, z: Floats, at: float) -> float:
    """t at which the tilted mean of z is `at`."""
    low, high = -1.0, 1.0
    while _tilted(p, z, low)[1] > at:
        low *= 2
    while _tilted(p, z, high)[1] < at:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _tilted(p, z, middle)[1] < at else (low, middle)
    return (low + high) / 2


def _tilted(p: Floats, z: Floats, t: float) -> tuple[float, float, float]:
    """log Σ p·exp(t·z), and mean and variance of z under those weights."""
    top = float((t * z).max())
    weights = p * np.exp(t * z - top)
    total = float(weights.sum())
    mean = float(weights @ z) / total
    return math.log(total) + top, mean, float(weights @ (z - mean) ** 2) / total


def _density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def detectable_leak(
    p: Floats, q: Floats, draws: int, level: float = 0.05, power: float = 0.99
) -> float:
    """The smallest leak of q that `draws` draws show, at that level and with that power; in (0, 1].

    It is the leak test's own power (normal tails; means and variances exact). 1.0 says that not
    even q in full would be told from p. Where a job takes the smaller of two p-values, give half
    the level.
    """
    _same_shape(p=p, q=q)
    if draws < 1:
        raise ValueError(f"draws={draws}: give 1 or more")
    p, q = p / p.sum(), q / q.sum()
    if _power(p, q, 1.0, draws, level) < power:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _power(p, q, middle, draws, level) < power else (low, middle)
    return high


def _power(p: Floats, q: Floats, leak: float, draws: int, level: float) -> float:
    s = scores(p, q)
    mixed = (1 - leak) * p + leak * q
    under_p, under_mixed = float((p * s).sum()), float((mixed * s).sum())
    sd_p = math.sqrt(float((p * (s - under_p) ** 2).sum()))
    sd_mixed = math.sqrt(float((mixed * (s - under_mixed) ** 2).sum()))
    forbidden = float(mixed[p == 0].sum())
    unseen = (1 - min(forbidden, 1.0)) ** draws
    if sd_p < 1e-12 or sd_mixed < 1e-12:
        return 1 - unseen
    critical = -float(special.ndtri(level)) * sd_p * math.sqrt(draws)
    excess = (under_mixed - under_p) * draws
    by_score = float(special.ndtr((excess - critical) / (sd_mixed * math.sqrt(draws))))
    return 1 - unseen * (1 - by_score)


def draws_to_catch(law: Floats, wrong: Floats, level: float = 0.05, power: float = 0.99) -> float:
    """Draws from `wrong` that a chi-square test against `law` needs; inf if the two are equal.

    From the noncentral chi-square law; outcomes that `law` forbids are caught at sight.
    """
    _same_shape(law=law, wrong=wrong)
    needed = math.inf
    forbidden = float(wrong[law == 0].sum())
    if forbidden > 0:
        needed = math.log(1 - power) / math.log1p(-forbidden) if forbidden < 1 else 1.0
    allowed = law > 0
    distance = float(((wrong - law)[allowed] ** 2 / law[allowed]).sum())
    cells = int(allowed.sum())
    if distance > 1e-20 and cells > 1:
        critical = float(special.chdtri(cells - 1, level))
        shift = float(special.chndtrinc(critical, cells - 1, 1 - power))
        needed = min(needed, shift / distance)
    return math.ceil(needed) if math.isfinite(needed) else needed


def _same_shape(**arrays: NDArray[np.number]) -> None:
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(set(shapes.values())) > 1:
        told = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"these must have one shape, an entry an outcome: {told}")

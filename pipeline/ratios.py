"""What pairs of timed halves say: ratio, range, interval, and what speaks against trusting them.

Everything is derived from the raw pieces of `records.Pair`; nothing here reads a clock. A ratio is
one observation, so ratios are ranked and never averaged, and load that both halves met cancels.
"""

from __future__ import annotations

import math
import statistics as st
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from pipeline.records import Pair, Piece, Side

FLAG_SHARE = 0.05  # difference in CPU share from which a pair's halves met unequal conditions
SIGNED_RANK_FROM = 7  # min-max is the interval up to here; then it would widen with every pair
TAIL = 0.025

Verdict = Literal["faster", "slower", "ambiguous"]


@dataclass(frozen=True)
class Statistics:
    """Ratios are baseline time over speculative time for a token: above 1, speculation is faster.

    `low` and `high` bound the median with probability `confidence`. `order_effect` is the median
    ratio of AB pairs over that of BA pairs, None where an order never occurred. `flagged` are
    indices of pairs. `timed_s` is all that was spent inside halves.
    """

    ratios: tuple[float, ...]
    median: float
    minimum: float
    maximum: float
    low: float
    high: float
    confidence: float
    order_effect: float | None
    flagged: tuple[int, ...]
    baseline_s: tuple[float, ...]
    speculative_s: tuple[float, ...]
    baseline_tokens_per_s: float
    speculative_tokens_per_s: float
    cpu_share_baseline: float
    cpu_share_speculative: float
    timed_s: float


def statistics(pairs: Sequence[Pair]) -> Statistics:
    """ValueError for no pairs at all, or a half in which no token came out."""
    if not pairs:
        raise ValueError("no pair was timed: ask for at least one (timing.pairs=6)")
    ratios = [ratio(pair) for pair in pairs]
    low, high, confidence = interval(ratios)
    halves = {
        side: tuple(pair.wall_ns(side) / 1e9 for pair in pairs)
        for side in ("baseline", "speculative")
    }
    return Statistics(
        ratios=tuple(ratios),
        median=st.median(ratios),
        minimum=min(ratios),
        maximum=max(ratios),
        low=low,
        high=high,
        confidence=confidence,
        order_effect=_order_effect(pairs, ratios),
        flagged=tuple(pair.index for pair in pairs if is_flagged(pair)),
        baseline_s=halves["baseline"],
        speculative_s=halves["speculative"],
        baseline_tokens_per_s=st.median(1 / _token_s(pair, "baseline") for pair in pairs),
        speculative_tokens_per_s=st.median(1 / _token_s(pair, "speculative") for pair in pairs),
        cpu_share_baseline=_share(pairs, "baseline"),
        cpu_share_speculative=_share(pairs, "speculative"),
        timed_s=sum(map(sum, halves.values())),
    )


def ratio(pair: Pair) -> float:
    """Per token, so that an end of text at different places does not pass for speed."""
    return _token_s(pair, "baseline") / _token_s(pair, "speculative")


def is_flagged(pair: Pair) -> bool:
    """Whether one half got a larger share of the CPU than the other: the load did not cancel."""
    return abs(_share([pair], "baseline") - _share([pair], "speculative")) > FLAG_SHARE


def interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Lower end, upper end and confidence of an interval for the median of positive `ratios`.

    Up to 6 it is min-max, which misses the median only if all lie on one side: 1 - 2^(1-n). From 7
    on it is Hodges and Lehmann's, of the exact signed-rank test at 95%, on logarithms, so that
    swapping the two sides gives the reciprocal interval.
    """
    count = len(ratios)
    if count < SIGNED_RANK_FROM:
        return min(ratios), max(ratios), 1 - 2.0 ** (1 - count)
    logs = np.log(np.asarray(ratios, np.float64))
    upper = np.triu_indices(count)
    walsh = np.sort((logs[:, None] + logs[None])[upper] / 2)
    below = np.cumsum(_signed_ranks(count))  # P(W <= w)
    cut = int(np.searchsorted(below, TAIL, side="right")) - 1  # the largest w in the tail
    coverage = 1 - 2 * float(below[cut])
    return math.exp(walsh[cut]), math.exp(walsh[-1 - cut]), coverage


def verdict(found: Statistics, null_min: float | None, null_max: float | None) -> Verdict:
    """`ambiguous` where the interval meets 1 or the range of the baseline against itself."""
    if found.low > max(1.0, null_max or 1.0):
        return "faster"
    if found.high < min(1.0, null_min or 1.0):
        return "slower"
    return "ambiguous"


def tidy(pairs: Iterable[Pair]) -> list[dict[str, Any]]:
    """One row a piece, for the record: pair, order, and the piece's own fields."""
    return [
        {"pair": pair.index, "order": pair.order, **asdict(piece)}
        for pair in pairs
        for piece in pair.pieces
    ]


def from_tidy(rows: Iterable[Mapping[str, Any]]) -> tuple[Pair, ...]:
    """The pairs that `tidy` wrote down."""
    orders: dict[int, Any] = {}
    pieces: dict[int, list[Piece]] = {}
    for row in rows:
        fields = {name: row[name] for name in Piece.__dataclass_fields__}
        orders[row["pair"]] = row["order"]
        pieces.setdefault(row["pair"], []).append(Piece(**fields))
    return tuple(Pair(index, orders[index], tuple(pieces[index])) for index in sorted(pieces))


def _token_s(pair: Pair, side: Side) -> float:
    tokens = sum(piece.tokens for piece in pair.pieces if piece.side == side)
    if not tokens:
        raise ValueError(f"pair {pair.index}: its {side} half emitted no token")
    return pair.wall_ns(side) / tokens / 1e9


def _share(pairs: Sequence[Pair], side: Side) -> float:
    """CPU time over wall time; 1 is one core without a pause."""
    return sum(pair.cpu_ns(side) for pair in pairs) / sum(pair.wall_ns(side) for pair in pairs)


def _order_effect(pairs: Sequence[Pair], ratios: Sequence[float]) -> float | None:
    by_order: dict[str, list[float]] = {"AB": [], "BA": []}
    for pair, value in zip(pairs, ratios, strict=True):
        by_order[pair.order].append(value)
    if not all(by_order.values()):
        return None
    return st.median(by_order["AB"]) / st.median(by_order["BA"])


def _signed_ranks(count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """P(W = w) of Wilcoxon's signed-rank statistic for w = 0 .. n(n+1)/2."""
    law = np.ones(1)
    for rank in range(1, count + 1):
        without = np.pad(law, (0, rank))
        law = (without + np.pad(law, (rank, 0))) / 2
    return law

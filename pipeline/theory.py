"""What speculative decoding should yield: expected tokens, speedup models, where they break even.

Leviathan et al. 2023 (arXiv 2211.17192), with a the acceptance of every position, independent and
constant. c, v and o are times of one drafted token, one verify pass over k + 1 positions, and the
rest of a round, each over the time of one plain target pass. v = 1 and o = 0 take verification and
the loop as free. Real acceptance is neither independent nor constant: these are estimates.

`python -m pipeline.theory --alpha 0.8 --k 4 --draft-ms 1 --verify-ms 12 --target-ms 10` prints all.
"""

from __future__ import annotations

import argparse
import math
import numbers
import sys
from collections.abc import Callable, Sequence

LONGEST = 1_000_000  # of a round; beyond it sums would take long and say nothing new
K_MAX = 32  # lengths that `best_k` looks at


def expected_tokens(a: float, k: int) -> float:
    """Σ_{i=0..k} aⁱ: tokens a round of k drafted ones, the target's own included; k + 1 at a = 1.

    ValueError unless 0 ≤ a ≤ 1 and k is a whole number, 0 or more.
    """
    if not 0 <= a <= 1:
        raise ValueError(f"acceptance {a}: give a number from 0 to 1")
    _check_k(k)
    return _geometric(a, k)


def speedup(tokens_per_pass: float, k: int, c: float, v: float = 1.0, o: float = 0.0) -> float:
    """tokens_per_pass / (v + k·c + o): how much faster than one token a target pass."""
    if not 0 < tokens_per_pass < math.inf:
        raise ValueError(f"tokens per pass {tokens_per_pass}: give a positive number")
    return tokens_per_pass / _round_cost(k, c, v, o)


def tokens_per_second(a: float, k: int, draft_ms: float, verify_ms: float) -> float:
    """E[N] / (t_verify + k·t_draft), times in milliseconds."""
    _check_time("draft time in ms", draft_ms)
    _check_time("verify time in ms", verify_ms)
    round_ms = verify_ms + k * draft_ms
    if round_ms == 0:
        raise ValueError("a round takes no time at all: give a positive verify or draft time")
    return expected_tokens(a, k) / round_ms * 1000


def break_even_acceptance(k: int, c: float, v: float = 1.0, o: float = 0.0) -> float:
    """The acceptance at which a round is worth what it costs: Σ aⁱ = v + k·c + o.

    0 if it is worth it without a single accepted token. Above 1 (1.06, say) no draft can be good
    enough; infinite if k = 0 and the round costs more than one target pass.
    """
    cost = _round_cost(k, c, v, o)
    if cost <= 1:
        return 0.0
    if k == 0:
        return math.inf
    low, high = 0.0, 1.0
    while _geometric(high, k) < cost:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _geometric(middle, k) < cost else (low, middle)
    return high


def break_even_c(tokens_per_pass: float, k: int, v: float = 1.0, o: float = 0.0) -> float:
    """The draft cost c up to which k ≥ 1 pays; negative if not even a free draft does."""
    _round_cost(k, 0.0, v, o)  # checks them
    if k == 0:
        raise ValueError("k=0 drafts nothing, so no draft cost breaks even: give 1 or more")
    return (tokens_per_pass - v - o) / k


def best_k(
    a: float,
    c: float,
    v: float | Callable[[int], float] = 1.0,
    o: float = 0.0,
    k_max: int = K_MAX,
) -> tuple[int, float]:
    """The k from 1 to `k_max` with the largest predicted speedup, and that speedup.

    (0, 1.0) if none is above 1: decode plainly. `v` may depend on k. Of equals, the smaller k.
    """
    best = (0, 1.0)
    for k in range(1, k_max + 1):
        cost_of_pass = v(k) if callable(v) else v
        predicted = speedup(expected_tokens(a, k), k, c, cost_of_pass, o)
        if predicted > best[1]:
            best = (k, predicted)
    return best


def break_even_sentence(k: int, c: float, v: float = 1.0, o: float = 0.0) -> str:
    """`break_even_acceptance` in words."""
    needed = break_even_acceptance(k, c, v, o)
    if needed == 0:
        return f"k={k} pays whatever the acceptance"
    if needed > 1:
        return f"no acceptance is enough at k={k}: it would need {needed:.2f}"
    return f"k={k} pays from an acceptance of {needed:.3f} on"


def _geometric(a: float, k: int) -> float:
    total = 1.0
    for _ in range(k):
        total = total * a + 1
    return total


def _round_cost(k: int, c: float, v: float, o: float) -> float:
    _check_k(k)
    _check_time("draft cost c", c)
    _check_time("verify cost v", v)
    _check_time("overhead o", o)
    cost = v + k * c + o
    if cost == 0:
        raise ValueError("a round costs nothing at all: give a positive c, v or o")
    return cost


def _check_k(k: int) -> None:
    whole: object = k  # what a caller without types may give
    if isinstance(whole, bool) or not isinstance(whole, numbers.Integral) or k < 0:
        raise ValueError(f"k={k}: give a whole number, 0 or more")
    if k > LONGEST:
        raise ValueError(f"k={k}: give at most {LONGEST:,}")


def _check_time(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} is {value}: give a finite number, 0 or more")


def report(a: float, k: int, draft_ms: float, verify_ms: float, target_ms: float) -> str:
    """The command's answer: the figures for one k, then a table over k.

    Times in milliseconds; the verify time is taken to be the same at every k. ValueError as above.
    """
    _check_time("target time in ms", target_ms)
    if target_ms == 0:
        raise ValueError("--target-ms 0: give the positive time of one plain target pass")
    c, v = draft_ms / target_ms, verify_ms / target_ms
    tokens, rate = expected_tokens(a, k), tokens_per_second(a, k, draft_ms, verify_ms)
    best, at_best = best_k(a, c, v)
    lines = [
        f"expected tokens a pass   {tokens:.4f}",
        f"tokens a second          {rate:.1f}   plain decoding {1000 / target_ms:.1f}",
        f"speedup                  {speedup(tokens, k, c, v):.3f}   c={c:.3f}  v={v:.3f}",
        f"break-even acceptance    {break_even_sentence(k, c, v)}",
    ]
    if k:
        limit = break_even_c(tokens, k, v) * target_ms
        paid = f"up to {limit:.2f} ms a token" if limit >= 0 else "not even a free draft pays"
        lines.append(f"break-even draft cost    {paid}")
    lines.append(
        f"best k                   {f'{best} ({at_best:.3f})' if best else 'none: decode plainly'}"
    )
    lines += ["", f"{'k':>3} {'tokens/pass':>12} {'tokens/s':>9} {'speedup':>8}"]
    for n in sorted({1, 2, 4, 8, 16, best, k} - {0}):
        tokens, rate = expected_tokens(a, n), tokens_per_second(a, n, draft_ms, verify_ms)
        lines.append(f"{n:>3} {tokens:>12.4f} {rate:>9.1f} {speedup(tokens, n, c, v):>8.3f}")
    return "\n".join([*lines, "(the verify time is taken as the same at every k)"])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.theory",
        description="Predict tokens a pass, speed and break-evens.",
    )
    parser.add_argument("--alpha", type=float, required=True, help="acceptance, 0 to 1")
    parser.add_argument("--k", type=int, required=True, help="drafted tokens a round")
    parser.add_argument("--draft-ms", type=float, required=True, help="time of one drafted token")
    parser.add_argument("--verify-ms", type=float, required=True, help="time of one verify pass")
    parser.add_argument(
        "--target-ms", type=float, required=True, help="time of a plain target pass"
    )
    given = parser.parse_args(arguments)
    try:
        told = report(given.alpha, given.k, given.draft_ms, given.verify_ms, given.target_ms)
    except ValueError as error:
        parser.exit(2, f"{error}\n")
    print(told)
    return 0


if __name__ == "__main__":
    sys.exit(main())

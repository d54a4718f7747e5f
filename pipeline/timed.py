"""The figures of a job's timed side, by the names they are kept under."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline import pairs
from pipeline.clocks import Decode
from pipeline.costs import Costs


def metrics(found: pairs.Statistics, same: bool) -> dict[str, float]:
    """The time/ figures, and the halves' shares of the CPU."""
    out = {
        "time/speedup_median": found.median,
        "time/speedup_min": found.minimum,
        "time/speedup_max": found.maximum,
        "time/speedup_low": found.low,
        "time/speedup_high": found.high,
        "time/pairs": len(found.ratios),
        "time/flagged_pairs": len(found.flagged),
        "time/baseline_tokens_per_s": found.baseline_tokens_per_s,
        "time/speculative_tokens_per_s": found.speculative_tokens_per_s,
        "time/timed_matches_counts": float(same),
        "time/timed_s": found.timed_s,
        "load/cpu_share_baseline": found.cpu_share_baseline,
        "load/cpu_share_speculative": found.cpu_share_speculative,
    }
    if found.order_effect is not None:  # where all pairs have one order there is none
        out["time/order_effect"] = found.order_effect
    return out


def costs(cost: Costs, counted: dict[str, float], median: float) -> dict[str, float]:
    """The cost/ figures, and how far the prediction made of them is from the `median`."""
    tokens_per_pass, k = counted["count/tokens_per_pass"], counted["count/draft_length"]
    predicted = cost.predicted(tokens_per_pass)
    out = {
        "cost/target_pass_us": cost.target_pass_us,
        "cost/verify_pass_us": cost.verify_pass_us,
        "cost/v": cost.v,
        "cost/o": cost.o,
        "cost/predicted": predicted,
        "cost/predicted_simple": cost.predicted_simple(tokens_per_pass, k),
        "cost/prediction_error": predicted / median - 1,
    }
    if cost.draft_token_us is not None and cost.c is not None:
        out |= {"cost/draft_token_us": cost.draft_token_us, "cost/c": cost.c}
    return out


def series(found: pairs.Statistics) -> dict[str, list[tuple[int, float]]]:
    """Raw values, a step a pair."""
    return {
        "time/pair_ratio": list(enumerate(found.ratios)),
        "time/pair_baseline_s": list(enumerate(found.baseline_s)),
        "time/pair_speculative_s": list(enumerate(found.speculative_s)),
    }


def rounds(decodes: Sequence[Decode]) -> dict[str, list[Any]]:
    """The columns of `JobRecord.round_log`; the pairs decode one text, so they have one `k`."""
    return {
        "k": decodes[0].drafted,
        "accepted": decodes[0].accepted,
        "ms": [[ns / 1e6 for ns in decode.wall_ns] for decode in decodes],
    }


def notes(found: pairs.Statistics, same: bool) -> list[str]:
    """What a reader of the figures should know, a sentence each."""
    out = []
    if not same:
        out.append(
            "the timed float32 decode departs from the counted float64 text: a decision so close "
            "that rounding flips it"
        )
    if found.flagged:
        named = ", ".join(str(index) for index in found.flagged)
        out.append(f"pair {named}: the halves got unequal shares of the CPU")
    return out

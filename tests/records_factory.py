"""Made-up job records that look like a real sweep's, for the tests of `tracking`."""

from __future__ import annotations

import hashlib
import random
import statistics
from typing import Any

from pipeline.records import JobError, JobRecord

ACCEPTANCE = {"int8": 0.985, "int4": 0.68, "bigram": 0.48}
"""Chance that a position is accepted, given that the one before it was."""
COST = {"int8": 1.06, "int4": 1.03, "bigram": 0.01}
STARTED_S = 1_760_000_000.0
NULL = {"null/ratio_median": 1.003, "null/ratio_min": 0.96, "null/ratio_max": 1.05}


def make_record(
    draft: str = "int8",
    k: int = 4,
    seed: int = 0,
    *,
    tokens: int = 200,
    pairs: int = 6,
    noise: float = 0.04,
    **changes: Any,
) -> JobRecord:
    """A finished job; `pairs=0` leaves out all clocks; `changes` replace fields of the record."""
    rng = random.Random(f"{draft} {k} {seed}")
    rounds = _rounds(draft, k, tokens, rng)
    counts, series = _counts(rounds, k)
    clocks, clock_series = _clocks(draft, k, counts, pairs, noise, rng) if pairs else ({}, {})
    fields: dict[str, Any] = {
        "digest": hashlib.sha256(f"{draft} {k} {seed} {tokens}".encode()).hexdigest()[:16],
        "name": f"{draft} k={k} seed={seed}",
        "status": "done",
        "overrides": (f"draft={draft}", f"k={k}", f"seed={seed}"),
        "params": _params(draft, k, seed, tokens, pairs),
        "metrics": counts | clocks,
        "series": series | clock_series,
        "tags": {"counts.digest": hashlib.sha256(str(rounds).encode()).hexdigest()},
        "rounds": _tidy(rounds),
        "pieces": _pieces(clock_series),
        "timed_rounds": _timed_rounds(rounds, clock_series),
        "text": "First Citizen:\nBefore we proceed any further, hear me speak.\n",
        "started_s": STARTED_S + 10.0 * k + seed,
        "finished_s": STARTED_S + 10.0 * k + seed + 3.5,
    }
    return JobRecord(**(fields | changes))


def make_failed(draft: str = "int4", k: int = 2, seed: int = 0) -> JobRecord:
    error = JobError(
        "RuntimeError",
        "the draft's table has 83 rows, the target 84 characters",
        'Traceback (most recent call last):\n  File "job.py", line 7, in count\nRuntimeError: …\n',
    )
    return make_record(
        draft, k, seed, pairs=0, status="failed", error=error, metrics={}, series={}, rounds=[]
    )


def make_sweep(
    drafts: tuple[str, ...] = ("bigram", "int8", "int4"),
    ks: tuple[int, ...] = (1, 2, 4, 8),
    seeds: tuple[int, ...] = (0, 1, 2),
    **changes: Any,
) -> list[JobRecord]:
    return [make_record(d, k, s, **changes) for d in drafts for k in ks for s in seeds]


def _params(draft: str, k: int, seed: int, tokens: int, pairs: int) -> dict[str, Any]:
    return {
        "draft": draft,
        "k": k,
        "seed": seed,
        "target": "shipped",
        "verify": "token",
        "proposal": "chain",
        "tokens": tokens,
        "temperature": 1.0,
        "top_k": None,
        "top_p": 1.0,
        "dtype": "float64/float32",
        "threads": 2,
        "pairs": pairs,
        "prompt": "First Citizen:",
    }


def _rounds(draft: str, k: int, tokens: int, rng: random.Random) -> list[dict[str, Any]]:
    rate = ACCEPTANCE[draft]
    rows: list[dict[str, Any]] = []
    start = 0
    while start < tokens:
        drafted = min(k, tokens - start - 1)
        accepted = next((i for i in range(drafted) if rng.random() > rate), drafted)
        rows.append({"start": start, "drafted": drafted, "accepted": accepted})
        rows[-1]["emitted"] = [rng.randrange(84) for _ in range(accepted + 1)]
        start += accepted + 1
    return rows


def _tidy(rounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As `pipeline.counts` has them; the closest call of all is in the fourth round."""
    return [
        {"round": place, "start": r["start"], "k": r["drafted"], "accepted": r["accepted"]}
        | {"emitted": len(r["emitted"]), "margin": 1.3e-4 if place == 3 else 2.1e-2}
        for place, r in enumerate(rounds)
    ]


def _counts(
    rounds: list[dict[str, Any]], k: int
) -> tuple[dict[str, float], dict[str, list[tuple[int, float]]]]:
    drafted = sum(r["drafted"] for r in rounds)
    accepted = sum(r["accepted"] for r in rounds)
    emitted = accepted + len(rounds)
    metrics = {
        "count/target_passes": float(len(rounds)),
        "count/tokens_per_pass": emitted / len(rounds),
        "count/drafted": float(drafted),
        "count/accepted": float(accepted),
        "count/emitted": float(emitted),
        "count/rounds": float(len(rounds)),
        "count/margin_min": 1.3e-4,
        "dist/tv": 0.0151,
        "dist/tv_null_median": 0.0143,
        "dist/tv_null_p95": 0.0171,
        "dist/draws": 20000.0,
        "memory/target_weight_bytes": 2_430_000.0,
        "memory/draft_weight_bytes": 620_000.0,
    }
    if drafted:
        metrics["count/acceptance_rate"] = accepted / drafted
        metrics["count/alpha"] = accepted / drafted * 0.99
    full = [r for r in rounds if r["drafted"] == k]
    joint = [(i, sum(r["accepted"] > i for r in full) / len(full)) for i in range(k) if full]
    return metrics, {"count/accept_joint": joint} if joint else {}


def _clocks(
    draft: str, k: int, counts: dict[str, float], pairs: int, noise: float, rng: random.Random
) -> tuple[dict[str, float], dict[str, list[tuple[int, float]]]]:
    c = COST[draft] * rng.uniform(0.98, 1.02)
    simple = counts["count/tokens_per_pass"] / (1 + k * c)
    ratios = [simple * 0.95 * rng.lognormvariate(0, noise) for _ in range(pairs)]
    median = statistics.median(ratios)
    metrics = {
        "time/speedup_median": median,
        "time/speedup_min": min(ratios),
        "time/speedup_low": min(ratios),
        "time/speedup_high": max(ratios),
        "time/speedup_max": max(ratios),
        "time/pairs": float(pairs),
        "time/flagged_pairs": 0.0,
        "time/baseline_tokens_per_s": 810.0,
        "time/speculative_tokens_per_s": 810.0 * median,
        "time/timed_matches_counts": 1.0,
        "cost/target_pass_us": 1235.0,
        "cost/draft_token_us": 1235.0 * c,
        "cost/c": c,
        "cost/v": 1.0 + 0.02 * k,
        "cost/o": 0.05,
        "cost/predicted": simple * 0.97,
        "cost/predicted_simple": simple,
        "cost/prediction_error": simple / median - 1,
        "load/before_1m": 0.4,
        "load/after_1m": 1.1,
        **NULL,
    }
    base = [0.247 * rng.uniform(0.97, 1.03) for _ in ratios]
    return metrics, {
        "time/pair_ratio": list(enumerate(ratios)),
        "time/pair_baseline_s": list(enumerate(base)),
        "time/pair_speculative_s": [
            (i, b / r) for i, (b, r) in enumerate(zip(base, ratios, strict=True))
        ],
    }


def _timed_rounds(
    rounds: list[dict[str, Any]], series: dict[str, list[tuple[int, float]]]
) -> dict[str, list[Any]]:
    """Each round an equal part of its pair's time."""
    halves = series.get("time/pair_speculative_s", [])
    if not halves:
        return {}
    return {
        "k": [r["drafted"] for r in rounds],
        "accepted": [r["accepted"] for r in rounds],
        "ms": [[1000 * seconds / len(rounds)] * len(rounds) for _, seconds in halves],
    }


def _pieces(series: dict[str, list[tuple[int, float]]]) -> list[dict[str, Any]]:
    return [
        {"pair": pair, "order": "AB" if pair % 2 == 0 else "BA", "side": side, "piece": 0}
        | {"wall_ns": int(seconds * 1e9), "cpu_ns": int(seconds * 1e9), "rounds": 50, "tokens": 200}
        for side in ("baseline", "speculative")
        for pair, seconds in series.get(f"time/pair_{side}_s", [])
    ]

"""What to do with a draft: the best k, what it would have to accept, what it might cost. Pure.

By the full formula E[N] / (v + m·c + o) with a sweep's alpha, c, v and o (Leviathan et al. 2023)
and E[N] = 1 + (m/k)·Σ_{1≤i≤k} alphaⁱ. A draft that always proposes k tokens drafts m = k of them a
round; one that proposes only at times, such as prompt lookup, drafts fewer. The costs are those
measured, and between two measured k on the line between them; nothing is said of a k outside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

import numpy as np

from pipeline import alike, theory
from pipeline.records import JobRecord

_COSTS = ("cost/c", "cost/v", "cost/o")
MAP_C = tuple(round(0.02 * step, 2) for step in range(101))  # draft costs of the map, 0 to 2


@dataclass(frozen=True, slots=True)
class At:
    """One measured k: costs in target passes, and where it would break even.

    `needs` is the acceptance from which it pays, above 1 where none is enough; `c_limit` the draft
    cost up to which it pays, negative where not even a free draft does.
    """

    k: int
    drafted: float  # tokens a round, m
    tokens_per_pass: float
    c: float
    v: float
    o: float
    needs: float
    c_limit: float


@dataclass(frozen=True, slots=True)
class Advice:
    """One draft under one setting. `best_k` is the best of those looked at, paying or not."""

    draft: str
    setting: dict[str, str]
    alpha: float
    best_k: int
    expected: float
    memory_bytes: int
    at: tuple[At, ...]

    @property
    def pays(self) -> bool:
        return self.expected > 1


def advice(records: Iterable[JobRecord]) -> list[Advice]:
    """For every draft whose chains of a fixed length under the token rule were timed.

    Other rules accept other than independently with probability alpha.
    """
    timed = [record for record in records if _is_fit(record)]
    found = alike.groups(timed, leave_out=("k",))
    names = alike.telling([setting for setting, _ in found])
    return [
        _advice(alike.shown(key, drafts), alike.told(setting, names), drafts[key])
        for setting, drafts in found
        for key in drafts
    ]


def _is_fit(record: JobRecord) -> bool:
    params = record.params
    return (
        all(name in record.metrics for name in (*_COSTS, "count/alpha"))
        and params["verify"] == "token"
        and params["proposal"] == "chain"
        and isinstance(params["k"], int)
        and params["k"] > 0
        and record.metrics.get("count/draft_length", 1) > 0
    )


def _advice(draft: str, setting: dict[str, str], records: Sequence[JobRecord]) -> Advice:
    lengths = sorted({record.params["k"] for record in records})
    at = tuple(_at(k, [r for r in records if r.params["k"] == k]) for k in lengths)
    alpha = min(1.0, fmean(record.metrics["count/alpha"] for record in records))
    expected = {k: _expected(alpha, k, at) for k in range(lengths[0], lengths[-1] + 1)}
    best = max(expected, key=lambda k: expected[k])
    memory = max(
        sum(record.metrics.get(f"memory/{part}_bytes", 0.0) for part in _KEPT) for record in records
    )
    return Advice(draft, setting, alpha, best, expected[best], int(memory), at)


_KEPT = ("draft_weight", "draft_cache", "extra_state")


def _at(k: int, records: Sequence[JobRecord]) -> At:
    c, v, o = (median(record.metrics[name] for record in records) for name in _COSTS)
    drafted = fmean(record.metrics.get("count/draft_length", k) for record in records)
    emitted = sum(record.metrics["count/emitted"] for record in records)
    tokens_per_pass = emitted / sum(record.metrics["count/target_passes"] for record in records)
    return At(
        k=k,
        drafted=drafted,
        tokens_per_pass=tokens_per_pass,
        c=c,
        v=v,
        o=o,
        needs=_needs(k, drafted, v + drafted * c + o),
        c_limit=(tokens_per_pass - v - o) / drafted,
    )


def _needs(k: int, drafted: float, cost: float) -> float:
    """The acceptance a at which 1 + (drafted / k)·Σ_{1≤i≤k} aⁱ is the round's cost in passes."""
    return theory.break_even_acceptance(k, 0.0, max(0.0, 1 + (cost - 1) * k / drafted) or 1e-9)


def _expected(alpha: float, k: int, at: Sequence[At]) -> float:
    lengths = [one.k for one in at]
    proposing, drafting, v, o = (
        float(np.interp(k, lengths, values))
        for values in (
            [one.drafted / one.k for one in at],
            [one.drafted * one.c for one in at],
            [one.v for one in at],
            [one.o for one in at],
        )
    )
    tokens = 1 + proposing * (theory.expected_tokens(alpha, k) - 1)
    return theory.speedup(tokens, k, drafting / k, v, o)


def as_dict(found: Sequence[Advice]) -> dict[str, Any]:
    """For the sweep's summary: every draft's advice, and the map they stand on."""
    drafts = [{**asdict(one), "pays": one.pays} for one in found]
    return {"drafts": drafts, "map": _map(found)} if found else {}


def _map(found: Sequence[Advice]) -> dict[str, Any]:
    """Break-even acceptance over draft cost and k, with this machine's own v(k) and o.

    v belongs to the target; of o, which is the draft's in part, it takes the drafts' median.
    """
    lengths = sorted({one.k for draft in found for one in draft.at})
    measured = {k: [one for draft in found for one in draft.at if one.k == k] for k in lengths}
    ks = list(range(lengths[0], lengths[-1] + 1))
    v, o = (
        np.interp(ks, lengths, [median(getattr(one, term) for one in measured[k]) for k in lengths])
        for term in ("v", "o")
    )
    needs = [
        [theory.break_even_acceptance(k, c, float(v[i]), float(o[i])) for c in MAP_C]
        for i, k in enumerate(ks)
    ]
    return {"k": ks, "c": list(MAP_C), "needs": needs}

"""From the steps of a decode to the `count/` figures: exact, and equal on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from pipeline import tree_counts
from pipeline.decode import Step
from pipeline.records import Round, Trace
from pipeline.sampling import draw_margin
from pipeline.tree_decode import AnyStep, TreeStep
from pipeline.verify import Rule, TreeRule


def trace(steps: Iterable[AnyStep], rule: Rule | TreeRule | None = None, lane: int = 0) -> Trace:
    """The rounds of one lane, with alpha and margin. `rule=None` is plain decoding."""
    rounds: list[Round] = []
    alpha: list[float] = []
    margin = 1.0
    for step in steps:
        for row in np.flatnonzero(step.lanes == lane).tolist():
            if isinstance(step, TreeStep):
                assert isinstance(rule, TreeRule), "trees are judged by rules for trees"
                rounds.append(tree_counts.round_of(step, row))
                alpha += tree_counts.overlaps(step, row)
                margin = min(margin, tree_counts.margin(step, row, rule))
                continue
            assert not isinstance(rule, TreeRule), "chains are judged by rules for chains"
            one = slice(row, row + 1)
            kept, count = int(step.accepted[row]), int(step.emitted[row])
            drafted = step.drafted.shape[1]
            emitted = tuple(step.block[row, :count].tolist())
            rounds.append(Round(int(step.start[row]), drafted, kept, emitted))
            tested = min(kept + 1, drafted)
            alpha += np.minimum(step.p[row, :tested], step.q[row, :tested]).sum(axis=-1).tolist()
            margin = min(margin, _margin(step, one, rule))
    return Trace(tuple(rounds), tuple(alpha), margin)


def _margin(step: Step, one: slice, rule: Rule | None) -> float:
    """How near the closest call of one round was: any uniform to what it was compared with."""
    p, q, drafted = step.p[one], step.q[one], step.drafted[one]
    if rule is None:
        return float(draw_margin(p[:, 0], step.u_next[one]).min())
    calls = [draw_margin(q[:, i], step.u_draft[one, i]).min() for i in range(drafted.shape[1])]
    calls.append(
        rule.margin(p, q, drafted, step.u[one], step.u_next[one], step.accepted[one]).min()
    )
    return float(min(calls))


def digest(trace_: Trace) -> str:
    """SHA-256 over the emitted tokens and each round's accepted count: equal on every machine."""
    sha = hashlib.sha256()
    sha.update(np.array(trace_.tokens, "<i8").tobytes())
    sha.update(b"|")
    sha.update(np.array([r.accepted for r in trace_.rounds], "<i8").tobytes())
    return sha.hexdigest()


def metrics(trace_: Trace) -> dict[str, float]:
    """The `count/` figures. A rate whose denominator is zero is left out."""
    drafted = sum(r.drafted for r in trace_.rounds)
    accepted = sum(r.accepted for r in trace_.rounds)
    emitted, rounds = len(trace_.tokens), len(trace_.rounds)
    out: dict[str, float] = {
        "count/drafted": drafted,
        "count/accepted": accepted,
        "count/emitted": emitted,
        "count/rounds": rounds,
        "count/target_passes": rounds,
        "count/tokens_per_pass": emitted / rounds,
        "count/margin_min": trace_.margin_min,
    }
    if nodes := sum(r.nodes for r in trace_.rounds):
        out["count/nodes"] = nodes
    if drafted:
        out["count/acceptance_rate"] = accepted / drafted
        out["count/alpha"] = sum(trace_.alpha) / len(trace_.alpha)
    return out


def by_position(trace_: Trace) -> dict[str, list[tuple[int, float]]]:
    """`count/accept_at` and `count/accept_joint` with step = position 1, 2, ...

    At position i: P(i accepted | i-1 accepted) and P(the first i accepted), both among the rounds
    that drafted at least i. A position never reached has no conditional rate.
    """
    at: list[tuple[int, float]] = []
    joint: list[tuple[int, float]] = []
    for i in range(1, max((r.drafted for r in trace_.rounds), default=0) + 1):
        long_enough = [r for r in trace_.rounds if r.drafted >= i]
        reached = sum(r.accepted >= i - 1 for r in long_enough)
        passed = sum(r.accepted >= i for r in long_enough)
        joint.append((i, passed / len(long_enough)))
        if reached:
            at.append((i, passed / reached))
    return {"count/accept_at": at, "count/accept_joint": joint}


def tidy(trace_: Trace) -> list[dict[str, int]]:
    """One row a round, for the record. With trees it says how many tokens each had."""
    has_trees = any(r.nodes for r in trace_.rounds)
    return [
        {
            "round": index,
            "start": r.start,
            "k": r.drafted,
            "accepted": r.accepted,
            "emitted": len(r.emitted),
        }
        | ({"nodes": r.nodes} if has_trees else {})
        for index, r in enumerate(trace_.rounds)
    ]

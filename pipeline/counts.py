"""From the steps of a decode to the `count/` figures: exact, and equal on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pipeline import tree_counts
from pipeline.context import Ints
from pipeline.decode import Step
from pipeline.records import Round, Trace
from pipeline.sampling import Floats, draw_margin
from pipeline.tree_decode import AnyStep, TreeStep
from pipeline.verify import Rule, TreeRule


def trace(steps: Iterable[AnyStep], rule: Rule | TreeRule | None = None, lane: int = 0) -> Trace:
    """The rounds of one lane, with alpha and margin. `rule=None` is plain decoding."""
    return traces(steps, rule, [lane])[0]


def traces(
    steps: Iterable[AnyStep], rule: Rule | TreeRule | None, lanes: Sequence[int]
) -> list[Trace]:
    """The same of several lanes."""
    found: dict[int, list[_Counted]] = {lane: [] for lane in lanes}
    for step in steps:
        rows = np.flatnonzero(np.isin(step.lanes, lanes))
        if isinstance(step, TreeStep):
            assert isinstance(rule, TreeRule), "trees are judged by rules for trees"
            counted = [_tree(step, row, rule) for row in rows.tolist()]
        else:
            assert not isinstance(rule, TreeRule), "chains are judged by rules for chains"
            counted = list(_chains(step, rows, rule))
        for lane, one in zip(step.lanes[rows].tolist(), counted, strict=True):
            found[lane].append(one)
    return [
        Trace(
            tuple(one.round for one in each),
            tuple(value for one in each for value in one.alpha),
            min((one.margin for one in each), default=1.0),
            tuple(one.margin for one in each),
        )
        for each in found.values()
    ]


class _Counted(NamedTuple):
    """One lane's part of a step."""

    round: Round
    alpha: list[float]
    margin: float


def _tree(step: TreeStep, row: int, rule: TreeRule) -> _Counted:
    overlaps = tree_counts.overlaps(step, row)
    return _Counted(tree_counts.round_of(step, row), overlaps, tree_counts.margin(step, row, rule))


def _chains(step: Step, rows: Ints, rule: Rule | None) -> Iterator[_Counted]:
    drafted = step.drafted.shape[1]
    margins = _margins(step, rows, rule).tolist()
    overlaps = np.minimum(step.p[rows, :drafted], step.q[rows]).sum(axis=-1).tolist()
    for row, margin, alpha in zip(rows.tolist(), margins, overlaps, strict=True):
        kept, count = int(step.accepted[row]), int(step.emitted[row])
        emitted = tuple(step.block[row, :count].tolist())
        yield _Counted(
            Round(int(step.start[row]), drafted, kept, emitted), alpha[: kept + 1], min(1.0, margin)
        )


def _margins(step: Step, rows: Ints, rule: Rule | None) -> Floats:
    """How near the closest call of each round `(b,)` was: any uniform to what it was compared
    with."""
    p, q, drafted = step.p[rows], step.q[rows], step.drafted[rows]
    u, u_next, u_draft = step.u[rows], step.u_next[rows], step.u_draft[rows]
    if rule is None:
        return draw_margin(p[:, 0], u_next)
    calls = [draw_margin(q[:, i], u_draft[:, i]) for i in range(drafted.shape[1])]
    calls.append(rule.margin(p, q, drafted, u, u_next, step.accepted[rows]))
    least: Floats = np.min(calls, axis=0)
    return least


def with_gaps(trace_: Trace, gaps: Floats) -> Trace:
    """The trace with margins no wider than `gaps (T,)`, those of the choices along its text."""
    if not len(gaps):
        return trace_
    ends = [round_.start + len(round_.emitted) for round_ in trace_.rounds]
    margins = tuple(
        min(margin, float(gaps[round_.start : end].min(initial=1.0)))
        for round_, end, margin in zip(trace_.rounds, ends, trace_.margins, strict=True)
    )
    return replace(trace_, margins=margins, margin_min=min(trace_.margin_min, float(gaps.min())))


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


def tidy(trace_: Trace) -> list[dict[str, int | float]]:
    """One row a round, for the record. With trees it says how many tokens each had.

    `margin`, to three digits, is how near the round's closest decision was to going the other way:
    where two machines disagree, that of the round in which they part tells whether rounding can be
    the cause. Records from before it was kept lack it.
    """
    has_trees = any(r.nodes for r in trace_.rounds)
    margins: Sequence[float | None] = trace_.margins or [None] * len(trace_.rounds)
    return [
        {
            "round": index,
            "start": r.start,
            "k": r.drafted,
            "accepted": r.accepted,
            "emitted": len(r.emitted),
        }
        | ({"nodes": r.nodes} if has_trees else {})
        | ({} if margin is None else {"margin": float(f"{margin:.2e}")})
        for index, (r, margin) in enumerate(zip(trace_.rounds, margins, strict=True))
    ]

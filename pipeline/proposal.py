"""Drafting: tokens drawn one after another from a draft, as many as a lane's draft sees fit.

Lanes may end up with unequal numbers: a draft can run out of proposals (`Context.limit`), and with
k=auto a lane stops once its last token seemed improbable to the draft itself. That token stays in
the proposal. Dropping it would leave only tokens that passed a test of their own value, and these
do not follow the rows q that the verification rule is told they were drawn from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pipeline.context import Context, Ints, Logits
from pipeline.sampling import Floats, Sampling, draw, draw_one


class Committed(Protocol):
    """Texts as far as they are settled."""

    lengths: Ints  # (B,)

    def tail(self, lane: int, count: int) -> Ints:
        """The last `count` committed tokens of one lane."""
        ...


@dataclass(frozen=True, slots=True)
class Proposal:
    """What some lanes drafted, all of them m tokens. `q` is None where m = 0."""

    lanes: Ints  # (b,)
    drafted: Ints  # (b, m)
    q: Floats | None  # (b, m, V): the very rows that the tokens were drawn from
    u: Floats  # (b, m)


def propose(
    draft: Context,
    texts: Committed,
    lanes: Ints,
    u: Floats,
    sampling: Sampling,
    threshold: float = 0.0,
) -> list[Proposal]:
    """Draft up to k tokens for `lanes (b,)` with uniforms `u (b, k)`; one proposal a length.

    A lane stops after a token x with q(x) < `threshold`, x included.
    """
    if not u.shape[1]:
        return [Proposal(lanes, np.zeros(u.shape, np.int64), None, u)]
    if len(lanes) == 1:
        return [_alone(draft, texts, lanes, u, sampling, threshold)]
    logits = catch_up(draft, texts, lanes)
    limit = draft.limit(lanes, u.shape[1])
    if limit is None:
        limit = np.full(len(lanes), u.shape[1])
    return _together(draft, lanes, logits, u, limit, sampling, threshold)


def _alone(
    draft: Context,
    texts: Committed,
    lanes: Ints,
    u: Floats,
    sampling: Sampling,
    threshold: float,
) -> Proposal:
    """One lane, the timed case."""
    lane = int(lanes[0])
    unread = texts.tail(lane, int(texts.lengths[lane] - draft.lengths[lane]))[None]
    chained = draft.chain(lanes, unread, u, sampling)
    if chained is not None:
        return _cut(Proposal(lanes, *chained, u), threshold)
    logits = draft.read(lanes, unread)
    limit = draft.limit(lanes, u.shape[1])
    count = u.shape[1] if limit is None else int(limit[0])
    u = u[:, :count]
    drafted, q = np.zeros(u.shape, np.int64), np.empty((1, count, logits.shape[-1]))
    for i in range(count):
        if i:
            logits = draft.read(lanes, drafted[:, i - 1 : i])
        row = sampling.rows(logits[0, -1])
        drafted[0, i] = token = draw_one(row, u[0, i])
        q[0, i] = row
        if threshold and row[token] < threshold:
            count = i + 1
            break
    return Proposal(lanes, drafted[:, :count], q[:, :count] if count else None, u[:, :count])


def _cut(proposal: Proposal, threshold: float) -> Proposal:
    """What is drafted up to the first token of one lane with q(x) < `threshold`, x included."""
    drafted, q = proposal.drafted, proposal.q
    if not threshold or q is None:
        return proposal
    unsure = np.flatnonzero(q[0, np.arange(drafted.shape[1]), drafted[0]] < threshold)
    count = int(unsure[0]) + 1 if len(unsure) else drafted.shape[1]
    return Proposal(proposal.lanes, drafted[:, :count], q[:, :count], proposal.u[:, :count])


def _together(
    draft: Context,
    lanes: Ints,
    logits: Logits,
    u: Floats,
    limit: Ints,
    sampling: Sampling,
    threshold: float,
) -> list[Proposal]:
    drafted, counts = np.zeros(u.shape, np.int64), np.zeros(len(lanes), np.int64)
    q = np.empty((*u.shape, logits.shape[-1]))
    going = np.flatnonzero(limit > 0)
    logits = logits[going]
    for i in range(u.shape[1]):
        if i and len(going):
            logits = draft.read(lanes[going], drafted[going, i - 1 : i])
        if not len(going):
            break
        rows = sampling.rows(logits[:, -1])
        tokens = draw(rows, u[going, i])
        q[going, i], drafted[going, i], counts[going] = rows, tokens, i + 1
        sure = rows[np.arange(len(going)), tokens] >= threshold
        going = going[sure & (limit[going] > i + 1)]
    out = []
    for count in np.unique(counts).tolist():
        here = counts == count
        rows_here = q[here, :count] if count else None
        out.append(Proposal(lanes[here], drafted[here, :count], rows_here, u[here, :count]))
    return out


def catch_up(draft: Context, texts: Committed, lanes: Ints) -> Logits:
    """Read what was committed since the draft last read: one token, two after a full acceptance."""
    behind = texts.lengths[lanes] - draft.lengths[lanes]
    out: Logits | None = None
    for count in np.unique(behind):
        here = np.flatnonzero(behind == count)
        tails = np.stack([texts.tail(lane, int(count)) for lane in lanes[here]])
        logits = draft.read(lanes[here], tails)[:, -1:]
        out = np.empty((len(lanes), *logits.shape[1:]), logits.dtype) if out is None else out
        out[here] = logits
    assert out is not None  # there is at least one lane
    return out

"""Plain and speculative decoding over the same target, cache and sampling code.

Both are generators of `Step`s, one target pass each, so that a clock can stop between rounds and go
on later. They decode B texts (lanes) of one prompt at once; one text is B = 1, the timed case. A
context always lacks the last committed token: the next pass reads it together with the draft's.

Speculative decoding: Leviathan et al. 2023 (arXiv 2211.17192), Chen et al. 2023 (2302.01318).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeline.context import Context, Ints
from pipeline.proposal import Proposal, propose
from pipeline.sampling import Floats, Sampling, Uniforms, draw
from pipeline.verify import Rule

ALONE = np.zeros(1, np.int64)  # the lanes of one text; never written to


@dataclass(slots=True)
class Step:
    """One target pass over some lanes, with all that its decisions were made of.

    `start` tokens had been emitted before it; `block (b, k+1)` holds what was accepted and then the
    target's token, of which the first `emitted` were appended (fewer at the end of text).
    """

    lanes: Ints  # (b,)
    start: Ints  # (b,)
    drafted: Ints  # (b, k)
    accepted: Ints  # (b,)
    emitted: Ints  # (b,)
    block: Ints  # (b, k + 1)
    p: Floats  # (b, k + 1, V)
    q: Floats  # (b, k, V)
    u_draft: Floats  # (b, k)
    u: Floats  # (b, k)
    u_next: Floats  # (b,)


class Texts:
    """What is committed: `ids (B, T0 + tokens)` of which `lengths (B,)` count."""

    def __init__(self, prompt: Ints, tokens: int, lanes: int = 1, eos: int | None = None) -> None:
        self.prompt_length, self._eos = len(prompt), eos
        self.ids = np.zeros((lanes, len(prompt) + tokens), np.int64)
        self.ids[:, : len(prompt)] = prompt
        self.lengths = np.full(lanes, len(prompt), np.int64)
        self._ends = np.full(lanes, len(prompt) + tokens, np.int64)

    def emitted(self, lane: int = 0) -> Ints:
        """What follows the prompt in one lane."""
        return self.ids[lane, self.prompt_length : self.lengths[lane]]

    def groups(self, k: int) -> list[tuple[int, Ints]]:
        """Unfinished lanes by how many tokens their next round may draft: k, fewer at the end."""
        if len(self.lengths) == 1:
            alone = min(int(self._ends[0]) - int(self.lengths[0]) - 1, k)
            return [(alone, ALONE)] if alone >= 0 else []
        room = np.minimum(self._ends - self.lengths - 1, k)
        return [(int(n), np.flatnonzero(room == n)) for n in np.unique(room) if n >= 0]

    def stop(self, lanes: Ints) -> None:
        """Nothing more is wanted of these lanes."""
        self._ends[lanes] = self.lengths[lanes]

    @property
    def endless(self) -> bool:
        """Whether no token ends a text early."""
        return self._eos is None

    def starts(self, lanes: Ints) -> Ints:
        """How many tokens `(b,)` some lanes have emitted."""
        if len(lanes) == 1:
            return np.array([int(self.lengths[lanes[0]]) - self.prompt_length])
        return self.lengths[lanes] - self.prompt_length

    def ends(self, lanes: Ints) -> tuple[Ints, Ints]:
        """How many tokens `(b,)` some lanes have emitted, and the last committed one `(b, 1)`."""
        if len(lanes) == 1:
            lane = int(lanes[0])
            end = int(self.lengths[lane])
            return np.array([end - self.prompt_length]), self.ids[lane : lane + 1, end - 1 : end]
        lengths = self.lengths[lanes]
        return lengths - self.prompt_length, self.ids[lanes, lengths - 1][:, None]

    def tail(self, lane: int, count: int) -> Ints:
        """The last `count` committed tokens of one lane."""
        return self.ids[lane, self.lengths[lane] - count : self.lengths[lane]]

    def append(self, lanes: Ints, block: Ints, count: Ints) -> Ints:
        """Commit the first `count (b,)` of `block (b, n)`, up to an end of text; tokens added."""
        if self._eos is not None:
            count = self._cut(lanes, block, count)
        if len(lanes) == 1:
            lane, added = int(lanes[0]), int(count[0])
            at = int(self.lengths[lane])
            self.ids[lane, at : at + added] = block[0, :added]
            self.lengths[lane] = at + added
            return count
        for column in range(int(count.max())):
            here = count > column
            self.ids[lanes[here], self.lengths[lanes[here]] + column] = block[here, column]
        self.lengths[lanes] += count
        return count

    def _cut(self, lanes: Ints, block: Ints, count: Ints) -> Ints:
        is_end = (block == self._eos) & (np.arange(block.shape[1]) < count[:, None])
        ended = is_end.any(axis=1)
        count = np.where(ended, is_end.argmax(axis=1) + 1, count)
        self._ends[lanes[ended]] = self.lengths[lanes[ended]] + count[ended]
        return count


def autoregressive(
    target: Context, texts: Texts, sampling: Sampling, uniforms: Uniforms
) -> Iterator[Step]:
    """Plain decoding: one token a pass, drawn at the `next` uniform of its position."""
    while groups := texts.groups(0):
        _, lanes = groups[0]
        start, last = texts.ends(lanes)
        p = sampling.rows(target.read(lanes, last))
        u_next = uniforms.take("next", lanes, start, 1)
        block = draw(p[:, 0], u_next[:, 0])[:, None]
        accepted = np.zeros(len(lanes), np.int64)
        emitted = texts.append(lanes, block, accepted + 1)
        q, none = p[:, :0], u_next[:, :0]
        drafted = block[:, :0]
        yield Step(lanes, start, drafted, accepted, emitted, block, p, q, none, none, u_next[:, 0])


@dataclass(frozen=True, slots=True)
class Method:
    """How a speculative decode goes: its length of draft, its rule, its sampling.

    With a `threshold` above 0, k is the most that is drafted: a round stops after a token that the
    draft itself gave a smaller probability.
    """

    k: int
    rule: Rule
    sampling: Sampling
    threshold: float = 0.0


def speculative(
    target: Context, draft: Context, texts: Texts, method: Method, uniforms: Uniforms
) -> Iterator[Step]:
    """Draft k tokens, verify the k + 1 positions in one target pass, keep a prefix and one more.

    Near the end of the text a round drafts fewer, so that exactly the asked number is emitted. A
    draft may also offer fewer: lanes are verified together with those that drafted as many.
    """
    draft.follow(target)
    while groups := texts.groups(method.k):
        for k, lanes in groups:
            u = uniforms.take("draft", lanes, texts.starts(lanes), k)
            for one in propose(draft, texts, lanes, u, method.sampling, method.threshold):
                yield _verify(target, draft, texts, one, method, uniforms)


def _verify(
    target: Context,
    draft: Context,
    texts: Texts,
    proposal: Proposal,
    method: Method,
    uniforms: Uniforms,
) -> Step:
    lanes, drafted = proposal.lanes, proposal.drafted
    start, last = texts.ends(lanes)
    u, u_next = _decisions(uniforms, method.rule, lanes, start, drafted.shape[1])
    line = np.empty((len(lanes), drafted.shape[1] + 2), np.int64)  # known, drafted, what follows
    line[:, :1], line[:, 1:-1] = last, drafted
    p = method.sampling.rows(target.read(lanes, line[:, :-1]))
    q = p[:, :0] if proposal.q is None else proposal.q
    kept, token = method.rule.verify(p, q, drafted, u, u_next)
    block = line[:, 1:]
    block[:, -1] = token
    if len(lanes) == 1:
        block[0, kept[0]] = token[0]
    else:
        block[np.arange(len(lanes)), kept] = token
    emitted = texts.append(lanes, block, kept + 1)
    _cut_back(target, draft, texts, lanes)
    # an end of text inside the block cuts what follows it
    accepted = kept if texts.endless else np.minimum(kept, emitted)
    return Step(lanes, start, drafted, accepted, emitted, block, p, q, proposal.u, u, u_next)


def _cut_back(target: Context, draft: Context, texts: Texts, lanes: Ints) -> None:
    """Both forget what was not committed, and lack the last committed token."""
    if len(lanes) == 1:
        committed = np.array([int(texts.lengths[lanes[0]]) - 1])
        target.crop(lanes, committed)
        if draft.lengths[lanes[0]] > committed[0]:
            draft.crop(lanes, committed)
        return
    committed = texts.lengths[lanes] - 1
    target.crop(lanes, committed)
    draft.crop(lanes, np.minimum(draft.lengths[lanes], committed))


def _decisions(
    uniforms: Uniforms, rule: Rule, lanes: Ints, start: Ints, k: int
) -> tuple[Floats, Floats]:
    """Uniforms `(b, k)` of the acceptance tests and `(b,)` of the token that ends the round."""
    if rule.uniforms == "next":  # one a position: the very ones that plain decoding draws with
        along = uniforms.along(lanes, start, k + 1)
        return along[:, :k], along[:, k]
    u_next = uniforms.take("next", lanes, start, 1)
    return uniforms.take("accept", lanes, start, k), u_next[:, 0]

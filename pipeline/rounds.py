"""Parts of a round that can be timed alone: a read, its sampling, the loop around the models.

Each part follows, unseen, what it follows in a decode: plain passes follow each other, a verify
pass follows the draft's reads, and these a verify pass. The weights of one push those of the other
out of the CPU's caches: the first pass after such a change was seen to cost 1.4 times the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import numpy as np

from pipeline.clocks import Timed
from pipeline.context import Context, Drafted, Ints, Logits
from pipeline.decode import Texts
from pipeline.sampling import Floats, Sampling, draw_one
from pipeline.tree_cache import Parents
from pipeline.tree_decode import AnyStep

Nanoseconds = Callable[[], int]
ONE = np.zeros(1, np.int64)  # the only lane
UNSEEN = 3  # passes until one costs what the next one does


class Part(Protocol):
    def time(self, place: int, clock: Nanoseconds) -> dict[str, int]:
        """Nanoseconds of one run in a context of `place` tokens, by name."""
        ...


class PlainStep:
    """A step of plain decoding at a place: the pass, `target`, and the rest of it, `plain_loop`.

    `target_rows` is the pass's row computed once more.
    """

    def __init__(self, timed: Timed, target: Context, text: Ints) -> None:
        self._timed, self._target, self._text = timed, target, text

    def time(self, place: int, clock: Nanoseconds) -> dict[str, int]:
        unseen = min(UNSEEN, place)
        start = place - unseen
        self._target.crop(ONE, np.array([start]))
        watch = Stopwatch(self._target, clock)
        steps = self._timed.plain_steps(watch, Texts(self._text[: start + 1], unseen + 1))
        for _ in range(unseen):
            next(steps)
        watch.spent, begun = 0, clock()
        next(steps)
        spent, again = clock() - begun, clock()
        self._timed.method.sampling.rows(watch.last)
        return {
            "target": watch.spent,
            "plain_loop": spent - watch.spent,
            "target_rows": clock() - again,
        }


class Drafting:
    """A round's `count` draft reads, and the target's pass over what they drafted.

    `draft_read1`, `draft_read2`, ... and `draft_rows1`, ... for the sampling after each; `verify`
    and `verify_rows`. `draft_first` is the first read, of one token, and `draft_two` one of two
    tokens, as it is after a round accepted in full. What is drafted at once counts as one read.
    """

    def __init__(
        self,
        draft: Context,
        target: Context,
        text: Ints,
        count: int,
        sampling: Sampling,
        chained: int | None = None,
    ) -> None:
        """`chained` is how many tokens a draft that drafts at once makes, if not `count`."""
        self._draft, self._target, self._text, self._count = draft, target, text, count
        self._sampling = sampling
        self._u = np.full((1, chained or count), 0.5)
        draft.follow(target)

    def time(self, place: int, clock: Nanoseconds) -> dict[str, int]:
        self._settle(place, place)
        spent = self._at_once(place, clock) or self._one_by_one(place, clock)
        begun = clock()
        logits = self._verify(place)
        read = clock()
        self._sampling.rows(logits)
        spent |= {"verify": read - begun, "verify_rows": clock() - read}
        if "draft_first" in spent:
            return spent
        spent["draft_first"] = spent["draft_two"] = spent["draft_read1"]
        if place:
            self._settle(place, place - 1)
            begun = clock()
            self._draft.read(ONE, self._tokens(place - 1, 2))
            spent["draft_two"] = clock() - begun
        return spent

    def _settle(self, target_place: int, draft_place: int) -> None:
        """As after a round: the target has just verified, and what it kept it read last."""
        before = max(target_place - 1, 0)
        self._target.crop(ONE, np.array([before]))
        if target_place:
            self._verify(before)
            self._target.crop(ONE, np.array([before]))
            self._target.read(ONE, self._tokens(before))
        self._draft.crop(ONE, np.array([draft_place]))

    def _at_once(self, place: int, clock: Nanoseconds) -> dict[str, int] | None:
        begun = clock()
        chained = self._draft.chain(ONE, self._tokens(place), self._u, self._sampling)
        if chained is None:
            return None
        return {"draft_read1": clock() - begun, "draft_first": 0, "draft_two": 0}

    def _one_by_one(self, place: int, clock: Nanoseconds) -> dict[str, int]:
        spent = {}
        for i in range(self._count):
            tokens = self._tokens(place + i)
            begun = clock()
            logits = self._draft.read(ONE, tokens)
            read = clock()
            draw_one(self._sampling.rows(logits[0, -1]), 0.5)
            spent[f"draft_read{i + 1}"], spent[f"draft_rows{i + 1}"] = read - begun, clock() - read
        return spent

    def _verify(self, place: int) -> Logits:
        return self._target.read(ONE, self._tokens(place, self._count + 1))

    def _tokens(self, place: int, count: int = 1) -> Ints:
        return self._text[None, place : place + count]


class Renamed:
    """Of another part only some times, by other names."""

    def __init__(self, part: Part, names: Mapping[str, str]) -> None:
        self._part, self._names = part, names

    def time(self, place: int, clock: Nanoseconds) -> dict[str, int]:
        spent = self._part.time(place, clock)
        return {new: spent[old] for old, new in self._names.items()}


class Stopwatch(Context):
    """Stands for a context and adds up the time spent in its reads."""

    def __init__(self, inner: Context, clock: Nanoseconds) -> None:
        self._inner, self._clock = inner, clock
        self.lengths = inner.lengths
        self.spent = 0
        self.last: Logits = np.empty(0)

    def read(self, lanes: Ints, tokens: Ints) -> Logits:
        begun = self._clock()
        self.last = self._inner.read(lanes, tokens)
        self.spent += self._clock() - begun
        self.lengths = self._inner.lengths
        return self.last

    def chain(self, lanes: Ints, tokens: Ints, u: Floats, sampling: Sampling) -> Drafted | None:
        begun = self._clock()
        drafted = self._inner.chain(lanes, tokens, u, sampling)
        if drafted is not None:
            self.spent += self._clock() - begun
        self.lengths = self._inner.lengths
        return drafted

    def read_tree(self, lanes: Ints, tokens: Ints, parents: Parents) -> Logits:
        begun = self._clock()
        logits = self._inner.read_tree(lanes, tokens, parents)
        self.spent += self._clock() - begun
        return logits

    def reserve(self, nodes: int) -> None:
        self._inner.reserve(nodes)

    def gather(self, lanes: Ints, nodes: Ints, counts: Ints) -> None:
        self._inner.gather(lanes, nodes, counts)
        self.lengths = self._inner.lengths

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        self._inner.crop(lanes, lengths)
        self.lengths = self._inner.lengths

    def cache_bytes(self) -> int:
        return self._inner.cache_bytes()

    def extra_bytes(self) -> int:
        return self._inner.extra_bytes()

    def follow(self, target: Context) -> None:
        self._inner.follow(target)

    def limit(self, lanes: Ints, k: int) -> Ints | None:
        return self._inner.limit(lanes, k)

    def bare(self) -> Context:
        return self._inner.bare()


class RoundLoop:
    """The decode's own rounds less the reads in them, `round_loop`; over again when it is out."""

    def __init__(self, timed: Timed) -> None:
        self._timed = timed
        self._watches: list[Stopwatch] = []
        self._steps: Iterator[AnyStep] = iter(())

    def time(self, place: int, clock: Nanoseconds) -> dict[str, int]:
        spent = self._step(clock)
        if spent is None:
            self._open(clock)
            first = self._step(clock)  # the first one after opening: counts only if it is the last
            spent = self._step(clock) or first
        return {"round_loop": spent or 0}

    def _step(self, clock: Nanoseconds) -> int | None:
        for watch in self._watches:
            watch.spent = 0
        begun = clock()
        step = next(self._steps, None)
        spent = clock() - begun
        return None if step is None else spent - sum(watch.spent for watch in self._watches)

    def _open(self, clock: Nanoseconds) -> None:
        timed, read = self._timed, self._timed.prompt[:-1]
        target = Stopwatch(timed.open_target(read), clock)
        draft = Stopwatch(timed.open_draft(read), clock)
        self._watches = [target, draft]
        self._steps = timed.speculative_steps(target, draft, timed.texts())

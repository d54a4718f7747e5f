"""What the parts of a round cost: c, v(k), o, measured side by side and never in a timed half.

Each part runs alone, in alternation with all others, at context lengths that the job's own text
passes through: target reads of 1 and of k + 1 tokens, draft reads, sampling, and the loop around
them. A round is then put together from its parts and compared with what the pairs measured
(Leviathan et al. 2023, arXiv 2211.17192, section 3.3, but neither verification nor loop is free).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

from pipeline.clocks import Timed
from pipeline.context import Ints
from pipeline.decode import Method
from pipeline.pairs import no_garbage_collection
from pipeline.records import Round
from pipeline.rounds import Drafting, Part, PlainStep, Renamed, RoundLoop
from pipeline.tree_decode import TreeMethod
from pipeline.tree_rounds import Levels
from pipeline.verify.tree import tree

Turn = dict[str, int]
"""Nanoseconds of each part, all timed within a few milliseconds."""
Ratios = dict[str, float]
"""The same in target passes."""
FEW = 0.1


@dataclass(frozen=True)
class CostPlan:
    """At `lengths` places of the text, `repeats` turns of all parts."""

    lengths: int = 4
    repeats: int = 6


@dataclass(frozen=True)
class Costs:
    """Microseconds, and ratios to one target pass.

    `target_pass_us` is a token as plain decoding pays for it: the pass, its row and draw, its loop.
    `verify_pass_us` is the pass over k + 1 positions with their rows, or the mean pass where some
    rounds draft fewer; `draft_token_us` a draft read and its sampling, the mean over a round (where
    the one before was accepted in full, the first reads two tokens); `loop_us` the rest of a round.
    Where nothing is drafted there is no c.
    """

    target_pass_us: float
    verify_pass_us: float
    draft_token_us: float | None
    loop_us: float
    drafted_mean: float  # tokens a round

    @property
    def c(self) -> float | None:
        return None if self.draft_token_us is None else self.draft_token_us / self.target_pass_us

    @property
    def v(self) -> float:
        return self.verify_pass_us / self.target_pass_us

    @property
    def o(self) -> float:
        return self.loop_us / self.target_pass_us

    @property
    def round_passes(self) -> float:
        """A round in target passes: v + m c + o, m the mean number drafted."""
        return self.v + self.drafted_mean * (self.c or 0.0) + self.o

    def predicted(self, tokens_per_pass: float) -> float:
        return tokens_per_pass / self.round_passes

    def predicted_simple(self, tokens_per_pass: float, k: float) -> float:
        """With verification and loop taken as free: tokens_per_pass / (1 + k c)."""
        return tokens_per_pass / (1 + k * (self.c or 0.0))

    def shares(self) -> dict[str, float]:
        """Where a round's time goes; they sum to 1."""
        draft = self.drafted_mean * (self.c or 0.0)
        parts = {"draft": draft, "verify": self.v, "loop": self.o}
        return {name: part / self.round_passes for name, part in parts.items()}


def measure(
    timed: Timed,
    emitted: Ints,
    rounds: Sequence[Round],
    plan: CostPlan | None = None,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Costs:
    """Costs at the places that the job's `emitted` tokens and `rounds` passed through.

    Runs for a few tenths of a second. ValueError where no round was run.
    """
    if not rounds:
        raise ValueError("costs are those of a decode that emitted something: there is no round")
    plan = plan or CostPlan()
    counts = _Counts(rounds, _stops_early(timed))
    parts = _parts(timed, emitted, counts)
    places = _places(timed, len(emitted), counts.most, plan)
    with no_garbage_collection():
        turns = [_turns(parts, place, plan, clock) for place in places]
    return _compose(turns, counts)


def _compose(places: Sequence[Sequence[Turn]], of: _Counts) -> Costs:
    """Rounds put together from their parts, each a ratio to the target pass of its own turn.

    Median over the turns of a place, mean over the places. One by one, because a part that takes
    longer is the likelier to be interrupted: of a sum of parts not even the median would be clean.
    """
    target = fmean(median(_target(turn) for turn in turns) for turns in places) / 1e3
    ratios = {
        name: fmean(median(turn[name] / _target(turn) for turn in turns) for turns in places)
        for name in places[0][0]
    }
    return Costs(
        target_pass_us=target,
        verify_pass_us=of.verify(ratios) * target,
        draft_token_us=of.draft_token(ratios) * target if of.drafted else None,
        loop_us=max(0.0, of.rest(ratios)) * target,
        drafted_mean=of.drafted,
    )


def _target(turn: Turn) -> int:
    return turn["target"] + turn["plain_loop"]


class _Counts:
    """How the rounds of a decode went, to put parts (in target passes) together as they did."""

    def __init__(self, rounds: Sequence[Round], stops_early: bool = False) -> None:
        drafted = [round_.drafted for round_ in rounds]
        self._stops_early = stops_early
        self._drafting = sum(count > 0 for count in drafted) / len(rounds)
        self.drafted, self.most = fmean(drafted), max(drafted)
        fewer = [count for count in drafted if 0 < count < self.most]
        self._full = drafted.count(self.most) / len(rounds)
        self._fewer, self._mean = len(fewer) / len(rounds), fmean(fewer or [0])
        # a few shorter rounds, as every text ends with, do not need a pass of their own measured
        self.between = round(self._mean) if self._fewer > FEW else 0
        # rounds whose draft first reads two tokens: the one before was accepted in full
        twos = sum(
            before.drafted > 0 and before.accepted == before.drafted and after.drafted > 0
            for before, after in zip(rounds[:-1], rounds[1:], strict=True)
        )
        self._twos = twos / len(rounds)

    def verify(self, parts: Ratios) -> float:
        full = parts["verify"] + parts["verify_rows"]
        if not self.most:
            return full
        least = parts["target"] + parts["target_rows"]
        if self.between:
            fewer = parts["between"] + parts["between_rows"]
        else:
            fewer = least + (full - least) * self._mean / self.most
        return full * self._full + fewer * self._fewer + least * (1 - self._full - self._fewer)

    def draft_token(self, parts: Ratios) -> float:
        if not self.drafted:
            return 0.0
        if self._stops_early and not parts["draft_first"]:  # at once: the whole chain, then cut
            return _total(parts, "draft_read") * self._drafting / self.drafted
        again = self._twos * (parts["draft_two"] - parts["draft_first"])
        reads = _total(parts, "draft_read") + _total(parts, "draft_rows")
        return reads / self.most + again / self.drafted

    def rest(self, parts: Ratios) -> float:
        """What the loop does beside sampling, which is in the draft and the verify pass already."""
        sampling = parts["verify_rows"]
        if self.drafted:
            sampling += _total(parts, "draft_rows") * self.drafted / self.most
        return parts["round_loop"] - sampling


def _total(parts: Ratios, beginning: str) -> float:
    return sum(value for name, value in parts.items() if name.startswith(beginning))


def _parts(timed: Timed, emitted: Ints, counts: _Counts) -> list[Part]:
    text = np.concatenate([timed.prompt, emitted])
    target, sampling = timed.open_target(text), timed.method.sampling
    plain = PlainStep(timed, target, text)
    parts: list[Part] = [plain, RoundLoop(timed)]
    if not counts.most:
        return [*parts, Renamed(plain, {"target": "verify", "target_rows": "verify_rows"})]
    draft = timed.open_draft(text)
    # A round may look past an end of text.
    longer = np.concatenate([text, np.repeat(text[-1:], counts.most)])

    def drafting(count: int) -> Drafting:
        if isinstance(timed.method, TreeMethod):
            shape = tree(timed.method.widths[:count])
            return Levels(draft, target, text, shape, sampling)
        whole = _longest(timed, 0) if _stops_early(timed) else None
        return Drafting(draft, target, longer, count, sampling, whole)

    if counts.between:
        names = {"verify": "between", "verify_rows": "between_rows"}
        parts.append(Renamed(drafting(counts.between), names))
    return [*parts, drafting(counts.most)]


def _longest(timed: Timed, most: int) -> int:
    """What a round may draft that the text has room for, and `most` at least."""
    return max(most, min(timed.method.k, timed.tokens - 1), 1)


def _stops_early(timed: Timed) -> bool:
    return isinstance(timed.method, Method) and timed.method.threshold > 0


def _places(timed: Timed, emitted: int, most: int, plan: CostPlan) -> list[int]:
    """Context lengths, the longest first, so that a context only ever has to be cropped."""
    count = min(plan.lengths, emitted)
    middles = [emitted * (2 * i + 1) // (2 * count) for i in range(count)]
    last = max(0, timed.tokens - 1 - (_longest(timed, most) if _stops_early(timed) else most))
    return [len(timed.prompt) - 1 + min(middle, last) for middle in reversed(middles)]


def _turns(
    parts: Sequence[Part], place: int, plan: CostPlan, clock: Callable[[], int]
) -> list[Turn]:
    """Every part once a turn, each turn beginning with another."""
    turns = []
    for index in range(plan.repeats):
        first = index % len(parts)
        turn: Turn = {}
        for part in [*parts[first:], *parts[:first]]:
            turn |= part.time(place, clock)
        turns.append(turn)
    return turns

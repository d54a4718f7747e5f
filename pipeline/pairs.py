"""Timing two ways of writing the same text against each other, so that the machine's load cancels.

A pair is one observation: a baseline half and a speculative half, cut into short pieces that are
taken in turn. A piece is a stretch of the text, the same on both sides, so that both halves end
together. Nothing here knows what is being timed: a side is whatever can `advance`.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

from pipeline.ratios import Statistics, from_tidy, interval, statistics, tidy, verdict
from pipeline.records import Pair, Piece, Side

__all__ = [
    "CLOCK",
    "Clock",
    "Measured",
    "PairPlan",
    "Statistics",
    "Stepper",
    "from_tidy",
    "interval",
    "measure",
    "no_garbage_collection",
    "statistics",
    "tidy",
    "verdict",
]

PIECE_NS = 20_000_000  # long against a clock reading, short against a burst of foreign load


class Stepper(Protocol):
    """A decode that stops between rounds and goes on later. Opening it is outside every clock."""

    def advance(self, until: int) -> tuple[int, int]:
        """Go on until `until` tokens are out in all, or the text ended; rounds and tokens added."""
        ...


@dataclass(frozen=True)
class Clock:
    """Nanoseconds of a clock that never jumps, and of CPU time, all threads of the process."""

    wall: Callable[[], int] = time.perf_counter_ns
    cpu: Callable[[], int] = time.process_time_ns


CLOCK = Clock()


@dataclass(frozen=True)
class PairPlan:
    """How many pairs of a text of `tokens`, and how finely cut.

    `piece_tokens=None` is what the baseline writes in about 20 ms; no piece is shorter than
    `round_tokens`, the most that one round can emit. `seed` decides the first order. In adaptive
    mode `pairs` is the least, and it goes on until the interval's half-width, relative to the
    median, is at most `half_width`, or `most_pairs`, or `limit_s`.
    """

    tokens: int
    pairs: int = 6
    piece_tokens: int | None = None
    mode: Literal["pairs", "whole", "adaptive"] = "pairs"
    seed: int = 0
    round_tokens: int = 1
    warmup_tokens: int | None = None  # None: a quarter of the text
    most_pairs: int = 30
    half_width: float = 0.02
    limit_s: float = 60.0

    def __post_init__(self) -> None:
        for name, least in (("tokens", 1), ("pairs", 1), ("round_tokens", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name}={getattr(self, name)}: give {least} or more")
        if self.piece_tokens is not None and self.piece_tokens < 1:
            raise ValueError(f"timing.piece_tokens={self.piece_tokens}: give 1 or more, or null")
        if self.mode not in ("pairs", "whole", "adaptive"):
            raise ValueError(f"timing={self.mode}: the ways are pairs, whole and adaptive")
        if not 0 < self.half_width < 1:
            raise ValueError(f"timing.half_width={self.half_width}: give a share such as 0.02")

    def order(self, index: int) -> Literal["AB", "BA"]:
        """AB BA AB BA ... or BA AB ..., by the seed's parity: both equally often."""
        return "BA" if (index + self.seed) % 2 else "AB"

    def stops(self, piece_tokens: int) -> list[int]:
        """Where the pieces end: equal stretches of at least `piece_tokens`, the last at the end."""
        count = max(1, self.tokens // max(piece_tokens, self.round_tokens))
        return [self.tokens * (i + 1) // count for i in range(count)]


@dataclass(frozen=True)
class Measured:
    pairs: tuple[Pair, ...]
    piece_tokens: int
    stopped: str  # a sentence: why there are no more pairs


def measure(
    baseline: Callable[[], Stepper],
    speculative: Callable[[], Stepper],
    plan: PairPlan,
    clock: Clock = CLOCK,
    on_pair: Callable[[Pair], None] | None = None,
) -> Measured:
    """Time `plan.pairs` pairs, warmed up; each pair opens both sides anew.

    The baseline against itself is the null. `on_pair` hears of each pair between the clocks.
    """
    piece_tokens = _warm_up(baseline(), speculative(), plan, clock)
    begun = clock.wall()
    stops = plan.stops(piece_tokens)
    pairs: list[Pair] = []
    while not (stopped := _stop(pairs, plan, (clock.wall() - begun) / 1e9)):
        sides: dict[Side, Stepper] = {"baseline": baseline(), "speculative": speculative()}
        pairs.append(_pair(sides, len(pairs), plan, stops, clock))
        if on_pair is not None:
            on_pair(pairs[-1])
    return Measured(tuple(pairs), piece_tokens, stopped)


def _pair(
    sides: dict[Side, Stepper], index: int, plan: PairPlan, stops: list[int], clock: Clock
) -> Pair:
    order = plan.order(index)
    turn: tuple[Side, Side] = ("baseline", "speculative")
    if order == "BA":
        turn = ("speculative", "baseline")
    pieces = []
    with no_garbage_collection():
        for at, stop in enumerate(stops):
            for side in turn:
                pieces.append(_piece(sides[side], side, at, stop, clock))
    return Pair(index, order, tuple(pieces))


def _piece(stepper: Stepper, side: Side, index: int, stop: int, clock: Clock) -> Piece:
    cpu, wall = clock.cpu(), clock.wall()
    rounds, tokens = stepper.advance(stop)
    wall, cpu = clock.wall() - wall, clock.cpu() - cpu
    return Piece(side, index, wall, cpu, rounds, tokens)


def _warm_up(baseline: Stepper, speculative: Stepper, plan: PairPlan, clock: Clock) -> int:
    """Run both sides untimed, baseline's second half apart from that: tokens in a piece."""
    until = plan.warmup_tokens or max(plan.tokens // 4, 1)
    baseline.advance((until + 1) // 2)
    speculative.advance((until + 1) // 2)
    begun = clock.wall()
    _, tokens = baseline.advance(until)
    spent = clock.wall() - begun
    speculative.advance(until)
    if plan.mode == "whole":
        return plan.tokens
    if plan.piece_tokens is not None:
        return plan.piece_tokens
    return max(1, round(PIECE_NS * tokens / spent)) if tokens and spent else plan.tokens


def _stop(pairs: list[Pair], plan: PairPlan, spent_s: float) -> str:
    """Why to stop, or nothing. Never looks at which side is ahead, only at how well it is known."""
    count = len(pairs)
    if count < plan.pairs:
        return ""
    if plan.mode != "adaptive":
        return f"{count} pairs, as planned"
    found = statistics(pairs)
    width = (found.high - found.low) / 2 / found.median
    if count % 2 == 0 and width <= plan.half_width:  # after an AB and a BA, never between
        return f"the interval is within {width:.1%} of the median after {count} pairs"
    if count >= plan.most_pairs:
        return f"{count} pairs are the most that were allowed; the interval is ±{width:.1%}"
    if count % 2 == 0 and spent_s >= plan.limit_s:
        return f"the {plan.limit_s:g} s allowed are spent; the interval is ±{width:.1%}"
    return ""


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

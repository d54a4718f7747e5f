"""Three ways to come from the same halves to one reported ratio: blocks, whole halves, fine pieces.

Each decodes the job `pairs` times plainly and `pairs` times speculatively, warmed up alike, so that
they differ in nothing but the order of what is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, Protocol

from pipeline import pairs
from pipeline.pairs import CLOCK, Clock, PairPlan, Stepper, no_garbage_collection


class Sides(Protocol):
    """What is timed: a job's two sides, `tokens` long."""

    @property
    def tokens(self) -> int: ...
    def baseline(self) -> Stepper: ...
    def speculative(self) -> Stepper: ...


@dataclass(frozen=True)
class Reported:
    """One repeat: the ratio that would be reported, and the seconds of each half behind it."""

    ratio: float
    baseline_s: tuple[float, ...]
    speculative_s: tuple[float, ...]

    def row(self) -> dict[str, Any]:
        return {
            "ratio": self.ratio,
            "baseline_s": list(self.baseline_s),
            "speculative_s": list(self.speculative_s),
        }


def blocks(timed: Sides, count: int, seed: int, clock: Clock = CLOCK) -> Reported:
    """A A A B B B: median of one over median of the other; there are no pairs."""
    for side in (timed.baseline(), timed.speculative()):
        side.advance(max(timed.tokens // 4, 1))
    baseline = tuple(_half(timed.baseline, timed.tokens, clock) for _ in range(count))
    speculative = tuple(_half(timed.speculative, timed.tokens, clock) for _ in range(count))
    return Reported(median(baseline) / median(speculative), baseline, speculative)


def _half(opened: Callable[[], Stepper], tokens: int, clock: Clock) -> float:
    side = opened()
    with no_garbage_collection():
        begun = clock.wall()
        side.advance(tokens)
        return (clock.wall() - begun) / 1e9


def whole(timed: Sides, count: int, seed: int) -> Reported:
    """A B, B A, A B, ...: median of the pairs' ratios."""
    return _paired(timed, count, seed, "whole")


def fine(timed: Sides, count: int, seed: int) -> Reported:
    """The same pairs, each cut into pieces of about 20 ms that are taken in turn."""
    return _paired(timed, count, seed, "pairs")


def _paired(timed: Sides, count: int, seed: int, mode: Literal["whole", "pairs"]) -> Reported:
    plan = PairPlan(tokens=timed.tokens, pairs=count, mode=mode, seed=seed)
    found = pairs.statistics(pairs.measure(timed.baseline, timed.speculative, plan).pairs)
    return Reported(found.median, found.baseline_s, found.speculative_s)


def null(timed: Sides, count: int, seed: int) -> Reported:
    """The baseline against itself, finely: its median, and the halves behind it."""
    plan = PairPlan(tokens=timed.tokens, pairs=count, seed=seed)
    found = pairs.statistics(pairs.measure(timed.baseline, timed.baseline, plan).pairs)
    return Reported(found.median, found.baseline_s, found.speculative_s)


def excludes_1(one: Reported) -> bool:
    """Whether smallest and largest ratio of the pairs lie on one side of 1."""
    found = [a / b for a, b in zip(one.baseline_s, one.speculative_s, strict=True)]
    return min(found) > 1 or max(found) < 1


DESIGNS: Mapping[str, Callable[[Sides, int, int], Reported]] = {
    "blocks": blocks,
    "whole halves": whole,
    "fine pieces": fine,
}

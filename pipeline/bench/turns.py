"""Running several things in turns, so that a busy moment of the machine does not hit one alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.pairs import CLOCK, Clock, no_garbage_collection


@dataclass(frozen=True)
class Turn:
    """Every side once, in `order`, with what each took."""

    order: tuple[str, ...]
    wall_ns: Mapping[str, int]
    cpu_ns: Mapping[str, int]  # of this process, all threads

    def row(self) -> dict[str, Any]:
        return {"order": list(self.order), "wall_ns": {**self.wall_ns}, "cpu_ns": {**self.cpu_ns}}


def order(names: tuple[str, ...], index: int) -> tuple[str, ...]:
    """Forwards and backwards, each time beginning with another: of two, AB BA AB BA ..."""
    forth = names if index % 2 == 0 else names[::-1]
    first = index // 2 % len(names) if len(names) > 2 else 0
    return (*forth[first:], *forth[:first])


def alternate(
    sides: Mapping[str, Callable[[], object]],
    turns: int,
    warm_up: bool = True,
    clock: Clock = CLOCK,
) -> list[Turn]:
    """Run all `sides` in turns, first once untimed; no garbage is collected inside a clock.

    ValueError for no turns at all.
    """
    if turns < 1:
        raise ValueError(f"turns={turns}: give 1 or more")
    if warm_up:
        for call in sides.values():
            call()
    found = []
    for index in range(turns):
        now = order(tuple(sides), index)
        wall_ns, cpu_ns = {}, {}
        for name in now:
            with no_garbage_collection():
                cpu, wall = clock.cpu(), clock.wall()
                sides[name]()
                wall_ns[name], cpu_ns[name] = clock.wall() - wall, clock.cpu() - cpu
        found.append(Turn(now, wall_ns, cpu_ns))
    return found


def ratios(turns: list[Turn], above: str, below: str) -> tuple[float, ...]:
    """Wall time of one side over that of another, a ratio a turn."""
    return tuple(turn.wall_ns[above] / turn.wall_ns[below] for turn in turns)

"""Is the machine idle before a job is timed? Where it is not that is said, or waited for.

Load that both halves of a pair meet cancels in their ratio, so a busy machine stops nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.journal import Meter

SHARE = "load/others_share"
SAMPLE_S = 0.3
PAUSE_S = 1.0  # between two samples of a machine that is waited for


@dataclass(frozen=True)
class IdlePlan:
    """Idle is a machine of whose CPU time other programs take less than the share `below`."""

    wait_s: float = 0.0
    below: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.wait_s < math.inf:
            raise ValueError(
                f"timing.wait_for_idle={self.wait_s}: give the most seconds to wait, 0 for none"
            )
        if not 0 < self.below <= 1:
            raise ValueError(f"timing.idle_below={self.below}: give a share such as 0.1, at most 1")

    @classmethod
    def of(cls, timing: Mapping[str, Any]) -> IdlePlan:
        """That of a composed config's `timing` group."""
        return cls(timing["wait_for_idle"], timing["idle_below"])


class IdleCheck:
    """Asked before each timed job; `waited_s` is how long it has waited in all.

    What a meter saw while the last job was timed is known for nothing; so only the first check of a
    sweep takes the time of a sample, unless an idle machine is to be waited for.
    """

    def __init__(
        self,
        plan: IdlePlan,
        meter: Meter,
        say: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._plan, self._meter, self._say, self._sleep = plan, meter, say, sleep
        self._seen: float | None = None
        self._told = False
        self.waited_s = 0.0

    def seen(self, load: Mapping[str, float]) -> None:
        """What a meter said of the time since the last check."""
        self._seen = load.get(SHARE)

    def before(self, name: str) -> None:
        """Say of the job `name` whether others are busy, and wait for them if that is the plan."""
        share = self._sample() if self._seen is None or self._plan.wait_s else self._seen
        self._seen = None
        if share is None or share < self._plan.below:
            return
        taken = f"{name}: other programs take {share:.0%} of this machine's CPU time"
        if self._plan.wait_s:
            self._say(f"{taken}; waiting up to {self._plan.wait_s:g} s for it to become idle")
            self._wait(name)
        elif self._told:
            self._say(taken)
        else:
            self._told = True
            self._say(f"{taken}; timed all the same (timing.wait_for_idle=60 would wait)")

    def _wait(self, name: str) -> None:
        waited_s = 0.0
        while True:
            pause_s = min(PAUSE_S, self._plan.wait_s - waited_s)
            self._sleep(pause_s)
            share = self._sample()
            waited_s += pause_s + SAMPLE_S
            self.waited_s += pause_s + SAMPLE_S
            if share is None or share < self._plan.below:
                self._say(f"{name}: idle after {waited_s:.0f} s")
                return
            if waited_s >= self._plan.wait_s:
                self._say(
                    f"{name}: gave up waiting after {waited_s:.0f} s, other programs still take "
                    f"{share:.0%}; timed all the same"
                )
                return

    def _sample(self) -> float | None:
        """The others' share of a short while, or None where the system does not tell."""
        self._meter.start()
        self._sleep(SAMPLE_S)
        return self._meter.stop()[0].get(SHARE)

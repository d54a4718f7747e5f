"""A job's text decoded several times in a row as one half: as long as people's measurements are."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from pipeline.clocks import Decode, Timed


class InARow:
    """Decodes of one text, one after the other, as a single one. All are opened beforehand."""

    def __init__(self, opened: Callable[[], Decode], times: int, tokens: int) -> None:
        self._decodes = [opened() for _ in range(times)]
        self._tokens = tokens
        self._out = 0

    def advance(self, until: int) -> tuple[int, int]:
        """As `Decode.advance`, over all of them. A text that ends early counts as whole."""
        rounds, before = 0, self._out
        while self._out < min(until, self._tokens * len(self._decodes)):
            index, place = divmod(self._out, self._tokens)
            stop = min(until - index * self._tokens, self._tokens)
            done, tokens = self._decodes[index].advance(stop)
            rounds += done
            self._out += tokens
            if self._decodes[index].done or place + tokens >= self._tokens:
                self._out = (index + 1) * self._tokens
        return rounds, self._out - before


class Longer:
    """The two sides of a job whose halves are `times` texts long."""

    def __init__(self, timed: Timed, times: int) -> None:
        """ValueError for fewer than one."""
        if times < 1:
            raise ValueError(f"{times} texts: give 1 or more")
        self._timed, self._times = timed, times
        self.tokens = timed.tokens * times

    @classmethod
    def of(cls, timed: Timed, half_s: float) -> Longer:
        """So many texts that a plain half takes about `half_s`; at least one."""
        timed.baseline().advance(timed.tokens)
        side = timed.baseline()
        begun = time.perf_counter()
        side.advance(timed.tokens)
        return cls(timed, max(1, math.ceil(half_s / (time.perf_counter() - begun))))

    def baseline(self) -> InARow:
        return InARow(self._timed.baseline, self._times, self._timed.tokens)

    def speculative(self) -> InARow:
        return InARow(self._timed.speculative, self._times, self._timed.tokens)

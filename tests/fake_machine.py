"""A machine whose clock only moves when something is said to cost time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipeline.context import Context
from pipeline.pairs import Clock
from pipeline.sampling import Sampling

Ints = NDArray[np.int64]
VOCAB = 5


@dataclass
class Machine:
    """`load(now_ns)` is how many times longer everything takes at a moment."""

    load: Callable[[int], float] = lambda now: 1.0
    cpu_share: float = 1.0
    now: int = 0
    cpu: float = 0.0

    def work(self, ns: float) -> None:
        spent = ns * self.load(self.now)
        self.now += round(spent)
        self.cpu += spent * self.cpu_share

    def clock(self) -> Clock:
        return Clock(lambda: self.now, lambda: round(self.cpu))


@dataclass
class Writer:
    """A stepper that emits `per_round` tokens for `round_ns`, up to `tokens`."""

    machine: Machine
    tokens: int
    round_ns: float
    per_round: int = 1
    cpu_share: float = 1.0
    out: int = 0
    stretches: list[tuple[int, int]] = field(default_factory=list)

    def advance(self, until: int) -> tuple[int, int]:
        rounds, begun = 0, self.out
        while self.out < min(until, self.tokens):
            self.machine.cpu_share = self.cpu_share
            self.machine.work(self.round_ns)
            self.out = min(self.out + self.per_round, self.tokens)
            rounds += 1
        self.stretches.append((begun, self.out))
        return rounds, self.out - begun


class Reader(Context):
    """A context whose reads cost `base_ns + token_ns * T`, and `place_ns` a token already there."""

    def __init__(
        self,
        machine: Machine,
        read: Ints,
        base_ns: int,
        token_ns: int,
        place_ns: int = 0,
        sharpness: float = 1.0,
    ) -> None:
        self.machine, self.costs = machine, (base_ns, token_ns, place_ns)
        self.lengths = np.array([len(read)], np.int64)
        self.places: list[int] = []
        self.table = np.random.default_rng(1).normal(size=(VOCAB, VOCAB)) * sharpness

    def read(self, lanes: Ints, tokens: Ints) -> NDArray[np.float64]:
        base, token, place = self.costs
        self.places.append(int(self.lengths[0]))
        self.machine.work(base + token * tokens.shape[1] + place * int(self.lengths[0]))
        self.lengths[0] += tokens.shape[1]
        rows: NDArray[np.float64] = self.table[tokens]
        return rows

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        assert (lengths <= self.lengths).all(), "a crop cannot lengthen a text"
        self.lengths[:] = lengths

    def cache_bytes(self) -> int:
        return 0


@dataclass(frozen=True)
class CostlySampling(Sampling):
    """Every call costs time."""

    machine: Machine = field(default_factory=Machine)
    rows_ns: int = 0

    def rows(self, logits: NDArray[np.floating]) -> NDArray[np.float64]:
        self.machine.work(self.rows_ns)
        return super().rows(logits)

"""Time outside the models' passes, as a share of a speculative decode and in target passes a round.

The decode runs with a stopwatch around every read of target and draft; what is left of its time is
outside: sampling, acceptance, bookkeeping, and the stopwatch itself, so the share is rather too
large. The same decode without stopwatches runs in turn with it and tells how much too large. Drafts
that look up and draw k tokens at once (tables, ngram, heads) count that as their pass.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from pipeline import job
from pipeline.bench import sides
from pipeline.bench.figures import Figure, Goal, Part
from pipeline.bench.turns import order
from pipeline.clocks import Decode, Timed
from pipeline.pairs import no_garbage_collection
from pipeline.rounds import Stopwatch
from pipeline.spec import JobSpec

SHARES = "outside the passes, share of a decode"
ROUNDS = "outside the passes, in target passes a round"
GOALS = {"int8": Goal("at most", 0.10)}
PASSES = {"bigram": Goal("at most", 0.25)}
STRETCH = 20  # tokens that each decode writes in its turn
clock = time.perf_counter_ns


@dataclass(frozen=True)
class Watched:
    """Nanoseconds of one turn: whole decodes, and what of them was spent in passes."""

    plain_ns: int
    plain_passes_ns: int
    tokens: int
    speculative_ns: int
    target_ns: int
    draft_ns: int
    rounds: int
    bare_ns: int  # the speculative decode without stopwatches

    @property
    def outside_ns(self) -> int:
        return self.speculative_ns - self.target_ns - self.draft_ns

    @property
    def share(self) -> float:
        return self.outside_ns / self.speculative_ns

    @property
    def target_passes(self) -> float:
        """Time outside a round, in passes of plain decoding."""
        return self.outside_ns / self.rounds / (self.plain_passes_ns / self.tokens)

    @property
    def watch(self) -> float:
        """What the stopwatches cost: time with them over time without."""
        return self.speculative_ns / self.bare_ns


def measure(count: int, *settings: str) -> Part:
    """Every draft, `count` turns each."""
    found = {spec: turns_of(spec, count) for spec in sides.specs("draft=glob(*)", *settings)}
    watch = [one.watch for turns in found.values() for one in turns]
    low, high = min(watch), max(watch)
    note = (
        f"decodes with stopwatches took {low:.2f} to {high:.2f} times those without; "
        "the stopwatches are in the shares"
    )
    return Part((*_shares(found), *_passes(found)), (note,))


def turns_of(spec: JobSpec, count: int) -> list[Watched]:
    """The first turn warms up and does not count."""
    _, timed = job.timed_sides(spec)
    return [_turn(timed, spec, index) for index in range(count + 1)][1:]


def _turn(timed: Timed, spec: JobSpec, index: int) -> Watched:
    read = timed.prompt[:-1]
    alone = Stopwatch(timed.open_target(read), clock)
    pair = (Stopwatch(timed.open_target(read), clock), Stopwatch(timed.open_draft(read), clock))
    timed.uniforms.prepare(spec.tokens, spec.k)
    decodes = {
        "plain": Decode(timed.plain_steps(alone, plain := timed.texts()), plain),
        "speculative": Decode(timed.speculative_steps(*pair, both := timed.texts()), both),
        "bare": timed.speculative(),
    }
    spent = dict.fromkeys(decodes, 0)
    rounds = 0
    with no_garbage_collection():
        for step, until in enumerate(_stops(spec.tokens)):
            for name in order(tuple(decodes), index + step):
                begun = clock()
                done, _ = decodes[name].advance(until)
                spent[name] += clock() - begun
                rounds += done if name == "speculative" else 0
    return Watched(
        plain_ns=spent["plain"],
        plain_passes_ns=alone.spent,
        tokens=spec.tokens,
        speculative_ns=spent["speculative"],
        target_ns=pair[0].spent,
        draft_ns=pair[1].spent,
        rounds=rounds,
        bare_ns=spent["bare"],
    )


def _stops(tokens: int) -> Iterator[int]:
    yield from range(STRETCH, tokens, STRETCH)
    yield tokens


def _shares(found: dict[JobSpec, list[Watched]]) -> Iterator[Figure]:
    for spec, turns in found.items():
        raw = tuple(asdict(one) for one in turns)
        values = tuple(one.share for one in turns)
        yield Figure(SHARES, _name(spec), values, GOALS.get(spec.draft), "%", raw)


def _passes(found: dict[JobSpec, list[Watched]]) -> Iterator[Figure]:
    for spec, turns in found.items():
        values = tuple(one.target_passes for one in turns)
        yield Figure(ROUNDS, _name(spec), values, PASSES.get(spec.draft))


def _name(spec: JobSpec) -> str:
    return f"{spec.draft} k={spec.k}"

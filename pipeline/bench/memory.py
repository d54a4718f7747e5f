"""One target pass against the time to stream its weights once from memory; eager and compiled.

Streaming is reading every float of a copy of the weights once, by the fastest reader that was found
(a sum), from as many copies as no cache of a usual CPU can hold, so that each comes from memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from pipeline import job
from pipeline.bench import sides, turns
from pipeline.bench.compiled import try_compiled
from pipeline.bench.figures import Figure, Goal, Part
from pipeline.clocks import Timed
from pipeline.rounds import ONE
from pipeline.spec import JobSpec

NAME = "one target pass"
COMPILED = Goal("at most", 0.5)
BUFFER_BYTES = 256 * 2**20
PASSES = 20  # in a row: as in plain decoding


def measure(count: int, tokens: int, buffer_bytes: int = BUFFER_BYTES) -> Part:
    spec = sides.specs("draft=bigram", f"tokens={tokens}")[0]
    bench, timed = job.timed_sides(spec)
    compiled, why_not = try_compiled(spec)
    weights = sum(p.numel() for p in bench.target.parameters())
    copies = max(2, math.ceil(buffer_bytes / (4 * weights)))
    calls: dict[str, Callable[[], object]] = {
        "pass": passes(timed, spec),
        "stream": stream(torch.rand(copies, weights), min(PASSES, copies)),
    }
    if compiled is not None:
        calls["compiled pass"] = passes(compiled, spec)
    found = turns.alternate(calls, count)
    each = min(PASSES, copies) / PASSES  # as many streams as passes
    raw = tuple(turn.row() for turn in found)
    over = tuple(ratio * each for ratio in turns.ratios(found, "pass", "stream"))
    figures = [Figure(NAME, "eager / streaming its weights", over, None, "x", raw)]
    if compiled is not None:
        over = tuple(ratio * each for ratio in turns.ratios(found, "compiled pass", "stream"))
        figures.append(Figure(NAME, "compiled / streaming its weights", over))
        gain = turns.ratios(found, "compiled pass", "pass")
        figures.append(Figure(NAME, "compiled / eager", gain, COMPILED))
    stream_us = np.median([turn.wall_ns["stream"] for turn in found]) / min(PASSES, copies) / 1e3
    note = f"{4 * weights / 1e6:.2f} MB of weights come from memory in {stream_us:.0f} us"
    return Part(tuple(figures), (note, *([why_not] if why_not else [])))


def passes(timed: Timed, spec: JobSpec) -> Callable[[], None]:
    """`PASSES` of plain decoding, one token each, from the middle of a text on."""
    text = sides.write(sides.plain(timed, spec.seed), spec.tokens)
    text = np.concatenate([timed.prompt, text])
    count = min(PASSES, spec.tokens - 1)
    start = max(0, len(timed.prompt) + (spec.tokens - count) // 2 - 1)
    context = timed.open_target(text[:start])
    place = np.array([start])

    def run() -> None:
        context.crop(ONE, place)
        for at in range(start, start + PASSES):
            context.read(ONE, text[None, at : at + 1])

    return run


def stream(copies: torch.Tensor, count: int) -> Callable[[], None]:
    """Read the next `count` of `copies (n, weights)` once, each time going on from the last."""
    at = 0

    def run() -> None:
        nonlocal at
        for _ in range(count):
            copies[at].sum()
            at = (at + 1) % len(copies)

    return run

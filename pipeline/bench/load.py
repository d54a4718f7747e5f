"""`make bench-load`: does a busy machine report the ratio that a quiet one does?

    python -m pipeline.bench.load
    python -m pipeline.bench.load --repeats 5 --drafts int8 --nulls 0

For each draft and design the whole measurement is repeated, first as the machine is and then under
a bursty load on every core; designs take turns. Then, under the load, the baseline is measured
against itself many times: the range of six ratios should miss 1 in 3.1% of them.

A half is the job's text written several times in a row, about a fifth of a second of plain decoding
(`--half-s`), as long as measurements commonly are; a null's halves are one text, as in a sweep.
Spread is the standard deviation of the reported ratios over their median. The exit code is 0
whether the goals are reached or not, 2 for arguments that cannot be.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import psutil
import torch
from rich.table import Table

from pipeline import job
from pipeline.bench import sides
from pipeline.bench.__main__ import about
from pipeline.bench.bursts import bursty_load
from pipeline.bench.designs import DESIGNS, Reported, excludes_1, null
from pipeline.bench.longer import Longer
from pipeline.bench.out import ready
from pipeline.bench.spread import Cell, Nulls, judged
from pipeline.clocks import Timed
from pipeline.lock import alone, machine_lock_path
from pipeline.progress import Phase, Show, clock_face
from pipeline.weights.store import write_json

BAD_INPUT = 2
OUT = Path("outputs/bench-load.json")
SLOWER = 1.8  # about how much longer a decode takes under the load
LOADS = ("quiet", "loaded")
Sides = dict[str, Longer]


def main(arguments: Sequence[str] | None = None, show: Show | None = None) -> int:
    show = show or Show()
    given = _parser().parse_args(arguments)
    if given.quick:
        given.repeats, given.nulls, given.tokens, given.half_s = 2, 2, 24, 0.001
    if wrong := [name for name in ("repeats", "pairs") if getattr(given, name) < 1]:
        print(f"bench: --{wrong[0]}: give 1 or more", file=sys.stderr)
        return BAD_INPUT
    torch.set_num_threads(1)
    try:
        ready(given.out)
        found = sides.specs(f"draft={given.drafts}", f"tokens={given.tokens}")
        texts = {f"{spec.draft} k={spec.k}": job.timed_sides(spec)[1] for spec in found}
    except ValueError as error:
        print(f"bench: {error}", file=sys.stderr)
        return BAD_INPUT
    with alone(given.lock, show.say):
        timed = {name: Longer.of(one, given.half_s) for name, one in texts.items()}
        first = next(iter(texts.values()))
        about_s = estimate_s(timed, given.repeats, given.pairs)
        about_s += nulls_s(first, given.pairs, given.nulls)
        show.say(f"this takes about {clock_face(about_s)}; most of it under a load made on purpose")
        before = psutil.getloadavg()[0]
        cells, nulls = _measure(timed, first, given, show)
    sentences = judged(cells, nulls)
    show.draw(_table(cells))
    for sentence in sentences:
        show.say(sentence)
    halves = {"pairs": given.pairs, "half_s": given.half_s}
    data = {"spread": "standard deviation / median", "cells": [one.to_dict() for one in cells]}
    told = {"nulls": nulls.to_dict() if nulls else None, "sentences": sentences}
    write_json(given.out, {**about(before), **halves, **data, **told})
    show.say(f"written to {given.out}")
    return 0


def estimate_s(timed: Sides, repeats: int, pairs: int) -> float:
    """Seconds of all repeats, after one decode of each side."""
    total = 0.0
    for one in timed.values():
        begun = time.monotonic()
        one.baseline().advance(one.tokens)
        one.speculative().advance(one.tokens)
        pair_s = time.monotonic() - begun
        total += pair_s * (pairs + 0.5) * repeats * len(DESIGNS) * (1 + SLOWER)
    return total


def nulls_s(timed: Timed, pairs: int, nulls: int) -> float:
    """Seconds of the nulls, after one plain decode."""
    begun = time.monotonic()
    timed.baseline().advance(timed.tokens)
    return 2 * (time.monotonic() - begun) * (pairs + 0.5) * nulls * SLOWER


def _measure(
    timed: Sides, first: Timed, given: argparse.Namespace, show: Show
) -> tuple[list[Cell], Nulls | None]:
    """Everything quiet first, then everything under load."""
    cells: list[Cell] = []
    nulls: Nulls | None = None
    each = given.repeats * len(timed)
    with show.live(), ExitStack() as load:
        for state in LOADS:
            if state == "loaded":
                load.enter_context(bursty_load(given.seed))
            with show.phase(state, each) as phase:
                for name, one in timed.items():
                    found = _repeat(one, given, phase, name)
                    cells += [Cell(name, state, way, got) for way, got in found.items()]
        if given.nulls:
            with show.phase("nulls", given.nulls) as phase:
                nulls = Nulls(tuple(_nulls(first, given, phase)))
    return cells, nulls


def _repeat(
    timed: Longer, given: argparse.Namespace, phase: Phase, name: str
) -> dict[str, tuple[Reported, ...]]:
    found: dict[str, list[Reported]] = {way: [] for way in DESIGNS}
    ways = list(DESIGNS)
    for index in range(given.repeats):
        first = index % len(ways)
        for way in (*ways[first:], *ways[:first]):
            found[way].append(DESIGNS[way](timed, given.pairs, index))
        phase.done(name)
    return {way: tuple(rows) for way, rows in found.items()}


def _nulls(timed: Timed, given: argparse.Namespace, phase: Phase) -> Iterator[Reported]:
    for index in range(given.nulls):
        one = null(timed, given.pairs, index)
        phase.done("excludes 1" if excludes_1(one) else "holds 1")
        yield one


def _table(cells: Sequence[Cell]) -> Table:
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("draft", "machine", "design"):
        drawn.add_column(name)
    for name in ("median", "spread", "smallest - largest"):
        drawn.add_column(name, justify="right")
    for one in cells:
        low, high = min(one.ratios), max(one.ratios)
        drawn.add_row(
            *(one.draft, one.load, one.design),
            *(f"{one.median:.3f}", f"{one.spread:.1%}", f"{low:.3f} - {high:.3f}"),
        )
    return drawn


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.bench.load",
        description="spread of the reported ratio, quiet and under a bursty load, by design",
    )
    parser.add_argument("--drafts", default="bigram,int8", help="separated by commas")
    parser.add_argument("--repeats", type=int, default=20, help="of the whole measurement")
    parser.add_argument("--pairs", type=int, default=6, help="halves of each side in a repeat")
    parser.add_argument("--nulls", type=int, default=100, help="baseline against itself, loaded")
    parser.add_argument("--tokens", type=int, default=200, help="length of the text")
    parser.add_argument("--half-s", type=float, default=0.2, help="about so long is a plain half")
    parser.add_argument("--seed", type=int, default=0, help="of the load")
    parser.add_argument("--quick", action="store_true", help="few and short: to see that it runs")
    parser.add_argument("--out", type=Path, default=OUT, help=f"the JSON file, {OUT} by default")
    parser.add_argument("--lock", type=Path, default=machine_lock_path(), help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())

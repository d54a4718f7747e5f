"""`make bench`: the engine in figures, each against its goal; a table, and all of it as JSON.

    python -m pipeline.bench
    python -m pipeline.bench --only outside,memory --out elsewhere.json

No sweep is timed on this machine meanwhile. The exit code is 0 whether goals are reached or not, 2
for arguments that cannot be, 1 where a part failed (what the others found is written).
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch

from pipeline.bench import counting, memory, outside, peer
from pipeline.bench.figures import SCHEMA, Part, summary, table
from pipeline.bench.out import ready
from pipeline.lock import alone, machine_lock_path
from pipeline.progress import Show
from pipeline.weights.store import write_json

BAD_INPUT = 2
OUT = Path("outputs/bench.json")


@dataclass(frozen=True)
class Size:
    """How much is measured; `minutes` is about how long it takes on two cores."""

    turns: int
    tokens: int
    seeds: int
    jobs: int
    draws: int
    buffer_bytes: int
    minutes: float


FULL = Size(7, 200, 32, 12, 20_000, memory.BUFFER_BYTES, 4)
QUICK = Size(2, 24, 4, 2, 200, 2**23, 0.5)


def parts(size: Size) -> Mapping[str, Callable[[], Part]]:
    """The parts by the names that `--only` knows."""
    few = (size.turns + 1) // 2
    return {
        "transformers": lambda: peer.measure(size.turns, size.tokens),
        "outside": lambda: outside.measure(size.turns, f"tokens={size.tokens}"),
        "memory": lambda: memory.measure(4 * size.turns, size.tokens, size.buffer_bytes),
        "counting": lambda: counting.measure(few, size.tokens, size.seeds),
        "workers": lambda: counting.workers(max(2, few // 2), size.jobs, size.draws),
    }


def main(arguments: Sequence[str] | None = None, show: Show | None = None) -> int:
    show = show or Show()
    given = _parser().parse_args(arguments)
    size = QUICK if given.quick else FULL
    known = parts(size)
    chosen = list(known) if given.only is None else given.only.split(",")
    if strange := [name for name in chosen if name not in known]:
        print(f"bench: --only {strange[0]}: the parts are {', '.join(known)}", file=sys.stderr)
        return BAD_INPUT
    try:
        ready(given.out)
    except ValueError as error:
        print(f"bench: {error}", file=sys.stderr)
        return BAD_INPUT
    before, threads = psutil.getloadavg()[0], torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with alone(given.lock, show.say):
            show.say(f"measuring, about {size.minutes:g} minutes: {', '.join(chosen)}")
            found, failed = _run({name: known[name] for name in chosen}, show)
    finally:
        torch.set_num_threads(threads)
    figures = [figure for part in found for figure in part.figures]
    notes = list(dict.fromkeys(note for part in found for note in part.notes))  # each once
    show.draw(table(figures))
    for note in notes:
        show.say(note)
    show.say(f"{summary(figures)}; load {before:.1f} before and {psutil.getloadavg()[0]:.1f} after")
    data = {"figures": [figure.to_dict() for figure in figures], "notes": notes}
    write_json(given.out, {**about(before), **data, "failed": failed})
    show.say(f"written to {given.out}")
    return int(bool(failed))


def _run(chosen: Mapping[str, Callable[[], Part]], show: Show) -> tuple[list[Part], list[str]]:
    """What each part found; one that fails costs no other its figures."""
    found, failed = [], []
    with show.live(), show.phase("bench", len(chosen)) as phase:
        for name, call in chosen.items():
            phase.running([name])
            trouble = ""
            try:
                found.append(call())
            except (ValueError, RuntimeError, OSError) as error:
                trouble = f"{type(error).__name__}: {error}"
                failed.append(f"{name} failed: {trouble}")
            phase.done(name, trouble)
    return found, failed


def about(load_before: float) -> dict[str, Any]:
    """When and on what this was measured."""
    return {
        "schema": SCHEMA,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": psutil.cpu_count(logical=False) or psutil.cpu_count(),
        "threads": 1,
        "load_before": load_before,
        "load_after": psutil.getloadavg()[0],
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.bench", description="the engine in figures, each against its goal"
    )
    parser.add_argument("--only", metavar="PARTS", help="parts of it, separated by commas")
    parser.add_argument("--quick", action="store_true", help="few and short: to see that it runs")
    parser.add_argument("--out", type=Path, default=OUT, help=f"the JSON file, {OUT} by default")
    parser.add_argument("--lock", type=Path, default=machine_lock_path(), help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())

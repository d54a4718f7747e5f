"""Which layers should layerskip skip? `python -m pipeline.choose_layers [--text FILE]`.

Every list of layers is tried on text the target was not trained on, and judged by alpha, the mean
of Σ min(p, q): the acceptance that a draft of one character would have. Lists of equal length cost
the same, so the best of each length is named. Without a file the text is Shakespeare's, its
held-out plays.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pipeline import corpus
from pipeline.drafts.layerskip import without
from pipeline.model import CharTransformer
from pipeline.sampling import Floats, Sampling
from pipeline.weights import load_target

CHARACTERS = 20_000
BATCH = 16  # windows a pass


@dataclass(frozen=True)
class Choice:
    """A list of skipped layers and the alpha of the draft without them."""

    skip: tuple[int, ...]
    alpha: float


def choices(target: CharTransformer, text: Tensor) -> list[Choice]:
    """Every list of skipped layers but none and all, with its alpha on the ids `text (T,)`."""
    layers = target.cfg.layers
    lists = [skip for count in range(1, layers) for skip in combinations(range(layers), count)]
    drafts = [without(target, skip) for skip in lists]
    sums, places = np.zeros(len(lists)), 0
    for batch in _windows(text, target.cfg.context):
        p = _rows(target, batch)
        places += p.shape[0] * p.shape[1]
        sums += [np.minimum(p, _rows(draft, batch)).sum() for draft in drafts]
    return [Choice(skip, float(total) / places) for skip, total in zip(lists, sums, strict=True)]


def best(found: Sequence[Choice]) -> list[Choice]:
    """The one with the highest alpha among the lists of each length; of equal ones the first."""
    lengths = sorted({len(one.skip) for one in found})
    return [max((c for c in found if len(c.skip) == n), key=lambda c: c.alpha) for n in lengths]


def _windows(text: Tensor, length: int) -> Iterator[Tensor]:
    """Stretches of the text side by side `(B, length)`; what is left at its end goes unread."""
    length = min(length, len(text))
    whole = text[: len(text) // length * length].view(-1, length)
    yield from whole.split(BATCH)


@torch.inference_mode()
def _rows(model: CharTransformer, ids: Tensor) -> Floats:
    return Sampling().rows(model(ids).numpy())


def report(found: Sequence[Choice], layers: int) -> str:
    """All lists, the best alpha first, and one sentence a length that says what to set."""
    lines = ["skip        layers run  alpha"]
    for one in sorted(found, key=lambda c: -c.alpha):
        lines.append(f"{_listed(one.skip):<12}{layers - len(one.skip):<12}{one.alpha:.4f}")
    for one in best(found):
        count = len(one.skip)
        lines.append(
            f"with {count} of {layers} layers skipped the best is draft.skip={_listed(one.skip)}, "
            f"alpha {one.alpha:.4f}"
        )
    return "\n".join(lines)


def _listed(skip: Sequence[int]) -> str:
    return f"[{','.join(map(str, skip))}]"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0 done, 2 bad input."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.choose_layers", description=__doc__)
    parser.add_argument("--weights", default="shipped", help="a weights folder (%(default)s)")
    parser.add_argument("--text", type=Path, metavar="FILE", help="any UTF-8 text, read whole")
    parser.add_argument("--characters", type=int, default=CHARACTERS, help="at most (%(default)s)")
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="where the corpus goes")
    args = parser.parse_args(argv)
    try:
        name, ids, target = _inputs(args)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{len(ids)} characters of {name}")
    print(report(choices(target, ids), target.cfg.layers))
    return 0


def _inputs(args: argparse.Namespace) -> tuple[str, Tensor, CharTransformer]:
    if args.characters < 2:
        raise ValueError(f"--characters is {args.characters}: it has to be at least 2")
    target, vocabulary, _ = load_target(args.weights)
    if target.cfg.layers < 2:
        raise ValueError("the target has one layer: there is none to skip")
    if args.text is None:
        held = corpus.shakespeare(args.cache)
        name, text = f"{held.name} ({', '.join(held.held_out)})", held.held
    else:
        given = corpus.from_file(args.text, least=1)
        name, text = given.name, given.train + given.held
    ids = vocabulary.encode(text[: args.characters])
    return name, torch.from_numpy(ids), target


if __name__ == "__main__":
    sys.exit(main())

"""Fit what a weights folder holds: `python -m pipeline.train [--corpus FILE] [--out DIR]`.

Without a file the text is Shakespeare's works, two plays of which are held out. A training that was
stopped goes on where it was, and parts that are finished already are left as they are.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from pipeline import corpus
from pipeline.fitting import Recipe, Say
from pipeline.learned import (
    CONTEXT,
    HEADS,
    small_config,
    target_config,
    train_heads,
    train_model,
)
from pipeline.parts import Bench, count_table
from pipeline.text import Vocabulary
from pipeline.weights import read_card
from pipeline.weights.ngram import ORDERS

PARTS = ("target", *ORDERS, "small", "heads")
STEPS = 9000


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m pipeline.train", description=__doc__)
    parser.add_argument("--corpus", type=Path, metavar="FILE", help="any UTF-8 text")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: weights/<name of text>")
    parser.add_argument("--steps", type=int, default=STEPS, help="training steps (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed (%(default)s)")
    parser.add_argument("--threads", type=int, help="default: as torch chooses")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="where the corpus goes")
    return parser.parse_args(argv)


def train(args: argparse.Namespace, say: Say) -> Path:
    """Make the parts that were asked for and return their folder.

    ValueError, in one sentence, for a text or a setting that cannot work.
    """
    for name, least in (("steps", 1), ("seed", 0), ("threads", 1)):
        value = getattr(args, name)
        if value is not None and value < least:
            raise ValueError(f"--{name} is {value}: it has to be at least {least}")
    if args.threads is not None:
        torch.set_num_threads(args.threads)
    if args.corpus is not None:
        text = corpus.from_file(args.corpus, least=CONTEXT + 1)
    else:
        text = corpus.shakespeare(args.cache)
    vocabulary = Vocabulary.of(text.train + text.held)
    bench = Bench(text, vocabulary, args.out or Path("weights") / text.name, say)
    say(f"{text.name}: {len(text.train)} characters, {len(vocabulary)} different, into {bench.out}")
    recipe = Recipe(steps=args.steps, length=CONTEXT, seed=args.seed)
    configs = {"target": target_config, "small": small_config}
    for kind in args.parts:
        if kind in ORDERS:
            count_table(bench, kind)
        elif kind == "heads":
            train_heads(bench, HEADS, recipe)
        else:
            train_model(bench, kind, configs[kind](len(vocabulary)), recipe)
    return bench.out


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0 done, 2 bad input, 130 stopped by the user."""
    args = arguments(argv)

    def say(line: str) -> None:
        print(line, flush=True)

    try:
        out = train(args, say)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped: the same command goes on from here", file=sys.stderr)
        return 130
    card = read_card(out, args.parts[0])
    shown = {name: value for name, value in card.items() if name != "vocabulary"}
    say(json.dumps(shown, indent=2))
    say(f"use it: make sweep ARGS=target.weights={out.as_posix()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

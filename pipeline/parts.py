"""What every part of a weights folder is made from; and the tables, which are only counted."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pipeline.corpus import Corpus
from pipeline.fitting import Say
from pipeline.text import Vocabulary
from pipeline.weights import NgramTable, save_table
from pipeline.weights.ngram import ORDERS
from pipeline.weights.store import read_part

STRENGTH = 30.0
"""How many characters' worth of evidence a table's shorter context counts for."""


@dataclass(frozen=True)
class Bench:
    """What all parts are made from, and where they go."""

    corpus: Corpus
    vocabulary: Vocabulary
    out: Path
    say: Say

    def ids(self, text: str) -> Tensor:
        return torch.from_numpy(self.vocabulary.encode(text))

    def card(self, made_from: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
        versions = {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        }
        finished = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return {**made_from, "result": {**result, "finished": finished}, "versions": versions}

    def has(self, kind: str, made_from: dict[str, Any]) -> bool:
        """Is there such a part already, whole and made from the same text in the same way?"""
        try:
            _, card = read_part(self.out, kind)
        except ValueError:
            return False
        return all(card.get(name) == value for name, value in made_from.items())


def count_table(bench: Bench, kind: str) -> None:
    """Count the part `kind` on the training text. A text too rich for it goes without."""
    made_from = {"corpus": bench.corpus.card(), "strength": STRENGTH, "order": ORDERS[kind]}
    if bench.has(kind, made_from):
        bench.say(f"{kind}: already counted in {bench.out / kind}")
        return
    ids, vocab = bench.ids(bench.corpus.train).numpy(), len(bench.vocabulary)
    try:
        table = NgramTable.of(ids, vocab, ORDERS[kind], STRENGTH)
    except ValueError as error:
        bench.say(f"{kind}: left out, {error}")
        return
    held = bench.ids(bench.corpus.held).numpy()
    runs = np.lib.stride_tricks.sliding_window_view(held, table.order)
    loss = float(-np.log(table.rows()[tuple(runs.T)]).mean())
    card = bench.card(made_from, {"loss": round(loss, 4)})
    save_table(bench.out, kind, table, bench.vocabulary, card)
    bench.say(f"{kind}: {loss:.4f} nats a character on held-out text")

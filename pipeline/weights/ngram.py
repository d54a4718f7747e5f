"""Tables over the previous characters, counted on the training text: `bigram`, `trigram`.

Counts are shipped as whole numbers, only those above zero; rows are built on loading. A row backs
off to the next shorter context as a Dirichlet prior (MacKay & Peto 1995): with c the counts after
context a, n their sum and s the strength,

    P(x | a) = (c(x) + s P(x | a without its first)) / (n + s),    P(x) = (c(x) + 1) / (N + V).

So no row has a zero, and a context that was never seen reads as the shorter one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.text import Vocabulary
from pipeline.weights.models import same_vocabulary
from pipeline.weights.store import read_part, save_part

ORDERS: Mapping[str, int] = {"bigram": 2, "trigram": 3}
"""Characters that a table looks at, the one it proposes included."""

MOST_CELLS = 1 << 25
"""A table with more cells than this (256 MiB of float64) is refused."""


@dataclass(frozen=True)
class NgramTable:
    """How often each run of `order` characters occurs: keys `(N, order)`, counts `(N,)`."""

    vocab: int
    keys: NDArray[np.int64]
    counts: NDArray[np.int64]
    strength: float

    @property
    def order(self) -> int:
        return int(self.keys.shape[1])

    @classmethod
    def of(cls, ids: NDArray[np.int64], vocab: int, order: int, strength: float) -> NgramTable:
        """Count the text `ids (T,)`. ValueError for a vocabulary too large for the order."""
        _fits(vocab, order)
        windows = np.lib.stride_tricks.sliding_window_view(ids, order)
        codes = np.ravel_multi_index(tuple(windows.T), (vocab,) * order)
        seen, counts = np.unique(codes, return_counts=True)
        keys = np.stack(np.unravel_index(seen, (vocab,) * order), axis=1)
        return cls(vocab, keys.astype(np.int64), counts.astype(np.int64), strength)

    def cells(self) -> NDArray[np.int64]:
        """Counts as an array `(V,) * order`, the proposed character last."""
        full = np.zeros((self.vocab,) * self.order, np.int64)
        full[tuple(self.keys.T)] = self.counts
        return full

    def rows(self) -> NDArray[np.float64]:
        """P(x | context), `(V,) * order`, x last: `rows[a]` or `rows[a, b]` is a row `(V,)`."""
        levels = [self.cells()]
        while levels[0].ndim > 1:
            levels.insert(0, levels[0].sum(axis=0))
        table: NDArray[np.float64] = (levels[0] + 1.0) / (levels[0].sum() + self.vocab)
        for counts in levels[1:]:
            total = counts.sum(axis=-1, keepdims=True)
            table = (counts + self.strength * table) / (total + self.strength)
        return table


def _fits(vocab: int, order: int) -> None:
    if vocab**order > MOST_CELLS:
        raise ValueError(
            f"a text of {vocab} different characters is too rich for a table over {order} of them: "
            "use a text with fewer, or a draft that needs no such table"
        )


def save_table(
    where: Path, kind: str, table: NgramTable, vocabulary: Vocabulary, card: dict[str, Any]
) -> dict[str, Any]:
    """Write `where/kind` and return its card."""
    described = {
        "vocabulary": vocabulary.chars,
        "order": table.order,
        "strength": table.strength,
        "runs": len(table.counts),
        **card,
    }
    tensors = {
        "keys": torch.from_numpy(table.keys.astype(np.int32)),
        "counts": torch.from_numpy(table.counts.astype(np.int32)),
    }
    return save_part(where, kind, tensors, described)


def load_table(where: str | Path, kind: str, vocabulary: Vocabulary) -> NgramTable:
    """The table `kind` of a weights folder, for the characters of the target.

    ValueError, in one sentence, for a part that is missing, damaged, foreign or of other letters.
    """
    tensors, card = read_part(where, kind)
    chars = card.get("vocabulary")
    same_vocabulary(where, kind, chars if isinstance(chars, str) else "", vocabulary)
    vocab, order = len(vocabulary), ORDERS.get(kind, 0)
    keys, counts = tensors.get("keys"), tensors.get("counts")
    if keys is None or counts is None or keys.shape != (counts.numel(), order):
        raise ValueError(f"{kind} in {str(where)!r} is not such a table: make it with `make train`")
    if keys.numel() and not 0 <= int(keys.min()) <= int(keys.max()) < vocab:
        raise ValueError(f"{kind} in {str(where)!r} counts unknown characters: train it again")
    _fits(vocab, order)
    as_int = [tensor.numpy().astype(np.int64) for tensor in (keys, counts)]
    return NgramTable(vocab, as_int[0], as_int[1], float(card["strength"]))

"""bigram: the next character guessed from the previous one alone, a table looked up."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.context import Context, Ints, Logits


class BigramDraft:
    """A table of next-character probabilities, counted on the training text."""

    keeps = "one table of characters by characters, and no state at all between tokens"

    def __init__(self, rows: NDArray[np.float64]) -> None:
        """`rows (V, V)`: the law of the next character after each; no entry may be zero, so that
        every logit is finite."""
        self._log = np.log(rows)

    def open(
        self, prompt: NDArray[np.int64], capacity: int, lanes: int | None, dtype: torch.dtype
    ) -> Context:
        return TableTexts(self._log, len(prompt), lanes or 1)

    def weight_bytes(self) -> int:
        return self._log.size * 4  # as float32


class TableTexts:
    """Texts as a bigram reads them: only their lengths matter, a row is looked up by token."""

    def __init__(self, log_rows: NDArray[np.float64], length: int, lanes: int) -> None:
        self._log = log_rows
        self.lengths = np.full(lanes, length, np.int64)

    def read(self, lanes: Ints, tokens: Ints) -> Logits:
        self.lengths[lanes] += tokens.shape[1]
        return self._log[tokens]

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        self.lengths[lanes] = lengths

    def cache_bytes(self) -> int:
        return 0

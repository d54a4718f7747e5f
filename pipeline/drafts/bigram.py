"""bigram: the next character guessed from the previous one alone, a table looked up."""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.context import Context, Drafted, Ints, Logits
from pipeline.drafts.base import Draft
from pipeline.sampling import Floats, Sampling
from pipeline.tree_cache import Parents


class BigramDraft(Draft):
    """A table of next-character probabilities, counted on the training text."""

    keeps = "one table of characters by characters, ready to be drawn from; nothing of a text"

    def __init__(self, rows: NDArray[np.float64]) -> None:
        """`rows (V, V)`: the law of the next character after each; no entry may be zero, so that
        every logit is finite."""
        self._log = np.log(rows)
        self._warped: dict[Sampling, Warped] = {}

    def open(
        self, prompt: NDArray[np.int64], capacity: int, lanes: int | None, dtype: torch.dtype
    ) -> Context:
        return TableTexts(self._log, self._warped, len(prompt), lanes or 1)

    def weight_bytes(self) -> int:
        return self._log.size * 4  # as float32


class Warped:
    """The whole table after temperature, top-k, top-p, and its cumulative sums."""

    def __init__(self, sampling: Sampling, log_rows: NDArray[np.float64]) -> None:
        self.rows = sampling.rows(log_rows)
        self._edges = self.rows.cumsum(axis=-1).tolist()

    def draw(self, after: int, u: float) -> int:
        """As `sampling.draw`, on numbers instead of arrays of one."""
        edges = self._edges[after]
        level = u * edges[-1]
        if level >= edges[-1]:
            level = math.nextafter(edges[-1], 0)
        return bisect_right(edges, level)


class TableTexts(Context):
    """Texts as a bigram reads them: only their lengths matter, a row is looked up by token."""

    def __init__(
        self,
        log_rows: NDArray[np.float64],
        warped: dict[Sampling, Warped],
        length: int,
        lanes: int,
    ) -> None:
        self._log, self._warped = log_rows, warped
        self.lengths = np.full(lanes, length, np.int64)

    def read(self, lanes: Ints, tokens: Ints) -> Logits:
        self.lengths[lanes] += tokens.shape[1]
        return self._log[tokens]

    def chain(self, lanes: Ints, tokens: Ints, u: Floats, sampling: Sampling) -> Drafted | None:
        warped = self._warped.get(sampling)
        if warped is None:
            warped = self._warped[sampling] = Warped(sampling, self._log)
        ids = [int(tokens[0, -1])]
        for one in u[0].tolist():
            ids.append(warped.draw(ids[-1], one))
        self.lengths[lanes] += tokens.shape[1] + len(ids) - 2
        return np.array([ids[1:]]), warped.rows[ids[:-1]][None]

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        self.lengths[lanes] = lengths

    def read_tree(self, lanes: Ints, tokens: Ints, parents: Parents) -> Logits:
        return self._log[tokens]

    def gather(self, lanes: Ints, nodes: Ints, counts: Ints) -> None:
        self.lengths[lanes] += counts

    def cache_bytes(self) -> int:
        return 0

    def extra_bytes(self) -> int:
        """The table as it is drawn from and its cumulative sums, once it was drawn from."""
        return 2 * 8 * self._log.size if self._warped else 0

"""trigram and its like: the next character looked up by the few before it, in a table.

The table is counted on the training text; its rows back off to shorter contexts (see
`pipeline.weights.ngram`), so that a pair of characters never seen there reads as the bigram.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.context import Context, Drafted, Ints, Logits
from pipeline.drafts.base import Draft
from pipeline.sampling import Floats, Sampling
from pipeline.tree_cache import Parents, generations
from pipeline.weights import NgramTable


class TableDraft(Draft):
    """A table over `order` characters, and the shorter ones in it for the first of a text."""

    keeps = "one table over runs of characters, and of a text only its last characters"

    def __init__(self, table: NgramTable) -> None:
        self._levels: list[NDArray[np.float64]] = []
        self._warped: dict[Sampling, Warped] = {}
        while table.order > 1:
            self._levels.insert(0, np.log(table.rows()))
            table = shorter(table)

    def open(
        self, prompt: NDArray[np.int64], capacity: int, lanes: int | None, dtype: torch.dtype
    ) -> Context:
        return WindowTexts(self._levels, self._warped, prompt, capacity, lanes or 1)

    def weight_bytes(self) -> int:
        return 4 * sum(level.size for level in self._levels)  # as float32


def shorter(table: NgramTable) -> NgramTable:
    """The table over one character less: every run without its first."""
    cells = table.cells().sum(axis=0)
    keys = np.argwhere(cells).astype(np.int64)
    return NgramTable(table.vocab, keys, cells[tuple(keys.T)], table.strength)


class Warped:
    """Rows after temperature, top-k, top-p, and their sums; kept once they were asked for."""

    def __init__(self, sampling: Sampling, levels: Sequence[NDArray[np.float64]]) -> None:
        self._sampling, self._levels = sampling, levels
        self._found: dict[tuple[int, ...], tuple[Floats, Floats]] = {}

    def after(self, window: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Row and cumulative sums `(V,)` after the last characters `window`."""
        found = self._found.get(window)
        if found is None:
            row = self._sampling.rows(self._levels[len(window) - 1][window])
            found = self._found[window] = row, row.cumsum()
        return found


class WindowTexts(Context):
    """Texts as such a table reads them: a row is looked up by the last characters.

    `levels[n]`, `(V,) * (n + 2)`, is the log of the table that looks at n + 1 characters.
    """

    def __init__(
        self,
        levels: Sequence[NDArray[np.float64]],
        warped: dict[Sampling, Warped],
        prompt: Ints,
        capacity: int,
        lanes: int,
    ) -> None:
        self._levels, self._warped = levels, warped
        self._asked: set[tuple[int, ...]] = set()  # windows whose rows are kept
        self._ids = np.zeros((lanes, max(capacity, len(prompt))), np.int64)
        self._ids[:, : len(prompt)] = prompt
        self._tree: Ints | None = None  # (b, n) tokens of the trees read last
        self._parents: Parents = ()
        self.lengths = np.full(lanes, len(prompt), np.int64)

    def read(self, lanes: Ints, tokens: Ints) -> Logits:
        return np.stack([self._step(lanes, column) for column in tokens.T], axis=1)

    def _step(self, lanes: Ints, tokens: Ints) -> Logits:
        at = self.lengths[lanes]
        self._ids[lanes, at] = tokens
        self.lengths[lanes] += 1
        return self._look_up(self._window(lanes), at + 1)

    def chain(self, lanes: Ints, tokens: Ints, u: Floats, sampling: Sampling) -> Drafted | None:
        warped = self._warped.get(sampling)
        if warped is None:
            warped = self._warped[sampling] = Warped(sampling, self._levels)
        lane, longest, count = int(lanes[0]), len(self._levels), u.shape[1]
        at = int(self.lengths[lane]) + tokens.shape[1]
        self._ids[lane, at - tokens.shape[1] : at] = tokens[0]
        self.lengths[lane] = at + count - 1
        last = self._ids[lane, max(0, at - longest) : at].tolist()
        rows = np.empty((1, count, self._levels[0].shape[-1]))
        for i, one in enumerate(u[0].tolist()):
            window = tuple(last[-longest:])
            self._asked.add(window)
            rows[0, i], edges = warped.after(window)
            level = min(one * edges[-1], np.nextafter(edges[-1], 0))  # as `sampling.draw`
            last.append(int(edges.searchsorted(level, side="right")))
        drafted = np.array([last[-count:]])
        self._ids[lane, at : at + count - 1] = drafted[0, :-1]
        return drafted, rows

    def _window(self, lanes: Ints) -> Ints:
        """The last characters `(b, len(levels))`; what is before the first one does not count."""
        back = np.arange(len(self._levels), 0, -1)
        return self._ids[lanes[:, None], np.maximum(self.lengths[lanes][:, None] - back, 0)]

    def _look_up(self, window: Ints, seen: Ints) -> Logits:
        """Rows `(b, ..., V)` after `window (b, ..., len(levels))`, of texts of `seen (b,)`."""
        out = np.empty((*window.shape[:-1], self._levels[0].shape[-1]))
        seen = np.minimum(seen, len(self._levels))
        for count in np.unique(seen).tolist():
            here = np.flatnonzero(seen == count)
            last = window[here][..., len(self._levels) - count :]
            out[here] = self._levels[count - 1][tuple(np.moveaxis(last, -1, 0))]
        return out

    def read_tree(self, lanes: Ints, tokens: Ints, parents: Parents) -> Logits:
        before = np.zeros((len(lanes), 0), np.int64) if self._tree is None else self._tree
        self._tree = np.concatenate([before, tokens], axis=1)
        self._parents += parents
        out = np.empty((*tokens.shape, self._levels[0].shape[-1]))
        text = self._window(lanes)
        for new, lines in generations(self._parents, len(parents)):
            path = self._tree[:, np.concatenate([lines, new[:, None]], axis=1)]  # (b, w, d + 1)
            tail = np.repeat(text[:, None], len(new), axis=1)
            window = np.concatenate([tail, path], axis=2)[..., path.shape[2] :]
            seen = self.lengths[lanes] + path.shape[2]
            out[:, new - before.shape[1]] = self._look_up(window, seen)
        return out

    def gather(self, lanes: Ints, nodes: Ints, counts: Ints) -> None:
        for column in range(int(counts.max())):
            here = np.flatnonzero(counts > column)
            assert self._tree is not None, "a path can only be kept of a tree that was read"
            at = self.lengths[lanes[here]] + column
            self._ids[lanes[here], at] = self._tree[here, nodes[here, column]]
        self.lengths[lanes] += counts
        self._tree, self._parents = None, ()

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        self.lengths[lanes] = lengths
        self._tree, self._parents = None, ()

    def cache_bytes(self) -> int:
        return 0

    def extra_bytes(self) -> int:
        """The last ids of a text, and the rows that were kept with their sums."""
        return 8 * (len(self._levels) + 2 * self._levels[0].shape[-1] * len(self._asked))

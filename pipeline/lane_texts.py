"""A transformer reading a few long continuations of one prompt, side by side.

`ManyTexts` serves many short ones: it computes each distinct prefix once. Long texts soon have no
prefix in common, and then a lane with a cache of its own is several times as fast.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pipeline.cache import KVCache
from pipeline.context import Context, Ints, Logits
from pipeline.lane_cache import LaneCache
from pipeline.model import CharTransformer, hidden_states, unembed
from pipeline.tree_cache import Parents


class LaneTexts(Context):
    """B texts of up to `capacity` tokens, the prompt included."""

    def __init__(self, model: CharTransformer, prompt: Ints, lanes: int, capacity: int) -> None:
        self._weights = model.weights()
        before = KVCache(model.cfg, max(len(prompt), 1), model.dtype)
        self._before = torch.zeros(1, model.cfg.width, dtype=model.dtype)  # the prompt's last state
        if len(prompt):
            with torch.inference_mode():
                self._before = model.hidden(torch.from_numpy(prompt[None]), before)[0, -1:]
        self._cache = LaneCache(model.cfg, before, lanes, capacity)
        self._base, self._capacity = len(prompt), capacity
        self._tree: Parents = ()
        self._states: Tensor | None = None  # (B, capacity + 1, C) once they are asked for
        self._tree_states: list[Tensor] = []  # (b, T, C) of each read of the tree
        self.lengths = np.full(lanes, len(prompt), np.int64)

    def read(self, lanes: Ints, tokens: Ints) -> Logits:
        count = tokens.shape[1]
        self._tree = tuple(range(-1, count - 1))
        hidden, logits = self._pass(lanes, tokens)
        if self._states is not None:
            places = self.lengths[lanes][:, None] + 1 + np.arange(count)
            self._states[lanes[:, None], places] = hidden
        self.lengths[lanes] += count
        self._forget_tree()
        return logits

    @torch.inference_mode()
    def _pass(self, lanes: Ints, tokens: Ints) -> tuple[Tensor, Logits]:
        """States `(b, T, C)` and logits `(b, T, V)` of the tree's last T nodes."""
        self._cache.select(lanes, self.lengths[lanes], self._tree, tokens.shape[1])
        hidden = hidden_states(self._weights, torch.from_numpy(tokens), self._cache)
        logits: Logits = unembed(self._weights, hidden).numpy()
        return hidden.view(*tokens.shape, -1), logits.reshape(*tokens.shape, -1)

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        if (lengths > self.lengths[lanes]).any() or (lengths < self._base).any():
            raise ValueError("a crop must keep the prompt and cannot lengthen a text")
        self.lengths[lanes] = lengths
        self._forget_tree()

    def _forget_tree(self) -> None:
        self._tree, self._tree_states = (), []

    def keep_states(self) -> None:
        """Store last hidden states too, from now on; before the first read."""
        assert (self.lengths == self._base).all(), "states are kept from the first read on"
        self._states = self._before.new_zeros(
            len(self.lengths), self._capacity + 1, self._before.shape[1]
        )
        self._states[:, self._base] = self._before

    def states(self, lanes: Ints, count: int) -> Tensor:
        """Last hidden states `(b, count, C)` of the last `count` tokens; zeros before any."""
        assert self._states is not None, "call keep_states first"
        places = self.lengths[lanes][:, None] - np.arange(count - 1, -1, -1)
        return self._states[lanes[:, None], np.maximum(places, 0)]

    def reserve(self, nodes: int) -> None:
        self._cache.reserve(nodes)

    def read_tree(self, lanes: Ints, tokens: Ints, parents: Parents) -> Logits:
        self._tree += parents
        hidden, logits = self._pass(lanes, tokens)
        self._tree_states.append(hidden)
        return logits

    def gather(self, lanes: Ints, nodes: Ints, counts: Ints) -> None:
        """A node stands no nearer to the text's end than it is deep: nothing kept is overwritten"""
        start = self.lengths[lanes]
        states = torch.cat(self._tree_states, dim=1) if self._states is not None else None
        for column in range(int(counts.max())):
            here = np.flatnonzero(counts > column)
            node, at = nodes[here, column], start[here] + column
            self._cache.move(lanes[here], start[here] + node, at)
            if self._states is not None and states is not None:
                self._states[lanes[here], at + 1] = states[here, node]
        self.lengths[lanes] += counts
        self._forget_tree()

    def cache_bytes(self) -> int:
        raise TypeError("memory is counted on one text, not on texts side by side")

"""A transformer reading one text, as it is timed: a plain KV cache, one forward pass a read."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pipeline.cache import KVCache
from pipeline.context import Context, Ints, Logits
from pipeline.model import CharTransformer, hidden_states, unembed
from pipeline.tree_cache import Parents


class OneText(Context):
    """A transformer reading one text: one forward pass a read."""

    def __init__(self, model: CharTransformer, prompt: Ints, capacity: int) -> None:
        self._weights = model.weights()
        self._cache = KVCache(model.cfg, capacity, model.dtype)
        self._peak = 0
        self._states = torch.zeros(0, model.cfg.width, dtype=model.dtype)
        self._read_from = 0
        self.lengths = np.zeros(1, np.int64)
        if len(prompt):
            self.read(self.lengths, prompt[None])

    @torch.inference_mode()
    def read(self, lanes: Ints, tokens: Ints) -> Logits:
        self._read_from = self._cache.length
        self._states = hidden_states(self._weights, torch.from_numpy(tokens), self._cache)
        self.lengths[0] = length = self._cache.length
        self._peak = max(self._peak, length)
        logits: Logits = unembed(self._weights, self._states).numpy()
        return logits[None]

    def reserve(self, nodes: int) -> None:
        self._cache.reserve(nodes)

    @torch.inference_mode()
    def read_tree(self, lanes: Ints, tokens: Ints, parents: Parents) -> Logits:
        self._cache.branch(parents)
        self._states = hidden_states(self._weights, torch.from_numpy(tokens), self._cache)
        self._peak = max(self._peak, self._cache.stored_tokens)
        logits: Logits = unembed(self._weights, self._states).numpy()
        return logits[None]

    def gather(self, lanes: Ints, nodes: Ints, counts: Ints) -> None:
        """Their states are kept if one read had the whole tree."""
        path = nodes[0, : counts[0]].tolist()
        whole = len(self._states) == self._cache.stored_tokens - self._cache.length
        self._states = self._states[path] if whole else self._states[:0]
        self._read_from = self._cache.length + len(path) - len(self._states)
        self._cache.gather(path)
        self.lengths[0] = self._cache.length

    @property
    def cache(self) -> KVCache:
        return self._cache

    def states(self, lanes: Ints, count: int) -> Tensor:
        """Last hidden states `(1, count, C)` of the last `count` tokens; zeros before any.

        Only the newest read's are there. ValueError for older ones.
        """
        end = int(self.lengths[0]) - self._read_from
        if self.lengths[0] == 0:
            return self._states.new_zeros(1, count, self._states.shape[1])
        if end < count:
            raise ValueError(f"the states of {count} tokens are gone: {end} were read last")
        return self._states[None, end - count : end]

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        self._cache.crop(int(lengths[0]))
        self.lengths[0] = self._cache.length

    def cache_bytes(self) -> int:
        return self._cache.nbytes(self._peak)

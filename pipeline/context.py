"""A model reading texts: what decoding asks of target and draft alike.

A `Context` holds B texts (lanes), each cut to what is committed. `read` appends tokens and returns
the logits after each; `crop` takes tokens back. One text has a plain KV cache and one forward pass
a read; many texts share the rows of equal prefixes, so that 20,000 draws cost a few hundred rows.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.cache import KVCache, TrieCache
from pipeline.model import CharTransformer

Ints = NDArray[np.int64]
Logits = NDArray[Any]  # float32 or float64, as the model computes
CHUNK = 2048  # nodes a forward pass: bounds the gathered ancestors' memory


class Context(Protocol):
    """B texts as a model has read them."""

    lengths: Ints  # (B,) tokens read and kept, a lane each

    def read(self, lanes: Ints, tokens: Ints) -> Logits:
        """Append `tokens (b, T)` to `lanes (b,)`; logits `(b, T, V)` after each of them."""
        ...

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        """Cut `lanes (b,)` to `lengths (b,)`; never longer than they are."""
        ...

    def cache_bytes(self) -> int:
        """Bytes of cache in float32 at the fullest moment so far; for one text."""
        ...


def open_texts(
    model: CharTransformer, prompt: Ints, capacity: int, lanes: int | None
) -> OneText | ManyTexts:
    """`model` having read `prompt (T,)`, ready for texts of up to `capacity` tokens.

    `lanes=None` is one text, as it is timed; a number opens that many continuations of the prompt.
    A text that outgrows the model's context is a ValueError at the read that would do it.
    """
    capacity = min(capacity, model.cfg.context)
    if lanes is None:
        return OneText(model, prompt, capacity)
    return ManyTexts(model, prompt, lanes, capacity)


class OneText:
    """A transformer reading one text: one forward pass a read."""

    def __init__(self, model: CharTransformer, prompt: Ints, capacity: int) -> None:
        self._model = model
        self._cache = KVCache(model.cfg, capacity, model.dtype)
        self._peak = 0
        self.lengths = np.zeros(1, np.int64)
        if len(prompt):
            self.read(self.lengths, prompt[None])

    @torch.inference_mode()
    def read(self, lanes: Ints, tokens: Ints) -> Logits:
        logits = self._model(torch.from_numpy(tokens), self._cache)
        self.lengths[0] = self._cache.length
        self._peak = max(self._peak, self._cache.length)
        return logits.numpy()

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        self._cache.crop(int(lengths[0]))
        self.lengths[0] = self._cache.length

    def cache_bytes(self) -> int:
        return self._cache.nbytes(self._peak)


class ManyTexts:
    """A transformer reading many continuations of one prompt, each distinct prefix once."""

    def __init__(self, model: CharTransformer, prompt: Ints, lanes: int, capacity: int) -> None:
        self._model = model
        self._prompt = KVCache(model.cfg, max(len(prompt), 1), model.dtype)
        if len(prompt):
            with torch.inference_mode():
                model(torch.from_numpy(prompt[None]), self._prompt)
        self._cache = TrieCache(model.cfg, self._prompt, model.dtype)
        self._base = len(prompt)
        self._path = np.zeros((lanes, capacity - len(prompt)), np.int64)  # node of each position
        self._known: dict[tuple[int, int], int] = {}  # (parent, token) -> node; parent -1: prompt
        self._row_of = np.zeros((0, model.cfg.vocab), _numpy_type(model.dtype))
        self.lengths = np.full(lanes, len(prompt), np.int64)

    def read(self, lanes: Ints, tokens: Ints) -> Logits:
        steps = [self._step(lanes, tokens[:, i]) for i in range(tokens.shape[1])]
        return self._row_of[np.stack(steps, axis=1)]

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        if (lengths > self.lengths[lanes]).any() or (lengths < self._base).any():
            raise ValueError("a crop must keep the prompt and cannot lengthen a text")
        self.lengths[lanes] = lengths

    def cache_bytes(self) -> int:
        raise TypeError("memory is counted on one text, not on texts that share prefixes")

    def _step(self, lanes: Ints, tokens: Ints) -> Ints:
        """Append one token a lane; the node each lane is at then, `(b,)`."""
        depth = self.lengths[lanes] - self._base
        parent = np.where(depth > 0, self._path[lanes, depth - 1], -1)
        key, first, inverse = np.unique(
            parent * self._model.cfg.vocab + tokens, return_index=True, return_inverse=True
        )
        pairs = list(zip(parent[first].tolist(), tokens[first].tolist(), strict=True))
        new = np.array([pair not in self._known for pair in pairs])
        self._compute(lanes[first[new]], tokens[first[new]], depth[first[new]])
        for pair in (pair for pair, is_new in zip(pairs, new, strict=True) if is_new):
            self._known[pair] = len(self._known)
        nodes = np.array([self._known[pair] for pair in pairs])[inverse]
        self._path[lanes, depth] = nodes
        self.lengths[lanes] += 1
        return nodes

    @torch.inference_mode()
    def _compute(self, lanes: Ints, tokens: Ints, depth: Ints) -> None:
        fresh = []
        for at in range(0, len(lanes), CHUNK):
            part = slice(at, at + CHUNK)
            self._cache.select(self._path[lanes[part], : depth[part].max()], depth[part])
            fresh.append(self._model(torch.from_numpy(tokens[part, None]), self._cache)[:, 0])
        self._append(fresh)

    def _append(self, fresh: list[Tensor]) -> None:
        count = len(self._known)
        need = count + sum(len(rows) for rows in fresh)
        if need > len(self._row_of):
            grown = np.empty((max(need, 2 * count), self._row_of.shape[1]), self._row_of.dtype)
            grown[:count] = self._row_of[:count]
            self._row_of = grown
        if fresh:
            self._row_of[count:need] = torch.cat(fresh).numpy()


def _numpy_type(dtype: torch.dtype) -> type[np.floating[Any]]:
    return np.float64 if dtype == torch.float64 else np.float32

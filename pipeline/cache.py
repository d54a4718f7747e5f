"""Key-value caches of a transformer: one text cropped and grown, or many texts sharing prefixes.

Shapes: L layers, B texts, H heads, T positions, D head width.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from pipeline.model import ModelConfig


class KVCache:
    """Keys and values of one text, preallocated for `capacity` tokens: append, crop."""

    def __init__(self, cfg: ModelConfig, capacity: int, dtype: torch.dtype) -> None:
        if capacity > cfg.context:
            raise ValueError(f"{capacity} positions exceed the context of {cfg.context}")
        shape = (cfg.layers, 1, cfg.heads, capacity, cfg.width // cfg.heads)
        self._keys = list(torch.zeros(shape, dtype=dtype).unbind(0))
        self._values = list(torch.zeros(shape, dtype=dtype).unbind(0))
        self._causal = torch.ones(capacity, capacity, dtype=torch.bool).tril()
        self._positions = torch.arange(capacity)
        self.capacity = capacity
        self.length = 0

    def positions(self, count: int) -> Tensor:
        end = self.length + count
        if end > self.capacity:
            raise ValueError(f"position {end} is beyond the cache's {self.capacity}")
        return self._positions[self.length : end]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        start, end = self.length, self.length + q.shape[2]
        keys, values = self._keys[layer], self._values[layer]
        keys[:, :, start:end], values[:, :, start:end] = k, v
        mask = self._causal[start:end, :end] if end - start > 1 else None
        return F.scaled_dot_product_attention(
            q, keys[:, :, :end], values[:, :, :end], attn_mask=mask
        )

    def advance(self, count: int) -> None:
        self.length += count

    def crop(self, length: int) -> None:
        """Forget everything from position `length` on; cropping to the present length is free."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot crop {self.length} tokens to {length}")
        self.length = length

    def stored(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values `(1, H, T, D)` of one layer."""
        return self._keys[layer][:, :, : self.length], self._values[layer][:, :, : self.length]

    def nbytes(self, length: int) -> int:
        """Bytes of the keys and values of `length` tokens in float32, the form that is timed."""
        elements = sum(t.shape[1] * t.shape[3] for t in (*self._keys, *self._values))
        return 4 * elements * length


class TrieCache:
    """Keys and values of many continuations of one prompt, stored once for each distinct prefix.

    Nodes are (parent, token) pairs; `select` names the nodes that the next forward pass computes
    (one token each, T = 1), given the node ids of their ancestors. The prompt is shared by all.
    """

    def __init__(self, cfg: ModelConfig, prompt: KVCache, dtype: torch.dtype) -> None:
        self._prompt = prompt
        width = cfg.width // cfg.heads
        shape = (0, cfg.heads, width)
        self._keys = [torch.zeros(shape, dtype=dtype) for _ in range(cfg.layers)]
        self._values = [torch.zeros(shape, dtype=dtype) for _ in range(cfg.layers)]
        self._count = 0
        self._ancestors = torch.zeros(0, 0, dtype=torch.long)
        self._depths = torch.zeros(0, dtype=torch.long)

    def select(self, ancestors: NDArray[np.int64], depths: NDArray[np.int64]) -> None:
        """Next pass: U new nodes with `ancestors (U, A)`, of which the first `depths (U,)` count."""
        self._ancestors, self._depths = torch.from_numpy(ancestors), torch.from_numpy(depths)
        need = self._count + len(depths)
        if need > len(self._keys[0]):  # grow geometrically: no allocation a pass
            room = max(need, 2 * len(self._keys[0]))
            self._keys = [_grown(t, room) for t in self._keys]
            self._values = [_grown(t, room) for t in self._values]

    def positions(self, count: int) -> Tensor:
        return (self._prompt.length + self._depths)[:, None]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = self._keys[layer], self._values[layer]
        here = slice(self._count, self._count + len(q))
        keys[here], values[here] = k[:, :, 0], v[:, :, 0]
        shared_k, shared_v = self._prompt.stored(layer)
        own_k = torch.cat([keys[self._ancestors].transpose(1, 2), k], dim=2)  # (U, H, A + 1, D)
        own_v = torch.cat([values[self._ancestors].transpose(1, 2), v], dim=2)
        scores = torch.cat([q @ shared_k.transpose(-1, -2), q @ own_k.transpose(-1, -2)], dim=-1)
        weights = (scores * q.shape[-1] ** -0.5 + self._mask(shared_k.shape[2])).softmax(dim=-1)
        split = shared_k.shape[2]
        return weights[..., :split] @ shared_v + weights[..., split:] @ own_v

    def _mask(self, shared: int) -> Tensor:
        """`(U, 1, 1, shared + A + 1)`: 0 where a node may look, -inf at padding."""
        depth, width = self._depths[:, None], self._ancestors.shape[1]
        padded = torch.arange(width)[None] >= depth
        mask = torch.zeros(len(depth), shared + width + 1, dtype=self._keys[0].dtype)
        mask[:, shared : shared + width].masked_fill_(padded, -torch.inf)
        return mask[:, None, None]

    def advance(self, count: int) -> None:
        self._count += len(self._depths)


def _grown(t: Tensor, room: int) -> Tensor:
    out = torch.zeros((room, *t.shape[1:]), dtype=t.dtype)
    out[: len(t)] = t
    return out

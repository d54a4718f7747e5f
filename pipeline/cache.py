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
from pipeline.tree_cache import Parents, depths, mask


class KVCache:
    """Keys and values of one text, preallocated for `capacity` tokens: append, crop.

    A pass begins with `positions`, which cuts every layer's views once for all. After `branch` it
    reads nodes of a tree that grows from the text's end; `gather` keeps one path of it.
    """

    def __init__(self, cfg: ModelConfig, capacity: int, dtype: torch.dtype) -> None:
        if capacity > cfg.context:
            raise ValueError(f"{capacity} positions exceed the context of {cfg.context}")
        self._keep(torch.zeros(2 * cfg.layers, 1, cfg.heads, capacity, cfg.head_width, dtype=dtype))
        hidden = torch.ones(capacity, capacity, dtype=torch.bool).triu(1)
        self._causal = torch.zeros(capacity, capacity, dtype=dtype).masked_fill_(hidden, -torch.inf)
        self._positions = torch.arange(capacity)
        self._mask: Tensor | None = None
        self._new: list[tuple[Tensor, Tensor]] = []
        self._seen: list[tuple[Tensor, Tensor]] = []
        self._tree: Parents = ()  # of the nodes stored behind the text
        self._growing = False
        self.capacity = capacity
        self.length = 0

    def _keep(self, stored: Tensor) -> None:
        """Store in `(2 L, 1, H, T, D)`: keys of all layers, then values of all."""
        layers = len(stored) // 2
        self._stored, self._keys, self._values = stored, stored[:layers], stored[layers:]

    def positions(self, count: int) -> Tensor:
        if self._growing:
            return self._tree_positions(count)
        start, end = self.length, self.length + count
        if end > self.capacity:
            raise ValueError(f"position {end} is beyond the cache's {self.capacity}")
        self._new = self._views(start, count)
        self._seen = self._views(0, end)
        self._mask = self._causal[start:end, :end] if count > 1 else None
        return self._positions.narrow(0, start, count)

    def _views(self, start: int, count: int) -> list[tuple[Tensor, Tensor]]:
        """Keys and values `(1, H, count, D)` of each layer."""
        parts = self._stored.narrow(3, start, count).unbind(0)
        layers = len(parts) // 2
        return list(zip(parts[:layers], parts[layers:], strict=True))

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = self._new[layer]
        keys.copy_(k)
        values.copy_(v)
        keys, values = self._seen[layer]
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=self._mask)

    def advance(self, count: int) -> None:
        if self._growing:
            self._growing = False
        else:
            self.length += count

    def crop(self, length: int) -> None:
        """Forget everything from position `length` on; cropping to the present length is free."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot crop {self.length} tokens to {length}")
        self.length, self._tree = length, ()

    def reserve(self, nodes: int) -> None:
        """Room for a tree of `nodes` behind a text of the full capacity. What is stored stays."""
        shape = list(self._stored.shape)
        if shape[3] >= self.capacity + nodes:
            return
        shape[3] = self.capacity + nodes
        room = torch.zeros(shape, dtype=self._stored.dtype)
        room[..., : self.length, :] = self._stored[..., : self.length, :]
        self._keep(room)

    def branch(self, parents: Parents) -> None:
        """The next pass reads nodes with these `parents`, further nodes of the tree at hand."""
        self._tree, self._growing = self._tree + parents, True

    def _tree_positions(self, count: int) -> Tensor:
        length, nodes = self.length, len(self._tree)
        at = depths(self._tree, count)
        last = length + int(at.max()) + 1
        if last > self.capacity or length + nodes > self._keys.shape[3]:
            raise ValueError(f"position {last} is beyond the cache's {self.capacity}")
        self._new = self._views(length + nodes - count, count)
        self._seen = self._views(0, length + nodes)
        whole = mask(self._tree, count, self.capacity, self._keys.dtype)
        self._mask = whole[:, self.capacity - length :]
        return at + length

    def gather(self, path: list[int]) -> None:
        """Append the nodes of `path`, from the text's end downwards; the rest of the tree goes."""
        start, end = self.length, self.length + len(path)
        if path != list(range(len(path))):
            nodes = torch.tensor(path) + start
            self._stored[:, :, :, start:end] = self._stored.index_select(3, nodes)
        self.length, self._tree = end, ()

    def stored(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values `(1, H, T, D)` of one layer."""
        return self._keys[layer][:, :, : self.length], self._values[layer][:, :, : self.length]

    @property
    def stored_tokens(self) -> int:
        """Of the text, and of the tree behind it."""
        return self.length + len(self._tree)

    def nbytes(self, length: int) -> int:
        """Bytes of keys and values of `length` tokens in float32, the form that is timed."""
        layers, _, heads, _, width = self._keys.shape
        return 4 * 2 * layers * heads * width * length


class TrieCache:
    """Keys and values of many continuations of one prompt, stored once for each distinct prefix.

    Nodes are (parent, token) pairs; `select` names the nodes that the next forward pass computes
    (one token each, T = 1), given the node ids of their ancestors, which may be in the same pass.
    The prompt is shared by all.
    """

    def __init__(self, cfg: ModelConfig, prompt: KVCache, dtype: torch.dtype) -> None:
        self._prompt = prompt
        shape = (0, cfg.heads, 2 * cfg.head_width)  # of a node and head: its key, then its value
        self._stored = [torch.zeros(shape, dtype=dtype) for _ in range(cfg.layers)]
        self._count = 0
        self._depths = torch.zeros(0, dtype=torch.long)
        self._rows = torch.zeros(0, dtype=torch.long)
        self._padded: Tensor | None = None

    def select(self, ancestors: NDArray[np.int64], depths: NDArray[np.int64]) -> None:
        """Next pass: U nodes with `ancestors (U, A)`, of which the first `depths (U,)` count."""
        self._depths = torch.from_numpy(depths)
        need = self._count + len(depths)
        if need > len(self._stored[0]):  # grow geometrically: no allocation a pass
            room = max(need, 2 * len(self._stored[0]))
            self._stored = [_grown(t, room) for t in self._stored]
        own = torch.arange(self._count, need)[:, None]
        seen = torch.cat([torch.from_numpy(ancestors), own], dim=1)  # (U, A + 1)
        heads = self._stored[0].shape[1]
        self._rows = (seen[:, None] * heads + torch.arange(heads)[:, None]).view(-1)
        padded = torch.arange(seen.shape[1] - 1) >= self._depths[:, None]
        self._padded = padded[:, None] if bool(padded.any()) else None

    def positions(self, count: int) -> Tensor:
        return (self._prompt.length + self._depths)[:, None]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        nodes, heads, _, width = q.shape
        stored = self._stored[layer]
        stored[self._count : self._count + nodes] = torch.cat([k, v], dim=-1)[:, :, 0]
        own = stored.view(-1, 2 * width).index_select(0, self._rows)
        own_k, own_v = own.view(nodes * heads, -1, 2 * width).split(width, dim=-1)
        # of the prompt one product a head serves all nodes
        shared_k, shared_v = (part[0] for part in self._prompt.stored(layer))  # (H, P, D)
        one = q.reshape(nodes * heads, 1, width) * width**-0.5
        to_shared = one.view(nodes, heads, width).transpose(0, 1) @ shared_k.transpose(1, 2)
        to_own = (one @ own_k.transpose(1, 2)).view(nodes, heads, -1)
        if self._padded is not None:
            to_own[..., :-1].masked_fill_(self._padded, -torch.inf)
        weights = torch.cat([to_shared.transpose(0, 1), to_own], dim=-1).softmax(dim=-1)
        split = shared_k.shape[1]
        out = (weights[..., :split].transpose(0, 1) @ shared_v).transpose(0, 1)  # (U, H, D)
        own_weights = weights[..., split:].reshape(nodes * heads, 1, -1)
        return out[:, :, None] + (own_weights @ own_v).view(nodes, heads, 1, width)

    def advance(self, count: int) -> None:
        self._count += len(self._depths)


def _grown(t: Tensor, room: int) -> Tensor:
    out = torch.zeros((room, *t.shape[1:]), dtype=t.dtype)
    out[: len(t)] = t
    return out

"""Keys and values of a few long texts side by side, each with room of its own.

Texts that soon differ share nothing worth looking for: one product over all of them, with a mask
where one is shorter, costs less than gathering what each text looks at.

Shapes: L layers, B lanes of which b are read, H heads, T new tokens, S places seen, D head width.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from pipeline.cache import KVCache
from pipeline.model import ModelConfig
from pipeline.tree_cache import Parents, depths, mask

Ints = NDArray[np.int64]


class LaneCache:
    """Room for `capacity` tokens a lane, all of them beginning with the same prompt."""

    def __init__(self, cfg: ModelConfig, prompt: KVCache, lanes: int, capacity: int) -> None:
        layers = [prompt.stored(layer) for layer in range(cfg.layers)]
        shape = (2, cfg.layers, lanes, cfg.heads, capacity, cfg.head_width)
        self._stored = torch.zeros(shape, dtype=prompt.stored(0)[0].dtype)
        for layer, parts in enumerate(layers):
            for kind, part in enumerate(parts):
                self._stored[kind, layer, :, :, : prompt.length] = part
        self._all = np.arange(lanes)
        self._capacity = capacity  # of a text; a tree has its room behind it
        self._lanes: Tensor | slice = slice(None)
        self._at = self._positions = torch.zeros(0, dtype=torch.long)
        self._write: tuple[Tensor, slice, Tensor] = (self._at, slice(None), self._at)
        self._mask: Tensor | None = None

    def select(self, lanes: Ints, lengths: Ints, parents: Parents, count: int) -> None:
        """Next pass: the last `count` of the nodes with `parents`, behind texts of `lengths (b,)`.

        ValueError where one has no room for them.
        """
        new, first = depths(parents, count), len(parents) - count
        last = int(lengths.max()) + int(new.max()) + 1
        if last > self._capacity or int(lengths.max()) + len(parents) > self._stored.shape[4]:
            raise ValueError(f"position {last} is beyond the cache's {self._capacity}")
        known = torch.from_numpy(lengths)[:, None]
        self._positions = known + new
        rows = torch.from_numpy(lanes)[:, None]
        self._write = (rows, slice(None), known + first + torch.arange(count))
        self._lanes = slice(None) if np.array_equal(lanes, self._all) else rows[:, 0]
        seen = int(lengths.max()) + len(parents)
        whole = mask(parents, count, self._capacity, self._stored.dtype)
        hidden = torch.full((count, self._capacity), -torch.inf, dtype=whole.dtype)
        # column 0 of a lane's part is its first token; what is behind its nodes is hidden
        columns = self._capacity - known + torch.arange(seen)
        padded = torch.cat([whole, hidden], dim=1).T  # (2 capacity + n, T)
        self._mask = padded[columns].transpose(1, 2)[:, None]  # (b, 1, T, S)

    def positions(self, count: int) -> Tensor:
        return self._positions

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        assert self._mask is not None  # a pass begins with `select`
        seen = []
        for kind, new in enumerate((k, v)):
            stored = self._stored[kind, layer]
            stored[self._write] = new.transpose(1, 2)
            lanes = stored[:, :, : self._mask.shape[-1]]
            seen.append(lanes if isinstance(self._lanes, slice) else lanes[self._lanes])
        return F.scaled_dot_product_attention(q, seen[0], seen[1], attn_mask=self._mask)

    def advance(self, count: int) -> None:
        return None

    def move(self, lanes: Ints, source: Ints, target: Ints) -> None:
        """Copy what one place `source (b,)` of each lane holds to its place `target (b,)`."""
        rows, a, b = (torch.from_numpy(part) for part in (lanes, source, target))
        self._stored[:, :, rows, :, b] = self._stored[:, :, rows, :, a]

    def reserve(self, nodes: int) -> None:
        """Room for a tree of `nodes` behind a text of the full capacity. What is stored stays."""
        missing = self._capacity + nodes - self._stored.shape[4]
        if missing > 0:
            self._stored = F.pad(self._stored, (0, 0, 0, missing))

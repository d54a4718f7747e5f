"""A transformer reading many texts that begin alike: 20,000 draws cost a few hundred rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pipeline.cache import KVCache, TrieCache
from pipeline.context import Context, Ints, Logits
from pipeline.model import CharTransformer, hidden_states, unembed
from pipeline.prefixes import Prefixes
from pipeline.tree_cache import Generation, Parents, generations

CHUNK = 256  # nodes a forward pass: their gathered ancestors should stay in the CPU's caches


class ManyTexts(Context):
    """A transformer reading many continuations of one prompt, each distinct prefix once."""

    def __init__(self, model: CharTransformer, prompt: Ints, lanes: int, capacity: int) -> None:
        self._weights = model.weights()
        self._prompt = KVCache(model.cfg, max(len(prompt), 1), model.dtype)
        self._before = torch.zeros(1, model.cfg.width, dtype=model.dtype)  # the prompt's last state
        if len(prompt):
            with torch.inference_mode():
                self._before = model.hidden(torch.from_numpy(prompt[None]), self._prompt)[0, -1:]
        self._states: Tensor | None = None  # of each node, once they are asked for
        self._cache = TrieCache(model.cfg, self._prompt, model.dtype)
        self._base = len(prompt)
        self._path = np.zeros((lanes, capacity - len(prompt)), np.int64)  # node of each position
        self._tree: Ints | None = None  # (b, n) nodes of the trees read last
        self._parents: Parents = ()
        self._prefixes = Prefixes(model.cfg.vocab)
        self._noted: list[tuple[Ints, Ints, Ints]] = []  # new nodes: above them, tokens, depths
        self._row_of = np.zeros((0, model.cfg.vocab), _numpy_type(model.dtype))
        self._rows = 0
        self.lengths = np.full(lanes, len(prompt), np.int64)

    def read(self, lanes: Ints, tokens: Ints) -> Logits:
        steps = [self._step(lanes, tokens[:, i]) for i in range(tokens.shape[1])]
        self._compute()
        return self._row_of[np.stack(steps, axis=1)]

    def keep_states(self) -> None:
        """Store last hidden states too, from now on; before the first read."""
        assert not self._rows, "states are kept from the first read on"
        self._states = self._before  # row 0 is the prompt's, row n + 1 that of node n

    def states(self, lanes: Ints, count: int) -> Tensor:
        """Last hidden states `(b, count, C)` of the last `count` tokens; zeros before any."""
        assert self._states is not None, "call keep_states first"
        at = (self.lengths[lanes] - self._base)[:, None] - np.arange(count, 0, -1)
        nodes = np.where(at < 0, -1, self._path[lanes[:, None], np.maximum(at, 0)])
        return self._states[torch.from_numpy(nodes + 1)]

    def places(self, lanes: Ints) -> Ints:
        """A number `(b,)` for what each lane has read: equal texts have equal ones."""
        depth = self.lengths[lanes] - self._base
        return np.where(depth > 0, self._path[lanes, depth - 1], -1)

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        if (lengths > self.lengths[lanes]).any() or (lengths < self._base).any():
            raise ValueError("a crop must keep the prompt and cannot lengthen a text")
        self.lengths[lanes] = lengths
        self._tree, self._parents = None, ()

    def read_tree(self, lanes: Ints, tokens: Ints, parents: Parents) -> Logits:
        """Each node is a prefix like any other."""
        before = np.zeros((len(lanes), 0), np.int64) if self._tree is None else self._tree
        self._tree = np.concatenate([before, np.zeros_like(tokens)], axis=1)
        self._parents += parents
        for generation in generations(self._parents, len(parents)):
            new = tokens[:, generation.nodes - before.shape[1]]
            self._tree[:, generation.nodes] = self._branch(lanes, self._tree, generation, new)
        self._compute()
        return self._row_of[self._tree[:, before.shape[1] :]]

    def _branch(self, lanes: Ints, tree: Ints, generation: Generation, tokens: Ints) -> Ints:
        """The nodes `(b, w)` of one generation with `tokens (b, w)`."""
        (count, above), base = generation.lines.shape, self.lengths[lanes] - self._base
        if above:
            parent = tree[:, generation.lines[:, -1]]
        else:
            parent = np.repeat(self.places(lanes)[:, None], count, axis=1)

        def paths(chosen: Ints) -> Ints:
            lane, node = np.divmod(chosen, count)
            out = np.zeros((len(chosen), int(base.max()) + above), np.int64)
            out[:, : base.max()] = self._path[lanes[lane], : base.max()]
            columns = base[lane][:, None] + np.arange(above)
            out[np.arange(len(chosen))[:, None], columns] = tree[
                lane[:, None], generation.lines[node]
            ]
            return out

        depth = np.repeat(base + above, count)
        return self._find(parent.ravel(), tokens.ravel(), depth, paths).reshape(tokens.shape)

    def gather(self, lanes: Ints, nodes: Ints, counts: Ints) -> None:
        at = self.lengths[lanes] - self._base
        for column in range(int(counts.max())):
            here = np.flatnonzero(counts > column)
            assert self._tree is not None, "a path can only be kept of a tree that was read"
            self._path[lanes[here], at[here] + column] = self._tree[here, nodes[here, column]]
        self.lengths[lanes] += counts
        self._tree, self._parents = None, ()

    def cache_bytes(self) -> int:
        raise TypeError("memory is counted on one text, not on texts that share prefixes")

    def _step(self, lanes: Ints, tokens: Ints) -> Ints:
        """Append one token a lane; the node each lane is at then, `(b,)`."""
        depth = self.lengths[lanes] - self._base
        nodes = self._find(
            self.places(lanes), tokens, depth, lambda chosen: self._path[lanes[chosen]]
        )
        self._path[lanes, depth] = nodes
        self.lengths[lanes] += 1
        return nodes

    def _find(self, parent: Ints, tokens: Ints, depth: Ints, paths: Callable[[Ints], Ints]) -> Ints:
        """The nodes `(N,)` of `tokens (N,)` after those of `parent (N,)`; new ones are noted.

        `paths` gives the nodes above some of the N, of which the first `depth (N,)` count.
        """
        nodes, new = self._prefixes.find(parent, tokens)
        if len(new):
            self._noted.append((paths(new), tokens[new], depth[new]))
        return nodes

    @torch.inference_mode()
    def _compute(self) -> None:
        """All nodes that were noted, generations together: a pass stores keys before it looks."""
        if not self._noted:
            return
        depth = np.concatenate([depth for _, _, depth in self._noted])
        tokens = np.concatenate([tokens for _, tokens, _ in self._noted])
        paths, done = np.zeros((len(depth), depth.max()), np.int64), 0
        for above, _, _ in self._noted:
            width = min(above.shape[1], paths.shape[1])
            paths[done : done + len(above), :width] = above[:, :width]
            done += len(above)
        self._noted = []
        for at in range(0, len(depth), CHUNK):
            part = slice(at, at + CHUNK)
            self._cache.select(paths[part, : depth[part].max()], depth[part])
            ids = torch.from_numpy(tokens[part, None])
            hidden = hidden_states(self._weights, ids, self._cache)
            if self._states is not None:
                self._states = torch.cat([self._states, hidden])
            self._append(unembed(self._weights, hidden).numpy())

    def _append(self, rows: Logits) -> None:
        need = self._rows + len(rows)
        if need > len(self._row_of):
            grown = np.empty((max(need, 2 * self._rows), self._row_of.shape[1]), rows.dtype)
            grown[: self._rows] = self._row_of[: self._rows]
            self._row_of = grown
        self._row_of[self._rows : need] = rows
        self._rows = need


def _numpy_type(dtype: torch.dtype) -> type[np.floating[Any]]:
    return np.float64 if dtype == torch.float64 else np.float32

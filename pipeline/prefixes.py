"""Numbers for the distinct prefixes of many texts: a prefix is a shorter one and a token."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Prefixes:
    """Nodes 0, 1, ... in the order they are first asked for; -1 is what all texts begin with."""

    def __init__(self, vocab: int) -> None:
        self._vocab = vocab
        self._keys = np.zeros(0, np.int64)  # of the nodes, in ascending order
        self._nodes = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._nodes)

    def find(self, parents: Ints, tokens: Ints) -> tuple[Ints, Ints]:
        """The nodes `(N,)` of `tokens (N,)` after `parents (N,)`, and places `(n,)` among the N,
        one for each node that is new, in the order of their numbers."""
        keys, first, inverse = np.unique(
            (parents + 1) * self._vocab + tokens, return_index=True, return_inverse=True
        )
        at: Ints = np.asarray(self._keys.searchsorted(keys))
        is_new = np.ones(len(keys), bool)
        inside = np.flatnonzero(at < len(self._keys))
        is_new[inside] = self._keys[at[inside]] != keys[inside]
        nodes = np.empty(len(keys), np.int64)
        nodes[~is_new] = self._nodes[at[~is_new]]
        nodes[is_new] = len(self) + np.arange(is_new.sum())
        self._nodes = np.insert(self._nodes, at[is_new], nodes[is_new])
        self._keys = np.insert(self._keys, at[is_new], keys[is_new])
        return nodes[inverse], first[is_new]

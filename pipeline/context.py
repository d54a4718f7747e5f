"""A model reading texts: what decoding asks of target and draft alike.

A `Context` holds B texts (lanes), each cut to what is committed. `read` appends tokens and returns
the logits after each; `crop` takes tokens back. What opens one is in `reading`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.sampling import Floats, Sampling
from pipeline.tree_cache import Parents

Ints = NDArray[np.int64]
Logits = NDArray[Any]  # float32 or float64, as the model computes
Drafted = tuple[Ints, Floats]


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

    def extra_bytes(self) -> int:
        """Bytes of whatever else it stores, in float32, at the fullest moment; for one text."""
        return 0

    def follow(self, target: Context) -> None:
        """Draft for `target` from now on, which reads the same texts: its state may be used."""
        return None

    def limit(self, lanes: Ints, k: int) -> Ints | None:
        """How many tokens, at most k, it can propose after what it has read; None: k for all."""
        return None

    def chain(self, lanes: Ints, tokens: Ints, u: Floats, sampling: Sampling) -> Drafted | None:
        """Append `tokens (1, T)` and all but the last of k tokens drawn after them at `u (1, k)`.

        Those k tokens `(1, k)` and the rows `(1, k, V)` they were drawn from, where that can be had
        at once; None: read and draw one by one.
        """
        return None

    def bare(self) -> Context:
        """The context itself, where this one only stands for it."""
        return self

    def reserve(self, nodes: int) -> None:
        """Make room for trees of so many `nodes`."""
        return None

    def read_tree(self, lanes: Ints, tokens: Ints, parents: Parents) -> Logits:
        """Read `tokens (b, T)` as nodes of a tree from each text's end; logits `(b, T, V)`.

        `parents` are places among all nodes read since the last crop or gather, -1 the text's end.
        """
        raise TypeError(f"{type(self).__name__} cannot read a tree")

    def gather(self, lanes: Ints, nodes: Ints, counts: Ints) -> None:
        """Append the first `counts (b,)` of `nodes (b, m)`, a path from the text's end downwards,
        and drop the rest of the tree."""
        raise TypeError(f"{type(self).__name__} cannot read a tree")

"""A tree of tokens at the end of a cached text: where its nodes stand, and what each may look at.

Nodes are stored one after another behind the text, in the order they are read, whatever their place
in the tree. A node looks at the whole text, at its ancestors and at itself.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Parents = tuple[int, ...]
"""The parent of each node among the nodes of the tree; -1 where it is the end of the text."""


class Generation(NamedTuple):
    """w nodes at one depth d, and the line of nodes from the text's end to each one's parent."""

    nodes: NDArray[np.int64]  # (w,)
    lines: NDArray[np.int64]  # (w, d)


@lru_cache(maxsize=512)
def generations(parents: Parents, count: int) -> tuple[Generation, ...]:
    """The last `count` nodes, depth by depth."""
    lines: list[list[int]] = []
    for parent in parents:
        lines.append([] if parent < 0 else [*lines[parent], parent])
    at: dict[int, list[int]] = {}
    for node in range(len(parents) - count, len(parents)):
        at.setdefault(len(lines[node]), []).append(node)
    return tuple(
        Generation(
            np.array(nodes),
            np.array([lines[node] for node in nodes], np.int64).reshape(len(nodes), depth),
        )
        for depth, nodes in sorted(at.items())
    )


@lru_cache(maxsize=512)
def depths(parents: Parents, count: int) -> Tensor:
    """Depths of the last `count` nodes, `(count,)`; 0 where the parent is the text's end."""
    found: list[int] = []
    for parent in parents:
        found.append(0 if parent < 0 else found[parent] + 1)
    return torch.tensor(found[-count:])


@lru_cache(maxsize=512)
def mask(parents: Parents, count: int, capacity: int, dtype: torch.dtype) -> Tensor:
    """What the last `count` nodes look at, `(count, capacity + n)`: 0 for yes, -inf for no.

    The n nodes are the last columns, the text's tokens the ones right before them; so the mask of
    a text of T tokens is the last T + n columns.
    """
    sees = torch.eye(len(parents), dtype=torch.bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            sees[node] |= sees[parent]
    out = torch.zeros(count, capacity + len(parents), dtype=dtype)
    out[:, capacity:].masked_fill_(~sees[-count:], -torch.inf)
    return out

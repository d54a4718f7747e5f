"""The prediction heads' pass as a compiled program, see `compiled`.

Shapes: k heads asked for, C channels, V characters.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pipeline import compiled
from pipeline.heads import Heads
from pipeline.programs import Program, program


class CompiledHeads:
    """The first k of `heads`, for one text at a time."""

    def __init__(self, heads: Heads, embedding: Tensor, k: int) -> None:
        """`embedding (V, C)` is the target's. ValueError where this cannot be compiled here."""
        self.count = k
        used = k * heads.width
        weight, bias = heads.projection.weight, heads.projection.bias
        self._given = [weight[:, :used].detach().contiguous(), bias[:used].detach(), embedding]
        self._program = _heads_pass(heads.width, k, self._given)

    def __call__(self, hidden: Tensor, known: Tensor) -> Tensor:
        """Logits `(1, k, V)` from the target's state `hidden (1, C)` and the token `known (1,)`."""
        return self._program([*self._given, hidden, known])[0]


def _heads_pass(width: int, k: int, given: list[Tensor]) -> Program:
    example = (*given, torch.zeros(1, width), torch.zeros(1).long())
    name = f"heads {k} {width} {len(given[2])}"
    return program(name, _Pass(k), example, (__file__, compiled.__file__))


class _Pass(nn.Module):
    def __init__(self, k: int) -> None:
        super().__init__()
        self._k = k

    def forward(
        self, weight: Tensor, bias: Tensor, embedding: Tensor, hidden: Tensor, known: Tensor
    ) -> Tensor:
        x = torch.cat([hidden, embedding[known]], dim=-1)
        moved = F.silu(compiled.affine(x, (weight, bias))).view(self._k, -1)
        return compiled.unembed(hidden + moved, embedding)[None]

"""Prediction heads on the target's last hidden state, after Medusa (Cai et al. 2024, 2401.10774).

The target has read the text up to position s-1, and the character at s is known: it was drawn from
the target's own row. Head i = 1..n proposes the character at s+i from the hidden state h at s-1 and
the embedding e of the character at s. Medusa's heads see h alone; the known character is committed
text, so looking at it is allowed, and it tells much. No head sees a drafted character: the rows of
all of them are known before drafting, which keeps verification exact.

    z_i = h + SiLU(W_i [h; e] + b_i),    logits_i = z_i E^T,    E the target's embedding
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pipeline.model import Projection


class Heads(nn.Module):
    """`count` heads for a target of `width` channels, side by side in one projection."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.count, self.width = count, width
        self.projection = Projection(2 * width, count * width, std=0.0)

    def forward(
        self, hidden: Tensor, known: Tensor, embedding: Tensor, first: int | None = None
    ) -> Tensor:
        """Logits `(N, heads, V)` from `hidden (N, C)`, `known (N, C)` and `embedding (V, C)`.

        `hidden` is the target's, after its last norm; `known` is the embedding of the character
        that follows. Only the `first` heads are asked if so many are given.
        """
        count = self.count if first is None else first
        weight, bias = self.projection.weight, self.projection.bias
        x, used = torch.cat([hidden, known], dim=-1), count * self.width
        moved = F.silu(torch.addmm(bias[:used], x, weight[:, :used]))
        return F.linear(hidden[:, None, :] + moved.view(-1, count, self.width), embedding)

"""The target: a decoder-only character transformer, GPT-2's architecture in plain torch.

Pre-norm blocks, learned positions, tanh-GELU, tied embedding (Radford et al. 2019). Parameters have
GPT-2's names and layout (projections stored `(in, out)`), so that a weights file written by
`pipeline.weights` also loads into Hugging Face's `GPT2LMHeadModel`: an independent witness.

Shapes: B texts, T positions, C channels, H heads, D = C / H, V characters.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of a character transformer. `context` is the most positions it can read."""

    vocab: int
    context: int = 256
    layers: int = 3
    heads: int = 4
    width: int = 128

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


class Attends(Protocol):
    """What a cache offers a model: positions for new tokens, and attention over old and new ones."""

    def positions(self, count: int) -> Tensor:
        """Absolute positions of the next `count` tokens, `(T,)` or `(B, T)`."""
        ...

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Store k, v `(B, H, T, D)` of one layer; return attention of q over everything up to it."""
        ...

    def advance(self, count: int) -> None:
        """All layers of `count` tokens are stored."""
        ...


class Projection(nn.Module):
    """GPT-2's `Conv1D`: an affine map whose weight is stored `(in, out)`."""

    def __init__(self, size_in: int, size_out: int, std: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size_in, size_out) * std)
        self.bias = nn.Parameter(torch.zeros(size_out))

    def forward(self, x: Tensor) -> Tensor:  # (N, in) -> (N, out)
        return torch.addmm(self.bias, x, self.weight)


class Attention(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.heads = cfg.heads
        self.c_attn = Projection(cfg.width, 3 * cfg.width, 0.02)
        self.c_proj = Projection(cfg.width, cfg.width, 0.02 / (2 * cfg.layers) ** 0.5)

    def forward(self, x: Tensor, shape: tuple[int, int], layer: int, cache: Attends | None) -> Tensor:
        batch, count = shape  # x is (B*T, C)
        qkv = self.c_attn(x).view(batch, count, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (B, H, T, D)
        if cache is None:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            out = cache.attend(layer, q, k, v)
        return self.c_proj(out.transpose(1, 2).reshape(batch * count, -1))


class MLP(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.c_fc = Projection(cfg.width, 4 * cfg.width, 0.02)
        self.c_proj = Projection(4 * cfg.width, cfg.width, 0.02 / (2 * cfg.layers) ** 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(cfg.width)
        self.attn = Attention(cfg)
        self.ln_2 = nn.LayerNorm(cfg.width)
        self.mlp = MLP(cfg)

    def forward(self, x: Tensor, shape: tuple[int, int], layer: int, cache: Attends | None) -> Tensor:
        x = x + self.attn(self.ln_1(x), shape, layer, cache)
        return x + self.mlp(self.ln_2(x))


class Transformer(nn.Module):
    """Embeddings, blocks and the last norm; the names are GPT-2's."""

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.wte = nn.Embedding(cfg.vocab, cfg.width)
        self.wpe = nn.Embedding(cfg.context, cfg.width)
        self.h = nn.ModuleList(Block(cfg) for _ in range(cfg.layers))
        self.ln_f = nn.LayerNorm(cfg.width)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.01)


class CharTransformer(nn.Module):
    """A causal character model. `forward` reads T new tokens and returns the T next-token logits."""

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.cfg = cfg
        self.transformer = Transformer(cfg)

    def hidden(self, ids: Tensor, cache: Attends | None = None) -> Tensor:
        """Last hidden states `(B, T, C)`, after the final norm, of `ids (B, T)`."""
        batch, count = ids.shape
        body = self.transformer
        if cache is None:
            positions = torch.arange(count, device=ids.device)
        else:
            positions = cache.positions(count)
        x = (body.wte.weight[ids] + body.wpe.weight[positions]).view(batch * count, -1)
        for layer, block in enumerate(body.h):
            x = block(x, (batch, count), layer, cache)
        if cache is not None:
            cache.advance(count)
        return body.ln_f(x).view(batch, count, -1)

    def forward(self, ids: Tensor, cache: Attends | None = None) -> Tensor:
        """Logits `(B, T, V)` for the token after each of `ids (B, T)`."""
        return F.linear(self.hidden(ids, cache), self.transformer.wte.weight)

    @property
    def dtype(self) -> torch.dtype:
        return self.transformer.wte.weight.dtype

    def weight_bytes(self) -> int:
        """Bytes of the parameters in float32, the form they are shipped in."""
        return sum(p.numel() for p in self.parameters()) * 4

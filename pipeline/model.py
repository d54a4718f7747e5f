"""The target: a decoder-only character transformer, GPT-2's architecture in plain torch.

Pre-norm blocks, learned positions, tanh-GELU, tied embedding (Radford et al. 2019). Parameters have
GPT-2's names and layout (projections stored `(in, out)`), so that a weights file written by
`pipeline.weights` also loads into Hugging Face's `GPT2LMHeadModel`: an independent witness.

Shapes: B texts, T positions, C channels, H heads, D = C / H, V characters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

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

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


class Attends(Protocol):
    """What a cache offers a model: positions for new tokens, attention over old and new ones."""

    def positions(self, count: int) -> Tensor:
        """Absolute positions of the next `count` tokens, `(T,)` or `(B, T)`."""
        ...

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Store k, v `(B, H, T, D)` of a layer; return attention of q over everything up to it."""
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
        self.c_attn = Projection(cfg.width, 3 * cfg.width, 0.02)
        self.c_proj = Projection(cfg.width, cfg.width, 0.02 / (2 * cfg.layers) ** 0.5)


class MLP(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.c_fc = Projection(cfg.width, 4 * cfg.width, 0.02)
        self.c_proj = Projection(4 * cfg.width, cfg.width, 0.02 / (2 * cfg.layers) ** 0.5)


class Block(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(cfg.width)
        self.attn = Attention(cfg)
        self.ln_2 = nn.LayerNorm(cfg.width)
        self.mlp = MLP(cfg)


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


class Layer(NamedTuple):
    """One block's parameters: two norms, attention in and out, MLP up and down."""

    norm_1: tuple[Tensor, Tensor]
    attend: tuple[Tensor, Tensor]
    out: tuple[Tensor, Tensor]
    norm_2: tuple[Tensor, Tensor]
    up: tuple[Tensor, Tensor]
    down: tuple[Tensor, Tensor]


class Weights(NamedTuple):
    """A model's parameters as plain tensors: to look them up through modules in every pass takes
    almost half of a small model's pass."""

    heads: int
    tokens: Tensor  # (V, C), the embedding and, transposed, the last projection
    positions: Tensor  # (context, C)
    layers: tuple[Layer, ...]
    norm: tuple[Tensor, Tensor]


def hidden_states(weights: Weights, ids: Tensor, cache: Attends | None) -> Tensor:
    """Last hidden states `(B*T, C)`, after the final norm, of `ids (B, T)`."""
    batch, count = ids.shape
    positions = torch.arange(count) if cache is None else cache.positions(count)
    x = torch.embedding(weights.tokens, ids) + torch.embedding(weights.positions, positions)
    width = x.shape[-1]
    flat, split = (batch * count, width), (batch, count, 3, weights.heads, width // weights.heads)
    x = x.view(flat)
    for index, (norm_1, attend, out, norm_2, up, down) in enumerate(weights.layers):
        qkv = _affine(_norm(x, norm_1), attend).view(split)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (B, H, T, D)
        if cache is None:
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            seen = cache.attend(index, q, k, v)
        x = x + _affine(seen.transpose(1, 2).reshape(flat), out)
        x = x + _affine(F.gelu(_affine(_norm(x, norm_2), up), approximate="tanh"), down)
    if cache is not None:
        cache.advance(count)
    return _norm(x, weights.norm)


def unembed(weights: Weights, hidden: Tensor) -> Tensor:
    """Logits `(..., V)` of last hidden states `(..., C)`."""
    return F.linear(hidden, weights.tokens)


def _norm(x: Tensor, weight_and_bias: tuple[Tensor, Tensor]) -> Tensor:
    weight, bias = weight_and_bias
    return torch.layer_norm(x, weight.shape, weight, bias)


def _affine(x: Tensor, weight_and_bias: tuple[Tensor, Tensor]) -> Tensor:
    weight, bias = weight_and_bias
    return torch.addmm(bias, x, weight)


class CharTransformer(nn.Module):
    """A causal character model. `forward` reads T new tokens and returns their T logits."""

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.cfg = cfg
        self.transformer = Transformer(cfg)
        self.reader: Callable[..., Any] | None = None
        """Opens a text that is read with this model in float32, where that is not plain torch."""

    def weights(self) -> Weights:
        """The parameters that `forward` reads; valid as long as none is replaced."""
        body = self.transformer
        layers = (
            Layer(*(_pair(part) for part in _parts(block)))
            for block in body.h
            if isinstance(block, Block)
        )
        tokens, positions = body.wte.weight, body.wpe.weight
        return Weights(self.cfg.heads, tokens, positions, tuple(layers), _pair(body.ln_f))

    def hidden(self, ids: Tensor, cache: Attends | None = None) -> Tensor:
        """Last hidden states `(B, T, C)`, after the final norm, of `ids (B, T)`."""
        return hidden_states(self.weights(), ids, cache).view(*ids.shape, -1)

    def forward(self, ids: Tensor, cache: Attends | None = None) -> Tensor:
        """Logits `(B, T, V)` for the token after each of `ids (B, T)`."""
        weights = self.weights()
        return unembed(weights, hidden_states(weights, ids, cache)).view(*ids.shape, -1)

    def unembed(self, hidden: Tensor) -> Tensor:
        """Logits `(..., V)` of last hidden states `(..., C)`."""
        return F.linear(hidden, self.transformer.wte.weight)

    @property
    def dtype(self) -> torch.dtype:
        return self.transformer.wte.weight.dtype

    def weight_bytes(self) -> int:
        """Bytes of the parameters in float32, the form they are shipped in."""
        return sum(p.numel() for p in self.parameters()) * 4


def _parts(block: Block) -> tuple[Projection | nn.LayerNorm, ...]:
    attention, mlp = block.attn, block.mlp
    return (block.ln_1, attention.c_attn, attention.c_proj, block.ln_2, mlp.c_fc, mlp.c_proj)


def _pair(part: Projection | nn.LayerNorm) -> tuple[Tensor, Tensor]:
    return part.weight, part.bias

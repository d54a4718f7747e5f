"""A transformer's pass as one program, made ahead of time by torch's own compiler (AOTInductor).

A program reads a fixed number of tokens into a cache of fixed room: at every place of a text it is
the same code, so nothing is ever compiled again. Weights come in as one flat tensor; so models of
one architecture, such as a target and its rounded copies, share their programs.

Shapes: T tokens, S positions of room, C channels, H heads, D = C / H, V characters, L layers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pipeline.model import Layer, ModelConfig, Weights
from pipeline.programs import Program, program

ROOM = 64
"""Caches have room for a multiple of so many positions, so that few programs serve all texts."""
MOST_ROWS = 9
"""Tokens up to which a projection is a sum written out for each of them. The compiler fuses these
into one walk through the weights, which is what such a pass spends its time with."""


def room_for(capacity: int, most: int) -> int:
    """Positions of a cache for `capacity` tokens, read up to `most` at once, padding included."""
    return ROOM * math.ceil((capacity + most) / ROOM)


def flat(weights: Weights) -> Tensor:
    """All parameters one after the other, `(N,)`."""
    return torch.cat([tensor.detach().flatten() for tensor in _tensors(weights)])


def model_pass(cfg: ModelConfig, count: int, room: int) -> Program:
    """`count` tokens through a model of these sizes.

    Takes `flat (N,)`, then L keys `(H, D, S)` and L values `(H, S, D)`, which it writes to, `ids
    (T,)` and the place `at ()` of the first; gives last hidden states `(T, C)` and logits `(T, V)`.
    """
    width, heads = cfg.head_width, cfg.heads
    keys = [torch.zeros(heads, width, room) for _ in range(cfg.layers)]
    values = [torch.zeros(heads, room, width) for _ in range(cfg.layers)]
    example = (torch.zeros(_numel(cfg)), keys, values, torch.zeros(count).long(), torch.tensor(0))
    return program(f"pass {cfg} {count} {room}", _Pass(cfg), example, (__file__,))


class _Pass(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self._cfg = cfg

    def forward(
        self, given: Tensor, keys: list[Tensor], values: list[Tensor], ids: Tensor, at: Tensor
    ) -> tuple[Tensor, Tensor]:
        weights, cfg = _weights(given, self._cfg), self._cfg
        places = at + torch.arange(len(ids))
        unseen = torch.arange(keys[0].shape[2]) > places[:, None]  # (T, S)
        last = places.clamp(max=cfg.context - 1)  # padding may stand behind the last position
        x = weights.tokens[ids] + weights.positions[last]
        for index, (norm_1, attend, out, norm_2, up, down) in enumerate(weights.layers):
            split = affine(_norm(x, norm_1), attend).view(-1, 3, cfg.heads, cfg.head_width)
            q, k, v = split.unbind(1)  # each (T, H, D)
            keys[index].index_copy_(2, places, k.permute(1, 2, 0))
            values[index].index_copy_(1, places, v.transpose(0, 1))
            seen = _attend(q.transpose(0, 1), keys[index], values[index], unseen)
            x = x + affine(seen.transpose(0, 1).reshape(x.shape), out)
            x = x + affine(F.gelu(affine(_norm(x, norm_2), up), approximate="tanh"), down)
        hidden = _norm(x, weights.norm)
        return hidden, unembed(hidden, weights.tokens)


def _attend(q: Tensor, keys: Tensor, values: Tensor, unseen: Tensor) -> Tensor:
    """Attention `(H, T, D)` of q `(H, T, D)` over the whole room, as sums that can be fused."""
    scores = (q[..., None] * keys[:, None]).sum(2) * q.shape[-1] ** -0.5
    shares = scores.masked_fill(unseen, -torch.inf).softmax(-1)
    return (shares[..., None] * values[:, None]).sum(2)


def affine(x: Tensor, weight_and_bias: tuple[Tensor, Tensor]) -> Tensor:
    weight, bias = weight_and_bias  # (in, out), (out,)
    if len(x) > MOST_ROWS:
        return torch.addmm(bias, x, weight)
    # indexed, for the compiler does not fuse what comes of unbind
    return torch.stack([(x[row][:, None] * weight).sum(0) for row in range(len(x))]) + bias


def unembed(hidden: Tensor, tokens: Tensor) -> Tensor:
    if len(hidden) > MOST_ROWS:
        return F.linear(hidden, tokens)
    return torch.stack([(hidden[row] * tokens).sum(1) for row in range(len(hidden))])


def _norm(x: Tensor, weight_and_bias: tuple[Tensor, Tensor]) -> Tensor:
    weight, bias = weight_and_bias
    return F.layer_norm(x, weight.shape, weight, bias)


def _tensors(weights: Weights) -> Iterator[Tensor]:
    yield from (weights.tokens, weights.positions, *weights.norm)
    for layer in weights.layers:
        for pair in layer:
            yield from pair


def _shapes(cfg: ModelConfig) -> Iterator[tuple[int, ...]]:
    """Those of `_tensors`."""
    width = cfg.width
    yield from ((cfg.vocab, width), (cfg.context, width), (width,), (width,))
    for _ in range(cfg.layers):
        for size_in, size_out in ((0, 1), (1, 3), (1, 1), (0, 1), (1, 4), (4, 1)):
            yield (size_in * width, size_out * width) if size_in else (width,)
            yield (size_out * width,)


def _numel(cfg: ModelConfig) -> int:
    return sum(math.prod(shape) for shape in _shapes(cfg))


def _weights(given: Tensor, cfg: ModelConfig) -> Weights:
    """The parameters again, as views of `flat`'s tensor."""
    shapes = list(_shapes(cfg))
    parts = given.split([math.prod(shape) for shape in shapes])
    views = [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
    pairs = list(zip(views[2::2], views[3::2], strict=True))
    layers = tuple(Layer(*pairs[at : at + 6]) for at in range(1, len(pairs), 6))
    return Weights(cfg.heads, views[0], views[1], layers, pairs[0])

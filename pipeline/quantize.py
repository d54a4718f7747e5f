"""Rounding weights to a few bits and back: symmetric, one scale a tensor or one a channel.

Only the storage shrinks. The multiplications stay in float on the rounded values, so a pass costs
what the target's pass costs: the point of the experiment, not a shortcoming of it.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.model import CharTransformer


@dataclass(frozen=True)
class Codes:
    """Integers in [-(2^(bits-1) - 1), 2^(bits-1) - 1] and the scale that brings them back."""

    values: Tensor  # int8, the weight's shape
    scale: Tensor  # float32, () or (1, out)
    bits: int

    def dequantize(self) -> Tensor:
        """float32 weights, the codes times their scale."""
        return self.values.to(torch.float32) * self.scale

    def nbytes(self) -> int:
        """Bytes as stored: codes packed to `bits` bits, scales in float32."""
        return -(-self.values.numel() * self.bits // 8) + 4 * self.scale.numel()


def quantize(weight: Tensor, bits: int, per_channel: bool = False) -> Codes:
    """Codes of a float32 `weight (in, out)`; `per_channel` gives each output column a scale.

    Symmetric: zero stays zero, the largest magnitude becomes the largest code. ValueError for a
    number of bits outside 2..8.
    """
    if not 2 <= bits <= 8 or bits != int(bits):
        raise ValueError(f"draft.bits={bits}: give a whole number, 2 to 8")
    top = 2 ** (bits - 1) - 1
    largest = weight.abs().amax(dim=0, keepdim=True) if per_channel else weight.abs().max()
    scale = (largest / top).clamp_min(torch.finfo(torch.float32).tiny)
    values = (weight / scale).round().clamp(-top, top).to(torch.int8)
    return Codes(values, scale, bits)


def rounded_copy(
    model: CharTransformer, bits: int, per_channel: bool = False
) -> tuple[CharTransformer, int]:
    """A float32 copy of `model` with every matrix rounded, and the bytes its weights take stored.

    Matrices are projections and embeddings; biases and norms, under 1% of the weights, stay float.
    """
    copied = copy.deepcopy(model)
    stored_bytes = 0
    with torch.no_grad():
        for name, weight in copied.named_parameters():
            if weight.ndim < 2:
                stored_bytes += 4 * weight.numel()
                continue
            # an embedding's channel is its token or position, stored by row
            flip = per_channel and name.split(".")[-2] in ("wte", "wpe")
            codes = quantize(weight.T if flip else weight, bits, per_channel)
            weight.copy_(codes.dequantize().T if flip else codes.dequantize())
            stored_bytes += codes.nbytes()
    return copied, stored_bytes

"""Weights rounded to a few bits."""

from __future__ import annotations

import pytest
import torch

from pipeline.model import CharTransformer, ModelConfig
from pipeline.quantize import quantize, rounded_copy

WEIGHT = torch.randn(40, 30, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("per_channel", [False, True])
def test_rounding_moves_no_weight_by_more_than_half_a_step(bits: int, per_channel: bool) -> None:
    codes = quantize(WEIGHT, bits, per_channel)
    error = (codes.dequantize() - WEIGHT).abs()
    assert (error <= codes.scale / 2 * (1 + 1e-5)).all()
    assert codes.scale.numel() == (30 if per_channel else 1)


@pytest.mark.parametrize("bits", [4, 8])
def test_rounding_is_symmetric_and_keeps_zero(bits: int) -> None:
    top = 2 ** (bits - 1) - 1
    codes = quantize(torch.tensor([[-2.0, 0.0, 2.0]]), bits)
    assert codes.values.tolist() == [[-top, 0, top]]
    assert codes.dequantize().tolist() == [[-2.0, 0.0, 2.0]]


def test_a_tensor_of_zeros_stays_zero() -> None:
    assert (quantize(torch.zeros(3, 2), 8).dequantize() == 0).all()


def test_a_scale_a_channel_is_never_worse() -> None:
    skewed = WEIGHT * torch.logspace(-2, 0, 30)
    errors = [
        (quantize(skewed, 4, per_channel).dequantize() - skewed).pow(2).mean()
        for per_channel in (True, False)
    ]
    assert errors[0] < errors[1]


def test_bits_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="draft.bits=9"):
        quantize(WEIGHT, 9)


def test_stored_bytes_are_those_of_codes_scales_and_what_stays_float() -> None:
    model = CharTransformer(ModelConfig(vocab=10, context=16, layers=1, heads=2, width=8))
    matrices = sum(p.numel() for p in model.parameters() if p.ndim == 2)
    tensors = sum(1 for p in model.parameters() if p.ndim == 2)
    rest = sum(p.numel() for p in model.parameters()) - matrices
    for bits in (4, 8):
        _, stored = rounded_copy(model, bits)
        assert stored == matrices * bits // 8 + 4 * tensors + 4 * rest
    assert rounded_copy(model, 8)[1] < model.weight_bytes() / 2


def test_the_target_itself_is_left_as_it_was() -> None:
    model = CharTransformer(ModelConfig(vocab=10, context=16, layers=1, heads=2, width=8))
    before = [p.clone() for p in model.parameters()]
    copied, _ = rounded_copy(model, 4, per_channel=True)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(before, copied.parameters(), strict=True))

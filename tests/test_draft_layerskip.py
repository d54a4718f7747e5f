"""layerskip: the target without some layers, the cache it borrows, and which layers to skip."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline import choose_layers
from pipeline.drafts.layerskip import LayerskipDraft, without
from pipeline.model import CharTransformer
from pipeline.sampling import Sampling
from pipeline.text import Vocabulary
from pipeline.weights import save_model
from tests.family import MODEL
from tests.models import TINY, VOCAB, decode


def deep(layers: int = 3) -> CharTransformer:
    torch.manual_seed(1)
    model = CharTransformer(replace(TINY, layers=layers)).double().eval().requires_grad_(False)
    for weight in model.parameters():
        if weight.ndim == 2:
            weight.mul_(6.0)
    return model


def deleted(model: CharTransformer, skip: list[int]) -> CharTransformer:
    """`model` built anew from copies of the weights of the layers that are not in `skip`."""
    kept = [index for index in range(model.cfg.layers) if index not in skip]
    out = CharTransformer(replace(model.cfg, layers=len(kept))).double().requires_grad_(False)
    old = model.state_dict()
    for name, weight in out.state_dict().items():
        parts = name.split(".")
        if parts[1] == "h":
            parts[2] = str(kept[int(parts[2])])
        weight.copy_(old[".".join(parts)])
    return out


@pytest.mark.parametrize("skip", [[0], [1], [2], [0, 2], [1, 2]])
def test_layerskip_is_the_model_with_those_layers_deleted(skip: list[int]) -> None:
    model = deep()
    texts, steps, _, _ = decode(model, LayerskipDraft(model, skip), 5, tokens=30)
    alone = deleted(model, skip)
    for step in steps:
        at = texts.prompt_length + int(step.start[0])
        ids = torch.from_numpy(np.concatenate([texts.ids[0, :at], step.drafted[0]])[None])
        rows, target_rows = (Sampling().rows(m(ids).numpy()[0, at - 1 :]) for m in (alone, model))
        np.testing.assert_allclose(step.q[0], rows[:-1], atol=1e-10)
        np.testing.assert_allclose(step.p[0], target_rows, atol=1e-10)


@pytest.mark.parametrize(("skip", "own_layers"), [([0], 2), ([1], 1), ([2], 0), ([0, 1], 1)])
def test_layerskip_keeps_no_weights_and_only_the_cache_of_later_layers(
    skip: list[int], own_layers: int
) -> None:
    model = deep()
    draft = LayerskipDraft(model, skip)
    _, _, target, reader = decode(model, draft, 4, tokens=30)
    assert reader is not None
    longest = target.cache_bytes() // (4 * 2 * 3 * TINY.width)
    a_layer = 4 * 2 * TINY.width
    assert draft.weight_bytes() == 0
    assert {p.data_ptr() for p in without(model, skip).parameters()} < {
        p.data_ptr() for p in model.parameters()
    }
    assert reader.cache_bytes() % a_layer == 0
    assert reader.cache_bytes() <= own_layers * a_layer * longest
    assert (reader.cache_bytes() > 0) == (own_layers > 0)


@pytest.mark.parametrize("skip", [[], [2], [-1], [0, 0], [0, 1], 1])
def test_a_list_of_layers_that_cannot_be_skipped_is_named(skip: list[int]) -> None:
    with pytest.raises(ValueError, match=r"draft\.skip=.*2 layers, 0 to 1"):
        LayerskipDraft(MODEL, skip)


def test_the_best_layers_are_those_that_do_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = deep()
    idle = model.transformer.h[1]
    for name, part in idle.named_parameters():
        if "c_proj" in name:
            part.data.zero_()
    text = torch.from_numpy(np.random.default_rng(2).integers(0, VOCAB, 200))
    found = choose_layers.choices(model, text)
    assert len(found) == 6 and all(0 < one.alpha <= 1 + 1e-9 for one in found)
    best = choose_layers.best(found)[0]
    assert best.skip == (1,) and best.alpha == pytest.approx(1)
    letters = Vocabulary("abcdefg")
    save_model(tmp_path, "target", model, letters, {})
    (tmp_path / "text.txt").write_text(letters.decode(text.numpy()), encoding="utf-8")
    given = ["--weights", str(tmp_path), "--text", str(tmp_path / "text.txt")]
    assert choose_layers.main(given) == 0
    said = capsys.readouterr().out
    assert "with 1 of 3 layers skipped the best is draft.skip=[1], alpha 1.0000" in said
    (tmp_path / "text.txt").write_text("xyz" * 20, encoding="utf-8")
    assert choose_layers.main(given) == 2
    assert "'x'" in capsys.readouterr().err

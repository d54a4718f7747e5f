"""Small models and shorthands that the decoding tests share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.context import Context
from pipeline.decode import Method, Step, Texts, autoregressive, speculative
from pipeline.drafts.base import Draft
from pipeline.drafts.bigram import BigramDraft
from pipeline.drafts.quantized import QuantizedDraft
from pipeline.model import CharTransformer, ModelConfig
from pipeline.reading import open_texts
from pipeline.sampling import Sampling, Uniforms
from pipeline.verify import find

VOCAB = 7
TINY = ModelConfig(vocab=VOCAB, context=48, layers=2, heads=2, width=16)


def tiny(seed: int = 0, sharpness: float = 6.0) -> CharTransformer:
    """A random float64 transformer whose rows are far from uniform."""
    torch.manual_seed(seed)
    model = CharTransformer(TINY).double().eval().requires_grad_(False)
    for weight in model.parameters():
        if weight.ndim == 2:
            weight.mul_(sharpness)
    return model


@dataclass
class Same(Draft):
    """A draft that is the target itself."""

    model: CharTransformer
    keeps: str = "a copy"
    most: int | None = None

    def open(
        self, prompt: NDArray[np.int64], capacity: int, lanes: int | None, dtype: torch.dtype
    ) -> Context:
        return open_texts(self.model, prompt, capacity, lanes)

    def weight_bytes(self) -> int:
        return 0


def drafts(model: CharTransformer) -> dict[str, Draft]:
    """One of each kind, by name, and the target as its own draft."""
    rows = np.random.default_rng(1).dirichlet(np.ones(VOCAB), VOCAB)
    return {
        "bigram": BigramDraft(rows),
        "int8": QuantizedDraft(model, 8),
        "int4": QuantizedDraft(model, 4),
        "same": Same(model),
    }


def decode(
    model: CharTransformer,
    draft: Draft | None,
    k: int = 3,
    *,
    prompt: tuple[int, ...] = (0, 3, 1),
    tokens: int = 20,
    seed: int = 0,
    rule: str = "token",
    sampling: Sampling | None = None,
    eos: int | None = None,
    lanes: int | None = None,
    threshold: float = 0.0,
) -> tuple[Texts, list[Step], Context, Context | None]:
    """Decode to the end; `draft=None` is plain decoding."""
    ids = np.array(prompt, np.int64)
    texts = Texts(ids, tokens, lanes or 1, eos)
    target = open_texts(model, ids[:-1], len(ids) + tokens, lanes)
    sampling = sampling or Sampling()
    uniforms = Uniforms(seed, lanes or 1)
    if draft is None:
        return texts, list(autoregressive(target, texts, sampling, uniforms)), target, None
    reader = draft.open(ids[:-1], len(ids) + tokens, lanes, model.dtype)
    method = Method(k, find(rule), sampling, threshold)
    steps = list(speculative(target, reader, texts, method, uniforms))
    return texts, steps, target, reader

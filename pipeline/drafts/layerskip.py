"""layerskip: the target drafts for itself with some of its layers left out.

Self-speculation (Zhang et al. 2023, arXiv 2309.08168; Elhoushi et al. 2024, 2404.16710): no weights
beside the target's. Up to the first skipped layer the draft computes what the target computes, so
of these layers the target's cache is used; of later ones it keeps a cache of its own, because their
input is another. The draft is the very model with those layers deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pipeline.cache import KVCache
from pipeline.compiled_text import DRAFT_READS, compile_reads
from pipeline.context import Context
from pipeline.drafts.base import Draft, TwoTypes
from pipeline.model import CharTransformer, ModelConfig
from pipeline.one_text import OneText
from pipeline.reading import open_texts


class LayerskipDraft(Draft):
    """The target without the layers `skip`, counted from 0."""

    keeps = "a KV cache of the layers after the first skipped one; the rest is the target's own"

    def __init__(self, target: CharTransformer, skip: Sequence[int]) -> None:
        """ValueError for a list that names no layer, one that is not there, or all of them."""
        layers = target.cfg.layers
        named = set(skip) if isinstance(skip, Sequence) else set()
        if not named or len(named) != len(skip) or not named < set(range(layers)):
            raise ValueError(
                f"draft.skip={skip}: list some of the target's {layers} layers, 0 to {layers - 1}, "
                "each once and not all of them"
            )
        self._models = TwoTypes(without(target, skip))
        self._shared = min(skip)

    def compile(self, k: int) -> None:
        compile_reads(self._models.given, DRAFT_READS)

    def open(
        self, prompt: NDArray[np.int64], capacity: int, lanes: int | None, dtype: torch.dtype
    ) -> Context:
        model = self._models.of(dtype)
        if lanes is None and model.reader is None:  # a compiled one keeps all of its cache itself
            return SkippingText(model, prompt, capacity, self._shared)
        return open_texts(model, prompt, capacity, lanes)

    def weight_bytes(self) -> int:
        return 0  # every weight is the target's


def without(target: CharTransformer, skip: Sequence[int]) -> CharTransformer:
    """`target` with the layers `skip` deleted; what is left are the very same tensors."""
    kept = [block for index, block in enumerate(target.transformer.h) if index not in skip]
    with torch.device("meta"):
        model = CharTransformer(replace(target.cfg, layers=len(kept)))
    body = model.transformer
    body.wte, body.wpe = target.transformer.wte, target.transformer.wpe
    body.h, body.ln_f = nn.ModuleList(kept), target.transformer.ln_f
    return model.eval()


class SkippingText(OneText):
    """One text. Keys and values of the first `shared` layers are the target's that it follows."""

    def __init__(
        self, model: CharTransformer, prompt: NDArray[np.int64], capacity: int, shared: int
    ) -> None:
        super().__init__(model, prompt, min(capacity, model.cfg.context))
        self._own_layers = replace(model.cfg, layers=model.cfg.layers - shared)

    def follow(self, target: Context) -> None:
        bare = target.bare()
        if isinstance(bare, OneText) and not isinstance(self._cache, BorrowingCache):
            self._cache = BorrowingCache(self._own_layers, self._cache, bare.cache)


class BorrowingCache(KVCache):
    """A cache whose first layers are those of another one, the lender, over the same text.

    Tokens beyond the lender's length are written into its free room, where its next pass writes
    its own; what it has stored itself is never overwritten.
    """

    def __init__(self, own: ModelConfig, whole: KVCache, lender: KVCache) -> None:
        """Go on from `whole`, of which the last layers, as many as `own` has, stay."""
        super().__init__(own, whole.capacity, whole._keys.dtype)
        self._lender, self._borrowed = lender, len(whole._keys) - own.layers
        self._keys.copy_(whole._keys[self._borrowed :])
        self._values.copy_(whole._values[self._borrowed :])
        self.length = whole.length

    def _views(self, start: int, count: int) -> list[tuple[Tensor, Tensor]]:
        lent = self._lender._views(start, count)[: self._borrowed]
        return [*lent, *super()._views(start, count)]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        there = self._lender.length - self.length
        if layer < self._borrowed and there > 0:
            keys, values = self._new[layer]
            k = torch.cat([keys[:, :, :there], k[:, :, there:]], dim=2)
            v = torch.cat([values[:, :, :there], v[:, :, there:]], dim=2)
        return super().attend(layer, q, k, v)

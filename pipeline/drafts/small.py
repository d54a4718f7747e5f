"""small: a separate transformer of the target's kind, about a tenth of its size, trained alike.

The draft of the first papers (Leviathan et al. 2023, arXiv 2211.17192; Chen et al. 2023,
2302.01318): another model, that shares nothing with the target but the characters.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.compiled_text import DRAFT_READS, compile_reads
from pipeline.context import Context
from pipeline.drafts.base import Draft, TwoTypes
from pipeline.model import CharTransformer
from pipeline.reading import open_texts


class SmallDraft(Draft):
    """A transformer of its own."""

    keeps = "weights of its own and a KV cache of its own"

    def __init__(self, model: CharTransformer, target: CharTransformer) -> None:
        """ValueError for a model that reads shorter texts than the target."""
        if model.cfg.context < target.cfg.context:
            raise ValueError(
                f"the small draft reads {model.cfg.context} characters and the target "
                f"{target.cfg.context}: train it with the target's context"
            )
        self._models = TwoTypes(model)

    def compile(self, k: int) -> None:
        compile_reads(self._models.given, DRAFT_READS)

    def open(
        self, prompt: NDArray[np.int64], capacity: int, lanes: int | None, dtype: torch.dtype
    ) -> Context:
        return open_texts(self._models.of(dtype), prompt, capacity, lanes)

    def weight_bytes(self) -> int:
        return self._models.given.weight_bytes()
